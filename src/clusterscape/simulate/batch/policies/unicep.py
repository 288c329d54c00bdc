"""UNICEP (UNICEF) of Tang et al. (Cluster'09): wait / (log2(processors) · estimate) goes first. Small short jobs are favored."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Unicep:
    """A serial job counts as two processors, because log2(1) would divide by zero."""

    is_static: bool = False

    def score(self, waiting: Waiting) -> Float64s:
        """The UNICEP value, negated: the smallest goes first."""
        return np.asarray(-waiting.wait_s / (np.log2(np.maximum(waiting.processors, 2)) * waiting.estimate_s))


LABEL = "UNICEP"
POLICY = Unicep()
