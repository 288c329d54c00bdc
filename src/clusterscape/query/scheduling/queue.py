"""The live queue: every waiting workload with its place, its reason in words and its likely start; one of them in full."""

from collections.abc import Mapping
from dataclasses import dataclass

from clusterscape.errors import ClusterScapeError, NotFoundError
from clusterscape.model import NodeId, UnixMs, Workload, WorkloadState
from clusterscape.query.answers import ReservationAnswer
from clusterscape.query.context import QueryContext
from clusterscape.query.reasons import WaitKind, classify_pending, explain_waiting
from clusterscape.query.scheduling.explaining import (
    describe_span,
    explain_ahead,
    find_ahead,
    find_changes,
    find_holders,
    find_needed,
    tell_promise,
)
from clusterscape.query.scheduling.live_forecast import Runs, predict_runs
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, read_live_queue
from clusterscape.query.scheduling.priority_parts import find_parts, list_parts, read_parts
from clusterscape.query.scheduling.promises import Ledger
from clusterscape.query.scheduling.promises_keeper import PromiseKeeper
from clusterscape.query.scheduling.queue_answers import (
    LikelyStart,
    PartitionQueue,
    QueueAnswer,
    QueueRow,
    WaitingStory,
)
from clusterscape.query.scheduling.queue_plan import lay_out, plan_queue, planned_jobs
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.summary import describe_reservations
from clusterscape.query.workload_ids import resolve_workload

ASSUMPTIONS = (
    "The plan is by time limits: every workload runs to its limit and nobody else comes, so a start is at the latest.",
    "Whoever is ahead by priority, then by time in the queue, is planned first; later ones fill gaps that delay nobody.",
    "Only GPUs on nodes are counted: CPUs, memory and quotas may forbid more. Reservations and preemption are heeded.",
)
LEVEL = 0.8


@dataclass(frozen=True, slots=True)
class PlannedQueue:
    """One moment of the queue, planned: starts and nodes by workload, for those that a plan has room for."""

    queue: LiveQueue
    starts: Mapping[str, int]
    nodes: Mapping[str, tuple[str, ...]]
    workloads: Mapping[str, Workload]


class QueueQuery:
    """Questions about who waits."""

    def __init__(self, context: QueryContext, promises: PromiseKeeper, waits: WaitQuery) -> None:
        self._context = context
        self.promises = promises
        self._waits = waits

    def seen(self) -> PlannedQueue:
        """The queue now, planned once."""
        queue = read_live_queue(self._context)
        version = (self._context.changes.versions.inventory, queue.now_s)
        return self._context.cache.get("planned-queue", version, lambda: self._plan(queue))

    def _plan(self, queue: LiveQueue) -> PlannedQueue:
        layout = lay_out(queue)
        starts, plan = plan_queue(queue, layout)
        jobs = planned_jobs(queue, layout)
        nodes = {
            job.workload: tuple(layout.names[node] for node in plan.nodes[first : first + job.nodes].tolist())
            for job, first in zip(jobs, plan.first.tolist(), strict=True)
            if job.workload in starts
        }
        workloads: dict[str, Workload] = {each.id: each for each in self._context.records.active_workloads()}
        return PlannedQueue(queue, starts, nodes, workloads)

    def all(self) -> QueueAnswer:
        """Everything that waits."""
        seen = self.seen()
        forecasts, is_learned = self._forecasts()
        ledgers = self.promises.open_ledgers()
        rows = _Places(seen).rows(forecasts, ledgers)
        ends = [row.likely.likely_at if row.likely else row.planned_at for row in rows]
        known = [end for end in ends if end is not None]
        return QueueAnswer(
            at=seen.queue.now_s * 1000,
            workloads=rows,
            partitions=self._partitions(seen, rows),
            gpus_asked=sum(row.gpus for row in rows),
            longest_wait_s=max((row.waited_s for row in rows if row.waited_s is not None), default=None),
            drained_at=max(known, default=None),
            reservations=self._reservations(seen.queue),
            awaited=self._context.awaited(),
            is_learned=is_learned,
            calibrated_on=self._waits.calibrated_on(),
            assumptions=list(ASSUMPTIONS),
        )

    def _reservations(self, queue: LiveQueue) -> list[ReservationAnswer]:
        gpus = {NodeId(name): node.gpus for name, node in queue.nodes.items()}
        return describe_reservations(queue.reservations, gpus, UnixMs(queue.now_s * 1000))

    def story(self, workload: str) -> WaitingStory:
        """Why one workload waits, or waited; raises NotFoundError where nothing is known of that."""
        known = resolve_workload(self._context.records, workload)
        seen, workload = self.seen(), known.id
        job = next((each for each in seen.queue.waiting if each.workload == workload), None)
        if job is None:
            return self._past(known)
        forecasts, _ = self._forecasts()
        ledger = self.promises.ledger(workload)
        row = next(
            each
            for each in _Places(seen).rows(forecasts, {} if ledger is None else {workload: ledger})
            if each.workload == workload
        )
        ahead = find_ahead(seen.queue, job) if job.is_planned else []
        needed = find_needed(seen.queue, job, len(ahead)) if job.is_planned else None
        priorities = read_parts(self._context.records)
        start = seen.starts.get(workload)
        nodes = seen.nodes.get(workload, ())
        holders = [] if start is None else find_holders(seen.queue, nodes, start, seen.workloads, self.likely_ends())
        changes = self._context.cache.get(
            ("sooner", workload),
            seen.queue.now_s,
            lambda: [] if start is None else find_changes(seen.queue, job, start),
        )
        story = WaitingStory(
            at=seen.queue.now_s * 1000,
            workload=workload,
            row=row,
            parts=list_parts(find_parts(priorities, workload)),
            ahead=explain_ahead(ahead, job, seen.starts, seen.workloads, priorities),
            needed=needed,
            holders=holders,
            planned_nodes=sorted(nodes),
            promise=None if ledger is None else tell_promise(ledger),
            changes=changes,
            text=[],
            assumptions=list(ASSUMPTIONS),
        )
        story.text.extend(_tell(story, row))
        return story

    def likely_ends(self) -> dict[str, float]:
        """Predicted ends of running workloads in Unix seconds, by name: the middle of what the models say."""
        runs = self.run_quantiles()
        return {name: started + float(row[row.size // 2]) for name, (started, row) in runs.items()}

    def run_quantiles(self) -> Runs:
        """Whole run times at the models' levels by workload, and when it started (or now, where it waits)."""
        learned = self._waits.models.current()
        version = (self._context.changes.versions.inventory, learned.trained_at)
        return self._context.cache.get(
            "run-quantiles", version, lambda: predict_runs(self.seen().queue, self.seen().workloads, learned)
        )

    def _forecasts(self) -> tuple[dict[str, LikelyStart], bool]:
        """Of those that wait for room; nothing where a forecast cannot be made."""
        is_learned = self._waits.models.current().trained_at is not None
        try:
            told = self._waits.waiting()
        except ClusterScapeError:
            return {}, False
        found = {}
        for each in told.workloads:
            interval = next((one for one in each.start.intervals if one.level == LEVEL), None)
            if interval is not None:
                found[each.workload] = LikelyStart(
                    likely_at=each.start.likely_at, from_at=interval.from_at, to_at=interval.to_at, level=LEVEL
                )
        return found, is_learned

    def _partitions(self, seen: PlannedQueue, rows: list[QueueRow]) -> list[PartitionQueue]:
        free = seen.queue.free_by_node()
        answers = []
        for partition in self._context.records.partitions():
            mine = [row for row in rows if row.partition == partition.name]
            planned = [row.planned_at for row in mine if row.planned_at is not None]
            answers.append(
                PartitionQueue(
                    name=partition.name,
                    is_up=partition.is_up,
                    waiting=len(mine),
                    held=sum(row.waits_for is WaitKind.HELD for row in mine),
                    blocked=sum(row.position is None and row.waits_for is not WaitKind.HELD for row in mine),
                    gpus_asked=sum(row.gpus for row in mine),
                    gpus_free=sum(free.get(node, 0) for node in partition.nodes),
                    drained_at=max(planned, default=None),
                )
            )
        return answers

    def _past(self, known: Workload) -> WaitingStory:
        workload = known.id
        if known.state is WorkloadState.WAITING or known.started_at is None or known.submitted_at is None:
            raise NotFoundError(f"{workload} does not wait for GPUs", hint="Only who asks for GPUs can be explained.")
        ledger = self.promises.ledger(workload)
        waited_s = (known.started_at - known.submitted_at) / 1000
        lines = [f"It waited {describe_span(max(waited_s, 0))} and does not wait any more."]
        if ledger is None:
            lines.append("What it was promised meanwhile is not known.")
        return WaitingStory(
            at=self._context.clock(),
            workload=workload,
            row=None,
            parts=[],
            ahead=[],
            needed=None,
            holders=[],
            planned_nodes=[],
            promise=None if ledger is None else tell_promise(ledger),
            changes=[],
            text=lines,
            assumptions=list(ASSUMPTIONS),
        )


class _Places:
    """Positions, computed once for all rows."""

    def __init__(self, seen: PlannedQueue) -> None:
        self._seen = seen

    def rows(self, forecasts: Mapping[str, LikelyStart], ledgers: Mapping[str, Ledger]) -> list[QueueRow]:
        """One for each waiting workload, in queue order."""
        ahead: dict[str, int] = {}
        gpus: dict[str, int] = {}
        rows = []
        for job in self._seen.queue.waiting:
            before, before_gpus = ahead.get(job.partition, 0), gpus.get(job.partition, 0)
            ledger = ledgers.get(job.workload)
            rows.append(self._row(job, before, before_gpus, forecasts.get(job.workload), ledger))
            if job.is_planned:
                ahead[job.partition] = before + 1
                gpus[job.partition] = before_gpus + job.total_gpus
        return rows

    def _row(
        self, job: QueueJob, ahead: int, ahead_gpus: int, likely: LikelyStart | None, ledger: Ledger | None
    ) -> QueueRow:
        workload = self._seen.workloads[job.workload]
        start = self._seen.starts.get(job.workload)
        submitted = workload.submitted_at
        return QueueRow(
            workload=job.workload,
            name=workload.name,
            user=workload.user,
            project=workload.project,
            partition=job.partition,
            machine_type=job.machine_type,
            gpus=workload.gpus_requested,
            nodes=job.nodes,
            limit_s=job.limit_s,
            qos=workload.qos,
            priority=workload.priority,
            submitted_at=submitted,
            waited_s=None if submitted is None else self._seen.queue.now_s - submitted / 1000,
            position=ahead + 1 if job.is_planned else None,
            ahead=ahead if job.is_planned else 0,
            ahead_gpus=ahead_gpus if job.is_planned else 0,
            reason=workload.pending_reason,
            reason_text=explain_waiting(workload, self._seen.queue.reservations),
            waits_for=classify_pending(workload.pending_reason),
            planned_at=None if start is None else start * 1000,
            scheduler_at=workload.expected_start_at,
            promised_at=None if ledger is None else ledger.last_s * 1000,
            slipped_s=None if ledger is None else ledger.slipped_s,
            likely=likely if job.is_planned else None,
        )


def _tell(story: WaitingStory, row: QueueRow) -> list[str]:
    """The story in sentences."""
    lines = [row.reason_text or "The scheduler gives no reason."]
    if row.position is None:
        return [*lines, "It is not in line for GPUs until that is over, so nothing is planned for it."]
    who = f"{row.ahead} {'is' if row.ahead == 1 else 'are'} ahead, asking for {row.ahead_gpus:,} GPUs"
    lines.append(f"It is number {row.position} in {row.partition}" + (f": {who}." if row.ahead else "."))
    if story.needed is not None:
        lines.append(story.needed.text)
    if row.planned_at is None:
        lines.append("No plan has room for it with the nodes in service.")
    elif story.changes:
        best = story.changes[0]
        lines.append(f"Cheapest change: {best.words}; its latest start would be {describe_span(best.gain_s)} sooner.")
    return lines
