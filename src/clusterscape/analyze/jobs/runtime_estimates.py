"""Run times of every job of a trace as a site with a trained model would have predicted them, for simulations that plan by them.

Walks forward: models are retrained on the jobs that had ended by then, so that no prediction knows the future. When jobs start
and end is taken from the recording, whatever the simulation makes of it.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.features import RAN, EncodedJobs, JobTable, RunHistory, find_starts, to_job_table
from clusterscape.analyze.jobs.runtime import MIN_ENDED_JOBS, RuntimePredictor
from clusterscape.analyze.jobs.runtime_boosted import train_boosted
from clusterscape.analyze.jobs.runtime_forest import train_forest
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.jobs import JobTrace

LearnedEstimates = Literal["boosted", "elapsed-aware"]

TRAIN_AT = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""When models are trained, as shares of the jobs by submission. Earlier jobs have no prediction."""

CORRECTIONS = 6
"""Predictions given elapsed time for each job, at most: each is made when the former one is exceeded."""

SHORTEST_CORRECTION_S = 60.0


def predict_run_times(
    trace: JobTrace, method: LearnedEstimates, *, seed: int = 0, on_progress: Callable[[float], None] = lambda _: None
) -> Int64s:
    """Whole seconds, rows of the trace × corrections; 0: no prediction (too few jobs had ended, or the job never ran).

    ``elapsed-aware`` predicts again each time the former prediction is exceeded, given the elapsed time; ``boosted`` only at
    submission. ``on_progress`` gets the finished share and may raise to stop.
    """
    frame = trace.frame.with_columns(size=trace.size.cast(pl.Float64), start_s=pl.Series(find_starts(trace)))
    rows = frame.select(RAN.arg_true()).to_series().cast(pl.Int64).to_numpy()
    jobs = to_job_table(frame.filter(RAN))
    predictions = np.zeros((len(frame), 1 if method == "boosted" else CORRECTIONS), np.int64)
    if len(jobs) == 0:
        return predictions
    history = RunHistory(jobs)
    encoded = history.encode(jobs)
    order = np.argsort(jobs.submit_s, kind="stable")
    ends = np.sort(jobs.end_s)
    cuts = [int(len(order) * share) for share in TRAIN_AT]
    for number, (begin, end) in enumerate(zip(cuts, [*cuts[1:], len(order)], strict=True)):
        on_progress(number / len(cuts))
        chosen = order[begin:end]
        if len(chosen) == 0:
            continue
        until_s = float(jobs.submit_s[chosen[0]])
        if np.searchsorted(ends, until_s, side="right") < MIN_ENDED_JOBS:
            continue
        if method == "boosted":
            boosted = train_boosted(jobs, history, until_s, seed=seed)
            predicted = boosted.predict(encoded.take(chosen), jobs.submit_s[chosen], np.zeros(len(chosen)))[:, None]
        else:
            predicted = _predict_again(
                train_forest(jobs, history, until_s, seed=seed), jobs, encoded.take(chosen), chosen
            )
        predictions[rows[chosen]] = np.ceil(predicted).astype(np.int64)
    on_progress(1.0)
    return predictions


def _predict_again(model: RuntimePredictor, jobs: JobTable, encoded: EncodedJobs, chosen: Int64s) -> Float64s:
    """The prediction at submission, and one at each time at which a job exceeds the last; jobs × corrections, 0 if not needed."""
    predicted = np.zeros((len(chosen), CORRECTIONS))
    predicted[:, 0] = np.ceil(np.maximum(model.predict(encoded, jobs.submit_s[chosen], np.zeros(len(chosen))), 1.0))
    # Only jobs that do exceed a prediction are asked about again; run times are used for nothing else.
    exceeded = np.arange(len(chosen))
    for step in range(1, CORRECTIONS):
        former = predicted[exceeded, step - 1]
        exceeded = exceeded[jobs.run_s[chosen[exceeded]] > former]
        if len(exceeded) == 0:
            break
        elapsed_s = predicted[exceeded, step - 1]
        at_s = jobs.start_s[chosen[exceeded]] + elapsed_s
        longer = model.predict(encoded.take(exceeded), at_s, elapsed_s)
        predicted[exceeded, step] = np.ceil(np.maximum(longer, elapsed_s + SHORTEST_CORRECTION_S))
    return predicted
