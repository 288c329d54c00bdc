"""Tetris's alignment (Grandl et al. 2014), as compared with in FGD (ATC 2023): the node whose free resources least match."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placements.best_fit import LARGEST_CPU_MILLI, LARGEST_GPUS
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement


@dataclass(frozen=True, slots=True)
class DotProduct(Placement):
    """By the inner product of what is free and what is asked, both as shares of a large node's, smallest first.

    ``steps``: scores are told apart in so many steps only, as Kubernetes does and the published numbers are.
    """

    steps: int = 100

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """Processors and GPUs; a job that asks for neither finds all nodes equal."""
        largest = float(LARGEST_GPUS * UNITS_PER_GPU)
        product = (state.free_units[candidates] / largest) * (ask.total_units / largest)
        if state.cpu_milli is not None:
            wanted = ask.cpu_milli / LARGEST_CPU_MILLI
            product = product + (state.cpu_milli[candidates] / LARGEST_CPU_MILLI) * wanted
        return np.asarray(-np.floor(self.steps * (1 - product / 2)))


TITLE = "Dot product (Tetris)"
PLACEMENT = DotProduct()
