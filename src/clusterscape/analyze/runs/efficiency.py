"""What work cost while a run went on: joules for a unit of work, work per second and watt, over a window that moves. Pure.

Counters in: times are Unix ms, ascending; energy and work are totals that rise. No I/O.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clusterscape.analyze.runs.lines import Floats, Ints

LEAST = 1e-100  # of work and joules: less is none, and could not be divided by
SHORTEST_WINDOW_MS = 10_000
"""Energy is read every five seconds: a shorter window would show that more than the run."""
PARTS_OF_RUN = 50
"""A long run's window is this part of it."""


class Total(NamedTuple):
    """A total over time: joules used or work done so far."""

    times_ms: Ints
    values: Floats


class Efficiency(NamedTuple):
    """At the end of each window: work a second, watts, and both against each other; no row where no work was done."""

    times_ms: Ints
    per_second: Floats
    watts: Floats

    @property
    def joules_per_work(self) -> Floats:
        """Joules for one unit of work."""
        return self.watts / self.per_second

    @property
    def per_second_per_watt(self) -> Floats:
        """Units of work for one joule."""
        return self.per_second / self.watts


def add_up(totals: Sequence[Total]) -> Total:
    """Totals of several GPUs as one, at the times of the first, where all of them are known; a counter that fell starts anew."""
    risen = [_without_falls(total) for total in totals if len(total.times_ms) > 1]
    if not risen:
        return Total(np.empty(0, np.int64), np.empty(0))
    begin = max(int(total.times_ms[0]) for total in risen)
    end = min(int(total.times_ms[-1]) for total in risen)
    times = risen[0].times_ms[(risen[0].times_ms >= begin) & (risen[0].times_ms <= end)]
    values = np.sum([np.interp(times, total.times_ms, total.values) for total in risen], axis=0)
    return Total(times, np.asarray(values, np.float64))


def total_of_rate(times_ms: Ints, rates: Floats) -> Total:
    """Work done where only its speed is told: each rate holds since the one before."""
    gained = np.diff(times_ms) / 1000 * rates[1:]
    return Total(times_ms, np.concatenate([[0.0], np.cumsum(gained)]) if len(times_ms) else np.empty(0))


def compute_efficiency(energy: Total, work: Total) -> Efficiency:
    """Over windows that end at each reading of the energy; only where both totals are known from begin to end."""
    nothing = Efficiency(np.empty(0, np.int64), np.empty(0), np.empty(0))
    if len(energy.times_ms) < 2 or len(work.times_ms) < 2:
        return nothing
    begin = max(int(energy.times_ms[0]), int(work.times_ms[0]))
    end = min(int(energy.times_ms[-1]), int(work.times_ms[-1]))
    window = min(max(SHORTEST_WINDOW_MS, (end - begin) // PARTS_OF_RUN), (end - begin) // 2)
    ends = energy.times_ms[(energy.times_ms >= begin + window) & (energy.times_ms <= end)]
    if window <= 0 or not len(ends):
        return nothing
    begins = ends - window
    work = _without_falls(work)
    done = np.interp(ends, *work) - np.interp(begins, *work)
    joules = np.interp(ends, *energy) - np.interp(begins, *energy)
    is_told = (done > LEAST) & (joules > LEAST)
    seconds = window / 1000
    return Efficiency(ends[is_told], done[is_told] / seconds, joules[is_told] / seconds)


def _without_falls(total: Total) -> Total:
    """A counter that fell was set to zero in between: what it shows then is added to what it had."""
    rises = np.diff(total.values)
    rises = np.where(rises < 0, total.values[1:], rises)
    return Total(total.times_ms, np.concatenate([[0.0], np.cumsum(rises)]))
