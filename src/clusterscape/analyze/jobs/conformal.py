"""Intervals that keep their promise: conformal calibration of predicted quantiles, per bin, with a wider bin where one is thin.

Split conformal in the order of time (Romano, Patterson & Candès 2019; bins as in Vovk's Mondrian predictors). The caller chooses
scores on a scale on which errors are alike, such as logarithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clusterscape.model.samples import Float64s, Int64s

FEWEST = 60
"""Calibration points below which a bin takes the shift of the wider one."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """How far to move a predicted quantile, by bin; finest kind of bin first, everything last.

    ``by_bin[k]`` maps a bin of kind k to its shift. Bins are whole numbers; the last kind has the one bin 0.
    """

    by_bin: tuple[Mapping[int, float], ...]

    def find(self, bins: Sequence[Int64s]) -> Float64s:
        """The shift for each row, from the finest bin that has one. ``bins``: a column per kind."""
        shift = np.full(len(bins[0]), np.nan)
        for known, column in zip(self.by_bin, bins, strict=True):
            found = np.array([known.get(int(bin), np.nan) for bin in column])
            shift = np.where(np.isnan(shift), found, shift)
        known_shift: Float64s = np.nan_to_num(shift)
        return known_shift

    def to_document(self) -> list[dict[str, float]]:
        """As JSON."""
        return [{str(bin): shift for bin, shift in known.items()} for known in self.by_bin]

    @classmethod
    def from_document(cls, document: Sequence[Mapping[str, Any]]) -> "Shifts":
        """What ``to_document`` gave."""
        return cls(tuple({int(bin): float(shift) for bin, shift in known.items()} for known in document))


def find_shifts(errors: Float64s, level: float, bins: Sequence[Int64s], *, fewest: int = FEWEST) -> Shifts:
    """Shifts that make ``predicted + shift`` an upper bound of the truth with probability ``level``.

    ``errors``: truth − predicted quantile of calibration jobs. The finite-sample rank ⌈(n + 1)·level⌉ is taken in each bin.
    """
    found: list[dict[int, float]] = []
    for place, column in enumerate(bins):
        is_last = place == len(bins) - 1
        shifts: dict[int, float] = {}
        for bin in np.unique(column):
            own = np.sort(errors[column == bin])
            if own.size >= fewest or (is_last and own.size):
                rank = min(int(np.ceil((own.size + 1) * level)), own.size)
                shifts[int(bin)] = float(own[max(rank, 1) - 1])
        found.append(shifts)
    return Shifts(tuple(found))


def cut_bins(values: Float64s, edges: Sequence[float]) -> Int64s:
    """The bin of each value: how many edges are at or below it."""
    return np.searchsorted(np.asarray(edges), values, side="right").astype(np.int64)


def join_bins(*columns: Int64s, width: int = 16) -> Int64s:
    """One number for several bins, each below ``width``."""
    joined = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        joined = joined * width + column
    return joined


def everything(count: int) -> Int64s:
    """The one bin of all rows."""
    return np.zeros(count, np.int64)
