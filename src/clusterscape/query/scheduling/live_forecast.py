"""When waiting jobs start: the plan of the live queue, played again and again with sampled run times.

Pure. A job starts where its whole limit fits, as schedulers decide, and ends when its sampled run does. Later arrivals are not
played: in a conservative plan nobody who comes later delays a job; that priorities change all the same is left to calibration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.features import AskedJobs, to_ran_jobs
from clusterscape.model import Workload
from clusterscape.model.jobs import JobStatus
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.query.scheduling.live_queue import DEFAULT_LIMIT_S, LiveQueue, QueueJob
from clusterscape.query.scheduling.models import Learned
from clusterscape.query.scheduling.queue_plan import find_classes, job_columns, lay_out, planned_jobs, taken_columns
from clusterscape.simulate.futures import RunQuantiles, sample_runs
from clusterscape.simulate.plan import plan_starts

FUTURES = 64
FEWEST_FUTURES = 16
MOST_WORK = 40_000_000
"""Jobs × nodes × futures of one forecast; a larger queue is played in fewer futures."""

ASSUMPTIONS = (
    "Waiting workloads go by priority, then by time in the queue; later ones fill gaps that delay nobody ahead.",
    "GPUs are counted on their nodes; CPUs, memory and quotas are not.",
    "Reservations are kept, and jobs that may preempt others do.",
    "Run times are drawn from what ended before; a job starts only where its whole time limit fits.",
    "Workloads that wait for something else than GPUs (a dependency, a limit, a date) have no forecast.",
)

Runs = Mapping[str, tuple[float, Float64s]]
"""By workload: when it started (now, where it waits), Unix seconds, and its whole run time at the models' levels, seconds."""


@dataclass(frozen=True, slots=True)
class QueueForecast:
    """``jobs`` are the planned ones in queue order, then the probes. Seconds from now; NaN: no plan has room.

    ``wait_s``: a row per future; ``plan_s``: by limits, if nobody else comes.
    """

    jobs: tuple[QueueJob, ...]
    wait_s: Float64s
    plan_s: Float64s


def forecast_queue(queue: LiveQueue, runs: Runs, probes: Sequence[QueueJob] = (), *, seed: int = 0) -> QueueForecast:
    """Play the queue. ``probes`` are jobs that are not submitted: each is asked about behind all others, on its own."""
    layout = lay_out(queue.with_jobs([*queue.waiting, *probes]))
    waiting = planned_jobs(queue, layout)
    jobs = [*waiting, *(job for job in probes if job.partition in layout.pool_of)]
    classes = find_classes(queue, jobs)
    taken = taken_columns(queue, layout, classes)
    columns = replace(job_columns(jobs, layout, queue.now_s, classes), is_probe=np.arange(len(jobs)) >= len(waiting))
    plan = plan_starts(queue.now_s, layout.nodes, taken.columns, columns, classes.loses)
    count = max(FEWEST_FUTURES, min(FUTURES, MOST_WORK // max(1, len(jobs) * len(layout.names))))
    left_s, hold_s = _draw(queue, jobs, runs, count, seed)
    waits = np.empty((count, len(jobs)))
    for future in range(count):
        ends = np.where(
            taken.holding >= 0,
            np.minimum(taken.columns.end_s, queue.now_s + left_s[future][taken.holding]),
            taken.columns.end_s,
        )
        played = plan_starts(
            queue.now_s,
            layout.nodes,
            replace(taken.columns, end_s=ends),
            replace(columns, hold_s=hold_s[future]),
            classes.loses,
        )
        waits[future] = _waits(played.start_s, queue.now_s)
    return QueueForecast(tuple(jobs), waits, _waits(plan.start_s, queue.now_s))


def _waits(start_s: Int64s, now_s: int) -> Float64s:
    return np.where(start_s < 0, np.nan, start_s - now_s).astype(np.float64)


def _draw(queue: LiveQueue, jobs: Sequence[QueueJob], runs: Runs, count: int, seed: int) -> tuple[Int64s, Int64s]:
    """What is left of each holding, and how long each job holds its GPUs; a row per future, whole seconds from 1 up."""
    # Who comes last is drawn last: a job that is added changes nothing for those before it.
    names = dict.fromkeys([*sorted(held.workload for held in queue.held), *(job.workload for job in jobs)])
    known = [name for name in names if name in runs]
    random = np.random.default_rng([seed, queue.now_s])
    drawn = np.zeros((count, 0))
    if known:
        drawn = sample_runs(RunQuantiles(np.stack([runs[name][1] for name in known])), count, random)
    place = {name: at for at, name in enumerate(known)}
    left = np.empty((count, len(queue.held)), np.int64)
    for at, held in enumerate(queue.held):
        limit = max(held.end_s - queue.now_s, 1)
        if held.workload in place:
            elapsed = queue.now_s - runs[held.workload][0]
            left[:, at] = np.clip(drawn[:, place[held.workload]] - elapsed, 1, limit)
        else:
            left[:, at] = limit
    hold = np.empty((count, len(jobs)), np.int64)
    for at, job in enumerate(jobs):
        column = drawn[:, place[job.workload]] if job.workload in place else job.limit_s
        hold[:, at] = np.clip(column, 1, max(job.limit_s, 1))
    return left, hold


def predict_runs(
    queue: LiveQueue,
    workloads: Mapping[str, Workload],
    learned: Learned,
    probes: Sequence[tuple[QueueJob, str | None]] = (),
) -> Runs:
    """Run times of everything that holds or waits for GPUs; ``probes``: jobs that are not submitted, with their users."""
    limits = {held.workload: held.end_s - held.start_s for held in queue.held}
    limits |= {job.workload: job.limit_s for job in queue.waiting}
    rows = [_row(workloads[name], limit, queue.now_s) for name, limit in limits.items() if name in workloads]
    rows += [_probe_row(job, user, queue.now_s) for job, user in probes]
    if not rows:
        return {}
    asked = _asked(rows, learned)
    elapsed = np.array([row["elapsed_s"] for row in rows], np.float64)
    quantiles = learned.runs.quantiles(asked, np.full(len(rows), float(queue.now_s)), elapsed)
    quantiles = np.minimum(quantiles, asked.request_s[:, None])
    return {str(row["workload"]): (queue.now_s - float(elapsed[at]), quantiles[at]) for at, row in enumerate(rows)}


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
    about: dict[str, object] = {"workload": job.workload, "user": user, "project": None, "queue": job.partition}
    times = {"submit_s": float(now_s), "start_s": float(now_s), "elapsed_s": 0.0}
    return about | times | {"size": float(job.total_gpus), "requested_s": float(job.limit_s)}


_SCHEMA = {
    "user": pl.String(),
    "project": pl.String(),
    "queue": pl.String(),
    "submit_s": pl.Float64(),
    "start_s": pl.Float64(),
    "size": pl.Float64(),
    "requested_s": pl.Float64(),
}


def _asked(rows: Sequence[Mapping[str, object]], learned: Learned) -> AskedJobs:
    frame = pl.DataFrame([{name: row[name] for name in _SCHEMA} for row in rows], schema=_SCHEMA).with_columns(
        run_s=pl.lit(None, pl.Float64), status=pl.lit(JobStatus.UNKNOWN.value)
    )
    return learned.history.find(to_ran_jobs(frame))
