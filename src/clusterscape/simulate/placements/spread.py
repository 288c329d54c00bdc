"""Spread: use the emptiest nodes first, so that jobs share nodes as little as possible."""

import numpy as np

from clusterscape.simulate.pool import Ints


class Spread:
    """Worst fit: the nodes with the most free GPUs; among equals, the lowest index."""

    def choose(self, free: Ints, nodes: int, gpus_per_node: int) -> Ints | None:
        """See Placement."""
        candidates = np.flatnonzero(free >= gpus_per_node)
        if len(candidates) < nodes:
            return None
        order = np.argsort(-free[candidates], kind="stable")
        return candidates[order[:nodes]]
