"""Any node that can host the job, and any GPU of it, by chance: what a placement must beat."""

from dataclasses import dataclass, field

import numpy as np

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placing import Ask, NodeState, Placement, Setting


@dataclass(frozen=True, slots=True)
class Random(Placement):
    """Chance is handed in with the setting of a simulation."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)

    def begin(self, setting: Setting) -> "Random":
        """With the simulation's chance."""
        return Random(setting.random)

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """A number from [0, 1) each."""
        return self.random.random(len(candidates))

    def pick_gpu(self, state: NodeState, node: int, ask: Ask) -> int | None:
        """One of those with room."""
        if state.gpu_units is None:
            return None
        return int(self.random.choice(np.flatnonzero(state.gpu_units[node] >= ask.units)))


PLACEMENT = Random()
