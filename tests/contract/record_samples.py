"""Records for the contract tests of record stores: short-hands, and one of each kind with every field set."""

from collections.abc import Iterable
from dataclasses import replace

from clusterscape.model import (
    Allocation,
    AllocationSource,
    Execution,
    GpuUuid,
    Node,
    NodeId,
    NodeState,
    Partition,
    SourceStatus,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadKind,
    WorkloadState,
    gpu_unit_id,
    mig_unit_id,
)

T0 = UnixMs(1_700_000_000_000)
HOUR_MS = 3_600_000


def at(hours: float) -> UnixMs:
    return UnixMs(T0 + int(hours * HOUR_MS))


def job(number: int, state: WorkloadState = WorkloadState.RUNNING, **changes: object) -> Workload:
    workload = Workload(id=WorkloadId(f"slurm:{number}"), state=state, submitted_at=at(number))
    return replace(workload, **changes)  # type: ignore[arg-type]


def ids(workloads: Iterable[Workload]) -> list[str]:
    return [workload.id for workload in workloads]


def allocation(number: int, unit: str, start: float, end: float | None = None) -> Allocation:
    return Allocation(
        workload=WorkloadId(f"slurm:{number}"),
        unit=UnitId(unit),
        from_at=at(start),
        to_at=None if end is None else at(end),
    )


FULL_NODE = Node(
    id=NodeId("gpu-017"),
    partitions=("a100", "debug"),
    machine_type="A100-80G",
    state=NodeState.DRAINED,
    reason="row remapping failed – wait for parts",
    gpu_count=8,
    cpu_count=128,
    memory_bytes=2**41,
    features=("ib", "nvme"),
    rack="r3",
    driver_version="580.159.03",
)
FULL_PARTITION = Partition(
    name="a100", nodes=(NodeId("gpu-017"),), is_up=False, is_default=True, max_time_s=86_400 * 365 * 100
)
FULL_UNIT = Unit(
    id=mig_unit_id(NodeId("gpu-017"), 3, 7),
    kind=UnitKind.MIG,
    node=NodeId("gpu-017"),
    index=3,
    uuid=GpuUuid("MIG-4f0e"),
    machine_type="A100-80G",
    memory_bytes=10 * 2**30,
    power_limit_watts=399.95,
    pci_bus_id="00000000:CB:00.0",
    parent=gpu_unit_id(NodeId("gpu-017"), 3),
    mig_profile="1g.10gb",
    workload=WorkloadId("slurm:4711"),
)
FULL_WORKLOAD = Workload(
    id=WorkloadId("slurm:4711_3"),
    state=WorkloadState.OUT_OF_MEMORY,
    kind=WorkloadKind.SESSION,
    name="GPT-12 × ablation",
    user="mbäcker",
    project="nlp",
    experiment="2026-spring",
    partition="a100",
    resource_type="A100-8",
    qos="long",
    priority=2**32 - 2,
    gpus_requested=8,
    nodes_requested=1,
    time_limit_s=86_400,
    submitted_at=at(0),
    eligible_at=at(0.1),
    started_at=at(0.2),
    ended_at=at(5),
    expected_start_at=at(0.3),
    pending_reason="Resources",
    exit_code=2**31 + 9,
    exit_signal=9,
    restarts=2,
    nodes=("gpu-018", "gpu-017"),
    tags={"comment": "zweite Runde", "wckey": "x"},
    gpus_allocated=8,
    suspended_s=60,
    suspended_at=at(4),
    earlier=(
        Execution(
            started_at=at(-9),
            ended_at=at(-8),
            gpus=4,
            suspended_s=5,
            state=WorkloadState.PREEMPTED,
            word="REQUEUED",
            submitted_at=at(-10),
            is_estimated=True,
        ),
    ),
    derived_exit_code=2,
    derived_exit_signal=15,
    cpus=96,
    memory_requested_bytes=2**40,
)
FULL_ALLOCATION = Allocation(
    workload=FULL_WORKLOAD.id,
    unit=FULL_UNIT.id,
    from_at=at(0.2),
    to_at=at(5),
    source=AllocationSource.EXPORTER_LABEL,
    confidence=0.9,
)
FULL_STATUS = SourceStatus(
    source="dcgm http://gpu-017:9400/metrics",
    kind="dcgm",
    is_ok=False,
    at=at(1),
    node=NodeId("gpu-017"),
    message="refused",
    hint="Start dcgm-exporter there.",
    duration_s=0.125,
)
