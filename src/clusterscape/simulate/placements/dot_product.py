"""Tetris's alignment (Grandl et al. 2014), a baseline of FGD (ATC 2023): the node whose free resources match least."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placements.best_fit import LARGEST_CPU_MILLI, LARGEST_GPUS
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest


@dataclass(frozen=True, slots=True)
class DotProduct(Placement):
    """Orders by the inner product of free and requested resources, both as shares of a large node, smallest first.

    ``steps``: scores are rounded to this number of steps, as in Kubernetes and in the published numbers.
    """

    steps: int = 100

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """Processors and GPUs; all nodes are equal for a job that requests neither."""
        largest = float(LARGEST_GPUS * UNITS_PER_GPU)
        product = (state.free_units[candidates] / largest) * (request.total_units / largest)
        if state.cpu_milli is not None:
            cpu_share = request.cpu_milli / LARGEST_CPU_MILLI
            product = product + (state.cpu_milli[candidates] / LARGEST_CPU_MILLI) * cpu_share
        return np.asarray(-np.floor(self.steps * (1 - product / 2)))


TITLE = "Dot product (Tetris)"
PLACEMENT = DotProduct()
