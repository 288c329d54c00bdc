"""GPU clustering (Gandiva), a baseline of FGD (ATC 2023): jobs with the same number of GPUs share nodes."""

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest


class GpuClustering(Placement):
    """Nodes with only such jobs, then with others too, then unused ones, then with only others; fullest first in each group."""

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """All nodes are equal for jobs without GPUs."""
        if request.gpus == 0 or state.held_by_gpus is None:
            return np.zeros(len(candidates))
        held = state.held_by_gpus[candidates]
        kind = 0 if request.is_share else request.gpus
        kinds = (held > 0).sum(axis=1)
        has_same = held[:, kind] > 0
        group = np.where(has_same, np.where(kinds == 1, 0, 1), np.where(kinds == 0, 2, 3))
        most = state.gpu_counts.max() * UNITS_PER_GPU + 1
        return np.asarray(group + state.free_units[candidates] / most)


TITLE = "GPU clustering"
PLACEMENT = GpuClustering()
