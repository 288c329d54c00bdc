"""Jobs that are not submitted yet: stretches of the past that began at the same hour of the week, taken as the future."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.samples import Float64s, Int64s

WEEK_S = 604_800


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arriving jobs of every future, one future after the other between ``offsets``; ``at_s`` counts from now and rises."""

    offsets: Int64s
    at_s: Int64s
    size: Int64s
    run_s: Int64s
    limit_s: Int64s


def no_arrivals(futures: int) -> Arrivals:
    """Nobody comes any more."""
    nothing = np.zeros(0, np.int64)
    return Arrivals(np.zeros(futures + 1, np.int64), nothing, nothing, nothing, nothing)


class PastArrivals:
    """Jobs of the past by submission. Run times are those that had become known; the others count as their limit."""

    def __init__(self, submit_s: Float64s, end_s: Float64s, run_s: Float64s, limit_s: Float64s, size: Float64s) -> None:
        order = np.argsort(submit_s, kind="stable")
        self._submit, self._end = submit_s[order], end_s[order]
        self._run, self._limit, self._size = run_s[order], limit_s[order], size[order]

    def sample(
        self, now_s: float, horizon_s: float, futures: int, total: int, random: np.random.Generator, *, most: int = 2000
    ) -> Arrivals:
        """The arrivals of ``horizon_s`` after the same time of the week in past weeks, in random order of weeks.

        A stretch must lie wholly before ``now_s``; with less than a horizon of history nobody arrives. ``most`` bounds the
        jobs of one future. Jobs larger than the machine are left out.
        """
        if self._submit.size == 0 or now_s - self._submit[0] < horizon_s:
            return no_arrivals(futures)
        starts = self._find_starts(now_s, horizon_s, futures, random)
        first = np.searchsorted(self._submit, starts)
        last = np.minimum(np.searchsorted(self._submit, starts + horizon_s), first + most)
        counts = last - first
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts) + np.repeat(first, counts)
        at = self._submit[rows] - np.repeat(starts, counts)
        # A run that had not ended by now is not known now.
        run = np.where(self._end[rows] <= now_s, self._run[rows], self._limit[rows])
        size = np.minimum(self._size[rows], total)
        return Arrivals(
            offsets,
            np.maximum(at, 1).astype(np.int64),
            np.maximum(size, 1).astype(np.int64),
            np.maximum(run, 1).astype(np.int64),
            np.maximum(self._limit[rows], 1).astype(np.int64),
        )

    def _find_starts(self, now_s: float, horizon_s: float, futures: int, random: np.random.Generator) -> Float64s:
        """Moments of the past from which to copy: whole weeks ago where there are enough, moved by up to an hour."""
        latest = now_s - horizon_s
        weeks = int((latest - self._submit[0]) // WEEK_S)
        skip = int(np.ceil(horizon_s / WEEK_S))
        moved = random.uniform(-3600, 3600, futures)
        if weeks - skip >= 4:
            # The last half year: habits change.
            chosen = random.integers(skip, min(weeks, skip + 26) + 1, futures)
            starts = now_s - chosen * WEEK_S + moved
        else:
            days = max(1, int((latest - self._submit[0]) // 86_400))
            starts = latest - random.integers(0, days, futures) * 86_400 + moved
        return np.clip(starts, self._submit[0], latest)
