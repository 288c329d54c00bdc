"""Made-up job logs of different regimes, to test forecasts of waits without reference data.

Each is scheduled by the batch engine and its waits count as recorded, so what the forecaster simulates (first come, first
served with EASY) is often not what happened: hidden outages, other orders, priorities of queues. ``python -m
benchmarks.wait_prediction --regimes SEED`` forecasts them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.jobs import JOB_COLUMNS, JobTrace
from clusterscape.simulate.batch import (
    PRESETS,
    Backfill,
    Policy,
    Scenario,
    Waiting,
    find_policy,
    prepare_jobs,
    simulate,
)

DAY_S = 86_400
DAYS = 120
TOTAL = 256
JOBS = 9000
HIDDEN = "hidden"
"""The user of work that holds the machine and is not in the log: outages, and parts of the machine that come later."""


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """Orders by priority of the second of submission, then by submission."""

    second: Int64s
    priority: Float64s
    is_static: bool = True

    def score(self, waiting: Waiting) -> Float64s:
        """Smallest first."""
        row = np.minimum(np.searchsorted(self.second, waiting.submit_s), len(self.second) - 1)
        return (waiting.submit_s - waiting.origin_s).astype(float) - 1e9 * self.priority[row]


@dataclass(slots=True)
class Draft:
    """A log before it is scheduled: a row per job."""

    random: np.random.Generator
    submit: Float64s
    run: Float64s
    limit: Float64s
    size: Int64s
    user: Int64s
    queue: Int64s = field(init=False)
    priority: Float64s = field(init=False)
    total: int = TOTAL
    policy: Policy | None = None
    is_hidden: np.ndarray[tuple[int], np.dtype[np.bool_]] = field(init=False)

    def __post_init__(self) -> None:
        self.queue = np.zeros(len(self.submit), np.int64)
        self.priority = np.zeros(len(self.submit))
        self.is_hidden = np.zeros(len(self.submit), np.bool_)

    def take(self, rows: Int64s) -> None:
        """Keep these jobs, in this order; one may be taken several times."""
        for name in ("submit", "run", "limit", "size", "user", "queue", "priority", "is_hidden"):
            setattr(self, name, getattr(self, name)[rows])

    def fill(self, load: float) -> None:
        """Scale the run times so that the jobs need this share of the machine."""
        factor = load * self.total * DAYS * DAY_S / float((self.run * self.size)[~self.is_hidden].sum())
        self.run *= factor
        self.limit *= factor

    def hide(self, submit: float, run: float, size: int) -> None:
        """Add hidden work, which goes before all else."""
        row = np.array([len(self.submit)])
        self.take(np.append(np.arange(len(self.submit)), 0))
        self.submit[row], self.run[row], self.limit[row], self.size[row] = submit, run, run, size
        self.priority[row], self.is_hidden[row], self.user[row] = 9, True, -1


def draft(random: np.random.Generator, jobs: int = JOBS) -> Draft:
    """Users with habits, who come by day and less on weekends; sizes are powers of 2; limits are rough."""
    users = 40
    user = np.minimum(random.zipf(1.6, jobs) - 1, users - 1)
    typical, spread = random.lognormal(8, 1.2, users), random.uniform(0.2, 1.2, users)
    run = typical[user] * random.lognormal(0, 1, jobs) ** spread[user]
    size = 2 ** np.minimum(random.poisson(random.uniform(0.5, 4.5, users)[user]), 7)
    limit = np.ceil(np.maximum(run, typical[user]) * random.choice([1.1, 2, 4, 8], jobs) / 1800) * 1800
    submit = random.uniform(0, DAYS * DAY_S, 6 * jobs)
    hour, weekday = submit / 3600 % 24, submit // DAY_S % 7
    share = (0.35 + 0.65 * np.exp(-(((hour - 14) / 5) ** 2))) * np.where(weekday >= 5, 0.4, 1.0)
    submit = np.sort(random.permutation(submit[random.random(len(submit)) < share])[:jobs])
    count = len(submit)
    return Draft(random, np.rint(submit), run[:count], limit[:count], size[:count], user[:count])


def bursts(log: Draft) -> None:
    """Three of four jobs come in bursts of an hour, of one user each."""
    starts = log.random.uniform(0, DAYS * DAY_S, 60)
    burst = log.random.integers(0, 60, len(log.submit))
    is_burst = log.random.random(len(log.submit)) < 0.75
    log.submit = np.where(is_burst, starts[burst] + log.random.exponential(3600, len(log.submit)), log.submit)
    log.user = np.where(is_burst, burst % 40, log.user)
    log.fill(0.7)


def mostly_empty(log: Draft) -> None:
    """A fifth of the machine is used."""
    log.fill(0.2)


def outages(log: Draft) -> None:
    """Every two weeks or so all is drained for half a day, unannounced."""
    log.fill(0.6)
    for day in np.cumsum(log.random.uniform(8, 18, 12)):
        if day < DAYS - 2:
            log.hide(day * DAY_S, log.random.uniform(8, 30) * 3600, log.total)


def long_repair(log: Draft) -> None:
    """In the last third, 60 % of the machine is away for three weeks."""
    log.fill(0.6)
    log.hide(0.75 * DAYS * DAY_S, 21 * DAY_S, int(0.6 * log.total))


def new_queue(log: Draft) -> None:
    """From 72 % of the time on, short jobs have a queue that goes first."""
    is_new = (log.submit > 0.72 * DAYS * DAY_S) & (log.run < np.median(log.run))
    log.queue[is_new], log.priority[is_new] = 1, 1.0
    log.fill(0.85)


def dominant_user(log: Draft) -> None:
    """In the second half, one user sends most jobs, all alike, and goes last."""
    is_theirs = (log.submit > 0.5 * DAYS * DAY_S) & (log.random.random(len(log.submit)) < 0.6)
    log.user[is_theirs], log.size[is_theirs], log.priority[is_theirs] = 99, 16, -1.0
    log.run[is_theirs] = 7200 * log.random.lognormal(0, 0.2, int(is_theirs.sum()))
    log.limit[is_theirs] = 14_400
    log.fill(0.85)


def weekends(log: Draft) -> None:
    """The queue of the week is worked off on weekends: nobody comes then."""
    weekday = log.submit // DAY_S % 7
    log.submit = np.where(weekday >= 5, log.submit - 3 * DAY_S, log.submit)
    log.fill(0.85)


def growing(log: Draft) -> None:
    """Half of the machine comes after 80 % of the time."""
    log.fill(0.42)
    log.hide(0, 0.8 * DAYS * DAY_S, log.total // 2)


def heavy_tails(log: Draft) -> None:
    """Runs of seconds and of days."""
    log.run = np.minimum(60 * log.random.lognormal(0, 3, len(log.run)), 5 * DAY_S)
    log.limit = np.where(log.random.random(len(log.run)) < 0.5, 5 * DAY_S, np.ceil(log.run / 3600) * 3600)
    log.fill(0.75)


def shortest_first(log: Draft) -> None:
    """The shortest limit goes first."""
    log.policy = find_policy("sjf")
    log.fill(0.85)


def priorities_change(log: Draft) -> None:
    """Three queues; after two thirds of the time the first becomes the last."""
    log.queue = log.random.choice(3, len(log.submit), p=[0.3, 0.5, 0.2])
    order = np.where(log.submit < 0.67 * DAYS * DAY_S, 0, 1)
    log.priority = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])[order, log.queue]
    log.fill(0.8)


def floods(log: Draft) -> None:
    """Arrays of hundreds of equal jobs, submitted in one second."""
    count = len(log.submit)
    first = log.random.choice(count, 25, replace=False)
    rows = [np.arange(count)] + [np.full(int(log.random.integers(50, 400)), row) for row in first]
    log.take(np.concatenate(rows)[: 2 * count])
    log.fill(0.7)


REGIMES: tuple[Callable[[Draft], None], ...] = (
    bursts, mostly_empty, outages, long_repair, new_queue, dominant_user, weekends, growing, heavy_tails, shortest_first,
    priorities_change, floods,
)  # fmt: skip


def make_log(regime: Callable[[Draft], None], seed: int) -> JobTrace:
    """A log with the waits that its schedule gave."""
    log = draft(np.random.default_rng([seed, REGIMES.index(regime)]))
    regime(log)
    log.take(np.argsort(log.submit, kind="stable"))
    trace = _to_trace(log, regime.__name__)
    semantics = PRESETS["clusterscape"]
    jobs, _ = prepare_jobs(trace, log.total, estimates="request", semantics=semantics)
    second, first = np.unique(jobs.submit_s, return_index=True)
    policy = log.policy or QueueOrder(second, log.priority[jobs.row][first])
    schedule = simulate(Scenario(jobs, log.total, policy, Backfill("easy"), "request", semantics))
    wait = np.full(len(trace), np.nan)
    wait[jobs.row] = schedule.start_s - jobs.submit_s
    frame = trace.frame.with_columns(
        wait_s=pl.Series(wait).fill_nan(None), run_s=pl.min_horizontal("run_s", "requested_s")
    )
    return JobTrace(trace.name, trace.format, frame.filter(pl.col("user") != HIDDEN), "processors", log.total)


def _to_trace(log: Draft, name: str) -> JobTrace:
    count = len(log.submit)
    texts = {
        "job_id": [str(row) for row in range(count)],
        "user": [HIDDEN if hidden else f"u{user}" for user, hidden in zip(log.user, log.is_hidden, strict=True)],
        "queue": [f"q{queue}" for queue in log.queue],
        "status": ["completed"] * count,
    }
    numbers = {
        "line": np.arange(1, count + 1),
        "submit_s": np.rint(log.submit),
        "run_s": np.maximum(1, np.rint(log.run)),
        "processors": log.size,
        "requested_s": np.maximum(60, np.rint(log.limit)),
    }
    columns = {
        column: pl.Series(column, (texts | numbers).get(column, [None] * count)).cast(dtype)
        for column, dtype in JOB_COLUMNS.items()
    }
    return JobTrace(name, "made", pl.DataFrame(columns), "processors", log.total)
