"""Ended workloads from Slurm's accounting."""

from unit.collect.slurm.documents import END_S, HISTORY, NODES, START_S, SUBMIT_S, ended, history_job, jobs, tres

from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_nodes import parse_nodes
from clusterscape.model import AllocationSource, UnixMs, WorkloadId, WorkloadKind, WorkloadState

NOW = UnixMs(1_700_010_000_000)
INVENTORY = parse_nodes(NODES)


def test_ended_jobs_are_read_when_state_is_word_or_array() -> None:
    parsed = parse_history(HISTORY, INVENTORY, NOW)
    first, second = parsed.workloads
    assert (first.id, first.state, first.exit_code) == ("slurm:20", WorkloadState.COMPLETED, 0)
    assert (second.id, second.state, second.exit_code) == ("slurm:21", WorkloadState.TIMEOUT, None)
    assert (first.user, first.project, first.experiment) == ("alice", "nlp", "train")
    assert (first.gpus_requested, first.resource_type, first.nodes) == (8, "A100-8", ("gpu01",))
    assert (first.started_at, first.ended_at) == (START_S * 1000, END_S * 1000)


def test_whole_node_is_an_allocation_when_the_job_had_all_its_gpus() -> None:
    parsed = parse_history(jobs(history_job(20)), INVENTORY, NOW)
    assert [allocation.unit for allocation in parsed.allocations] == [f"gpu01:{index}" for index in range(8)]
    first = parsed.allocations[0]
    assert (first.from_at, first.to_at, first.source) == (START_S * 1000, END_S * 1000, AllocationSource.WHOLE_NODE)


def test_no_allocation_is_given_when_the_queue_has_it_or_accounting_lacks_it() -> None:
    some = history_job(21, tres={"requested": tres(gpu=2), "allocated": tres(gpu=2)})
    known_executions = {(WorkloadId("slurm:20"), UnixMs(1_700_000_060_000))}
    parsed = parse_history(jobs(history_job(20), some), INVENTORY, NOW, without_allocations=known_executions)
    assert len(parsed.workloads) == 2
    assert not parsed.allocations


def test_active_jobs_are_left_to_the_queue_when_accounting_lists_them() -> None:
    parsed = parse_history(jobs(history_job(1, "RUNNING"), history_job(2, ["PENDING"])), INVENTORY, NOW)
    assert not parsed.workloads
    assert not parsed.dropped


def record(state: str, submit: int, start: int, end: int, *, suspended: int = 0, gpus: int = 8) -> dict[str, object]:
    """One execution of job 3, by seconds after SUBMIT_S."""
    times = {"submission": SUBMIT_S + submit, "eligible": SUBMIT_S + submit, "start": SUBMIT_S + start}
    elapsed = {"end": SUBMIT_S + end, "elapsed": end - start - suspended, "suspended": suspended, "limit": 60}
    return history_job(3, state, time=times | elapsed, tres={"requested": tres(gpu=8), "allocated": tres(gpu=gpus)})


def test_all_executions_are_kept_when_a_job_was_requeued_and_preempted() -> None:
    entries = [
        record("COMPLETED", 500, 600, 1600, suspended=100),
        record("REQUEUED", 0, 10, 110, gpus=4),
        record("PREEMPTED", 110, 200, 500),
    ]
    (workload,) = parse_history(jobs(*entries), INVENTORY, NOW).workloads
    assert (workload.state, workload.started_at) == (WorkloadState.COMPLETED, (SUBMIT_S + 600) * 1000)
    assert [(attempt.gpus, attempt.run_s, attempt.state, attempt.word) for attempt in workload.earlier] == [
        (4, 100, WorkloadState.UNKNOWN, "REQUEUED"),
        (8, 300, WorkloadState.PREEMPTED, None),
    ]
    assert workload.run_s(NOW) == 900
    assert workload.gpu_s(NOW) == 4 * 100 + 8 * 300 + 8 * 900


def test_only_earlier_executions_are_reported_when_a_requeued_job_continues() -> None:
    (workload,) = parse_history(jobs(record("REQUEUED", 0, 10, 110)), INVENTORY, NOW).workloads
    assert (workload.state, workload.started_at) == (WorkloadState.UNKNOWN, None)
    assert workload.gpu_s(NOW) == 800


def test_a_resized_job_is_counted_by_parts_when_its_record_was_split() -> None:
    entries = [record("RESIZING", 0, 10, 110), record("COMPLETED", 0, 110, 310, gpus=4)]
    (workload,) = parse_history(jobs(*entries), INVENTORY, NOW).workloads
    assert workload.gpu_s(NOW) == 8 * 100 + 4 * 200


def test_array_tasks_are_taken_apart_when_cancelled_together() -> None:
    entry = history_job(4, "CANCELLED", array={"job_id": 4, "task_id": None, "task": "0x38"}, nodes="None assigned")
    parsed = parse_history(jobs(entry), INVENTORY, NOW)
    assert [workload.id for workload in parsed.workloads] == ["slurm:4_3", "slurm:4_4", "slurm:4_5"]
    assert all(workload.started_at is None for workload in parsed.workloads)


def test_exit_is_read_when_signalled() -> None:
    parsed = parse_history(jobs(history_job(5, ["FAILED"], exit_code=ended(signal=9))), INVENTORY, NOW)
    assert (parsed.workloads[0].exit_code, parsed.workloads[0].exit_signal) == (None, 9)


def test_session_is_known_when_submitted_interactively() -> None:
    parsed = parse_history(jobs(history_job(5, submit_line="salloc -N1 --gpus=8")), INVENTORY, NOW)
    assert parsed.workloads[0].kind is WorkloadKind.SESSION


def test_damaged_entries_are_counted_when_others_are_whole() -> None:
    parsed = parse_history(
        jobs(history_job(1), None, history_job(0), history_job(2, state="odd"), history_job(3, nodes="n[")),
        INVENTORY,
        NOW,
    )
    assert [workload.id for workload in parsed.workloads] == ["slurm:1"]
    assert sum(parsed.dropped.values()) == 4
