"""Simple guesses of a wait, from waits that were over by then: what every forecast must beat, and what it may use."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.wait_intervals import WaitBins
from clusterscape.model.arrays import Float64s, Int64s

GUESSES = (
    "always 0",
    "last wait of the queue",
    "median so far",
    "median of similar jobs",
    "recent median of similar jobs",
    "plan by limits",
    "mix of the simple guesses",
    "middle of the shortest half",
    "middle of the shortest half of similar jobs",
    "jobs ahead at the recent pace",
)
"""Similar jobs: of the same bin of size and queue length. The mix is the median of the guesses from waits and the plan. The
middle of the shortest half of earlier waits is the constant with the smallest median error (Rousseeuw 1984). The pace is the
median wait for each job in the queue, of the newest waits: it knows that in a burst each job waits longer than the one before."""

SIMPLE = slice(0, 7)
"""The guesses that reports compare with."""

PLAN = GUESSES.index("plan by limits")
_MIXED = [GUESSES.index(name) for name in GUESSES[1:6]]
FEWEST_SIMILAR = 10
RECENT = 50
MOST = 10_000
"""Newest waits in which the shortest half is sought."""


@dataclass(frozen=True, slots=True)
class PastWaits:
    """Waits of jobs that had to wait, sorted by start. ``cell``: bin of size and queue length; ``queue``: its number; ``pace_s``:
    the wait for each job that was ahead, and the job itself.
    """

    start_s: Float64s
    wait_s: Float64s
    cell: Int64s
    queue: Int64s
    pace_s: Float64s


def select_past_waits(start_s: Float64s, wait_s: Float64s, bins: WaitBins, queue: Int64s) -> PastWaits:
    """The known waits above zero, sorted by start."""
    rows = np.flatnonzero((wait_s > 0) & np.isfinite(start_s))
    rows = rows[np.argsort(start_s[rows], kind="stable")]
    pace = wait_s[rows] / (bins.ahead[rows] + 1.0)
    return PastWaits(start_s[rows], wait_s[rows], bins.cells()[rows], queue[rows], pace)


def guess_waits(past: PastWaits, at_s: Float64s, bins: WaitBins, queue: Int64s, plan_s: Float64s) -> Float64s:
    """GUESSES of each job (job × guess) from the waits that were over at ``at_s``; before the first, the plan."""
    from clusterscape.analyze.jobs.wait_kernels import guess_from_past

    from_past = np.full((len(at_s), 7), np.nan)
    queues = int(max(past.queue.max(initial=0), queue.max(initial=0))) + 1
    guess_from_past(
        past.start_s, past.wait_s, past.cell, past.queue, past.pace_s, WaitBins.CELLS, queues, at_s, bins.cells(), queue,
        FEWEST_SIMILAR, RECENT, MOST, from_past,
    )  # fmt: skip
    from_past[:, 6] *= bins.ahead + 1.0
    from_past = np.where(np.isnan(from_past), plan_s[:, None], from_past)
    guesses = np.empty((len(at_s), len(GUESSES)))
    guesses[:, 0] = 0.0
    guesses[:, 1:5] = from_past[:, :4]
    guesses[:, PLAN] = plan_s
    guesses[:, 6] = np.median(guesses[:, _MIXED], axis=1)
    guesses[:, 7:] = from_past[:, 4:]
    return guesses
