"""GPU clustering (Gandiva), as compared with in FGD (ATC 2023): jobs that hold equally many GPUs share nodes."""

import numpy as np

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement


class GpuClustering(Placement):
    """Nodes with only such jobs, then with others too, then unused ones, then those with only others; the fullest of each."""

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """Jobs without GPUs find all nodes equal."""
        if ask.gpus == 0 or state.held_by_gpus is None:
            return np.zeros(len(candidates))
        held = state.held_by_gpus[candidates]
        kind = 0 if ask.is_share else ask.gpus
        kinds = (held > 0).sum(axis=1)
        has_same = held[:, kind] > 0
        group = np.where(has_same, np.where(kinds == 1, 0, 1), np.where(kinds == 0, 2, 3))
        most = state.gpu_counts.max() * UNITS_PER_GPU + 1
        return np.asarray(group + state.free_units[candidates] / most)


TITLE = "GPU clustering"
PLACEMENT = GpuClustering()
