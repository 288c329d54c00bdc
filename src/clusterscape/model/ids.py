"""Branded identifiers and times. A bare ``str`` or ``int`` never crosses a boundary as an id or a time."""

from typing import NewType

NodeId = NewType("NodeId", str)
"""A host's short name in the scheduler: ``gpu-017``."""

UnitId = NewType("UnitId", str)
"""A unit's place: ``gpu-017:3``, a MIG instance ``gpu-017:3/7``, a requested GPU ``slurm:4711#0``.

Samples that are not of a GPU have these ids: a whole node ``gpu-017``, the part of a job on a node ``slurm:4711@gpu-017``.
The place, not the UUID: schedulers name node and index, and a place keeps its history when a card is replaced."""

WorkloadId = NewType("WorkloadId", str)
"""Source and its id of the workload: ``slurm:4711``, ``slurm:4711_3`` for an array task."""

GpuUuid = NewType("GpuUuid", str)
"""The hardware id of the driver, ``GPU-…`` or ``MIG-…``."""

UnixMs = NewType("UnixMs", int)
"""Milliseconds since 1970-01-01 UTC. Every ``*_at`` and ``*_ms`` instant in ClusterScape is one of these."""


def gpu_unit_id(node: NodeId, index: int) -> UnitId:
    """The place of GPU ``index`` on ``node``."""
    return UnitId(f"{node}:{index}")


def mig_unit_id(node: NodeId, index: int, instance: int) -> UnitId:
    """The place of MIG instance ``instance`` on GPU ``index`` of ``node``."""
    return UnitId(f"{node}:{index}/{instance}")


def job_unit_id(job: str, node: NodeId) -> UnitId:
    """The part of a job on ``node``. ``job``: the number that Slurm gives every job, array task and component, or its SLUID.

    Not the workload's id: exporters know only the number, and may report a job before the scheduler's poll lists it.
    """
    return UnitId(f"slurm:{job}@{node}")


def requested_unit_id(workload: WorkloadId, ordinal: int) -> UnitId:
    """The ``ordinal``-th GPU that a waiting workload requests."""
    return UnitId(f"{workload}#{ordinal}")


def unplaced_unit_id(uuid: GpuUuid) -> UnitId:
    """A unit of which only the UUID is known; ingest looks up its place, or drops it."""
    return UnitId(uuid)
