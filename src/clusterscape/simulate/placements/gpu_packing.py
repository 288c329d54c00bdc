"""GPU packing as compared with in FGD (ATC 2023): GPUs already shared first, then free GPUs of used nodes, then unused nodes."""

import numpy as np

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement

_SHARED, _USED_NODE, _UNUSED_NODE = 0.0, 100.0, 200.0


class GpuPacking(Placement):
    """Within each of the three: the least room on the GPUs taken, the fewest free GPUs taken, the smallest node."""

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """Jobs without GPUs find all nodes equal."""
        if ask.gpus == 0 or state.gpu_units is None:
            return np.zeros(len(candidates))
        units = np.sort(state.gpu_units[candidates], axis=1)
        fits = units >= ask.units
        taken = fits & (np.cumsum(fits, axis=1) <= ask.gpus)
        whole = units == UNITS_PER_GPU
        whole_taken = (taken & whole).sum(axis=1)
        room = (units * taken).sum(axis=1) / UNITS_PER_GPU
        counts = state.gpu_counts[candidates]
        is_unused = whole.sum(axis=1) == counts
        used = np.where(whole_taken > 0, _USED_NODE + whole_taken, _SHARED + room)
        return np.asarray(np.where(is_unused, _UNUSED_NODE + counts, used))


TITLE = "GPU packing"
PLACEMENT = GpuPacking()
