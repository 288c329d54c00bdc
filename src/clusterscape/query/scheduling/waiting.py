"""When would a job start, and when will the waiting ones: forecasts on the live queue, each with intervals and alternatives."""

import logging
import math
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.wait_intervals import (
    INTERVALS,
    LEVELS,
    MIDDLE,
    Coverage,
    WaitBins,
    measure_coverage,
    summarize_samples,
)
from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError
from clusterscape.model import NodeId, Workload, WorkloadId
from clusterscape.model.identity_fields import PublicText, UserName, WorkloadRef
from clusterscape.model.samples import Float64s
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.live_forecast import ASSUMPTIONS, forecast_queue, predict_runs
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, read_live_queue
from clusterscape.query.scheduling.models import Learned, ModelCard, SchedulingModels
from clusterscape.query.scheduling.wait_bins import WaitBinRow, describe_bins
from clusterscape.query.scheduling.waiting_log import ForecastLog, LoggedForecast, find_stage
from clusterscape.warm_up import Area

log = logging.getLogger(__name__)

TOLD = (0.8, 0.9)
MOST_ALTERNATIVES = 5
AT_ONCE_S = 60.0
"""Who starts within this starts at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartInterval:
    """The start lies between these with probability ``level``. Unix ms."""

    level: float
    from_at: int
    to_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """When a job would start. ``plan_at``: if all jobs used their whole limits and nobody else came."""

    partition: PublicText
    machine_type: PublicText | None
    gpus: int
    hours: float
    ahead: int
    free_gpus: int
    is_at_once: bool
    wait_s: float
    likely_at: int
    intervals: list[StartInterval]
    plan_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """What to ask for instead. ``change``: fewer_gpus, shorter or partition."""

    change: PublicText
    start: StartForecast


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitAnswer:
    """A job that is not submitted: when it would start, and what would start sooner.

    ``is_learned``: run times come from this cluster's history; else any share of a limit counts as likely as another.
    ``calibrated_on``: waits that the intervals were calibrated with; 0: not yet.
    """

    at: int
    start: StartForecast
    alternatives: list[Alternative]
    is_learned: bool
    calibrated_on: int
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForecast:
    """A waiting workload. ``scheduler_at``: when the scheduler itself expects to start it."""

    workload: WorkloadRef
    user: UserName | None
    start: StartForecast
    scheduler_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForecasts:
    """All waiting workloads, queue by queue; ``left_out``: how many wait for something else, or for more than there is."""

    at: int
    workloads: list[WaitingForecast]
    left_out: int
    is_learned: bool
    calibrated_on: int
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityAnswer:
    """Forecasts that were shown, against what happened. ``told`` should equal nominal; ``sampled`` is before calibration.

    ``told`` is of the first forecast of each workload, ``later`` of those made when it had waited for a while.
    """

    since: int | None
    jobs: int
    later_jobs: int
    open: int
    median_error_s: float | None
    told: list[Coverage]
    later: list[Coverage]
    sampled: list[Coverage]
    bins: list[WaitBinRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCards:
    """Every model in use."""

    models: list[ModelCard]
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True)
class _Sampled:
    """Jobs that a plan has room for: quantiles of their waits as sampled and as told, a row each, and waits by limits."""

    jobs: list[QueueJob]
    sampled_s: Float64s
    told_s: Float64s
    plan_s: Float64s
    bins: WaitBins


class WaitQuery:
    """Answers about the live queue; ``tend`` keeps models, forecasts and their outcomes up to date, off the requests."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self.models = SchedulingModels(context)
        self._log = ForecastLog(context.records)
        self._stopped = threading.Event()

    def ask(
        self,
        *,
        gpus: int,
        hours: float,
        machine_type: str | None = None,
        memory_gib: float | None = None,
        partition: str | None = None,
        user: str | None = None,
        alternatives: bool = True,
    ) -> WaitAnswer:
        """If it were submitted now. Without ``partition`` the one with the earliest likely start answers.

        ``memory_gib``: what it asks for on each node; nodes with less do not count.
        """
        now, learned = self._context.clock(), self.models.current()
        queue = read_live_queue(self._context)
        avoids = self._find_unfit(queue, machine_type, memory_gib)
        asks = [
            job
            for name, longest in sorted(queue.max_times_s.items())
            if partition in (None, name) and (longest is None or hours * 3600 <= longest)
            if (job := make_probe(queue, name, gpus, int(hours * 3600), avoids)) is not None
        ]
        if not asks:
            raise self._refuse(queue, gpus, hours, machine_type, memory_gib, partition)
        shapes = [*asks, *(other for job in asks for _, other in _smaller(queue, job) if alternatives)]
        told = self._forecast(queue, learned, shapes, user)
        starts = {name: start for name, start in told.items() if name in {job.workload for job in shapes}}
        best = min(asks, key=lambda job: starts[job.workload].wait_s)
        start = starts[best.workload]
        options: list[Alternative] = []
        if alternatives and not start.is_at_once:
            smaller = [(change, starts[other.workload]) for change, other in _smaller(queue, best)]
            smaller = [(change, other) for change, other in smaller if other.wait_s < 0.9 * start.wait_s]
            options = [Alternative(change=change, start=other) for change, other in sorted(smaller, key=_by_wait)]
        if alternatives and partition is None:
            others = [("partition", starts[job.workload]) for job in asks if job is not best]
            options += [Alternative(change=change, start=other) for change, other in sorted(others, key=_by_wait)]
        return WaitAnswer(
            at=now,
            start=start,
            alternatives=options[:MOST_ALTERNATIVES],
            is_learned=learned.trained_at is not None,
            calibrated_on=self.calibrated_on(),
            assumptions=list(ASSUMPTIONS),
        )

    def waiting(self) -> WaitingForecasts:
        """Of everything that waits; made once per state of the queue."""
        queue, learned = read_live_queue(self._context), self.models.current()
        version = (self._context.changes.versions.inventory, queue.now_s, learned.trained_at)
        return self._context.cache.get("waiting-forecasts", version, lambda: self._forecast_waiting(queue, learned))

    def calibrated_on(self) -> int:
        """Waits that intervals are calibrated with; 0: not yet."""
        return self._log.calibrations().count

    def reliability(self) -> ReliabilityAnswer:
        """Forecasts against outcomes, so far."""
        all_found = self._log.outcomes()
        found, later = all_found.take(all_found.is_first), all_found.take(~all_found.is_first)
        count = len(found.wait_s)
        middle = found.told_s[:, MIDDLE]
        return ReliabilityAnswer(
            since=found.since,
            jobs=count,
            later_jobs=len(later.wait_s),
            open=self._log.open_count(),
            median_error_s=float(np.median(np.abs(middle - found.wait_s))) if count else None,
            told=measure_coverage(found.told_s, found.wait_s),
            later=measure_coverage(later.told_s, later.wait_s),
            sampled=measure_coverage(found.sampled_s, found.wait_s),
            bins=describe_bins(middle, found.wait_s, found.bins) if count else [],
        )

    def cards(self) -> ModelCards:
        """What is learned, from what, how good."""
        return ModelCards(models=[self.models.card()], assumptions=list(ASSUMPTIONS))

    def run(self, every_s: float) -> None:
        """Tend until ``stop``. A failure is told and does not end it."""
        loop = self._context.loops.loop(
            "forecasts", log, fails="forecasts of waits were not kept up", works="forecasts of waits are kept up again"
        )
        while not self._stopped.wait(every_s):
            if not self._context.warm_up.is_ready(Area.QUEUE):
                continue
            with loop:
                self.tend()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def tend(self) -> None:
        """Settle forecasts, make models anew where due, forecast workloads that came or have reached another stage of waiting."""
        self._log.settle(self._context.clock())
        if not self._stopped.is_set():
            self.models.tend()
        logged = self._log.known()
        queue, now = read_live_queue(self._context), self._context.clock()
        stages = {job.workload: find_stage(now / 1000 - job.queued_s) for job in queue.planned()}
        if self._stopped.is_set() or all((name, stage) in logged for name, stage in stages.items()):
            return
        sampled = self._sample(queue, self.models.current())
        fresh = [
            LoggedForecast(
                workload=job.workload,
                made_at=now,
                sampled_s=np.round(sampled.sampled_s[place], 1).tolist(),
                told_s=np.round(sampled.told_s[place], 1).tolist(),
                size_ratio=float(sampled.bins.size_ratio[place]),
                ahead=int(sampled.bins.ahead[place]),
                stage=stages[job.workload],
            )
            for place, job in enumerate(sampled.jobs)
            if (job.workload, stages[job.workload]) not in logged
        ]
        self._log.add(fresh)

    def _forecast_waiting(self, queue: LiveQueue, learned: Learned) -> WaitingForecasts:
        told = self._forecast(queue, learned)
        workloads = {each.id: each for each in self._context.records.active_workloads()}
        rows = [
            WaitingForecast(
                workload=name,
                user=workloads[WorkloadId(name)].user,
                start=start,
                scheduler_at=workloads[WorkloadId(name)].expected_start_at,
            )
            for name, start in told.items()
            if name in workloads
        ]
        return WaitingForecasts(
            at=queue.now_s * 1000,
            workloads=rows,
            left_out=len(queue.waiting) - len(rows),
            is_learned=learned.trained_at is not None,
            calibrated_on=self.calibrated_on(),
            assumptions=list(ASSUMPTIONS),
        )

    def _forecast(
        self, queue: LiveQueue, learned: Learned, probes: Sequence[QueueJob] = (), user: str | None = None
    ) -> dict[str, StartForecast]:
        """By workload, of all that a plan has room for, and of the probes."""
        sampled = self._sample(queue, learned, probes, user)
        free = queue.free_by_node()
        return {
            job.workload: _describe(
                job,
                int(sampled.bins.ahead[place]),
                sum(free.get(node.name, 0) for node in queue.usable_nodes(job)),
                sampled.told_s[place],
                float(sampled.plan_s[place]),
                queue.now_s * 1000,
            )
            for place, job in enumerate(sampled.jobs)
        }

    def _sample(
        self, queue: LiveQueue, learned: Learned, probes: Sequence[QueueJob] = (), user: str | None = None
    ) -> _Sampled:
        workloads: dict[str, Workload] = {each.id: each for each in self._context.records.active_workloads()}
        runs = predict_runs(queue, workloads, learned, [(job, user) for job in probes])
        played = forecast_queue(queue, runs, probes)
        has_room = np.isfinite(played.plan_s)
        jobs = [job for job, fits in zip(played.jobs, has_room.tolist(), strict=True) if fits]
        # Where a future has no room although the plan has, the plan stands in for it.
        waits = np.where(np.isfinite(played.wait_s), played.wait_s, played.plan_s)[:, has_room]
        sampled, plan = summarize_samples(waits), played.plan_s[has_room]
        ahead = _count_ahead(jobs, {job.workload for job in probes})
        totals = [max(1, sum(node.gpus for node in queue.usable_nodes(job))) for job in jobs]
        bins = WaitBins(np.array([job.total_gpus for job in jobs]) / np.array(totals, float), np.array(ahead, float))
        is_first = np.array([find_stage(queue.now_s - job.queued_s) == 0 for job in jobs], np.bool_)
        told = self._log.calibrations().apply(sampled, bins, is_first)
        # Who has room now by the limits starts now; who can start only after a reservation does not start before it.
        told[plan == 0] = 0.0
        told = np.maximum(told, waits.min(axis=0)[:, None])
        return _Sampled(jobs, sampled, told, plan, bins)

    def _find_unfit(self, queue: LiveQueue, machine_type: str | None, memory_gib: float | None) -> frozenset[str]:
        """Nodes of another type ("A100" asks for "A100-80G", too) or with less memory; one that does not say is large enough."""
        nodes = {node.id: node for node in self._context.records.nodes()}
        wanted = (machine_type or "").casefold()
        least = (memory_gib or 0.0) * 2**30
        unfit = set()
        for name, node in queue.nodes.items():
            memory = nodes[NodeId(name)].memory_bytes if name in nodes else None
            if not (node.machine_type or "").casefold().startswith(wanted) or (memory is not None and memory < least):
                unfit.add(name)
        return frozenset(unfit)

    def _refuse(
        self,
        queue: LiveQueue,
        gpus: int,
        hours: float,
        machine_type: str | None,
        memory_gib: float | None,
        partition: str | None,
    ) -> ClusterScapeError:
        memory = None if memory_gib is None else f"with {memory_gib:g} GiB a node"
        where = " ".join(filter(None, (machine_type, memory, f"in partition {partition}" if partition else None)))
        sizes = []
        for name in sorted(queue.max_times_s):
            here = queue.open_nodes(name)
            kinds = " + ".join(sorted({node.machine_type or "GPU" for node in here}))
            if here:
                sizes.append(f"{name}: {sum(node.gpus for node in here)} × {kinds}")
        listed = "; ".join(sizes)
        if partition is not None and partition not in queue.max_times_s:
            return NotFoundError(f"there is no open partition {partition!r}", hint=f"There are {listed or 'none'}.")
        return QueryError(
            f"no partition runs {gpus} GPUs {where} for {hours:g} h".replace("  ", " "),
            hint=f"There are {listed or 'no open partitions'}.",
        )


def make_probe(queue: LiveQueue, partition: str, gpus: int, limit_s: int, avoids: frozenset[str]) -> QueueJob | None:
    """A job that is not submitted, behind all that wait; None where the partition has not so many GPUs for it."""
    here = [node for node in queue.open_nodes(partition) if node.name not in avoids]
    if sum(node.gpus for node in here) < gpus:
        return None
    nodes = math.ceil(gpus / max(node.gpus for node in here))
    return QueueJob(
        workload=f"probe {partition} {gpus} {limit_s}",
        partition=partition,
        machine_type=None,
        nodes=nodes,
        gpus=math.ceil(gpus / nodes),
        limit_s=limit_s,
        priority=min((job.priority for job in queue.waiting), default=0),
        queued_s=queue.now_s,
        is_planned=True,
        avoids=avoids,
    )


def _smaller(queue: LiveQueue, job: QueueJob) -> Iterator[tuple[str, QueueJob]]:
    """Half the GPUs, one GPU, half the time."""
    total = job.total_gpus
    for gpus in sorted({total // 2, 1} & set(range(1, total)), reverse=True):
        other = make_probe(queue, job.partition, gpus, job.limit_s, job.avoids)
        if other is not None:
            yield "fewer_gpus", other
    shorter = make_probe(queue, job.partition, total, job.limit_s // 2, job.avoids)
    if shorter is not None:
        yield "shorter", shorter


def _by_wait(change: tuple[str, StartForecast]) -> float:
    return change[1].wait_s


def _count_ahead(jobs: Sequence[QueueJob], probes: Collection[str]) -> list[int]:
    """How many of its partition each has ahead; probes stand behind all others, each on its own."""
    counts: Counter[str] = Counter()
    ahead = []
    for job in jobs:
        ahead.append(counts[job.partition])
        counts[job.partition] += job.workload not in probes
    return ahead


def _describe(job: QueueJob, ahead: int, free: int, told_s: Float64s, plan_s: float, now: int) -> StartForecast:
    def moment(wait_s: float) -> int:
        return int(now + wait_s * 1000)

    wait = float(told_s[MIDDLE])
    intervals = [
        StartInterval(level=level, from_at=moment(float(told_s[low])), to_at=moment(float(told_s[high])))
        for level, (low, high) in INTERVALS.items()
        if level in TOLD
    ]
    return StartForecast(
        partition=job.partition,
        machine_type=job.machine_type,
        gpus=job.total_gpus,
        hours=job.limit_s / 3600,
        ahead=ahead,
        free_gpus=free,
        is_at_once=float(told_s[LEVELS.index(0.95)]) <= AT_ONCE_S,
        wait_s=wait,
        likely_at=moment(wait),
        intervals=intervals,
        plan_at=moment(plan_s),
    )
