"""UNICEP (UNICEF) of Tang et al. (Cluster'09): wait / (log2(processors) · estimate) goes first. Small short jobs are favored."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.samples import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Unicep:
    """A serial job counts as one of two processors: log2(1) would divide by nothing."""

    is_static: bool = False

    def score(self, waiting: Waiting) -> Float64s:
        """Negated: the smallest goes first."""
        return np.asarray(-waiting.wait_s / (np.log2(np.maximum(waiting.processors, 2)) * waiting.estimate_s))


LABEL = "UNICEP"
POLICY = Unicep()
