"""Pack: fill the fullest nodes first, so that whole nodes stay free for large jobs."""

import numpy as np

from clusterscape.simulate.pool import Ints


class Pack:
    """Best fit: the nodes with the fewest free GPUs that still suffice; among equals, the lowest index."""

    def choose(self, free: Ints, nodes: int, gpus_per_node: int) -> Ints | None:
        """See Placement."""
        candidates = np.flatnonzero(free >= gpus_per_node)
        if len(candidates) < nodes:
            return None
        order = np.argsort(free[candidates], kind="stable")
        return candidates[order[:nodes]]
