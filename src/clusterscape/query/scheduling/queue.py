"""The live queue: every waiting workload with its position, reason and likely start, and the full explanation of one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from clusterscape.errors import ClusterScapeError, NotFoundError
from clusterscape.model import NodeId, UnixMs, Workload, WorkloadState
from clusterscape.model.quantities import format_duration
from clusterscape.query.answers import ReservationAnswer
from clusterscape.query.context import QueryContext
from clusterscape.query.reasons import WaitKind, classify_pending, explain_waiting
from clusterscape.query.scheduling.explaining import (
    describe_order,
    describe_promise,
    explain_ahead,
    find_ahead,
    find_changes,
    find_holders,
    find_needed,
    is_worthwhile,
)
from clusterscape.query.scheduling.live_forecast import Runs, predict_runs
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, read_live_queue
from clusterscape.query.scheduling.placement_history import read_placement
from clusterscape.query.scheduling.priority_parts import find_parts, list_parts, read_parts
from clusterscape.query.scheduling.promises import PromiseLedger, Promises
from clusterscape.query.scheduling.queue_answers import (
    CheaperChange,
    LikelyStart,
    PartitionQueue,
    QueueAnswer,
    QueueRow,
    WaitingStory,
)
from clusterscape.query.scheduling.queue_plan import build_layout, plan_queue, planned_jobs
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.search import resolve_workload
from clusterscape.query.summary import describe_reservations

ASSUMPTIONS = (
    "Planned starts are latest starts: every workload runs to its time limit, and no others are submitted.",
    "Workloads are planned by priority, then by time in the queue; later ones backfill without delaying those ahead.",
    "Only GPUs on nodes are counted: CPUs, memory and quotas may forbid more. Reservations and preemption are respected.",
)
LEVEL = 0.8


@dataclass(frozen=True, slots=True)
class PlannedQueue:
    """The queue at one moment with its plan: starts and nodes by workload, of workloads that can start."""

    queue: LiveQueue
    starts: Mapping[str, int]
    nodes: Mapping[str, tuple[str, ...]]
    workloads: Mapping[str, Workload]


class QueueQuery:
    """Queries on waiting workloads."""

    def __init__(self, context: QueryContext, promises: Promises, waits: WaitQuery) -> None:
        self._context = context
        self._promises = promises
        self._waits = waits

    def planned_queue(self) -> PlannedQueue:
        """The current queue with its plan, cached."""
        queue = read_live_queue(self._context)
        version = (self._context.changes.versions.inventory, queue.now_s)
        return self._context.cache.get("planned-queue", version, lambda: self._plan(queue))

    def _plan(self, queue: LiveQueue) -> PlannedQueue:
        layout = build_layout(queue)
        starts, plan = plan_queue(queue, layout)
        jobs = planned_jobs(queue, layout)
        nodes = {
            job.workload: tuple(layout.names[node] for node in plan.nodes[first : first + job.nodes].tolist())
            for job, first in zip(jobs, plan.first.tolist(), strict=True)
            if job.workload in starts
        }
        workloads: dict[str, Workload] = {
            workload.id: workload for workload in self._context.records.active_workloads()
        }
        return PlannedQueue(queue, starts, nodes, workloads)

    def all(self) -> QueueAnswer:
        """All waiting workloads."""
        planned = self.planned_queue()
        forecasts, is_learned = self._forecasts()
        ledgers = self._promises.open
        rows = _RowBuilder(planned).rows(forecasts, ledgers)
        starts = [row.likely.likely_at if row.likely else row.planned_at for row in rows]
        return QueueAnswer(
            at=planned.queue.now_s * 1000,
            placement=read_placement(self._context),
            workloads=rows,
            partitions=self._partitions(planned, rows),
            gpus_asked=sum(row.gpus for row in rows),
            longest_wait_s=max((row.waited_s for row in rows if row.waited_s is not None), default=None),
            drained_at=max((start for start in starts if start is not None), default=None),
            reservations=self._reservations(planned.queue),
            awaited=self._context.awaited(),
            is_learned=is_learned,
            calibrated_on=self._waits.calibrated_on(),
            assumptions=list(ASSUMPTIONS),
        )

    def _reservations(self, queue: LiveQueue) -> list[ReservationAnswer]:
        gpus = {NodeId(name): node.gpus for name, node in queue.nodes.items()}
        return describe_reservations(queue.reservations, gpus, UnixMs(queue.now_s * 1000))

    def story(self, workload: str) -> WaitingStory:
        """Why one workload waits, or waited; raises NotFoundError if it never waited for GPUs."""
        record = resolve_workload(self._context.records, workload)
        planned, workload = self.planned_queue(), record.id
        job = next((job for job in planned.queue.waiting if job.workload == workload), None)
        if job is None:
            return self._past_story(record)
        forecasts, _ = self._forecasts()
        ledger = self._promises.ledger(workload)
        row = next(
            row
            for row in _RowBuilder(planned).rows(forecasts, {} if ledger is None else {workload: ledger})
            if row.workload == workload
        )
        ahead = find_ahead(planned.queue, job) if job.is_planned else []
        needed = find_needed(planned.queue, job, len(ahead)) if job.is_planned else None
        priorities = read_parts(self._context.records)
        start = planned.starts.get(workload)
        nodes = planned.nodes.get(workload, ())
        holders = (
            [] if start is None else find_holders(planned.queue, nodes, start, planned.workloads, self.likely_ends())
        )
        changes = self._context.cache.get(
            ("sooner", workload),
            planned.queue.now_s,
            lambda: [] if start is None else self._find_changes(planned.queue, job, start, row.likely),
        )
        story = WaitingStory(
            at=planned.queue.now_s * 1000,
            workload=workload,
            row=row,
            parts=list_parts(find_parts(priorities, workload)),
            order=describe_order(ahead, job),
            ahead=explain_ahead(ahead, job, planned.starts, planned.workloads, priorities),
            needed=needed,
            holders=holders,
            planned_nodes=sorted(nodes),
            promise=None if ledger is None else describe_promise(ledger),
            baseline="latest" if row.likely is None else "likely",
            changes=changes,
            text=[],
            assumptions=list(ASSUMPTIONS),
        )
        story.text.extend(_write_story(story, row))
        story.text.extend(self._explain_forecast(workload))
        return story

    def _find_changes(
        self, queue: LiveQueue, job: QueueJob, start_s: int, likely: LikelyStart | None
    ) -> list[CheaperChange]:
        """Changes that would start a job sooner. With a forecast, starts and gains are likely ones, else latest ones."""
        changes = find_changes(queue, job, start_s)
        if likely is None:
            return [change for change, _ in changes]
        sooner = []
        for change, other in changes:
            jobs = (other if waiting.workload == job.workload else waiting for waiting in queue.waiting)
            start_at = self._waits.likely_start(queue.with_jobs(jobs), job.workload)
            gain_s = 0 if start_at is None else (likely.likely_at - start_at) // 1000
            if start_at is not None and is_worthwhile(gain_s, likely.likely_at // 1000 - queue.now_s):
                sooner.append(replace(change, start_at=start_at, gain_s=gain_s))
        return sooner

    def likely_ends(self) -> dict[str, float]:
        """Predicted ends of running workloads in Unix seconds, by id: the median of the models."""
        runs = self.run_quantiles()
        return {name: started + float(row[row.size // 2]) for name, (started, row) in runs.items()}

    def run_quantiles(self) -> Runs:
        """Quantiles of whole run times at the models' levels by workload, and its start (now for a waiting one)."""
        learned = self._waits.models.current()
        version = (self._context.changes.versions.inventory, learned.trained_at)
        return self._context.cache.get(
            "run-quantiles",
            version,
            lambda: predict_runs(self.planned_queue().queue, self.planned_queue().workloads, learned),
        )

    def _forecasts(self) -> tuple[dict[str, LikelyStart], bool]:
        """Likely starts of workloads that wait for GPUs, and whether the models are trained; empty without a forecast."""
        is_learned = self._waits.models.current().trained_at is not None
        try:
            answer = self._waits.waiting()
        except ClusterScapeError:
            return {}, False
        likely_starts = {}
        for forecast in answer.workloads:
            interval = next((interval for interval in forecast.start.intervals if interval.level == LEVEL), None)
            if interval is not None:
                likely_starts[forecast.workload] = LikelyStart(
                    likely_at=forecast.start.likely_at, from_at=interval.from_at, to_at=interval.to_at, level=LEVEL
                )
        return likely_starts, is_learned

    def _explain_forecast(self, workload: str) -> list[str]:
        """Why the likely start of a workload is what it is; empty without a forecast."""
        try:
            answer = self._waits.waiting()
        except ClusterScapeError:
            return []
        return [forecast.start.why.text for forecast in answer.workloads if forecast.workload == workload]

    def _partitions(self, planned: PlannedQueue, rows: list[QueueRow]) -> list[PartitionQueue]:
        free = planned.queue.free_by_node()
        answers = []
        for partition in self._context.records.partitions():
            partition_rows = [row for row in rows if row.partition == partition.name]
            planned_starts = [row.planned_at for row in partition_rows if row.planned_at is not None]
            answers.append(
                PartitionQueue(
                    name=partition.name,
                    is_up=partition.is_up,
                    waiting=len(partition_rows),
                    held=sum(row.waits_for is WaitKind.HELD for row in partition_rows),
                    blocked=sum(row.position is None and row.waits_for is not WaitKind.HELD for row in partition_rows),
                    gpus_asked=sum(row.gpus for row in partition_rows),
                    gpus_free=sum(free.get(node, 0) for node in partition.nodes),
                    drained_at=max(planned_starts, default=None),
                )
            )
        return answers

    def _past_story(self, record: Workload) -> WaitingStory:
        workload = record.id
        if record.state is WorkloadState.WAITING or record.started_at is None or record.submitted_at is None:
            raise NotFoundError(
                f"{workload} does not wait for GPUs", hint="Only jobs that request GPUs have an explanation."
            )
        ledger = self._promises.ledger(workload)
        waited_s = (record.started_at - record.submitted_at) / 1000
        lines = [f"It waited {format_duration(max(waited_s, 0))} and has started."]
        if ledger is None:
            lines.append("No promised start was recorded for it.")
        return WaitingStory(
            at=self._context.clock(),
            workload=workload,
            row=None,
            parts=[],
            order="",
            ahead=[],
            needed=None,
            holders=[],
            planned_nodes=[],
            promise=None if ledger is None else describe_promise(ledger),
            baseline="latest",
            changes=[],
            text=lines,
            assumptions=list(ASSUMPTIONS),
        )


class _RowBuilder:
    """Builds the rows of the queue, with positions by partition."""

    def __init__(self, planned: PlannedQueue) -> None:
        self._planned = planned

    def rows(self, forecasts: Mapping[str, LikelyStart], ledgers: Mapping[str, PromiseLedger]) -> list[QueueRow]:
        """One row for each waiting workload, in queue order."""
        ahead: dict[str, int] = {}
        gpus: dict[str, int] = {}
        rows = []
        for job in self._planned.queue.waiting:
            before, before_gpus = ahead.get(job.partition, 0), gpus.get(job.partition, 0)
            ledger = ledgers.get(job.workload)
            rows.append(self._row(job, before, before_gpus, forecasts.get(job.workload), ledger))
            if job.is_planned:
                ahead[job.partition] = before + 1
                gpus[job.partition] = before_gpus + job.total_gpus
        return rows

    def _row(
        self, job: QueueJob, ahead: int, ahead_gpus: int, likely: LikelyStart | None, ledger: PromiseLedger | None
    ) -> QueueRow:
        workload = self._planned.workloads[job.workload]
        start = self._planned.starts.get(job.workload)
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
            waited_s=None if submitted is None else self._planned.queue.now_s - submitted / 1000,
            position=ahead + 1 if job.is_planned else None,
            ahead=ahead if job.is_planned else 0,
            ahead_gpus=ahead_gpus if job.is_planned else 0,
            reason=workload.pending_reason,
            reason_text=explain_waiting(workload, self._planned.queue.reservations),
            waits_for=classify_pending(workload.pending_reason),
            planned_at=None if start is None else start * 1000,
            scheduler_at=workload.expected_start_at,
            promised_at=None if ledger is None else ledger.last_s * 1000,
            slipped_s=None if ledger is None else ledger.slipped_s,
            likely=likely if job.is_planned else None,
        )


def _write_story(story: WaitingStory, row: QueueRow) -> list[str]:
    """The explanation as sentences."""
    lines = [row.reason_text or "The scheduler gives no reason."]
    if row.position is None:
        return [*lines, "It has no planned start until then."]
    if row.reason in ("Priority", "Resources"):
        # What the next line says, and the code may be older than the queue.
        lines = []
    workloads = "1 workload" if row.ahead == 1 else f"{row.ahead} workloads"
    gpus = "1 GPU" if row.ahead_gpus == 1 else f"{row.ahead_gpus:,} GPUs"
    if row.ahead:
        lines.append(f"It is at position {row.position} in {row.partition}: {workloads} ahead of it, for {gpus}.")
        lines.append(story.order)
    else:
        lines.append(f"It is at position 1 in {row.partition}: next to start.")
    if story.needed is not None:
        lines.append(story.needed.text)
    if row.planned_at is None:
        lines.append("It does not fit on the nodes in service, so it has no planned start.")
    elif story.changes:
        best = story.changes[0]
        lines.append(
            f"Cheapest change: {best.words}; its {story.baseline} start would be {format_duration(best.gain_s)} sooner."
        )
    return lines
