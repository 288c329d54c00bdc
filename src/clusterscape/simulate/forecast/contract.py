"""What a forecast starts from: a machine at one moment, what is known of run times, sampled futures."""

from dataclasses import dataclass

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.forecast.arrivals import Arrivals

LEVELS: Float64s = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
"""The levels at which run times are known; between them lines, beyond them the outermost values."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """One homogeneous machine now. Waiting jobs are in the order of the queue; times are seconds, sizes whole processors.

    ``running_limit_s`` is what is left of each running job's time limit (at least 1), ``waiting_limit_s`` the whole limit.
    """

    total: int
    running_size: Int64s
    running_limit_s: Int64s
    waiting_size: Int64s
    waiting_limit_s: Int64s

    def __post_init__(self) -> None:
        if self.total < 1 or (self.waiting_size.size and int(self.waiting_size.max()) > self.total):
            raise QueryError(
                f"a job asks for {int(self.waiting_size.max(initial=0)):,} of {self.total:,} processors: it never starts"
            )


@dataclass(frozen=True, slots=True)
class RunQuantiles:
    """Total run times at LEVELS, one row per job, rising along each row; for a running job given that it still runs."""

    run_s: Float64s

    def __post_init__(self) -> None:
        if self.run_s.ndim != 2 or self.run_s.shape[1] != LEVELS.size:
            raise QueryError("run times are given at the levels of a forecast, a row for each job")


@dataclass(frozen=True, slots=True)
class Futures:
    """Sampled run times, a row per future: what is left of running jobs, whole runs of waiting ones; and who else arrives."""

    remaining_s: Int64s
    run_s: Int64s
    arrivals: Arrivals
