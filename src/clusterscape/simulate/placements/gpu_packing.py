"""GPU packing, a baseline of FGD (ATC 2023): GPUs already shared first, then free GPUs of used nodes, then unused nodes."""

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest

_SHARED, _USED_NODE, _UNUSED_NODE = 0.0, 100.0, 200.0


class GpuPacking(Placement):
    """Within these three groups: the least room on the chosen GPUs, the fewest free GPUs chosen, the smallest node."""

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """All nodes are equal for jobs without GPUs."""
        if request.gpus == 0 or state.gpu_units is None:
            return np.zeros(len(candidates))
        units = np.sort(state.gpu_units[candidates], axis=1)
        fits = units >= request.units
        is_chosen = fits & (np.cumsum(fits, axis=1) <= request.gpus)
        whole = units == UNITS_PER_GPU
        whole_chosen = (is_chosen & whole).sum(axis=1)
        room = (units * is_chosen).sum(axis=1) / UNITS_PER_GPU
        counts = state.gpu_counts[candidates]
        is_unused = whole.sum(axis=1) == counts
        used = np.where(whole_chosen > 0, _USED_NODE + whole_chosen, _SHARED + room)
        return np.asarray(np.where(is_unused, _UNUSED_NODE + counts, used))


TITLE = "GPU packing"
PLACEMENT = GpuPacking()
