"""Priority that grows with the wait up to a cap, plus a size factor: Slurm's multifactor plugin with two of its factors."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.arrays import Float64s
from clusterscape.model.durations import WEEK_S
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Ageing:
    """``age_weight`` is reached after ``full_age_s``; ``size_weight`` by a job as large as the machine."""

    age_weight: float = 1000.0
    size_weight: float = 1000.0
    full_age_s: int = WEEK_S
    is_static: bool = False

    def score(self, waiting: Waiting) -> Float64s:
        """The priority, negated."""
        age = np.minimum(waiting.wait_s / self.full_age_s, 1.0)
        size = waiting.processors / waiting.total_processors
        return np.asarray(-(self.age_weight * age + self.size_weight * size))


POLICY = Ageing()
