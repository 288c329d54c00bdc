"""Step functions of time: how many units are in use, or how many jobs wait."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.columns import sum_by
from clusterscape.model.arrays import Float64s


@dataclass(frozen=True)
class Level:
    """A step function: ``after[i]`` is its value from ``times_s[i]`` on; ``area[i]`` is its integral up to there."""

    times_s: Float64s
    after: Float64s
    area: Float64s

    def integral(self, at_s: Float64s) -> Float64s:
        """Integral from the first step to each time; exact, since it is linear between steps."""
        return np.interp(at_s, self.times_s, self.area)


def sweep_occupancy(begin_s: Float64s, end_s: Float64s, amount: Float64s) -> Level:
    """The sum of amounts over time, each from its begin to its end. O(n log n)."""
    moments = np.concatenate([begin_s, end_s])
    changes = np.concatenate([amount, -amount])
    times, places = np.unique(moments, return_inverse=True)
    after = np.cumsum(sum_by(places, changes, len(times)))
    area = np.concatenate([[0.0], np.cumsum(after[:-1] * np.diff(times))])
    return Level(times, after, area)
