"""Lists and details of workloads, with waiting and run times."""

from collections.abc import Iterable, Sequence

from clusterscape.errors import QueryError
from clusterscape.model import Allocation, Execution, NodeId, Reservation, UnixMs, Workload, WorkloadState
from clusterscape.query.answers import AllocationAnswer, ExecutionAnswer, WorkloadAnswer, WorkloadDetail, WorkloadList
from clusterscape.query.context import QueryContext
from clusterscape.query.past import PastPictures, reconstruct_at
from clusterscape.query.reasons import classify_pending, explain_waiting
from clusterscape.query.scheduling.live_queue import read_scheduler_rules
from clusterscape.query.search import resolve_workload
from clusterscape.store.records.contract import WorkloadFilter

MAX_LIMIT = 10_000


class WorkloadQuery:
    """Queries on workloads."""

    def __init__(self, context: QueryContext, past: PastPictures) -> None:
        self._context = context
        self._past = past

    def page(
        self,
        *,
        states: Iterable[WorkloadState] = (),
        user: str | None = None,
        project: str | None = None,
        partition: str | None = None,
        node: str | None = None,
        text: str | None = None,
        limit: int = 100,
        offset: int = 0,
        at_ms: int | None = None,
    ) -> WorkloadList:
        """Workloads that match, newest submission first; at a past minute, those that waited or ran then."""
        if not 1 <= limit <= MAX_LIMIT or offset < 0:
            raise QueryError(f"limit must be 1–{MAX_LIMIT} and offset at least 0, not {limit} and {offset}")
        criteria = WorkloadFilter(
            states=frozenset(states) or None,
            user=user,
            project=project,
            partition=partition,
            node=NodeId(node) if node else None,
            text=text or None,
        )
        if at_ms is not None:
            return self._past_page(criteria, limit, offset, at_ms)
        page = self._context.records.workloads(criteria, limit=limit, offset=offset)
        now, reservations = self._context.clock(), read_scheduler_rules(self._context.records)[0]
        return WorkloadList(
            total=page.total,
            limit=limit,
            offset=offset,
            workloads=[describe_workload(workload, now, reservations) for workload in page.workloads],
        )

    def _past_page(self, criteria: WorkloadFilter, limit: int, offset: int, at_ms: int) -> WorkloadList:
        snapshot = self._past.snapshot(at_ms)
        matching = [workload for workload in snapshot.workloads if _matches(workload, criteria)]
        matching.sort(key=lambda workload: (-(workload.submitted_at or 0), workload.id))
        return WorkloadList(
            total=len(matching),
            limit=limit,
            offset=offset,
            workloads=[describe_workload(workload, snapshot.at) for workload in matching[offset : offset + limit]],
        )

    def detail(self, workload: str, at_ms: int | None = None) -> WorkloadDetail:
        """One workload and every unit it held, at a past minute or now; now also if it did not exist at that minute."""
        record, at = self.find(workload), self._context.clock()
        allocations = self._context.records.allocations(workload=record.id)
        if at_ms is not None:
            minute = self._past.minute(at_ms)
            past_records, past_allocations = reconstruct_at([record], allocations, minute)
            if past_records:
                record, allocations, at = past_records[0], past_allocations, minute
        return WorkloadDetail(
            workload=describe_workload(record, at, read_scheduler_rules(self._context.records)[0]),
            executions=[_describe_execution(execution) for execution in record.earlier],
            allocations=[_describe_allocation(allocation) for allocation in allocations],
        )

    def find(self, workload: str) -> Workload:
        """The record of a workload, by our id or the scheduler's; raises NotFoundError."""
        return resolve_workload(self._context.records, workload)


def _matches(workload: Workload, criteria: WorkloadFilter) -> bool:
    """The same condition as in the record store."""
    text = (criteria.text or "").casefold()
    # Kubernetes ids contain names, so they are not searched if the name is redacted.
    is_hidden = workload.name is None and workload.id.startswith("kubernetes:")
    id = None if is_hidden else workload.id
    searched = (id, workload.name, workload.user, workload.project, workload.experiment)
    return (
        (criteria.states is None or workload.state in criteria.states)
        and criteria.user in (None, workload.user)
        and criteria.project in (None, workload.project)
        and criteria.partition in (None, workload.partition)
        and (criteria.node is None or criteria.node in workload.nodes)
        and (not text or any(text in name.casefold() for name in searched if name))
    )


def describe_workload(workload: Workload, now: UnixMs, reservations: Sequence[Reservation] = ()) -> WorkloadAnswer:
    """The record with its waiting time, run time and the GPU-hours of all its executions until now or its end."""
    is_waiting = workload.state is WorkloadState.WAITING
    wait_until = now if is_waiting else workload.started_at
    wait_s = _seconds(workload.submitted_at, wait_until)
    run_s, gpu_s = workload.run_s(now), workload.gpu_s(now)
    return WorkloadAnswer(
        workload=workload.id,
        name=workload.name,
        kind=workload.kind,
        state=workload.state,
        user=workload.user,
        project=workload.project,
        experiment=workload.experiment,
        partition=workload.partition,
        resource_type=workload.resource_type,
        qos=workload.qos,
        priority=workload.priority,
        gpus_requested=workload.gpus_requested,
        gpus_allocated=workload.gpus_allocated,
        nodes_requested=workload.nodes_requested,
        nodes=list(workload.nodes),
        time_limit_s=workload.time_limit_s,
        submitted_at=workload.submitted_at,
        eligible_at=workload.eligible_at,
        started_at=None if is_waiting else workload.started_at,
        ended_at=workload.ended_at,
        expected_start_at=workload.expected_start_at,
        wait_s=wait_s,
        run_s=run_s,
        suspended_s=workload.suspended_s,
        gpu_hours=None if gpu_s is None else gpu_s / 3600,
        earlier_gpu_hours=sum(execution.gpu_s for execution in workload.earlier) / 3600,
        pending_reason=workload.pending_reason if is_waiting else None,
        pending_reason_text=explain_waiting(workload, reservations) if is_waiting else None,
        waits_for=classify_pending(workload.pending_reason) if is_waiting else None,
        exit_code=workload.exit_code,
        exit_signal=workload.exit_signal,
        derived_exit_code=workload.derived_exit_code,
        derived_exit_signal=workload.derived_exit_signal,
        restarts=workload.restarts,
        tags=dict(workload.tags),
    )


def _describe_execution(execution: Execution) -> ExecutionAnswer:
    return ExecutionAnswer(
        started_at=execution.started_at,
        ended_at=execution.ended_at,
        state=execution.state,
        scheduler_state=execution.word,
        gpus=execution.gpus,
        run_s=execution.run_s,
        suspended_s=execution.suspended_s,
        gpu_hours=execution.gpu_s / 3600,
        is_estimated=execution.is_estimated,
    )


def _describe_allocation(allocation: Allocation) -> AllocationAnswer:
    return AllocationAnswer(
        workload=allocation.workload,
        unit=allocation.unit,
        from_at=allocation.from_at,
        to_at=allocation.to_at,
        source=allocation.source,
        confidence=allocation.confidence,
    )


def _seconds(start: UnixMs | None, end: UnixMs | None) -> float | None:
    """From start to end; negative spans of skewed clocks count as 0."""
    if start is None or end is None:
        return None
    return max(0.0, (end - start) / 1000)
