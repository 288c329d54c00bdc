"""All executions of a workload count, in any order and number of reports by the queue and the accounting."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.ingest.executions import merge_executions, merge_history, merge_queued
from clusterscape.ingest.ledger import Ledger
from clusterscape.model import (
    Allocation,
    Execution,
    HistoryObserved,
    QueueObserved,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)

JOB = WorkloadId("slurm:1")
WAITING = Workload(id=JOB, state=WorkloadState.WAITING, user="ada", gpus_requested=2, submitted_at=UnixMs(0))
RUNNING = replace(WAITING, state=WorkloadState.RUNNING, started_at=UnixMs(10_000))
COMPLETED = replace(RUNNING, state=WorkloadState.COMPLETED, ended_at=UnixMs(90_000))
FAR = UnixMs(10**9)


def requeued(at: int) -> Workload:
    return replace(WAITING, submitted_at=UnixMs(at), restarts=1)


def history(*workloads: Workload) -> HistoryObserved:
    return HistoryObserved(source="slurm", at=FAR, workloads=workloads)


def looked(at: int, *workloads: Workload) -> QueueObserved:
    return QueueObserved(source="slurm", at=UnixMs(at), workloads=workloads, allocations=())


def test_hours_of_earlier_executions_are_kept_when_a_job_is_requeued() -> None:
    ledger = Ledger()
    ledger.apply_queue(looked(20_000, RUNNING))
    (merged,) = ledger.apply_queue(looked(40_000, requeued(30_000))).workloads
    assert (merged.state, merged.gpu_s(FAR)) == (WorkloadState.WAITING, 2 * 30)
    assert merged.earlier[0].is_estimated
    true = Execution(started_at=UnixMs(10_000), ended_at=UnixMs(30_000), gpus=2, word="REQUEUED")
    accounted = replace(WAITING, state=WorkloadState.UNKNOWN, ended_at=UnixMs(30_000), earlier=(true,))
    (merged,) = ledger.apply_history(history(accounted)).workloads
    assert (merged.state, merged.earlier) == (WorkloadState.WAITING, (true,))
    assert not ledger.apply_queue(looked(50_000, requeued(30_000)))


def test_newest_execution_is_kept_when_accounting_reports_an_older_one_later() -> None:
    ledger = Ledger()
    newest = replace(COMPLETED, submitted_at=UnixMs(30_000), started_at=UnixMs(60_000), exit_code=0)
    ledger.apply_history(history(newest))
    preempted = replace(COMPLETED, state=WorkloadState.PREEMPTED, ended_at=UnixMs(30_000))
    (merged,) = ledger.apply_history(history(preempted)).workloads
    assert (merged.state, merged.started_at, merged.ended_at) == (WorkloadState.COMPLETED, 60_000, 90_000)
    assert merged.gpu_s(FAR) == 2 * 20 + 2 * 30


def test_earlier_executions_are_read_from_the_store_when_the_program_restarts() -> None:
    former = Execution(started_at=UnixMs(1_000), ended_at=UnixMs(2_000), gpus=2)
    stored = replace(COMPLETED, earlier=(former,))
    ledger = Ledger()
    assert ledger.find_unknown([requeued(95_000)]) == [JOB]
    (merged,) = ledger.apply_queue(looked(100_000, requeued(95_000)), {JOB: stored}).workloads
    assert [execution.started_at for execution in merged.earlier] == [1_000, 10_000]
    assert not Ledger().apply_history(history(COMPLETED), {JOB: stored}).workloads


def test_executions_are_not_carried_over_when_a_job_id_is_reused() -> None:
    assert merge_queued(COMPLETED, replace(WAITING, submitted_at=UnixMs(95_000)), FAR).earlier == ()
    other = replace(COMPLETED, user="bob", submitted_at=UnixMs(95_000))
    assert merge_history(COMPLETED, other) == other
    assert merge_history(other, COMPLETED) == other


def test_execution_counts_once_when_its_start_moves_because_a_node_boots() -> None:
    assert merge_queued(RUNNING, replace(RUNNING, started_at=UnixMs(25_000)), FAR).earlier == ()


def test_accounting_record_is_kept_when_the_queue_repeats_its_own() -> None:
    ledger = Ledger()
    ledger.apply_queue(looked(95_000, replace(COMPLETED, suspended_s=3)))
    ledger.apply_history(history(replace(COMPLETED, suspended_s=4)))
    assert not ledger.apply_queue(looked(96_000, replace(COMPLETED, suspended_s=3)))


def test_estimate_is_replaced_when_accounting_reports_the_same_time() -> None:
    estimate = Execution(started_at=UnixMs(9_000), ended_at=UnixMs(40_000), gpus=2, is_estimated=True)
    true = Execution(started_at=UnixMs(10_000), ended_at=UnixMs(30_000), gpus=2)
    assert merge_executions([estimate], [true]) == (true,)
    assert merge_executions([true], [estimate]) == (true,)


def test_allocation_ends_at_the_requeue_when_accounting_reports_its_time() -> None:
    ledger = Ledger()
    held = Allocation(workload=JOB, unit=UnitId("n1:0"), from_at=UnixMs(10_000))
    ledger.apply_queue(replace(looked(20_000, RUNNING), allocations=(held,)))
    assert [allocation.to_at for allocation in ledger.apply_queue(looked(40_000, requeued(30_000))).allocations] == [
        40_000
    ]
    true = Execution(started_at=UnixMs(10_000), ended_at=UnixMs(30_000), gpus=2, word="REQUEUED")
    vanished = replace(WAITING, state=WorkloadState.UNKNOWN, ended_at=UnixMs(30_000), earlier=(true,))
    assert [allocation.to_at for allocation in ledger.apply_history(history(vanished)).allocations] == [30_000]


@dataclass(frozen=True)
class Life:
    """A job that was executed several times: one accounting record each."""

    records: tuple[Workload, ...]

    @property
    def gpu_s(self) -> float:
        return sum(record.gpu_s(FAR) or 0 for record in self.records)

    def seen_at(self, at: int) -> Workload | None:
        """What the queue shows at a time, without earlier executions."""
        for number, record in enumerate(self.records):
            assert record.submitted_at is not None
            assert record.started_at is not None
            assert record.ended_at is not None
            if at < record.submitted_at:
                return None
            active = replace(record, restarts=number, ended_at=None, suspended_s=0)
            if at < record.started_at:
                return replace(active, state=WorkloadState.WAITING, started_at=None, gpus_allocated=None)
            if at < record.ended_at:
                return replace(active, state=WorkloadState.RUNNING)
        return replace(self.records[-1], restarts=len(self.records) - 1)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    at, records = 0, []
    count = draw(st.integers(1, 4))
    for number in range(count):
        start = at + 1000 * draw(st.integers(0, 30))
        end = start + 1000 * draw(st.integers(1, 90))
        record = replace(
            COMPLETED,
            state=WorkloadState.COMPLETED if number == count - 1 else WorkloadState.PREEMPTED,
            submitted_at=UnixMs(at),
            started_at=UnixMs(start),
            ended_at=UnixMs(end),
            suspended_s=draw(st.integers(0, (end - start) // 1000)),
            gpus_allocated=draw(st.integers(1, 16)),
        )
        records.append(record)
        at = end
    return Life(tuple(records))


@settings(deadline=None, max_examples=200)
@given(life=lives(), data=st.data())
def test_hours_equal_the_sum_of_all_records_in_any_order_of_looks(life: Life, data: st.DataObject) -> None:
    ledger = Ledger()
    stored: dict[WorkloadId, Workload] = {}
    times = sorted(data.draw(st.lists(st.integers(0, 400_000), max_size=8)))
    for at in times:
        observed = life.seen_at(at)
        change = ledger.apply_queue(looked(at, *([observed] if observed else [])), stored)
        stored.update({workload.id: workload for workload in change.workloads})
        if data.draw(st.booleans()):
            over = [record for record in life.records if (record.ended_at or 0) <= at]
            change = ledger.apply_history(history(*data.draw(st.permutations(over))), stored)
            stored.update({workload.id: workload for workload in change.workloads})
        if data.draw(st.booleans()):
            ledger = Ledger(workloads=[workload for workload in stored.values() if workload.state.is_active])
    for record in data.draw(st.permutations(life.records)):
        change = ledger.apply_history(history(record), stored)
        stored.update({workload.id: workload for workload in change.workloads})
    assert stored[JOB].gpu_s(FAR) == pytest.approx(life.gpu_s)
    assert stored[JOB].state is WorkloadState.COMPLETED
