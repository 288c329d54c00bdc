"""Workloads: lists, details, and what follows from their times."""

from collections.abc import Iterable

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import Allocation, NodeId, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.query.answers import AllocationAnswer, WorkloadAnswer, WorkloadDetail, WorkloadList
from clusterscape.query.context import QueryContext
from clusterscape.query.past import PastPictures, see_at
from clusterscape.query.reasons import explain_pending
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
        now = self._context.clock()
        return WorkloadList(
            total=page.total,
            limit=limit,
            offset=offset,
            workloads=[describe_workload(workload, now) for workload in page.workloads],
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
            workload=describe_workload(found, seen_at),
            allocations=[_describe_allocation(allocation) for allocation in allocations],
        )

    def find(self, workload: str) -> Workload:
        """The record of ``workload``; raises NotFoundError."""
        found = self._context.records.workload(WorkloadId(workload))
        if found is None:
            raise NotFoundError(
                f"there is no workload {workload!r}",
                hint="Workloads are named by source and id, such as slurm:4711; GET /api/v1/search?q=… finds them.",
            )
        return found


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


def describe_workload(workload: Workload, now: UnixMs) -> WorkloadAnswer:
    """The record with waiting time, run time and GPU-hours until now or its end."""
    is_waiting = workload.state is WorkloadState.WAITING
    wait_until = now if is_waiting else workload.started_at
    run_until = workload.ended_at if workload.ended_at is not None else now
    wait_s = _seconds(workload.submitted_at, wait_until)
    run_s = None if is_waiting else _seconds(workload.started_at, run_until)
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
        gpu_hours=None if run_s is None else run_s / 3600 * workload.gpus_requested,
        pending_reason=workload.pending_reason if is_waiting else None,
        pending_reason_text=explain_pending(workload.pending_reason) if is_waiting else None,
        exit_code=workload.exit_code,
        exit_signal=workload.exit_signal,
        restarts=workload.restarts,
        tags=dict(workload.tags),
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
