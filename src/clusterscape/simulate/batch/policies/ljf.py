"""Longest job first, by the estimate."""

from dataclasses import dataclass

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Ljf:
    """Orders by estimate, descending."""

    is_static: bool = True

    def score(self, waiting: Waiting) -> Float64s:
        """Estimated seconds, negated."""
        return -waiting.estimate_s.astype(float)


LABEL = "LJF"
TITLE = "Longest first"
POLICY = Ljf()
