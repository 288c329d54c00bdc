"""Values with 95 % intervals (Wilson's for shares, resampling of users for the rest), verdicts on claims (supported, not
supported, cannot tell), and conformal calibration of predicted quantiles.

All intervals are pointwise, without correction for multiple tests.

Calibration is split conformal in time order (Romano, Patterson & Candès 2019) with bins (Vovk's Mondrian predictors). The caller
chooses a scale on which errors have similar size, such as logarithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.identity_fields import access_checked

LEVEL = 0.95
Z = 1.959963984540054
"""Two-sided normal quantile of ``LEVEL``."""
DRAWS = 1000
MAX_WEIGHTS = 4_000_000
"""Users × draws: with more users fewer draws suffice, and the weights stay below 16 MiB."""
MIN_DRAWS = 200
VALUE_BINS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A value and its 95 % interval; ``low`` and ``high`` are None if it cannot be computed."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def is_above_zero(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.low is not None and self.low > 0

    @property
    def is_below_zero(self) -> bool:
        """Whether the whole interval is below zero."""
        return self.high is not None and self.high < 0


def measure_share(hits: float, total: float) -> Measured | None:
    """A share with Wilson's interval, which assumes independent jobs; None if ``total`` is 0."""
    if total <= 0:
        return None
    share = float(hits) / float(total)
    middle = (share + Z**2 / (2 * total)) / (1 + Z**2 / total)
    half = Z / (1 + Z**2 / total) * float(np.sqrt(share * (1 - share) / total + Z**2 / (4 * total**2)))
    return Measured(value=share, low=min(share, max(0.0, middle - half)), high=max(share, min(1.0, middle + half)))


def measure_difference(hits: tuple[float, float], totals: tuple[float, float]) -> Measured:
    """Second share minus first, with Newcombe's interval from both Wilson intervals. Both totals must be above zero."""
    first, second = measure_share(hits[0], totals[0]), measure_share(hits[1], totals[1])
    assert first
    assert second
    value = second.value - first.value
    down = np.hypot(second.value - (second.low or 0.0), (first.high or 0.0) - first.value)
    up = np.hypot((second.high or 0.0) - second.value, first.value - (first.low or 0.0))
    return Measured(value=value, low=value - float(down), high=value + float(up))


def measure_draws(value: float, draws: Float64s) -> Measured:
    """A value with the central 95 % of its bootstrap draws; draws that are NaN are ignored."""
    finite = draws[np.isfinite(draws)]
    if finite.size < 50:
        return Measured(value=value)
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Measured(value=value, low=float(low), high=float(high))


class Resamples:
    """Cluster bootstrap: users are drawn with replacement, so that a user's jobs are kept together.

    More users than MAX_WEIGHTS / MIN_DRAWS are joined at random to that many groups, which are drawn in their place.
    """

    def __init__(self, groups: Int64s, random: np.random.Generator) -> None:
        """``groups``: the user of each job; jobs without a user (−1) count as one more user."""
        self._groups = np.where(groups < 0, groups.max(initial=-1) + 1, groups)
        self.count = int(self._groups.max(initial=-1)) + 1
        most = MAX_WEIGHTS // MIN_DRAWS
        if self.count > most:
            self._groups = (random.permutation(self.count) % most)[self._groups]
            self.count = most
        self.draws = int(np.clip(MAX_WEIGHTS // max(1, self.count), MIN_DRAWS, DRAWS))
        chosen = random.integers(0, self.count, size=(self.draws, self.count))
        places = chosen + np.arange(self.draws)[:, None] * self.count
        weights = np.bincount(places.ravel(), minlength=self.draws * self.count)
        self._weights = weights.reshape(self.draws, self.count).astype(np.float32)

    def sums(self, values: Float64s, classes: Int64s | None = None, count: int = 1) -> Float64s:
        """Sums of ``values`` by class in each resample: draws × classes. Class −1 is ignored."""
        classes = np.zeros(len(values), np.int64) if classes is None else classes
        chosen = classes >= 0
        cells = self._groups[chosen] * count + classes[chosen]
        table = np.bincount(cells, weights=values[chosen], minlength=self.count * count)
        return np.asarray(self._weights @ table.reshape(self.count, count).astype(np.float32), np.float64)

    def shares(self, hits: Float64s, totals: Float64s, classes: Int64s | None = None, count: int = 1) -> Float64s:
        """Sums of ``hits`` over sums of ``totals`` by class: draws × classes; NaN if a resample has none."""
        return divide(self.sums(hits, classes, count), self.sums(totals, classes, count))

    def histograms(self, bins: Int64s, count: int) -> Float64s:
        """Number of jobs in each bin of each resample: draws × bins."""
        return self.sums(np.ones(len(bins)), bins, count)


def divide(above: Float64s, below: Float64s) -> Float64s:
    """``above`` / ``below``; NaN where ``below`` is 0."""
    result = np.full(np.broadcast(above, below).shape, np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result


def resample_medians(values: Float64s, users: Resamples | None, random: np.random.Generator) -> Float64s:
    """Bootstrap medians: resampled by users if given, else by jobs. NaN values are ignored.

    ``values`` are in the order of the jobs of ``users``. With users, values are binned into 512 quantiles, so that medians can be
    read from counts; without, the rank of the median is drawn directly, which is exact up to one rank.
    """
    present = values[~np.isnan(values)]
    if present.size == 0:
        return np.full(DRAWS, np.nan)
    if users is None:
        half = (len(present) + 1) / 2
        places = np.rint(random.beta(half, half, size=DRAWS) * (len(present) - 1)).astype(np.int64)
        return np.sort(present)[places]
    edges = np.unique(np.quantile(present, np.linspace(0, 1, VALUE_BINS + 1), method="higher"))
    bins = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="left")).astype(np.int64)
    running = np.cumsum(users.histograms(bins, len(edges)), axis=1)
    places = (running < running[:, -1:] / 2).sum(axis=1)
    return np.where(running[:, -1] > 0, edges[np.minimum(places, len(edges) - 1)], np.nan)


class ClaimVerdict(StrEnum):
    """The verdict on a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not_supported"
    CANNOT_TELL = "cannot_tell"


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class PaperClaim:
    """A statement of the paper, tested on traces.

    ``effect``: in ``effect_unit``, with the interval for these jobs; ``effect_by_user``: with users resampled.
    ``sentence``: the verdict with its numbers; ``rests_on``: the data and the criteria.
    """

    key: str
    takeaway: int | None
    statement: str
    traces: list[str]
    verdict: ClaimVerdict
    sentence: str
    rests_on: str
    effect_name: str
    effect_unit: str
    effect: Measured | None = None
    effect_by_user: Measured | None = None
    caveats: list[str] = field(default_factory=list)


def judge_claim(effect: Measured, by_user: Measured | None, worth: float) -> ClaimVerdict:
    """The verdict on a claim that an effect is above zero; ``worth``: the smallest relevant effect.

    Supported: above zero for these jobs and with users resampled. Not supported: an effect of ``worth`` is excluded for these
    jobs. Else cannot tell: too few jobs, or the effect depends on a few users.
    """
    if effect.is_above_zero:
        is_robust = by_user is None or by_user.low is None or by_user.low > 0
        return ClaimVerdict.SUPPORTED if is_robust else ClaimVerdict.CANNOT_TELL
    if effect.high is not None and effect.high < worth:
        return ClaimVerdict.NOT_SUPPORTED
    return ClaimVerdict.CANNOT_TELL


def find_user_caveats(verdict: ClaimVerdict, by_user: Measured | None, worth: float) -> list[str]:
    """Caveat on "not supported": with other users, a relevant difference of shares is not excluded."""
    if verdict is not ClaimVerdict.NOT_SUPPORTED or by_user is None or by_user.high is None or by_user.high < worth:
        return []
    return [
        f"This holds for these jobs: with other users, up to {100 * by_user.high:.0f} points more are not excluded."
    ]


def negate(measured: Measured) -> Measured:
    """The negated value and interval."""
    low = None if measured.high is None else -measured.high
    return Measured(value=-measured.value, low=low, high=None if measured.low is None else -measured.low)


MIN_BIN_POINTS = 60
"""A bin with fewer calibration points uses the shift of the wider bin."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """Shift of a predicted quantile by bin; finest binning first, the single bin of all rows last.

    ``by_bin[k]`` maps the bins of binning k to their shifts. Bins are integers; the last binning has only bin 0.
    """

    by_bin: tuple[Mapping[int, float], ...]

    def find(self, bins: Sequence[Int64s]) -> Float64s:
        """The shift of each row, from the finest bin that has one. ``bins``: one column per binning."""
        shift = np.full(len(bins[0]), np.nan)
        for shifts, column in zip(self.by_bin, bins, strict=True):
            row_shifts = np.array([shifts.get(int(bin), np.nan) for bin in column])
            shift = np.where(np.isnan(shift), row_shifts, shift)
        filled: Float64s = np.nan_to_num(shift)
        return filled

    def to_document(self) -> list[dict[str, float]]:
        """Convert to JSON."""
        return [{str(bin): shift for bin, shift in shifts.items()} for shifts in self.by_bin]

    @classmethod
    def from_document(cls, document: Sequence[Mapping[str, Any]]) -> "Shifts":
        """Read the output of ``to_document``."""
        return cls(tuple({int(bin): float(shift) for bin, shift in shifts.items()} for shifts in document))


def find_shifts(errors: Float64s, level: float, bins: Sequence[Int64s], *, min_points: int = MIN_BIN_POINTS) -> Shifts:
    """Shifts that make ``predicted + shift`` an upper bound of the truth with probability ``level``.

    ``errors``: truth − predicted quantile of calibration jobs. The finite-sample rank ⌈(n + 1)·level⌉ is used in each bin.
    """
    by_bin: list[dict[int, float]] = []
    for place, column in enumerate(bins):
        is_last = place == len(bins) - 1
        shifts: dict[int, float] = {}
        for bin in np.unique(column):
            bin_errors = np.sort(errors[column == bin])
            if bin_errors.size >= min_points or (is_last and bin_errors.size):
                rank = min(int(np.ceil((bin_errors.size + 1) * level)), bin_errors.size)
                shifts[int(bin)] = float(bin_errors[max(rank, 1) - 1])
        by_bin.append(shifts)
    return Shifts(tuple(by_bin))


def cut_bins(values: Float64s, edges: Sequence[float]) -> Int64s:
    """The bin of each value: the number of edges at or below it."""
    return np.searchsorted(np.asarray(edges), values, side="right").astype(np.int64)


def single_bin(count: int) -> Int64s:
    """Bin 0 for all rows."""
    return np.zeros(count, np.int64)
