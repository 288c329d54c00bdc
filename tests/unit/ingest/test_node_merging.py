from dataclasses import replace

from clusterscape.ingest.ledger import ExporterFacts, Ledger
from clusterscape.model import (
    Allocation,
    AllocationSource,
    GpuUuid,
    InventoryObserved,
    Node,
    NodeId,
    NodeState,
    Partition,
    QueueObserved,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    unplaced_unit_id,
)

MINUTE_MS = 60_000


def inventory(source: str, at: int, *nodes: Node, partitions: tuple[str, ...] = ()) -> InventoryObserved:
    partition_records = [Partition(name=name, nodes=tuple(node.id for node in nodes)) for name in partitions]
    return InventoryObserved(source=source, at=UnixMs(at), nodes=nodes, partitions=partition_records)


def node(name: str, state: NodeState = NodeState.IDLE, *partitions: str) -> Node:
    return Node(id=NodeId(name), state=state, partitions=partitions, gpu_count=8)


def test_partitions_of_both_schedulers_stay_when_each_is_looked_at_in_turn() -> None:
    ledger = Ledger()
    for at in range(3):
        assert not ledger.apply_inventory(inventory("slurm", at, node("a"), partitions=("gpu",))).removed_partitions
        assert not ledger.apply_inventory(
            inventory("kubernetes", at, node("b"), partitions=("k8s/llm",))
        ).removed_partitions
    assert set(ledger.partitions) == {"gpu", "k8s/llm"}
    change = ledger.apply_inventory(inventory("slurm", 4, node("a"), partitions=("other",)))
    assert list(change.removed_partitions) == ["gpu"]


def test_the_other_schedulers_partitions_stay_when_the_program_was_restarted() -> None:
    ledger = Ledger(partitions=[Partition(name="gpu"), Partition(name="k8s/llm"), Partition(name="old")])
    assert not ledger.apply_inventory(inventory("slurm", 0, node("a"), partitions=("gpu",))).removed_partitions
    ledger.apply_inventory(inventory("kubernetes", 1, node("b"), partitions=("k8s/llm",)))
    late = ledger.apply_inventory(inventory("slurm", 11 * MINUTE_MS, node("a"), partitions=("gpu",)))
    assert list(late.removed_partitions) == ["old"]


def test_node_has_partitions_of_both_schedulers_when_they_share_it() -> None:
    ledger = Ledger()
    ledger.apply_inventory(inventory("slurm", 0, node("a", NodeState.ALLOCATED, "gpu")))
    ledger.apply_inventory(inventory("kubernetes", 0, node("a", NodeState.DRAINED, "k8s/llm")))
    joined = ledger.nodes[NodeId("a")]
    assert (joined.partitions, joined.state) == (("k8s/llm", "gpu"), NodeState.DRAINED)
    again = ledger.apply_inventory(inventory("slurm", 1, node("a", NodeState.ALLOCATED, "gpu")))
    assert not again.nodes
    left = ledger.apply_inventory(inventory("kubernetes", 2, node("b")))
    assert not left.removed
    assert ledger.apply_inventory(inventory("slurm", 3, node("a", NodeState.IDLE, "gpu"))).nodes[0].partitions == (
        "gpu",
    )


def test_exporters_pod_is_matched_to_its_workload_when_the_scheduler_reported_the_name() -> None:
    ledger = Ledger()
    workload = Workload(id=WorkloadId("kubernetes:a.train.1"), state=WorkloadState.RUNNING)
    pod = WorkloadId("kubernetes:a/train-0")
    queue = QueueObserved(
        source="kubernetes", at=UnixMs(0), workloads=[workload], allocations=[], aliases={pod: workload.id}
    )
    ledger.apply_queue(queue)
    change = ledger.apply_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(1))
    (held,) = change.allocations
    assert (held.workload, held.unit, held.source) == (workload.id, "a:3", AllocationSource.EXPORTER_LABEL)


def test_a_device_known_by_uuid_is_placed_when_an_exporter_has_seen_it() -> None:
    uuid = GpuUuid("GPU-1")
    ledger = Ledger(units=[Unit(id=UnitId("a:3"), node=NodeId("a"), index=3, uuid=uuid)])
    workload = WorkloadId("kubernetes:a.train.1")
    placed = Allocation(workload=workload, unit=unplaced_unit_id(uuid), from_at=UnixMs(5))
    unknown = replace(placed, unit=unplaced_unit_id(GpuUuid("GPU-2")))
    queue = QueueObserved(source="kubernetes", at=UnixMs(9), workloads=[], allocations=[placed, unknown])
    assert [allocation.unit for allocation in ledger.apply_queue(queue).allocations] == ["a:3"]
    assert not ledger.apply_queue(queue).allocations


def test_exporters_pod_is_matched_when_the_scheduler_reports_its_name_later() -> None:
    other = Workload(id=WorkloadId("slurm:1"), state=WorkloadState.RUNNING)
    workload = Workload(id=WorkloadId("kubernetes:a.train.1"), state=WorkloadState.RUNNING)
    pod = WorkloadId("kubernetes:a/train-0")
    ledger = Ledger(workloads=[other])
    assert not ledger.apply_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(1)).allocations
    queue = QueueObserved(
        source="kubernetes", at=UnixMs(2), workloads=[workload], allocations=[], aliases={pod: workload.id}
    )
    assert [(allocation.workload, allocation.unit) for allocation in ledger.apply_queue(queue).allocations] == [
        (workload.id, "a:3")
    ]
    assert not ledger.apply_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(3)).allocations


def test_a_holder_is_renamed_when_the_exporter_was_heard_before_any_scheduler() -> None:
    pod, workload = WorkloadId("kubernetes:a/train-0"), WorkloadId("kubernetes:a.train.1")
    ledger = Ledger()
    (early,) = ledger.apply_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(1)).allocations
    assert early.workload == pod
    running = Workload(id=workload, state=WorkloadState.RUNNING)
    queue = QueueObserved(
        source="kubernetes", at=UnixMs(2), workloads=[running], allocations=[], aliases={pod: workload}
    )
    changes = ledger.apply_queue(queue).allocations
    assert [(allocation.workload, allocation.from_at, allocation.to_at) for allocation in changes] == [
        (pod, 1, 1),
        (workload, 1, None),
    ]
    assert not ledger.apply_queue(queue).allocations
    assert not ledger.apply_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(3)).allocations
