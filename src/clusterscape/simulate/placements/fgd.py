"""Fragmentation gradient descent (Weng et al., ATC 2023): the node whose fragmentation grows least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PlacementContext, PodRequest


@dataclass(frozen=True, slots=True)
class Fgd(Placement):
    """Scores nodes by the growth of their fragmentation.

    ``steps``: scores are rounded to this number of steps, as in Kubernetes and in the published numbers: among near equals the
    first node is taken, which allocates about one percentage point more than the exact order (None).
    """

    steps: int | None = 100

    def begin(self, context: PlacementContext) -> Placement:
        """A placement that caches the scores of unchanged nodes."""
        return _CachedFgd(context, self.steps)

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """Not possible without ``begin``: the score depends on the workload."""
        raise QueryError("fragmentation depends on the workload: call `begin` before `score`")


class _CachedFgd(Placement):
    def __init__(self, context: PlacementContext, steps: int | None) -> None:
        self._context = context
        self._steps = steps
        shape = (len(context.books.demands), len(context.books.nodes))
        self._growth = np.zeros(shape)
        self._best_gpu = np.zeros(shape, np.int64)
        self._scored_at = np.full(shape, -1, np.int64)

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        from clusterscape.simulate.cluster.kernels import fill_fragment_growth

        fill_fragment_growth(
            request.shape,
            candidates,
            self._growth[request.shape],
            self._best_gpu[request.shape],
            self._scored_at[request.shape],
            self._context.books,
        )
        growth: Float64s = self._growth[request.shape][candidates]
        if self._steps is None:
            return growth
        return np.asarray(-np.floor(self._steps / (1 + np.exp(growth / UNITS_PER_GPU))))

    def pick_gpu(self, state: NodeLoads, node: int, request: PodRequest) -> int | None:
        self.score(state, np.array([node]), request)  # a single candidate was not scored
        return int(self._best_gpu[request.shape, node])


TITLE = "Least fragmentation (FGD)"
PLACEMENT = Fgd()
