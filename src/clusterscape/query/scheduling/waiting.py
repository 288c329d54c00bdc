"""When would a job start, and when will the waiting ones: forecasts on the live queue, each with intervals and alternatives."""

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError, Trouble
from clusterscape.model import UnixMs, Workload
from clusterscape.model.samples import Float64s
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.models import Learned, ModelCard, SchedulingModels
from clusterscape.query.scheduling.waiting_forecast import Forecaster, Question
from clusterscape.query.scheduling.waiting_log import Bools, ForecastLog, LoggedForecast, find_stage
from clusterscape.query.scheduling.waiting_pools import ASSUMPTIONS, Ask, Pool, find_pools, make_question
from clusterscape.query.scheduling.waiting_report import WaitBinRow, describe_bins
from clusterscape.simulate.forecast import plan_waits

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

    partition: str
    machine_type: str | None
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

    change: str
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
    assumptions: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForecast:
    """A waiting workload. ``scheduler_at``: when the scheduler itself expects to start it."""

    workload: str
    user: str | None
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
    assumptions: list[str]


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
    assumptions: list[str]


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
        fitting = find_pools(self._context.records, now, machine_type=machine_type, memory_gib=memory_gib)
        pools = [pool for pool in fitting if pool.total >= gpus]
        asked = [pool for pool in pools if partition in (None, pool.partition) and _allows(pool, hours)]
        if not asked:
            raise self._refuse(fitting, gpus, hours, machine_type, memory_gib, partition)
        ask = Ask(gpus, hours * 3600, user)
        starts = [self._start(pool, ask, learned, now) for pool in asked]
        best = min(range(len(starts)), key=lambda place: starts[place].wait_s)
        found: list[Alternative] = []
        if alternatives and not starts[best].is_at_once:
            found = list(self._alternatives(asked[best], ask, starts[best], learned, now))
        if alternatives and partition is None:
            others = [Alternative(change="partition", start=s) for place, s in enumerate(starts) if place != best]
            found.extend(sorted(others, key=lambda one: one.start.wait_s))
        return WaitAnswer(
            at=now,
            start=starts[best],
            alternatives=found[:MOST_ALTERNATIVES],
            is_learned=learned.trained_at is not None,
            calibrated_on=self.calibrated_on(),
            assumptions=list(ASSUMPTIONS),
        )

    def waiting(self) -> WaitingForecasts:
        """Of everything that waits; made once per state of the queue."""
        version = (self._context.changes.versions.inventory, self.models.current().trained_at)
        return self._context.cache.get("waiting-forecasts", version, self._forecast_waiting)

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
        trouble = Trouble(log, "forecasts of waits were not kept up", "forecasts of waits are kept up again")
        while not self._stopped.wait(every_s):
            try:
                self.tend()
                trouble.end()
            except ClusterScapeError as error:
                trouble.tell(error)

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def tend(self) -> None:
        """Settle forecasts, make models anew where due, forecast workloads that came or have reached another stage of waiting."""
        self._log.settle(self._context.clock())
        if not self._stopped.is_set():
            self.models.tend()
        known = self._log.known()
        fresh: list[LoggedForecast] = []
        for pool in find_pools(self._context.records, self._context.clock()):
            if self._stopped.is_set():
                return
            now = self._context.clock()
            if any((workload.id, _stage(workload, now)) not in known for workload in pool.waiting):
                fresh.extend(one for one in self._log_pool(pool) if (one.workload, one.stage) not in known)
        self._log.add(fresh)

    def _log_pool(self, pool: Pool) -> Iterator[LoggedForecast]:
        now, learned = self._context.clock(), self.models.current()
        _, sampled, told = self._sample(pool, None, learned, now)
        for place, workload in enumerate(pool.waiting):
            yield LoggedForecast(
                workload=workload.id,
                made_at=now,
                sampled_s=np.round(sampled[place], 1).tolist(),
                told_s=np.round(told[place], 1).tolist(),
                size_ratio=workload.gpus_requested / pool.total,
                ahead=place,
                stage=_stage(workload, now),
            )

    def _forecast_waiting(self) -> WaitingForecasts:
        now, learned = self._context.clock(), self.models.current()
        rows: list[WaitingForecast] = []
        left_out = 0
        for pool in find_pools(self._context.records, self._context.clock()):
            left_out += pool.left_out
            if not pool.waiting:
                continue
            question, _, told = self._sample(pool, None, learned, now)
            plan = plan_waits(question.state)
            for place, workload in enumerate(pool.waiting):
                ask = Ask(workload.gpus_requested, float(question.state.waiting_limit_s[place]))
                start = _describe(pool, ask, place, told[place], float(plan[place]), now)
                rows.append(
                    WaitingForecast(
                        workload=workload.id, user=workload.user, start=start, scheduler_at=workload.expected_start_at
                    )
                )
        return WaitingForecasts(
            at=now,
            workloads=rows,
            left_out=left_out,
            is_learned=learned.trained_at is not None,
            calibrated_on=self.calibrated_on(),
            assumptions=list(ASSUMPTIONS),
        )

    def _sample(
        self, pool: Pool, ask: Ask | None, learned: Learned, now: UnixMs
    ) -> tuple[Question, Float64s, Float64s]:
        """The question, and a row for each wanted job: quantiles as sampled and as told. Only ``ask``, or all that wait."""
        question = make_question(pool, ask, learned, now)
        count = len(question.state.waiting_size)
        wanted = np.ones(count, np.bool_)
        if ask is not None:
            wanted[:-1] = False
        waits = Forecaster(learned.runs, learned.arrivals_of(pool.partition)).ask(question, wanted)
        sampled = summarize_samples(waits[:, wanted])
        places = np.flatnonzero(wanted).astype(np.float64)
        bins = WaitBins(question.state.waiting_size[wanted] / question.state.total, places)
        told = self._log.calibrations().apply(sampled, bins, _are_first(pool, now, wanted))
        # Whoever starts now by the limits starts now for sure.
        told[plan_waits(question.state)[wanted] == 0] = 0.0
        return question, sampled, told

    def _start(self, pool: Pool, ask: Ask, learned: Learned, now: UnixMs) -> StartForecast:
        question, _, told = self._sample(pool, ask, learned, now)
        plan = float(plan_waits(question.state)[-1])
        return _describe(pool, ask, len(pool.waiting), told[-1], plan, now)

    def _alternatives(
        self, pool: Pool, ask: Ask, start: StartForecast, learned: Learned, now: UnixMs
    ) -> Iterator[Alternative]:
        """Half the GPUs, one GPU, half the time: those that would start clearly sooner."""
        changes = [("fewer_gpus", replace(ask, gpus=gpus)) for gpus in {ask.gpus // 2, 1} if 1 <= gpus < ask.gpus]
        changes.append(("shorter", replace(ask, limit_s=ask.limit_s / 2)))
        found = [(change, self._start(pool, other, learned, now)) for change, other in changes]
        for change, other in sorted(found, key=lambda one: one[1].wait_s):
            if other.wait_s < 0.9 * start.wait_s:
                yield Alternative(change=change, start=other)

    def _refuse(
        self,
        pools: Sequence[Pool],
        gpus: int,
        hours: float,
        machine_type: str | None,
        memory_gib: float | None,
        partition: str | None,
    ) -> ClusterScapeError:
        memory = None if memory_gib is None else f"with {memory_gib:g} GiB a node"
        where = " ".join(filter(None, (machine_type, memory, f"in partition {partition}" if partition else None)))
        if not pools and (machine_type or memory_gib is not None):
            pools = find_pools(self._context.records, self._context.clock())
        listed = "; ".join(f"{p.partition}: {p.total} × {p.machine_type or 'GPU'}" for p in pools)
        if partition is not None and partition not in {p.partition for p in pools}:
            return NotFoundError(f"there is no open partition {partition!r}", hint=f"There are {listed or 'none'}.")
        return QueryError(
            f"no partition runs {gpus} GPUs {where} for {hours:g} h".replace("  ", " "),
            hint=f"There are {listed or 'no open partitions'}.",
        )


def _stage(workload: Workload, now: UnixMs) -> int:
    return find_stage((now - (workload.submitted_at or now)) / 1000)


def _are_first(pool: Pool, now: UnixMs, wanted: Bools) -> Bools:
    """Of the wanted ones, who has just come; one that is only asked for comes last, and is new."""
    fresh = [_stage(workload, now) == 0 for workload in pool.waiting]
    are_first: Bools = np.array([*fresh, True][: len(wanted)], np.bool_)[wanted]
    return are_first


def _allows(pool: Pool, hours: float) -> bool:
    return pool.max_time_s is None or hours * 3600 <= pool.max_time_s


def _describe(pool: Pool, ask: Ask, ahead: int, told_s: Float64s, plan_s: float, now: UnixMs) -> StartForecast:
    def moment(wait_s: float) -> int:
        return int(now + wait_s * 1000)

    wait = float(told_s[MIDDLE])
    intervals = [
        StartInterval(level=level, from_at=moment(float(told_s[low])), to_at=moment(float(told_s[high])))
        for level, (low, high) in INTERVALS.items()
        if level in TOLD
    ]
    return StartForecast(
        partition=pool.partition,
        machine_type=pool.machine_type,
        gpus=ask.gpus,
        hours=ask.limit_s / 3600,
        ahead=ahead,
        free_gpus=pool.free,
        is_at_once=float(told_s[LEVELS.index(0.95)]) <= AT_ONCE_S,
        wait_s=wait,
        likely_at=moment(wait),
        intervals=intervals,
        plan_at=moment(plan_s),
    )
