"""Values with their 95 % intervals: Wilson's for shares, and resampling of users, whose jobs are not independent.

Every interval here is pointwise; nothing is corrected for asking many questions.
"""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.samples import Float64s, Int64s

LEVEL = 0.95
Z = 1.959963984540054
"""Two-sided normal quantile of ``LEVEL``."""
DRAWS = 1000
MOST_WEIGHTS = 4_000_000
"""Users × draws: with more users fewer draws are enough, and the weights stay below 16 MiB."""
VALUE_BINS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A value and its 95 % interval; no interval where there is nothing to make one from."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def is_above_zero(self) -> bool:
        """Whether the whole interval is."""
        return self.low is not None and self.low > 0

    @property
    def is_below_zero(self) -> bool:
        """Whether the whole interval is."""
        return self.high is not None and self.high < 0


def measure_share(hits: float, total: float) -> Measured | None:
    """A share with Wilson's interval: jobs are taken as independent. None of nothing."""
    if total <= 0:
        return None
    share = float(hits) / float(total)
    middle = (share + Z**2 / (2 * total)) / (1 + Z**2 / total)
    half = Z / (1 + Z**2 / total) * float(np.sqrt(share * (1 - share) / total + Z**2 / (4 * total**2)))
    return Measured(value=share, low=min(share, max(0.0, middle - half)), high=max(share, min(1.0, middle + half)))


def measure_difference(hits: tuple[float, float], totals: tuple[float, float]) -> Measured:
    """Second share minus first, by Newcombe's interval from both Wilson intervals. Both totals are above zero."""
    first, second = measure_share(hits[0], totals[0]), measure_share(hits[1], totals[1])
    assert first
    assert second
    value = second.value - first.value
    down = np.hypot(second.value - (second.low or 0.0), (first.high or 0.0) - first.value)
    up = np.hypot((second.high or 0.0) - second.value, first.value - (first.low or 0.0))
    return Measured(value=value, low=value - float(down), high=value + float(up))


def measure_draws(value: float, draws: Float64s) -> Measured:
    """A value with the middle 95 % of what resampling gave; draws that could not be computed are NaN and left out."""
    known = draws[np.isfinite(draws)]
    if known.size < 50:
        return Measured(value=value)
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Measured(value=value, low=float(low), high=float(high))


class Resamples:
    """Users drawn with replacement, again and again (the cluster bootstrap): a user's jobs come and go together."""

    def __init__(self, groups: Int64s, random: np.random.Generator) -> None:
        """``groups``: the user of each job; jobs of nobody (−1) count as one more user."""
        self._groups = np.where(groups < 0, groups.max(initial=-1) + 1, groups)
        self.count = int(self._groups.max(initial=-1)) + 1
        self.draws = int(np.clip(MOST_WEIGHTS // max(1, self.count), 200, DRAWS))
        chosen = random.integers(0, self.count, size=(self.draws, self.count))
        places = chosen + np.arange(self.draws)[:, None] * self.count
        weights = np.bincount(places.ravel(), minlength=self.draws * self.count)
        self._weights = weights.reshape(self.draws, self.count).astype(np.float32)

    def sums(self, values: Float64s, classes: Int64s | None = None, count: int = 1) -> Float64s:
        """Sums of ``values`` by class in each resample: draws × classes. A class of −1 counts nowhere."""
        classes = np.zeros(len(values), np.int64) if classes is None else classes
        chosen = classes >= 0
        cells = self._groups[chosen] * count + classes[chosen]
        table = np.bincount(cells, weights=values[chosen], minlength=self.count * count)
        return np.asarray(self._weights @ table.reshape(self.count, count).astype(np.float32), np.float64)

    def shares(self, hits: Float64s, totals: Float64s, classes: Int64s | None = None, count: int = 1) -> Float64s:
        """Sums of ``hits`` over sums of ``totals`` by class: draws × classes; NaN where a resample has none."""
        return divide(self.sums(hits, classes, count), self.sums(totals, classes, count))

    def histograms(self, bins: Int64s, count: int) -> Float64s:
        """How many jobs fall into each bin in each resample: draws × bins."""
        return self.sums(np.ones(len(bins)), bins, count)


def divide(above: Float64s, below: Float64s) -> Float64s:
    """NaN where ``below`` is 0."""
    result = np.full(np.broadcast(above, below).shape, np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result


def resample_medians(values: Float64s, users: Resamples | None, random: np.random.Generator) -> Float64s:
    """Medians of resampled jobs: of users where they are given, else job by job. NaN values are left out.

    ``values`` belong to the jobs of ``users``. With users, values are told apart to a 512th of their distribution, so that a
    median is read off counts; job by job, the rank of a resample's median is drawn itself, which is exact up to one rank.
    """
    known = values[~np.isnan(values)]
    if known.size == 0:
        return np.full(DRAWS, np.nan)
    if users is None:
        half = (len(known) + 1) / 2
        places = np.rint(random.beta(half, half, size=DRAWS) * (len(known) - 1)).astype(np.int64)
        return np.sort(known)[places]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, VALUE_BINS + 1), method="higher"))
    bins = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="left")).astype(np.int64)
    running = np.cumsum(users.histograms(bins, len(edges)), axis=1)
    places = (running < running[:, -1:] / 2).sum(axis=1)
    return np.where(running[:, -1] > 0, edges[np.minimum(places, len(edges) - 1)], np.nan)
