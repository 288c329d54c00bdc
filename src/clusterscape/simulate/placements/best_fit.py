"""Best fit over processors and GPUs: the node with the least of both left after placing the job."""

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest

LARGEST_CPU_MILLI = 128_000
LARGEST_GPUS = 8


class BestFit(Placement):
    """Both resources count equally, as shares of a large node (128 processors, 8 GPUs), as published with FGD (ATC 2023)."""

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """The mean of both remaining shares."""
        left = (state.free_units[candidates] - request.total_units) / (LARGEST_GPUS * UNITS_PER_GPU)
        if state.cpu_milli is not None:
            left = left + (state.cpu_milli[candidates] - request.cpu_milli) / LARGEST_CPU_MILLI
        return np.asarray(left / 2)


PLACEMENT = BestFit()
