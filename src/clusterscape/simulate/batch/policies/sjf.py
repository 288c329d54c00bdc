"""Shortest job first, by the estimate. Long jobs may starve."""

from dataclasses import dataclass

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Sjf:
    """Orders by estimate, ascending."""

    is_static: bool = True

    def score(self, waiting: Waiting) -> Float64s:
        """Estimated seconds."""
        return waiting.estimate_s.astype(float)


LABEL = "SJF"
TITLE = "Shortest first"
POLICY = Sjf()
