"""Advice on ended jobs: what similar past jobs used, and how much sooner the job would have started with a smaller request.

The start is planned twice in the queue as it was when the job was submitted, by the same planner as the live queue: with what
the job asked for, and with what would have been enough. The planner knows only GPUs, so cores and memory have no such time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clusterscape.analyze.jobcard.advice import AdviceKind, GpuOffer, JobAdvice, find_advice
from clusterscape.model import UnitKind, UnixMs
from clusterscape.model.durations import DAY_MS
from clusterscape.model.job_summaries import JobSummary
from clusterscape.query.context import QueryContext
from clusterscape.query.past import PastPictures
from clusterscape.query.scheduling.live_queue import (
    LiveQueue,
    QueueJob,
    find_node_table,
    read_queue,
    read_scheduler_rules,
)
from clusterscape.query.scheduling.queue_plan import plan_queue

MAX_SIMILAR = 100
SIMILAR_DAYS = 180
MIN_WAIT_MS = 60_000
MAX_WAITING = 20_000
"""In a longer queue nothing is planned: a card must appear at once."""
_PLANNED_KINDS = (AdviceKind.TIME_LIMIT, AdviceKind.GPUS, AdviceKind.GPU_MODEL)


@dataclass(frozen=True, slots=True)
class TimedAdvice:
    """A piece of advice, and by how much sooner the job would have started; None: not planned."""

    advice: JobAdvice
    sooner_s: int | None


def find_similar(context: QueryContext, job: JobSummary) -> list[JobSummary]:
    """Past jobs of the same user and family that ended before this one, newest first."""
    if job.user is None or not job.family:
        return []
    similar = context.records.similar_summaries(job.user, job.family, limit=MAX_SIMILAR)
    oldest = job.ended_at - SIMILAR_DAYS * DAY_MS
    return [other for other in similar if other.workload != job.workload and oldest <= other.ended_at <= job.ended_at]


def read_advice(
    context: QueryContext, past: PastPictures, job: JobSummary, similar: Sequence[JobSummary]
) -> list[TimedAdvice]:
    """All advice on an ended job, computed once for each end of a job."""
    pieces = find_advice(job, similar, read_offer(context))
    if not any(piece.kind in _PLANNED_KINDS and piece.saved is not None for piece in pieces):
        return [TimedAdvice(piece, None) for piece in pieces]
    queue = read_queue_of(context, past, job)
    return [TimedAdvice(piece, None if queue is None else _plan_sooner(queue, job, piece)) for piece in pieces]


def read_offer(context: QueryContext) -> GpuOffer:
    """The GPU models and MIG profiles of the cluster."""
    models: dict[str, float] = {}
    profiles: set[str] = set()
    for unit in context.records.units():
        if unit.kind is UnitKind.MIG:
            profiles |= {unit.mig_profile} if unit.mig_profile else set()
        elif unit.machine_type is not None and unit.memory_bytes is not None:
            models[unit.machine_type] = float(unit.memory_bytes)
    return GpuOffer(models=models, mig_profiles=tuple(sorted(profiles)))


def read_queue_of(context: QueryContext, past: PastPictures, job: JobSummary) -> LiveQueue | None:
    """The queue at the moment when the job was submitted, in which it waits; None if it did not wait, or it is too long."""
    if job.submitted_at is None or job.started_at - job.submitted_at < MIN_WAIT_MS or not job.gpus:
        return None
    workloads, allocations = past.records_at(UnixMs(job.submitted_at))
    reservations, preemption = read_scheduler_rules(context.records)
    queue = read_queue(
        now_s=job.submitted_at // 1000,
        table=find_node_table(context),
        workloads=workloads,
        allocations=allocations,
        reservations=reservations,
        preemption=preemption,
    )
    if len(queue.waiting) > MAX_WAITING or all(waiting.workload != job.workload for waiting in queue.waiting):
        return None
    # Past reasons for waiting are not stored: all that waited are planned.
    return queue.with_jobs(replace(waiting, is_planned=True) for waiting in queue.waiting)


def _plan_sooner(queue: LiveQueue, job: JobSummary, piece: JobAdvice) -> int | None:
    if piece.kind not in _PLANNED_KINDS or piece.saved is None or not piece.enough:
        return None
    former = _planned_start(queue, job)
    changed = _planned_start(
        queue.with_jobs(
            _change(waiting, piece) if waiting.workload == job.workload else waiting for waiting in queue.waiting
        ),
        job,
    )
    return None if former is None or changed is None else max(0, former - changed)


def _planned_start(queue: LiveQueue, job: JobSummary) -> int | None:
    return plan_queue(queue)[0].get(job.workload)


def _change(waiting: QueueJob, piece: JobAdvice) -> QueueJob:
    """The waiting job with what would have been enough."""
    if piece.kind is AdviceKind.TIME_LIMIT:
        return replace(waiting, limit_s=int(piece.enough))
    if piece.kind is AdviceKind.GPU_MODEL:
        return replace(waiting, machine_type=piece.model)
    gpus = int(piece.enough)
    nodes = -(-gpus // waiting.gpus)
    return replace(waiting, nodes=nodes, gpus=-(-gpus // nodes))
