"""Best fit over processors and GPUs together: the node with least of both left after the job has its part."""

import numpy as np

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement

LARGEST_CPU_MILLI = 128_000
LARGEST_GPUS = 8


class BestFit(Placement):
    """Both kinds count alike, each as a share of a large node's (128 processors, 8 GPUs), as published with FGD (ATC 2023)."""

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """Half of each share that would be left."""
        left = (state.free_units[candidates] - ask.total_units) / (LARGEST_GPUS * UNITS_PER_GPU)
        if state.cpu_milli is not None:
            left = left + (state.cpu_milli[candidates] - ask.cpu_milli) / LARGEST_CPU_MILLI
        return np.asarray(left / 2)


PLACEMENT = BestFit()
