"""Ways to predict run times side by side: accuracy and under-estimates on jobs that were not learned from, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.features import AskedJobs, RanJobs, RunHistory
from clusterscape.analyze.jobs.runtime import LEVELS, RuntimePredictor, compute_accuracy
from clusterscape.analyze.jobs.runtime_boosted import train_boosted
from clusterscape.analyze.jobs.runtime_elapsed import ElapsedAware, recalibrate, train_elapsed
from clusterscape.analyze.jobs.runtime_last2 import LastTwo
from clusterscape.analyze.jobs.runtime_request import RequestedTime
from clusterscape.errors import QueryError
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.samples import Float64s, Int64s

TEST_SHARE = 0.3
ELAPSED_SHARE = 0.25
"""Of the mean run of the training jobs: how long the jobs of the second table have run."""

BLOCK = 50
"""Consecutive jobs that are drawn together: neighbors are alike, and single draws would pretend to know more."""

DRAWS = 400
RECALIBRATE_EVERY = 500
"""Jobs, in the order of submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate and the middle 95 % of its bootstrap."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorRow:
    """How good one way is. ``under_ratio``: share of jobs that ran longer than predicted."""

    name: PublicText
    accuracy: Interval
    under_ratio: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionTable:
    """All ways on the same jobs, which had run for ``elapsed_s``.

    ``q90_under_ratio``: how many ran longer than the calibrated 90 % quantile (ideal 0.1).
    """

    elapsed_s: float
    jobs: int
    rows: list[PredictorRow]
    q90_under_ratio: Interval
    interval_90_cover_ratio: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionReport:
    """Learned from the first part by submission, tested on the last; nothing that ended after the cut was learned from."""

    trained: int
    tested: int
    cut_s: float
    tables: list[PredictionTable]


def compare_predictors(
    jobs: RanJobs, *, test_share: float = TEST_SHARE, seed: int = 0, threads: int = 1
) -> PredictionReport:
    """Train on the past, test on what was submitted last: at submission, and at a quarter of the mean run."""
    cut = int(len(jobs) * (1 - test_share))
    if cut < 1 or cut >= len(jobs):
        raise QueryError(f"{len(jobs)} jobs are too few to compare predictions")
    until_s = float(jobs.submit_s[cut])
    history = RunHistory(jobs)
    aware = train_elapsed(jobs, history, until_s, seed=seed, threads=threads)
    boosted = train_boosted(jobs, history, until_s, seed=seed, threads=threads)
    ways: Sequence[RuntimePredictor] = (RequestedTime(), LastTwo(history), boosted, aware)
    asked = history.find(jobs)
    tested = np.arange(cut, len(jobs))
    quarter = float(jobs.run_s[:cut].mean() * ELAPSED_SHARE)
    tables = []
    for elapsed in (0.0, quarter):
        rows = tested[jobs.run_s[tested] > elapsed]
        at = (jobs.submit_s if elapsed == 0.0 else jobs.start_s + elapsed)[rows]
        passed = np.full(len(rows), elapsed)
        quantiles = _walk_forward(aware, jobs, history, rows, at, passed)
        tables.append(_compare(ways, asked.take(rows), at, passed, jobs.run_s[rows], quantiles, seed))
    trained = int((jobs.end_s <= until_s).sum())
    return PredictionReport(trained=trained, tested=len(tested), cut_s=until_s, tables=tables)


def _walk_forward(
    aware: ElapsedAware, jobs: RanJobs, history: RunHistory, rows: Int64s, at_s: Float64s, elapsed_s: Float64s
) -> Float64s:
    """Quantiles as a site would have told them: calibrated anew as jobs end, on those that had ended by then."""
    asked = history.find(jobs)
    parts = []
    for begin in range(0, len(rows), RECALIBRATE_EVERY):
        own = slice(begin, begin + RECALIBRATE_EVERY)
        renewed = recalibrate(aware, jobs, history, float(jobs.submit_s[rows[begin]]))
        parts.append(renewed.quantiles(asked.take(rows[own]), at_s[own], elapsed_s[own]))
    return np.concatenate(parts)


def _compare(
    ways: Sequence[RuntimePredictor],
    asked: AskedJobs,
    at_s: Float64s,
    elapsed_s: Float64s,
    run_s: Float64s,
    quantiles: Float64s,
    seed: int,
) -> PredictionTable:
    rows = []
    for way in ways:
        predicted = np.maximum(way.predict(asked, at_s, elapsed_s), 1.0)
        rows.append(
            PredictorRow(
                name=way.name,
                accuracy=bootstrap_mean(compute_accuracy(predicted, run_s), seed),
                under_ratio=bootstrap_mean((run_s > predicted + 0.5).astype(float), seed),
            )
        )
    levels = LEVELS.tolist()
    low, high = quantiles[:, levels.index(0.05)], quantiles[:, levels.index(0.95)]
    under = run_s > quantiles[:, levels.index(0.9)]
    return PredictionTable(
        elapsed_s=float(elapsed_s[0]) if len(elapsed_s) else 0.0,
        jobs=len(run_s),
        rows=rows,
        q90_under_ratio=bootstrap_mean(under.astype(float), seed),
        interval_90_cover_ratio=bootstrap_mean(((run_s >= low) & (run_s <= high)).astype(float), seed),
    )


def bootstrap_mean(values: Float64s, seed: int) -> Interval:
    """The mean, and the middle 95 % of means over redrawn blocks of neighbors."""
    if len(values) == 0:
        raise QueryError("no job is left to test on")
    blocks: Int64s = np.arange(len(values)) // BLOCK
    sums, counts = np.bincount(blocks, values), np.bincount(blocks)
    drawn = np.random.default_rng(seed).integers(0, len(sums), (DRAWS, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(value=float(values.mean()), low=float(low), high=float(high))
