"""Start forecasts of waiting jobs: the plan of the live queue, computed repeatedly with sampled run times (Monte Carlo).

Pure. A job starts where its whole limit fits, as schedulers decide, and ends after its sampled run time. Later arrivals are not
simulated: in a conservative plan they delay no job. Calibration accounts for changes of priorities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.features import EncodedJobs, to_job_table
from clusterscape.model import Workload
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.jobs import JobStatus
from clusterscape.query.scheduling.live_queue import DEFAULT_LIMIT_S, LiveQueue, QueueJob
from clusterscape.query.scheduling.models import TrainedModels
from clusterscape.query.scheduling.queue_plan import (
    build_layout,
    find_classes,
    job_columns,
    occupied_columns,
    planned_jobs,
)
from clusterscape.simulate.futures import RunQuantiles, sample_runs
from clusterscape.simulate.plan import plan_starts

FUTURES = 64
MIN_FUTURES = 16
MAX_WORK = 40_000_000
"""Upper bound of jobs × nodes × futures of one forecast; a larger queue gets fewer futures."""

ASSUMPTIONS = (
    "Waiting workloads are ordered by priority, then by time in the queue; later ones backfill without delaying those ahead.",
    "GPUs are counted on their nodes; CPUs, memory and quotas are not.",
    "Reservations are respected, and jobs that may preempt others do so.",
    "Run times are sampled from past jobs; a job starts only where its whole time limit fits.",
    "Workloads that wait for something other than GPUs (a dependency, a limit, a begin time) have no forecast.",
)

Runs = Mapping[str, tuple[float, Float64s]]
"""By workload: its start (now for a waiting one), Unix seconds, and quantiles of its run time at the models' levels, seconds."""


@dataclass(frozen=True, slots=True)
class QueueForecast:
    """``jobs`` are the planned ones in queue order, then the probes. Seconds from now; NaN: no nodes are large enough.

    ``wait_s``: futures × jobs; ``plan_s``: by time limits, without later arrivals.
    """

    jobs: tuple[QueueJob, ...]
    wait_s: Float64s
    plan_s: Float64s


def forecast_queue(queue: LiveQueue, runs: Runs, probes: Sequence[QueueJob] = (), *, seed: int = 0) -> QueueForecast:
    """Simulates the queue. ``probes``: hypothetical jobs, each placed alone behind all waiting ones."""
    layout = build_layout(queue.with_jobs([*queue.waiting, *probes]))
    waiting = planned_jobs(queue, layout)
    jobs = [*waiting, *(job for job in probes if job.partition in layout.pool_of)]
    classes = find_classes(queue, jobs)
    occupied = occupied_columns(queue, layout, classes)
    columns = replace(job_columns(jobs, layout, queue.now_s, classes), is_probe=np.arange(len(jobs)) >= len(waiting))
    plan = plan_starts(queue.now_s, layout.nodes, occupied.columns, columns, classes.loses)
    count = max(MIN_FUTURES, min(FUTURES, MAX_WORK // max(1, len(jobs) * len(layout.names))))
    left_s, hold_s = _sample(queue, jobs, runs, count, seed)
    waits = np.empty((count, len(jobs)))
    for future in range(count):
        ends = np.where(
            occupied.holding >= 0,
            np.minimum(occupied.columns.end_s, queue.now_s + left_s[future][occupied.holding]),
            occupied.columns.end_s,
        )
        sampled_plan = plan_starts(
            queue.now_s,
            layout.nodes,
            replace(occupied.columns, end_s=ends),
            replace(columns, hold_s=hold_s[future]),
            classes.loses,
        )
        waits[future] = _waits(sampled_plan.start_s, queue.now_s)
    return QueueForecast(tuple(jobs), waits, _waits(plan.start_s, queue.now_s))


def _waits(start_s: Int64s, now_s: int) -> Float64s:
    return np.where(start_s < 0, np.nan, start_s - now_s).astype(np.float64)


def _sample(queue: LiveQueue, jobs: Sequence[QueueJob], runs: Runs, count: int, seed: int) -> tuple[Int64s, Int64s]:
    """Remaining time of each holding, and holding time of each job; a row per future, whole seconds, at least 1."""
    # The last jobs are sampled last, so that an added job does not change the samples of those before it.
    names = dict.fromkeys([*sorted(held.workload for held in queue.held), *(job.workload for job in jobs)])
    predicted = [name for name in names if name in runs]
    random = np.random.default_rng([seed, queue.now_s])
    samples = np.zeros((count, 0))
    if predicted:
        samples = sample_runs(RunQuantiles(np.stack([runs[name][1] for name in predicted])), count, random)
    column_of = {name: index for index, name in enumerate(predicted)}
    left = np.empty((count, len(queue.held)), np.int64)
    for index, held in enumerate(queue.held):
        limit = max(held.end_s - queue.now_s, 1)
        if held.workload in column_of:
            elapsed = queue.now_s - runs[held.workload][0]
            left[:, index] = np.clip(samples[:, column_of[held.workload]] - elapsed, 1, limit)
        else:
            left[:, index] = limit
    hold = np.empty((count, len(jobs)), np.int64)
    for index, job in enumerate(jobs):
        column = samples[:, column_of[job.workload]] if job.workload in column_of else job.limit_s
        hold[:, index] = np.clip(column, 1, max(job.limit_s, 1))
    return left, hold


def predict_runs(
    queue: LiveQueue,
    workloads: Mapping[str, Workload],
    learned: TrainedModels,
    probes: Sequence[tuple[QueueJob, str | None]] = (),
) -> Runs:
    """Run times of all workloads that hold or wait for GPUs; ``probes``: hypothetical jobs with their users."""
    limits = {held.workload: held.end_s - held.start_s for held in queue.held}
    limits |= {job.workload: job.limit_s for job in queue.waiting}
    rows = [_row(workloads[name], limit, queue.now_s) for name, limit in limits.items() if name in workloads]
    rows += [_probe_row(job, user, queue.now_s) for job, user in probes]
    if not rows:
        return {}
    requests = _find_features(rows, learned)
    elapsed = np.array([row["elapsed_s"] for row in rows], np.float64)
    quantiles = learned.runs.quantiles(requests, np.full(len(rows), float(queue.now_s)), elapsed)
    quantiles = np.minimum(quantiles, requests.request_s[:, None])
    return {
        str(row["workload"]): (queue.now_s - float(elapsed[index]), quantiles[index]) for index, row in enumerate(rows)
    }


def _row(workload: Workload, limit_s: int, now_s: int) -> dict[str, object]:
    started = workload.started_at
    start_s = now_s if started is None else started / 1000
    submitted = workload.submitted_at
    return {
        "workload": workload.id,
        "user": workload.user,
        "project": workload.project,
        "queue": workload.partition,
        "submit_s": start_s if submitted is None else submitted / 1000,
        "start_s": start_s,
        "size": float(max(workload.gpus_requested, 1)),
        "requested_s": float(limit_s or DEFAULT_LIMIT_S),
        "elapsed_s": max(now_s - start_s, 0.0),
    }


def _probe_row(job: QueueJob, user: str | None, now_s: int) -> dict[str, object]:
    names: dict[str, object] = {"workload": job.workload, "user": user, "project": None, "queue": job.partition}
    times = {"submit_s": float(now_s), "start_s": float(now_s), "elapsed_s": 0.0}
    return names | times | {"size": float(job.total_gpus), "requested_s": float(job.limit_s)}


_SCHEMA = {
    "user": pl.String(),
    "project": pl.String(),
    "queue": pl.String(),
    "submit_s": pl.Float64(),
    "start_s": pl.Float64(),
    "size": pl.Float64(),
    "requested_s": pl.Float64(),
}


def _find_features(rows: Sequence[Mapping[str, object]], learned: TrainedModels) -> EncodedJobs:
    frame = pl.DataFrame([{name: row[name] for name in _SCHEMA} for row in rows], schema=_SCHEMA).with_columns(
        run_s=pl.lit(None, pl.Float64), status=pl.lit(JobStatus.UNKNOWN.value)
    )
    return learned.history.encode(to_job_table(frame))
