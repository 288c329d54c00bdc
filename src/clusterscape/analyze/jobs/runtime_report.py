"""Compares run time predictors, and lets them compete: accuracy and underestimates on held-out jobs, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.features import GROUPS, EncodedJobs, JobTable, RunHistory
from clusterscape.analyze.jobs.runtime import LEVELS, LastTwo, RequestedTime, RuntimePredictor, compute_accuracy
from clusterscape.analyze.jobs.runtime_boosted import train_boosted
from clusterscape.analyze.jobs.runtime_contest import NAME, choose_lately
from clusterscape.analyze.jobs.runtime_forest import ElapsedAware, recalibrate, train_elapsed
from clusterscape.analyze.jobs.runtime_similar import SimilarJobs
from clusterscape.errors import QueryError
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.identity_fields import PublicText

TEST_SHARE = 0.3
ELAPSED_SHARE = 0.25
"""Elapsed time of the jobs of the second table, as a share of the mean run time of the training jobs."""

BLOCK = 50
"""Block size of the bootstrap: consecutive jobs are similar, so single draws would give too narrow intervals."""

DRAWS = 400
RECALIBRATE_EVERY = 500
"""Number of jobs, in the order of submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorRow:
    """Accuracy of one predictor. ``under_ratio``: share of jobs that ran longer than predicted."""

    name: PublicText
    accuracy: Interval
    under_ratio: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorShare:
    """The share of jobs or forecasts for which a predictor was chosen."""

    name: PublicText
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionTable:
    """All predictors on the same jobs, which had run for ``elapsed_s``; the last row is of the one that was best lately.

    ``chosen``: which these were, most often first.
    ``q90_under_ratio``: share of jobs that ran longer than the calibrated 90 % quantile (ideal 0.1).
    """

    elapsed_s: float
    jobs: int
    rows: list[PredictorRow]
    chosen: list[PredictorShare]
    q90_under_ratio: Interval
    interval_90_cover_ratio: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionReport:
    """Trained on the first jobs by submission, tested on the last; jobs that ended after the cut were not used for training."""

    trained: int
    tested: int
    cut_s: float
    tables: list[PredictionTable]


def compare_predictors(
    jobs: JobTable, *, test_share: float = TEST_SHARE, seed: int = 0, threads: int = 1
) -> PredictionReport:
    """Train on the past, test on the last submissions: at submission, and at a quarter of the mean run time."""
    cut = int(len(jobs) * (1 - test_share))
    if cut < 1 or cut >= len(jobs):
        raise QueryError(f"{len(jobs)} jobs are too few to compare predictions")
    until_s = float(jobs.submit_s[cut])
    history = RunHistory(jobs)
    aware = train_elapsed(jobs, history, until_s, seed=seed, threads=threads)
    boosted = train_boosted(jobs, history, until_s, seed=seed, threads=threads)
    # The first is used until jobs have ended.
    predictors: Sequence[RuntimePredictor] = (aware, RequestedTime(), LastTwo(history), SimilarJobs(history), boosted)
    encoded = history.encode(jobs)
    tested = np.arange(cut, len(jobs))
    quarter_s = float(jobs.run_s[:cut].mean() * ELAPSED_SHARE)
    tables = []
    for elapsed in (0.0, quarter_s):
        rows = tested[jobs.run_s[tested] > elapsed]
        at = (jobs.submit_s if elapsed == 0.0 else jobs.start_s + elapsed)[rows]
        elapsed_s = np.full(len(rows), elapsed)
        quantiles = _walk_forward(aware, jobs, history, rows, at, elapsed_s)
        tables.append(
            _compare_on(
                predictors, encoded.take(rows), at, elapsed_s, jobs.run_s[rows], jobs.end_s[rows], quantiles, seed
            )
        )
    trained = int((jobs.end_s <= until_s).sum())
    return PredictionReport(trained=trained, tested=len(tested), cut_s=until_s, tables=tables)


def _walk_forward(
    aware: ElapsedAware, jobs: JobTable, history: RunHistory, rows: Int64s, at_s: Float64s, elapsed_s: Float64s
) -> Float64s:
    """Quantiles as a live site would have predicted them: recalibrated regularly on the jobs that had ended by then."""
    encoded = history.encode(jobs)
    parts = []
    for begin in range(0, len(rows), RECALIBRATE_EVERY):
        block = slice(begin, begin + RECALIBRATE_EVERY)
        recalibrated = recalibrate(aware, jobs, history, float(jobs.submit_s[rows[begin]]))
        parts.append(recalibrated.quantiles(encoded.take(rows[block]), at_s[block], elapsed_s[block]))
    return np.concatenate(parts)


def _compare_on(
    predictors: Sequence[RuntimePredictor],
    encoded: EncodedJobs,
    at_s: Float64s,
    elapsed_s: Float64s,
    run_s: Float64s,
    end_s: Float64s,
    quantiles: Float64s,
    seed: int,
) -> PredictionTable:
    predictions = [np.maximum(predictor.predict(encoded, at_s, elapsed_s), 1.0) for predictor in predictors]
    names = [predictor.name for predictor in predictors]
    columns = np.column_stack(predictions)
    chosen = choose_lately(columns, run_s, at_s, end_s, encoded.codes[:, GROUPS.index(("user",))])
    rows = [_evaluate(*row, run_s, seed) for row in zip(names, predictions, strict=True)]
    rows = [*rows[1:], rows[0], _evaluate(NAME, columns[np.arange(len(chosen)), chosen], run_s, seed)]
    counts = np.bincount(chosen, minlength=len(names))
    shares = [
        PredictorShare(name=names[place], ratio=float(counts[place] / max(1, len(chosen))))
        for place in np.argsort(-counts, kind="stable")
        if counts[place]
    ]
    levels = LEVELS.tolist()
    low, high = quantiles[:, levels.index(0.05)], quantiles[:, levels.index(0.95)]
    under = run_s > quantiles[:, levels.index(0.9)]
    return PredictionTable(
        elapsed_s=float(elapsed_s[0]) if len(elapsed_s) else 0.0,
        jobs=len(run_s),
        rows=rows,
        chosen=shares,
        q90_under_ratio=bootstrap_mean(under.astype(float), seed),
        interval_90_cover_ratio=bootstrap_mean(((run_s >= low) & (run_s <= high)).astype(float), seed),
    )


def _evaluate(name: str, predicted_s: Float64s, run_s: Float64s, seed: int) -> PredictorRow:
    return PredictorRow(
        name=name,
        accuracy=bootstrap_mean(compute_accuracy(predicted_s, run_s), seed),
        under_ratio=bootstrap_mean((run_s > predicted_s + 0.5).astype(float), seed),
    )


def bootstrap_mean(values: Float64s, seed: int) -> Interval:
    """The mean with its 95 % block-bootstrap interval."""
    if len(values) == 0:
        raise QueryError("no jobs are left for the test")
    blocks: Int64s = np.arange(len(values)) // BLOCK
    sums, counts = np.bincount(blocks, values), np.bincount(blocks)
    drawn = np.random.default_rng(seed).integers(0, len(sums), (DRAWS, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(value=float(values.mean()), low=float(low), high=float(high))
