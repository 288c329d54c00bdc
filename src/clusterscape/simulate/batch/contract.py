"""Input and output of a batch simulation: jobs, policies, backfilling, schedules."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.simulate.batch.semantics import Semantics
from clusterscape.simulate.choices import Choice

Estimates = Literal["request", "actual", "predicted", "boosted", "elapsed-aware"]
"""Run-time estimates: the request, the actual run time, the mean of the user's last two runs (Tsafrir et al. 2007), or
predictions of a model (`BatchJobs.predictions_s`).
"""

ESTIMATES: tuple[Estimates, ...] = get_args(Estimates)
LEARNED: tuple[Estimates, ...] = ("boosted", "elapsed-aware")
"""The estimates of trained models."""

PREDICTED: tuple[Estimates, ...] = ("predicted", *LEARNED)
"""The estimates that a job may exceed: they are corrected then, up to its request."""

BackfillKind = Literal[
    "none", "first-fit", "easy", "easy-sjbf", "easy++", "conservative", "relaxed", "adaptive", "frugal"
]
BACKFILLS: tuple[BackfillKind, ...] = get_args(BackfillKind)
BACKFILL_CHOICES = (
    Choice("none", "no backfilling", "None"),
    Choice("first-fit", "first fit", "First fit"),
    Choice("easy", "EASY", "EASY"),
    Choice("easy-sjbf", "EASY-SJBF", "EASY, shortest first (SJBF)"),
    Choice("easy++", "EASY++", "EASY++"),
    Choice("conservative", "conservative", "Conservative"),
    Choice("relaxed", "relaxed", "Relaxed"),
    Choice("adaptive", "adaptive", "Adaptive relaxed"),
    Choice("frugal", "frugal", "Frugal: smallest first"),
)
RELAXED: tuple[BackfillKind, ...] = ("relaxed", "adaptive", "frugal")
"""The backfillings with a relaxation factor ω."""

ENGINE = "2"
"""The engine's version. Increase it whenever the same input may give another schedule, so that fingerprints differ."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The waiting jobs that a policy orders, one row each; times in seconds, sizes in processors.

    ``user_usage``: decayed usage of the job's user in processor-seconds; 0 unless the policy sets a half-life.
    """

    now_s: int
    origin_s: int
    total_processors: int
    submit_s: Int64s
    estimate_s: Int64s
    processors: Int64s
    user_usage: Float64s

    @property
    def wait_s(self) -> Int64s:
        """Seconds that each job has waited so far."""
        return self.now_s - self.submit_s


class Policy(Protocol):
    """The order of a queue. ``is_static``: the score of a job never changes, so it is computed once."""

    @property
    def is_static(self) -> bool:
        """Whether scores do not change with time or usage."""
        ...

    def score(self, waiting: Waiting) -> Float64s:
        """One number per job; the smallest goes first. Ties go to the earlier submission."""
        ...


@dataclass(frozen=True, slots=True)
class Backfill:
    """How jobs may start before others that are ahead of them in the queue.

    ``share``: relaxation factor ω; ``whole_at``: q0, the queue length at which ω applies fully.
    """

    kind: BackfillKind = "easy"
    share: float = 0.1
    whole_at: float = 150.0

    def __post_init__(self) -> None:
        if self.kind not in BACKFILLS:
            raise QueryError(f"unknown backfill strategy {self.kind!r}", hint=f"Choose one of: {', '.join(BACKFILLS)}.")
        if not (self.share >= 0 and self.whole_at > 0):
            raise QueryError("the relaxation factor must be at least 0 and its queue length above 0")


@dataclass(frozen=True, slots=True)
class BatchJobs:
    """Jobs for the engine: whole seconds, in submit order, 1 ≤ run ≤ estimate, 1 ≤ processors ≤ those of the machine.

    ``row``: row in the trace; ``request_s``: upper bound of predictions; ``user``: a code; ``number``: rank of the job's id among
    the ids (for ties). ``predictions_s``: jobs × corrections, the run time that a model predicts at submission, and again each
    time the former prediction is exceeded; 0: no prediction.
    """

    row: Int64s
    submit_s: Int64s
    run_s: Int64s
    estimate_s: Int64s
    request_s: Int64s
    processors: Int64s
    user: Int64s
    number: Int64s
    predictions_s: Int64s | None = None

    def __len__(self) -> int:
        return len(self.submit_s)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The complete input of one simulation: equal scenarios give equal schedules."""

    jobs: BatchJobs
    total_processors: int
    policy: Policy
    backfill: Backfill
    estimates: Estimates
    semantics: Semantics

    def fingerprint(self) -> str:
        """A hash of every job and every choice."""
        digest = hashlib.sha256()
        choices = {
            "engine": ENGINE,
            "processors": self.total_processors,
            "policy": repr(self.policy),
            "backfill": asdict(self.backfill),
            "estimates": self.estimates,
            "semantics": asdict(self.semantics),
        }
        digest.update(json.dumps(choices, sort_keys=True).encode())
        for name in ("submit_s", "run_s", "estimate_s", "request_s", "processors", "user", "number"):
            digest.update(np.ascontiguousarray(getattr(self.jobs, name), dtype="<i8").tobytes())
        if self.jobs.predictions_s is not None and self.estimates in LEARNED:
            digest.update(np.ascontiguousarray(self.jobs.predictions_s, dtype="<i8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each job starts. ``promise_s`` is valid only where ``has_promise``: the job held a reservation."""

    scenario: Scenario
    start_s: Int64s
    promise_s: Int64s
    has_promise: Bools

    @property
    def wait_s(self) -> Int64s:
        """Seconds from submission to start."""
        return self.start_s - self.scenario.jobs.submit_s

    @property
    def end_s(self) -> Int64s:
        """When each job ends."""
        return self.start_s + self.scenario.jobs.run_s
