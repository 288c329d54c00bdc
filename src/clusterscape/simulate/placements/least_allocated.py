"""Use the emptiest nodes first, so that jobs share nodes as little as possible (Kubernetes: LeastAllocated, its default)."""

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import NodeLoads, Placement, PodRequest


class LeastAllocated(Placement):
    """Orders by the free GPUs of a node, most first."""

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """Free units, negated."""
        return -state.free_units[candidates].astype(float)


TITLE = "Emptiest node"
PLACEMENT = LeastAllocated()
