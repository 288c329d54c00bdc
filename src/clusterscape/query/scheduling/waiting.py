"""Start forecasts on the live queue, of jobs before they are submitted and of waiting ones, with intervals and alternatives."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterscape.analyze.jobs.wait_choice import ReportedWaits, WaitQuestions, says_little
from clusterscape.analyze.jobs.wait_intervals import (
    INTERVALS,
    LEVELS,
    MIDDLE,
    Coverage,
    CoverageQuarter,
    WaitBins,
    measure_coverage,
    split_quarters,
    summarize_samples,
)
from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError
from clusterscape.model import NodeId, Workload, WorkloadId
from clusterscape.model.arrays import Float64s
from clusterscape.model.identity_fields import PublicText, UserName, WorkloadRef
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.forecast_why import ForecastWhy, explain_forecast
from clusterscape.query.scheduling.live_forecast import ASSUMPTIONS, forecast_queue, predict_runs
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, read_live_queue
from clusterscape.query.scheduling.models import ModelCard, SchedulingModels, TrainedModels
from clusterscape.query.scheduling.wait_bins import WaitBinRow, describe_bins
from clusterscape.query.scheduling.waiting_log import ForecastLog, find_stage

SHOWN_LEVELS = (0.8, 0.9)
MAX_ALTERNATIVES = 5
IMMEDIATE_S = 60.0
"""A job that starts within this time starts immediately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartInterval:
    """The interval that contains the start with probability ``level``. Unix ms."""

    level: float
    from_at: int
    to_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """When a job would start. ``plan_at``: if all jobs use their whole time limits and no others are submitted.

    ``why``: the estimate that was chosen, the start without later jobs, and what makes it uncertain.
    """

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
    why: ForecastWhy


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """An alternative request. ``change``: fewer_gpus, shorter or partition."""

    change: PublicText
    start: StartForecast


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitAnswer:
    """When a hypothetical job would start, and which requests would start sooner.

    ``is_learned``: run times are predicted from this cluster's history; else they are uniform up to the limit.
    ``calibrated_on``: number of waits used to calibrate the intervals; 0: not calibrated yet.
    """

    at: int
    start: StartForecast
    alternatives: list[Alternative]
    is_learned: bool
    calibrated_on: int
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForecast:
    """The forecast of a waiting workload. ``scheduler_at``: the scheduler's own estimate."""

    workload: WorkloadRef
    user: UserName | None
    start: StartForecast
    scheduler_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForecasts:
    """Forecasts of waiting workloads, in queue order; ``left_out``: how many wait for something else, or never fit."""

    at: int
    workloads: list[WaitingForecast]
    left_out: int
    is_learned: bool
    calibrated_on: int
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityAnswer:
    """Coverage of past forecasts. ``told``: as shown to users, should equal the nominal level; ``sampled``: as simulated.

    ``told`` covers the first forecast of each workload, ``later`` those made after it had waited for some time. ``quarters``: of
    the first ones, in the order of their starts. ``little_ratio``: share of intervals that were too wide to be of use.
    """

    since: int | None
    jobs: int
    later_jobs: int
    open: int
    median_error_s: float | None
    told: list[Coverage]
    later: list[Coverage]
    sampled: list[Coverage]
    quarters: list[CoverageQuarter]
    median_width_90_s: float | None
    little_ratio: float | None
    bins: list[WaitBinRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCards:
    """All models in use."""

    models: list[ModelCard]
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True)
class SampledWaits:
    """Jobs that can start: quantiles of their simulated waits (jobs × levels), what is reported, and waits by time limits."""

    jobs: list[QueueJob]
    sampled_s: Float64s
    reported: ReportedWaits
    plan_s: Float64s
    guesses_s: Float64s
    bins: WaitBins


class WaitQuery:
    """Queries on start forecasts. `services/forecasts.py` updates ``models`` and ``log`` in the background."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self.models = SchedulingModels()
        self.log = ForecastLog(context.records)

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
        """The forecast of a job that is submitted now. Without ``partition``, the one with the earliest likely start.

        ``memory_gib``: the request on each node; nodes with less are excluded.
        """
        now, learned = self._context.clock(), self.models.current()
        queue = read_live_queue(self._context)
        avoids = self._find_unfit(queue, machine_type, memory_gib)
        candidates = [
            job
            for name, max_time_s in sorted(queue.max_times_s.items())
            if partition in (None, name) and (max_time_s is None or hours * 3600 <= max_time_s)
            if (job := make_probe(queue, name, gpus, int(hours * 3600), avoids)) is not None
        ]
        if not candidates:
            raise self._too_large_error(queue, gpus, hours, machine_type, memory_gib, partition)
        probes = [*candidates, *(other for job in candidates for _, other in _smaller(queue, job) if alternatives)]
        probe_names = {job.workload for job in probes}
        forecasts = self._forecast(queue, learned, probes, user)
        starts = {name: start for name, start in forecasts.items() if name in probe_names}
        best = min(candidates, key=lambda job: starts[job.workload].wait_s)
        start = starts[best.workload]
        options: list[Alternative] = []
        if alternatives and not start.is_at_once:
            smaller = [(change, starts[other.workload]) for change, other in _smaller(queue, best)]
            smaller = [(change, other) for change, other in smaller if other.wait_s < 0.9 * start.wait_s]
            options = [Alternative(change=change, start=other) for change, other in sorted(smaller, key=_by_wait)]
        if alternatives and partition is None:
            others = [("partition", starts[job.workload]) for job in candidates if job is not best]
            options += [Alternative(change=change, start=other) for change, other in sorted(others, key=_by_wait)]
        return WaitAnswer(
            at=now,
            start=start,
            alternatives=options[:MAX_ALTERNATIVES],
            is_learned=learned.trained_at is not None,
            calibrated_on=self.calibrated_on(),
            assumptions=list(ASSUMPTIONS),
        )

    def waiting(self) -> WaitingForecasts:
        """Forecasts of all waiting workloads, cached until the queue changes."""
        queue, learned = read_live_queue(self._context), self.models.current()
        version = (self._context.changes.versions.inventory, queue.now_s, learned.trained_at)
        return self._context.cache.get("waiting-forecasts", version, lambda: self._forecast_waiting(queue, learned))

    def likely_start(self, queue: LiveQueue, workload: str) -> int | None:
        """The likely start (Unix ms) of one workload of any queue; None if it cannot start."""
        forecast = self._forecast(queue, self.models.current()).get(workload)
        return None if forecast is None else forecast.likely_at

    def calibrated_on(self) -> int:
        """Number of waits used to calibrate the intervals; 0: not calibrated yet."""
        return self.log.judge().count

    def reliability(self) -> ReliabilityAnswer:
        """Past forecasts compared with their outcomes."""
        outcomes = self.log.outcomes()
        first, later = outcomes.take(outcomes.is_first), outcomes.take(~outcomes.is_first)
        count = len(first.wait_s)
        median = first.calibrated_s[:, MIDDLE]
        low, high = INTERVALS[0.9]
        return ReliabilityAnswer(
            since=first.since,
            jobs=count,
            later_jobs=len(later.wait_s),
            open=self.log.open_count(),
            median_error_s=float(np.median(np.abs(median - first.wait_s))) if count else None,
            told=measure_coverage(first.calibrated_s, first.wait_s),
            later=measure_coverage(later.calibrated_s, later.wait_s),
            sampled=measure_coverage(first.sampled_s, first.wait_s),
            quarters=split_quarters(first.calibrated_s, first.wait_s),
            median_width_90_s=float(np.median(first.calibrated_s[:, high] - first.calibrated_s[:, low]))
            if count
            else None,
            little_ratio=float(says_little(first.calibrated_s).mean()) if count else None,
            bins=describe_bins(median, first.wait_s, first.bins) if count else [],
        )

    def cards(self) -> ModelCards:
        """The models with their training data and accuracy."""
        return ModelCards(models=[self.models.card()], assumptions=list(ASSUMPTIONS))

    def _forecast_waiting(self, queue: LiveQueue, learned: TrainedModels) -> WaitingForecasts:
        forecasts = self._forecast(queue, learned)
        workloads = {workload.id: workload for workload in self._context.records.active_workloads()}
        rows = [
            WaitingForecast(
                workload=name,
                user=workloads[WorkloadId(name)].user,
                start=start,
                scheduler_at=workloads[WorkloadId(name)].expected_start_at,
            )
            for name, start in forecasts.items()
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
        self, queue: LiveQueue, learned: TrainedModels, probes: Sequence[QueueJob] = (), user: str | None = None
    ) -> dict[str, StartForecast]:
        """Forecasts by workload, of waiting jobs that can start, and of the probes."""
        sampled = self.sample(queue, learned, probes, user)
        free = queue.free_by_node()
        return {
            job.workload: _describe(
                job,
                int(sampled.bins.ahead[index]),
                sum(free.get(node.name, 0) for node in queue.usable_nodes(job)),
                sampled,
                index,
                queue.now_s * 1000,
            )
            for index, job in enumerate(sampled.jobs)
        }

    def sample(
        self, queue: LiveQueue, learned: TrainedModels, probes: Sequence[QueueJob] = (), user: str | None = None
    ) -> SampledWaits:
        """Simulates the queue and calibrates the waits; ``probes``: hypothetical jobs of ``user``."""
        workloads: dict[str, Workload] = {
            workload.id: workload for workload in self._context.records.active_workloads()
        }
        runs = predict_runs(queue, workloads, learned, [(job, user) for job in probes])
        forecast = forecast_queue(queue, runs, probes)
        can_start = np.isfinite(forecast.plan_s)
        jobs = [job for job, fits in zip(forecast.jobs, can_start.tolist(), strict=True) if fits]
        # A future in which a job does not fit, although the plan has a start for it, uses the planned start.
        waits = np.where(np.isfinite(forecast.wait_s), forecast.wait_s, forecast.plan_s)[:, can_start]
        sampled, plan = summarize_samples(waits), forecast.plan_s[can_start]
        ahead = _count_ahead(jobs, {job.workload for job in probes})
        totals = [max(1, sum(node.gpus for node in queue.usable_nodes(job))) for job in jobs]
        bins = WaitBins(np.array([job.total_gpus for job in jobs]) / np.array(totals, float), np.array(ahead, float))
        is_first = np.array([find_stage(queue.now_s - job.queued_s) == 0 for job in jobs], np.bool_)
        judge = self.log.judge()
        guesses = judge.guess(queue.now_s, plan, [job.partition for job in jobs], bins, is_first)
        reported = judge.predict(WaitQuestions(guesses, sampled, bins), is_first)
        # A job that the plan starts now starts now; one that must wait for the end of a reservation does not start before it.
        quantiles = np.where(plan[:, None] == 0, 0.0, reported.quantiles_s)
        quantiles = np.maximum(quantiles, waits.min(axis=0)[:, None])
        return SampledWaits(jobs, sampled, replace(reported, quantiles_s=quantiles), plan, guesses, bins)

    def _find_unfit(self, queue: LiveQueue, machine_type: str | None, memory_gib: float | None) -> frozenset[str]:
        """Nodes of another type ("A100" includes "A100-80G") or with less memory; unknown memory counts as enough."""
        nodes = {node.id: node for node in self._context.records.nodes()}
        type_prefix = (machine_type or "").casefold()
        min_bytes = (memory_gib or 0.0) * 2**30
        unfit = set()
        for name, node in queue.nodes.items():
            memory = nodes[NodeId(name)].memory_bytes if name in nodes else None
            if not (node.machine_type or "").casefold().startswith(type_prefix) or (
                memory is not None and memory < min_bytes
            ):
                unfit.add(name)
        return frozenset(unfit)

    def _too_large_error(
        self,
        queue: LiveQueue,
        gpus: int,
        hours: float,
        machine_type: str | None,
        memory_gib: float | None,
        partition: str | None,
    ) -> ClusterScapeError:
        memory = None if memory_gib is None else f"with {memory_gib:g} GiB per node"
        where = " ".join(filter(None, (machine_type, memory, f"in partition {partition}" if partition else None)))
        sizes = []
        for name in sorted(queue.max_times_s):
            nodes = queue.open_nodes(name)
            kinds = " + ".join(sorted({node.machine_type or "GPU" for node in nodes}))
            if nodes:
                sizes.append(f"{name}: {sum(node.gpus for node in nodes)} × {kinds}")
        listed = "; ".join(sizes)
        if partition is not None and partition not in queue.max_times_s:
            return NotFoundError(
                f"no partition {partition!r} that is up", hint=f"Partitions: {listed}." if listed else "None is up."
            )
        return QueryError(
            f"no partition runs {gpus} GPUs {where} for {hours:g} h".replace("  ", " "),
            hint=f"Partitions: {listed}." if listed else "No partition is up.",
        )


def make_probe(queue: LiveQueue, partition: str, gpus: int, limit_s: int, avoids: frozenset[str]) -> QueueJob | None:
    """A hypothetical job behind all waiting ones; None if the partition has too few GPUs for it."""
    usable = [node for node in queue.open_nodes(partition) if node.name not in avoids]
    if sum(node.gpus for node in usable) < gpus:
        return None
    nodes = math.ceil(gpus / max(node.gpus for node in usable))
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
    """Smaller requests: half the GPUs, one GPU, half the time."""
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
    """The number of jobs ahead of each job in its partition; each probe is alone behind all others."""
    counts: Counter[str] = Counter()
    ahead = []
    for job in jobs:
        ahead.append(counts[job.partition])
        counts[job.partition] += job.workload not in probes
    return ahead


def _describe(job: QueueJob, ahead: int, free: int, sampled: SampledWaits, index: int, now: int) -> StartForecast:
    quantiles_s, plan_s = sampled.reported.quantiles_s[index], float(sampled.plan_s[index])

    def start_at(wait_s: float) -> int:
        return int(now + wait_s * 1000)

    wait = float(quantiles_s[MIDDLE])
    intervals = [
        StartInterval(level=level, from_at=start_at(float(quantiles_s[low])), to_at=start_at(float(quantiles_s[high])))
        for level, (low, high) in INTERVALS.items()
        if level in SHOWN_LEVELS
    ]
    return StartForecast(
        partition=job.partition,
        machine_type=job.machine_type,
        gpus=job.total_gpus,
        hours=job.limit_s / 3600,
        ahead=ahead,
        free_gpus=free,
        is_at_once=float(quantiles_s[LEVELS.index(0.95)]) <= IMMEDIATE_S,
        wait_s=wait,
        likely_at=start_at(wait),
        intervals=intervals,
        plan_at=start_at(plan_s),
        why=explain_forecast(int(sampled.reported.chosen[index]), quantiles_s, sampled.sampled_s[index], plan_s, now),
    )
