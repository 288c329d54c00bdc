"""How long jobs waited: in all, by their size, and by the queue they found when they were submitted."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.classes import Classes, split_by_doubling
from clusterscape.analyze.jobs.columns import JobColumns
from clusterscape.analyze.jobs.distributions import ValueSpread, spread_values
from clusterscape.model.samples import Float64s

SLOWDOWN_FLOOR_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassWaits:
    """Waits, in seconds, of the jobs whose size (or queue) lies in [``low``, ``high``]."""

    low: float
    high: float
    jobs: int
    mean_s: float
    p25_s: float
    p50_s: float
    p75_s: float
    p95_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Recorded waits. ``mean_bounded_slowdown``: max(1, (wait + run) / max(run, 10 s)) over the jobs that ran."""

    wait_s: ValueSpread
    mean_bounded_slowdown: float | None
    by_size: list[ClassWaits]
    by_waiting_jobs: list[ClassWaits]


def describe_waiting(jobs: JobColumns, waiting_jobs: Float64s) -> Waiting:
    """``waiting_jobs``: the queue each job found. n log n."""
    ran = ~np.isnan(jobs.wait_s) & ~np.isnan(jobs.run_s)
    run, wait = jobs.run_s[ran], jobs.wait_s[ran]
    slowdown = np.maximum(1.0, (wait + run) / np.maximum(run, SLOWDOWN_FLOOR_S))
    return Waiting(
        wait_s=spread_values(jobs.wait_s),
        mean_bounded_slowdown=float(slowdown.mean()) if slowdown.size else None,
        by_size=_by_class(jobs.wait_s, split_by_doubling(np.where(jobs.size > 0, jobs.size, np.nan))),
        by_waiting_jobs=_by_class(jobs.wait_s, split_by_doubling(waiting_jobs)),
    )


def _by_class(wait_s: Float64s, classes: Classes) -> list[ClassWaits]:
    found = []
    for place, (low, high) in enumerate(zip(classes.low, classes.high, strict=True)):
        waits = wait_s[classes.code == place]
        waits = waits[~np.isnan(waits)]
        if waits.size == 0:
            continue
        p25, p50, p75, p95 = (float(value) for value in np.quantile(waits, [0.25, 0.5, 0.75, 0.95]))
        found.append(
            ClassWaits(
                low=low,
                high=high,
                jobs=len(waits),
                mean_s=float(waits.mean()),
                p25_s=p25,
                p50_s=p50,
                p75_s=p75,
                p95_s=p95,
            )
        )
    return found
