"""Jobs put into classes: thirds by rank, where equal values stay together, and doublings of a size or a queue length."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model.samples import Float64s, Int64s

MOST_DOUBLINGS = 10


@dataclass(frozen=True)
class Classes:
    """``code``: the class of each job, −1 where the value is not known; only classes that have jobs are there."""

    code: Int64s
    low: list[float]
    high: list[float]

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.low)

    def jobs(self) -> Int64s:
        """Jobs of each class."""
        return np.bincount(self.code[self.code >= 0], minlength=self.count).astype(np.int64)


def split_by_rank(values: Float64s, parts: int = 3) -> Classes:
    """``parts`` classes of about equal numbers; equal values share their middle rank, so none is torn apart."""
    known = ~np.isnan(values)
    number = int(known.sum())
    ranks = pl.Series(values[known]).rank("average").to_numpy() if number else np.empty(0)
    raw = np.full(len(values), -1, np.int64)
    raw[known] = np.floor((ranks - 1) * parts / max(number, 1)).astype(np.int64)
    return _close(values, raw)


def split_by_doubling(values: Float64s) -> Classes:
    """0, 1, 2–3, 4–7, …; where these were more than ten, steps of 4, 8, … times. A fraction below 1 is a class of its own."""
    known = ~np.isnan(values)
    raw = np.full(len(values), -1, np.int64)
    if not known.any():
        return _close(values, raw)
    top = float(values[known].max())
    step = 1
    while np.log2(max(top, 1.0)) / step >= MOST_DOUBLINGS:
        step += 1
    octave = np.floor(np.log2(np.maximum(values[known], 1.0)) / step)
    raw[known] = np.where(values[known] < 1, np.where(values[known] > 0, 1, 0), octave + 2).astype(np.int64)
    return _close(values, raw)


def sum_by(code: Int64s, values: NDArray[np.generic], count: int) -> Float64s:
    """Sums of ``values`` by code, which is 0 … ``count`` − 1."""
    return np.bincount(code, weights=values.astype(np.float64), minlength=count).astype(np.float64)


def _close(values: Float64s, raw: Int64s) -> Classes:
    """Only the classes that have jobs, numbered from 0, with the least and largest value of each."""
    used = np.unique(raw[raw >= 0])
    code = np.where(raw >= 0, np.searchsorted(used, raw), -1).astype(np.int64)
    spans = [values[code == place] for place in range(len(used))]
    return Classes(code, [float(span.min()) for span in spans], [float(span.max()) for span in spans])
