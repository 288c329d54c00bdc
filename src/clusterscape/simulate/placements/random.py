"""A random node that can host the job, and a random GPU of it: the baseline for placements."""

from dataclasses import dataclass, field

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import NodeLoads, Placement, PlacementContext, PodRequest


@dataclass(frozen=True, slots=True)
class Random(Placement):
    """The random generator comes from the context of a simulation."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)

    def begin(self, context: PlacementContext) -> "Random":
        """The placement with the simulation's random generator."""
        return Random(context.random)

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """A random number from [0, 1) for each candidate."""
        return self.random.random(len(candidates))

    def pick_gpu(self, state: NodeLoads, node: int, request: PodRequest) -> int | None:
        """A random GPU with room."""
        if state.gpu_units is None:
            return None
        return int(self.random.choice(np.flatnonzero(state.gpu_units[node] >= request.units)))


PLACEMENT = Random()
