"""F1 of Carastan-Santos & de Camargo (SC'17): log10(estimate) · processors + 870 · log10(submission)."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class F1:
    """``weight`` of the submission time, which counts from the first of the trace and is at least 1 s."""

    weight: float = 870.0
    is_static: bool = True

    def score(self, waiting: Waiting) -> Float64s:
        """Small for short, small and early jobs."""
        since = np.maximum(waiting.submit_s - waiting.origin_s, 1)
        return np.asarray(np.log10(waiting.estimate_s) * waiting.processors + self.weight * np.log10(since))


LABEL = "F1"
POLICY = F1()
