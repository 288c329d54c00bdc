"""Fragmentation gradient descent (Weng et al., ATC 2023): where idle GPUs lose least of their use to the jobs that come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement, Setting


@dataclass(frozen=True, slots=True)
class Fgd(Placement):
    """By how much a node's fragmentation would grow.

    ``steps``: scores are told apart in so many steps only, as Kubernetes does and the published numbers are: among near equals
    the first node is taken, which allocates about a point more than the exact order (None) does.
    """

    steps: int | None = 100

    def begin(self, setting: Setting) -> Placement:
        """With memory of what was found for nodes that have not changed since."""
        return _Remembering(setting, self.steps)

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """Needs to know the workload first."""
        raise QueryError("fragmentation is about a workload: this placement must be begun with one")


class _Remembering(Placement):
    def __init__(self, setting: Setting, steps: int | None) -> None:
        self._setting = setting
        self._steps = steps
        shape = (len(setting.books.wishes), len(setting.books.nodes))
        self._growth = np.zeros(shape)
        self._best_gpu = np.zeros(shape, np.int64)
        self._known_at = np.full(shape, -1, np.int64)

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        from clusterscape.simulate.cluster.kernels import fill_scores_of_fragments

        fill_scores_of_fragments(
            ask.shape,
            candidates,
            self._growth[ask.shape],
            self._best_gpu[ask.shape],
            self._known_at[ask.shape],
            self._setting.books,
        )
        growth: Float64s = self._growth[ask.shape][candidates]
        if self._steps is None:
            return growth
        return np.asarray(-np.floor(self._steps / (1 + np.exp(growth / UNITS_PER_GPU))))

    def pick_gpu(self, state: NodeState, node: int, ask: Ask) -> int | None:
        self.score(state, np.array([node]), ask)  # where there was one candidate only, it was not scored
        return int(self._best_gpu[ask.shape, node])


TITLE = "Least fragmentation (FGD)"
PLACEMENT = Fgd()
