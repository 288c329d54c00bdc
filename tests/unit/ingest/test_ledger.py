"""Changes that observations make to the ledger, in cases worked out by hand."""

from dataclasses import replace

from clusterscape.ingest.ledger import CONFLICT_AFTER_MS, UNCLAIMED_AFTER_MS, ExporterFacts, Ledger
from clusterscape.model import (
    Allocation,
    AllocationSource,
    HistoryObserved,
    InventoryObserved,
    Node,
    NodeId,
    NodeState,
    Partition,
    QueueObserved,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
    mig_unit_id,
)

NODE = NodeId("n1")
UNIT = gpu_unit_id(NODE, 0)
JOB = WorkloadId("slurm:1")
RUNNING = Workload(id=JOB, state=WorkloadState.RUNNING, user="ada", started_at=UnixMs(1000), gpus_requested=1)
HELD = Allocation(workload=JOB, unit=UNIT, from_at=UnixMs(1000))


def queue(at: int, workloads: list[Workload], allocations: list[Allocation]) -> QueueObserved:
    return QueueObserved(source="slurm", at=UnixMs(at), workloads=workloads, allocations=allocations)


def inventory(at: int, *nodes: Node, units: tuple[Unit, ...] = ()) -> InventoryObserved:
    return InventoryObserved(source="slurm", at=UnixMs(at), nodes=nodes, units=units)


def test_nothing_is_written_when_the_same_is_seen_again() -> None:
    ledger = Ledger()
    assert ledger.apply_queue(queue(2000, [RUNNING], [HELD]))
    assert not ledger.apply_queue(queue(3000, [RUNNING], [HELD]))
    assert ledger.apply_inventory(inventory(1, Node(id=NODE)))
    assert not ledger.apply_inventory(inventory(2, Node(id=NODE)))


def test_workload_ends_and_its_units_are_free_when_the_queue_no_longer_names_it() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(2000, [RUNNING], [HELD]))
    change = ledger.apply_queue(queue(9000, [], []))
    assert [(w.state, w.ended_at) for w in change.workloads] == [(WorkloadState.UNKNOWN, 9000)]
    assert [a.to_at for a in change.allocations] == [9000]
    assert not ledger.open


def test_waiting_tasks_end_as_their_array_when_slurm_names_only_that() -> None:
    """As squeue shows ``1_[2-3]`` after ``scancel 1``: without its tasks. A task that ran is not the array's."""
    tags = {"array_job": "1"}
    running = replace(RUNNING, id=WorkloadId("slurm:1_1"), tags=tags)
    waiting = [Workload(id=WorkloadId(f"slurm:1_{task}"), state=WorkloadState.WAITING, tags=tags) for task in (2, 3)]
    rest = Workload(id=JOB, state=WorkloadState.CANCELLED, ended_at=UnixMs(8000), tags=tags)
    ledger = Ledger()
    ledger.apply_queue(queue(2000, [running, *waiting], []))
    change = ledger.apply_queue(queue(9000, [rest], []))
    assert {w.id: (w.state, w.ended_at) for w in change.workloads if w.id != JOB} == {
        "slurm:1_1": (WorkloadState.UNKNOWN, 9000),
        "slurm:1_2": (WorkloadState.CANCELLED, 8000),
        "slurm:1_3": (WorkloadState.CANCELLED, 8000),
    }


def test_allocation_closes_at_the_true_end_when_the_queue_still_shows_the_ended_job() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(2000, [RUNNING], [HELD]))
    done = replace(RUNNING, state=WorkloadState.COMPLETED, ended_at=UnixMs(5000))
    change = ledger.apply_queue(queue(9000, [done], []))
    assert [a.to_at for a in change.allocations] == [5000]


def test_other_sources_workloads_stay_when_one_source_is_complete() -> None:
    local = replace(RUNNING, id=WorkloadId("local:77"))
    ledger = Ledger(workloads=[local], allocations=[replace(HELD, workload=local.id)])
    assert not ledger.apply_queue(queue(2000, [], []))
    assert local.id in ledger.active


def test_history_reports_the_end_state_when_a_job_vanished_from_the_queue() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(2000, [replace(RUNNING, pending_reason="Resources")], [HELD]))
    ledger.apply_queue(queue(9000, [], []))
    accounted = Workload(id=JOB, state=WorkloadState.FAILED, ended_at=UnixMs(8500), exit_code=3)
    change = ledger.apply_history(HistoryObserved(source="slurm", at=UnixMs(10_000), workloads=[accounted]))
    (merged,) = change.workloads
    assert (merged.state, merged.ended_at, merged.exit_code) == (WorkloadState.FAILED, 8500, 3)
    assert (merged.user, merged.pending_reason) == ("ada", "Resources")
    assert [(a.unit, a.to_at) for a in change.allocations] == [(UNIT, 8500)], (
        "held until its end, not until it was missed"
    )
    again = ledger.apply_history(HistoryObserved(source="slurm", at=UnixMs(11_000), workloads=[accounted]))
    assert not again


def test_allocation_closes_at_the_true_end_when_the_job_was_seen_completing_without_it() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(2000, [RUNNING], [HELD]))
    assert [a.to_at for a in ledger.apply_queue(queue(3000, [RUNNING], [])).allocations] == [3000]
    ended = replace(RUNNING, state=WorkloadState.COMPLETED, ended_at=UnixMs(3400))
    assert [a.to_at for a in ledger.apply_queue(queue(4000, [ended], [])).allocations] == [3400]
    assert not ledger.apply_queue(queue(5000, [ended], []))


def test_part_that_was_given_away_stays_closed_when_the_job_ends() -> None:
    ledger = Ledger()
    other = replace(HELD, unit=gpu_unit_id(NODE, 1))
    ledger.apply_queue(queue(2000, [RUNNING], [HELD, other]))
    ledger.apply_queue(queue(3000, [RUNNING], [HELD]))
    ended = replace(RUNNING, state=WorkloadState.COMPLETED, ended_at=UnixMs(8000))
    assert [(a.unit, a.to_at) for a in ledger.apply_queue(queue(9000, [ended], [])).allocations] == [(UNIT, 8000)]


def test_former_life_stays_closed_when_a_requeued_job_ends() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(2000, [RUNNING], [HELD]))
    ledger.apply_queue(queue(3000, [replace(RUNNING, state=WorkloadState.WAITING, started_at=None)], []))
    again = replace(RUNNING, started_at=UnixMs(5000))
    ledger.apply_queue(queue(6000, [again], [replace(HELD, from_at=UnixMs(5000))]))
    ended = replace(again, state=WorkloadState.COMPLETED, ended_at=UnixMs(8000))
    closed = ledger.apply_queue(queue(9000, [ended], [])).allocations
    assert [(a.from_at, a.to_at) for a in closed] == [(5000, 8000)]


def test_durations_are_never_negative_when_the_clock_goes_back() -> None:
    ledger = Ledger()
    started = replace(RUNNING, started_at=UnixMs(5000))
    ledger.apply_queue(queue(6000, [started], [replace(HELD, from_at=UnixMs(5000))]))
    change = ledger.apply_queue(queue(1000, [], []))
    assert [w.ended_at for w in change.workloads] == [5000]
    assert [a.to_at for a in change.allocations] == [5000]
    ledger.apply_labels(ExporterFacts(labels={UNIT: [WorkloadId("slurm:9")]}), UnixMs(9000))
    (ended,) = ledger.apply_labels(ExporterFacts(labels={UNIT: []}), UnixMs(2000)).allocations
    assert ended.to_at == ended.from_at


def test_requeued_workload_begins_a_new_allocation_when_it_starts_again() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(2000, [RUNNING], [HELD]))
    again = replace(RUNNING, restarts=1, started_at=UnixMs(7000))
    change = ledger.apply_queue(queue(8000, [again], [replace(HELD, from_at=UnixMs(7000))]))
    assert sorted((a.from_at, a.to_at) for a in change.allocations if a.to_at) == [(1000, 7000)]
    assert [key[2] for key in ledger.open] == [7000]


def test_node_is_removed_when_its_complete_source_no_longer_names_it() -> None:
    ledger = Ledger()
    other = NodeId("n2")
    ledger.apply_inventory(
        inventory(1, Node(id=NODE), Node(id=other), units=(Unit(id=gpu_unit_id(other, 0), node=other, index=0),))
    )
    change = ledger.apply_inventory(inventory(2, Node(id=NODE)))
    assert list(change.removed) == [other]
    assert not ledger.units


def test_all_nodes_stay_when_a_complete_answer_is_empty() -> None:
    ledger = Ledger()
    ledger.apply_inventory(inventory(1, Node(id=NODE)))
    assert not ledger.apply_inventory(inventory(2))


def test_node_of_an_earlier_run_is_removed_when_no_source_names_it_for_long() -> None:
    ledger = Ledger(nodes=[Node(id=NODE), Node(id=NodeId("old"))])
    assert not ledger.apply_inventory(inventory(1, Node(id=NODE))).removed
    change = ledger.apply_inventory(inventory(1 + UNCLAIMED_AFTER_MS, Node(id=NODE)))
    assert list(change.removed) == ["old"]


def test_hardware_facts_stay_when_the_scheduler_speaks_after_the_exporter() -> None:
    ledger = Ledger()
    facts = ExporterFacts(nodes=[Node(id=NODE, machine_type="A100-80G", driver_version="570", gpu_count=8)])
    ledger.apply_hardware(facts, source="exporters", at=UnixMs(1))
    ledger.apply_inventory(inventory(2, Node(id=NODE, machine_type="A100", state=NodeState.IDLE, gpu_count=8)))
    node = ledger.nodes[NODE]
    assert (node.machine_type, node.driver_version, node.state) == ("A100-80G", "570", NodeState.IDLE)


def test_unit_keeps_what_is_known_when_another_source_says_less() -> None:
    ledger = Ledger(units=[Unit(id=UNIT, node=NODE, index=0, memory_bytes=80)])
    ledger.apply_inventory(inventory(1, Node(id=NODE), units=(Unit(id=UNIT, node=NODE, index=0),)))
    assert ledger.units[UNIT].memory_bytes == 80


def labels(*jobs: str) -> ExporterFacts:
    return ExporterFacts(labels={UNIT: [WorkloadId(job) for job in jobs]})


def test_exporter_label_is_used_when_no_scheduler_is_read() -> None:
    ledger = Ledger()
    (allocation,) = ledger.apply_labels(labels("slurm:9"), UnixMs(5)).allocations
    assert allocation.source is AllocationSource.EXPORTER_LABEL
    assert [a.to_at for a in ledger.apply_labels(labels(), UnixMs(9)).allocations] == [9]


def test_conflict_is_recorded_when_a_label_contradicts_the_scheduler_for_long() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(0, [RUNNING], [HELD]))
    assert not ledger.apply_labels(labels("slurm:2"), UnixMs(10))
    assert ledger.conflicts == 0
    assert ledger.apply_labels(labels("slurm:2"), UnixMs(10 + CONFLICT_AFTER_MS))
    assert ledger.conflicts == 1
    ledger.apply_labels(labels("slurm:1"), UnixMs(20 + CONFLICT_AFTER_MS))
    assert ledger.conflicts == 0


def test_label_adds_nothing_when_the_scheduler_says_the_same() -> None:
    ledger = Ledger()
    ledger.apply_queue(queue(0, [RUNNING], [HELD]))
    assert not ledger.apply_labels(labels("slurm:1"), UnixMs(10))
    assert UnitId("n1:0") in {key[1] for key in ledger.open}


def test_partition_is_forgotten_when_the_scheduler_no_longer_names_it() -> None:
    ledger = Ledger()
    both = [Partition(name="a"), Partition(name="b")]
    ledger.apply_inventory(replace(inventory(1, Node(id=NODE)), partitions=both))
    change = ledger.apply_inventory(replace(inventory(2, Node(id=NODE)), partitions=both[:1]))
    assert list(change.removed_partitions) == ["b"]


def test_gpu_is_forgotten_when_its_node_has_fewer_than_before() -> None:
    ledger = Ledger()
    two = tuple(Unit(id=gpu_unit_id(NODE, i), node=NODE, index=i) for i in range(2))
    ledger.apply_inventory(inventory(1, Node(id=NODE, gpu_count=2), units=two))
    change = ledger.apply_inventory(inventory(2, Node(id=NODE, gpu_count=1), units=two[:1]))
    assert list(change.removed_units) == ["n1:1"]


def test_instance_is_forgotten_when_its_exporter_shows_it_no_longer() -> None:
    instance = Unit(id=mig_unit_id(NODE, 0, 1), kind=UnitKind.MIG, node=NODE, index=0, parent=UNIT)
    ledger = Ledger(units=[Unit(id=UNIT, node=NODE, index=0), instance])
    change = ledger.apply_hardware(ExporterFacts(missing_units=[instance.id]), source="x", at=UnixMs(1))
    assert list(change.removed_units) == ["n1:0/1"]
    assert list(ledger.units) == [UNIT]


def test_instances_are_forgotten_when_a_complete_inventory_names_others() -> None:
    def instance(number: int) -> Unit:
        return Unit(id=mig_unit_id(NODE, 0, number), kind=UnitKind.MIG, node=NODE, index=0, parent=UNIT)

    ledger = Ledger()
    gpu = Unit(id=UNIT, node=NODE, index=0)
    ledger.apply_inventory(inventory(1, Node(id=NODE), units=(gpu, instance(1), instance(2))))
    change = ledger.apply_inventory(inventory(2, Node(id=NODE), units=(gpu, instance(2))))
    assert list(change.removed_units) == ["n1:0/1"]


def test_label_means_the_array_task_when_it_carries_the_raw_job_number() -> None:
    task = replace(RUNNING, id=WorkloadId("slurm:3_1"), tags={"job_id": "16"})
    ledger = Ledger()
    ledger.apply_queue(queue(0, [task], [replace(HELD, workload=task.id)]))
    assert not ledger.apply_labels(labels("slurm:16"), UnixMs(10))
    assert not ledger.apply_labels(labels("slurm:16"), UnixMs(10 + CONFLICT_AFTER_MS))
