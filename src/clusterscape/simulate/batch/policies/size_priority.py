"""Largest job first, as capability systems do. Small jobs may starve."""

from dataclasses import dataclass

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class SizePriority:
    """Orders by processors, descending."""

    is_static: bool = True

    def score(self, waiting: Waiting) -> Float64s:
        """Processors, negated."""
        return -waiting.processors.astype(float)


TITLE = "Largest first (size-priority)"
POLICY = SizePriority()
