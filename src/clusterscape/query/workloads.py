"""Workloads: lists, details, and what follows from their times."""

from collections.abc import Iterable, Sequence

from clusterscape.errors import QueryError
from clusterscape.model import Allocation, Execution, NodeId, Reservation, UnixMs, Workload, WorkloadState
from clusterscape.query.answers import AllocationAnswer, ExecutionAnswer, WorkloadAnswer, WorkloadDetail, WorkloadList
from clusterscape.query.context import QueryContext
from clusterscape.query.past import PastPictures, see_at
from clusterscape.query.reasons import classify_pending, explain_waiting
from clusterscape.query.scheduling.live_queue import read_scheduler_rules
from clusterscape.query.workload_ids import resolve_workload
from clusterscape.store.records.contract import WorkloadFilter

MAX_LIMIT = 10_000


class WorkloadQuery:
    """Questions about workloads."""

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
        wanted = WorkloadFilter(
            states=frozenset(states) or None,
            user=user,
            project=project,
            partition=partition,
            node=NodeId(node) if node else None,
            text=text or None,
        )
        if at_ms is not None:
            return self._past_page(wanted, limit, offset, at_ms)
        page = self._context.records.workloads(wanted, limit=limit, offset=offset)
        now, reservations = self._context.clock(), read_scheduler_rules(self._context.records)[0]
        return WorkloadList(
            total=page.total,
            limit=limit,
            offset=offset,
            workloads=[describe_workload(workload, now, reservations) for workload in page.workloads],
        )

    def _past_page(self, wanted: WorkloadFilter, limit: int, offset: int, at_ms: int) -> WorkloadList:
        shot = self._past.shot(at_ms)
        found = [workload for workload in shot.workloads if _matches(workload, wanted)]
        found.sort(key=lambda workload: (-(workload.submitted_at or 0), workload.id))
        return WorkloadList(
            total=len(found),
            limit=limit,
            offset=offset,
            workloads=[describe_workload(workload, shot.at) for workload in found[offset : offset + limit]],
        )

    def detail(self, workload: str, at_ms: int | None = None) -> WorkloadDetail:
        """One workload and every unit it held; as it was at a past minute, or as it is where it was not there then."""
        found, seen_at = self.find(workload), self._context.clock()
        allocations = self._context.records.allocations(workload=found.id)
        if at_ms is not None:
            at = self._past.minute(at_ms)
            then, held = see_at([found], allocations, at)
            if then:
                found, allocations, seen_at = then[0], held, at
        return WorkloadDetail(
            workload=describe_workload(found, seen_at, read_scheduler_rules(self._context.records)[0]),
            executions=[_describe_execution(execution) for execution in found.earlier],
            allocations=[_describe_allocation(allocation) for allocation in allocations],
        )

    def find(self, workload: str) -> Workload:
        """The record of ``workload``, by our id or the scheduler's own; raises NotFoundError."""
        return resolve_workload(self._context.records, workload)


def _matches(workload: Workload, wanted: WorkloadFilter) -> bool:
    """As the record store would judge it."""
    text = (wanted.text or "").casefold()
    # Of Kubernetes the id holds names: where those are hidden, it is not looked into.
    is_hidden = workload.name is None and workload.id.startswith("kubernetes:")
    id = None if is_hidden else workload.id
    named = (id, workload.name, workload.user, workload.project, workload.experiment)
    return (
        (wanted.states is None or workload.state in wanted.states)
        and wanted.user in (None, workload.user)
        and wanted.project in (None, workload.project)
        and wanted.partition in (None, workload.partition)
        and (wanted.node is None or wanted.node in workload.nodes)
        and (not text or any(text in name.casefold() for name in named if name))
    )


def describe_workload(workload: Workload, now: UnixMs, reservations: Sequence[Reservation] = ()) -> WorkloadAnswer:
    """The record with waiting time, run time and the GPU-hours of all its executions until now or its end."""
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
        earlier_gpu_hours=sum(each.gpu_s for each in workload.earlier) / 3600,
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
    """From start to end; a skewed clock's negative span counts as none."""
    if start is None or end is None:
        return None
    return max(0.0, (end - start) / 1000)
