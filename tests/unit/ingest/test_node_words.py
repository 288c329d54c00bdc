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
    made = [Partition(name=name, nodes=tuple(node.id for node in nodes)) for name in partitions]
    return InventoryObserved(source=source, at=UnixMs(at), nodes=nodes, partitions=made)


def node(name: str, state: NodeState = NodeState.IDLE, *partitions: str) -> Node:
    return Node(id=NodeId(name), state=state, partitions=partitions, gpu_count=8)


def test_partitions_of_both_schedulers_stay_when_each_is_looked_at_in_turn() -> None:
    ledger = Ledger()
    for at in range(3):
        assert not ledger.see_inventory(inventory("slurm", at, node("a"), partitions=("gpu",))).removed_partitions
        assert not ledger.see_inventory(
            inventory("kubernetes", at, node("b"), partitions=("k8s/llm",))
        ).removed_partitions
    assert set(ledger.partitions) == {"gpu", "k8s/llm"}
    change = ledger.see_inventory(inventory("slurm", 4, node("a"), partitions=("other",)))
    assert list(change.removed_partitions) == ["gpu"]


def test_the_other_schedulers_partitions_stay_when_the_program_was_restarted() -> None:
    ledger = Ledger(partitions=[Partition(name="gpu"), Partition(name="k8s/llm"), Partition(name="old")])
    assert not ledger.see_inventory(inventory("slurm", 0, node("a"), partitions=("gpu",))).removed_partitions
    ledger.see_inventory(inventory("kubernetes", 1, node("b"), partitions=("k8s/llm",)))
    late = ledger.see_inventory(inventory("slurm", 11 * MINUTE_MS, node("a"), partitions=("gpu",)))
    assert list(late.removed_partitions) == ["old"]


def test_a_node_has_both_words_when_two_schedulers_share_it() -> None:
    ledger = Ledger()
    ledger.see_inventory(inventory("slurm", 0, node("a", NodeState.ALLOCATED, "gpu")))
    ledger.see_inventory(inventory("kubernetes", 0, node("a", NodeState.DRAINED, "k8s/llm")))
    joined = ledger.nodes[NodeId("a")]
    assert (joined.partitions, joined.state) == (("k8s/llm", "gpu"), NodeState.DRAINED)
    again = ledger.see_inventory(inventory("slurm", 1, node("a", NodeState.ALLOCATED, "gpu")))
    assert not again.nodes
    left = ledger.see_inventory(inventory("kubernetes", 2, node("b")))
    assert not left.removed
    assert ledger.see_inventory(inventory("slurm", 3, node("a", NodeState.IDLE, "gpu"))).nodes[0].partitions == ("gpu",)


def test_an_exporters_pod_is_its_workload_when_the_scheduler_told_the_name() -> None:
    ledger = Ledger()
    workload = Workload(id=WorkloadId("kubernetes:a.train.1"), state=WorkloadState.RUNNING)
    pod = WorkloadId("kubernetes:a/train-0")
    seen = QueueObserved(
        source="kubernetes", at=UnixMs(0), workloads=[workload], allocations=[], aliases={pod: workload.id}
    )
    ledger.see_queue(seen)
    change = ledger.see_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(1))
    (held,) = change.allocations
    assert (held.workload, held.unit, held.source) == (workload.id, "a:3", AllocationSource.EXPORTER_LABEL)


def test_a_device_known_by_uuid_is_placed_when_an_exporter_has_seen_it() -> None:
    uuid = GpuUuid("GPU-1")
    ledger = Ledger(units=[Unit(id=UnitId("a:3"), node=NodeId("a"), index=3, uuid=uuid)])
    workload = WorkloadId("kubernetes:a.train.1")
    known = Allocation(workload=workload, unit=unplaced_unit_id(uuid), from_at=UnixMs(5))
    unknown = replace(known, unit=unplaced_unit_id(GpuUuid("GPU-2")))
    seen = QueueObserved(source="kubernetes", at=UnixMs(9), workloads=[], allocations=[known, unknown])
    assert [each.unit for each in ledger.see_queue(seen).allocations] == ["a:3"]
    assert not ledger.see_queue(seen).allocations


def test_an_exporters_pod_is_believed_when_the_scheduler_tells_its_name_later() -> None:
    other = Workload(id=WorkloadId("slurm:1"), state=WorkloadState.RUNNING)
    workload = Workload(id=WorkloadId("kubernetes:a.train.1"), state=WorkloadState.RUNNING)
    pod = WorkloadId("kubernetes:a/train-0")
    ledger = Ledger(workloads=[other])
    assert not ledger.see_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(1)).allocations
    seen = QueueObserved(
        source="kubernetes", at=UnixMs(2), workloads=[workload], allocations=[], aliases={pod: workload.id}
    )
    assert [(each.workload, each.unit) for each in ledger.see_queue(seen).allocations] == [(workload.id, "a:3")]
    assert not ledger.see_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(3)).allocations


def test_a_holder_is_renamed_when_the_exporter_was_heard_before_any_scheduler() -> None:
    pod, workload = WorkloadId("kubernetes:a/train-0"), WorkloadId("kubernetes:a.train.1")
    ledger = Ledger()
    (early,) = ledger.see_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(1)).allocations
    assert early.workload == pod
    running = Workload(id=workload, state=WorkloadState.RUNNING)
    seen = QueueObserved(
        source="kubernetes", at=UnixMs(2), workloads=[running], allocations=[], aliases={pod: workload}
    )
    changes = ledger.see_queue(seen).allocations
    assert [(each.workload, each.from_at, each.to_at) for each in changes] == [(pod, 1, 1), (workload, 1, None)]
    assert not ledger.see_queue(seen).allocations
    assert not ledger.see_labels(ExporterFacts(labels={UnitId("a:3"): [pod]}), UnixMs(3)).allocations
