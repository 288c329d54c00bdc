"""Which units a job holds: by device index where Slurm names it, else all units of nodes it holds to the last GPU.

Where neither holds nothing is said: an allocation is never guessed.
"""

from collections.abc import Iterator, Sequence

from clusterscape.collect.slurm.facts import JobFacts
from clusterscape.collect.slurm.gres import SHARED_NAMES, Gres
from clusterscape.collect.slurm.parse_nodes import Inventory, slurm_unit_id
from clusterscape.model import (
    CONFIDENCE,
    Allocation,
    AllocationSource,
    NodeId,
    UnitId,
    UnixMs,
    WorkloadId,
    WorkloadState,
)

Holding = tuple[UnitId, AllocationSource]


def allocations_of(job: JobFacts, workload: WorkloadId, inventory: Inventory, now_ms: UnixMs) -> list[Allocation]:
    """The job's allocations, open while it is active. An active job without a start is taken to have started now."""
    if job.state is WorkloadState.WAITING:
        return []
    from_at, to_at = job.started_at, None if job.state.is_active else job.end_at
    if not job.state.is_active and (from_at is None or to_at is None):
        return []
    # A GPU may be named twice (a share and the whole): it is held once.
    holdings = dict(_iter_holdings(job, inventory))
    return [
        Allocation(
            workload=workload,
            unit=unit,
            from_at=now_ms if from_at is None else from_at,
            to_at=to_at,
            source=source,
            confidence=CONFIDENCE[source],
        )
        for unit, source in holdings.items()
    ]


def _iter_holdings(job: JobFacts, inventory: Inventory) -> Iterator[Holding]:
    if job.node_gres is not None:
        for node, entries in zip(job.nodes, job.node_gres, strict=True):
            yield from _iter_node_holdings(node, entries, inventory)
    elif "COMPLETING" not in job.state_words:  # by then Slurm no longer tells which GPUs it was
        yield from _iter_whole_nodes(job.nodes, job.held.count, inventory)


def _iter_node_holdings(node: NodeId, entries: Sequence[Gres], inventory: Inventory) -> Iterator[Holding]:
    units = inventory.node_units.get(node)
    uncounted = 0
    for gres in entries:
        if gres.indices:
            if gres.name == "gpu" or gres.name in SHARED_NAMES:
                yield from ((unit, AllocationSource.SCHEDULER_INDEX) for unit in _indexed(node, gres, units))
        elif gres.name == "gpu":
            uncounted += gres.count
    if uncounted:
        yield from _iter_whole_nodes((node,), uncounted, inventory)


def _indexed(node: NodeId, gres: Gres, units: Sequence[UnitId] | None) -> Iterator[UnitId]:
    """The units of a GRES entry's indices; an index that the node does not have is left out."""
    for index in gres.indices or ():
        if units is None:
            yield slurm_unit_id(node, index, is_mig=gres.mig_profile is not None)
        elif index < len(units):
            yield units[index]


def _iter_whole_nodes(nodes: Sequence[NodeId], gpus: int, inventory: Inventory) -> Iterator[Holding]:
    units = [unit for node in nodes for unit in inventory.node_units.get(node, ())]
    if gpus and gpus == len(units) and all(node in inventory.node_units for node in nodes):
        yield from ((unit, AllocationSource.WHOLE_NODE) for unit in units)
