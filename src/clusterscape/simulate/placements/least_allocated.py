"""Use the emptiest nodes first, so that jobs share nodes as little as possible (Kubernetes: LeastAllocated, its default)."""

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placing import Ask, NodeState, Placement


class LeastAllocated(Placement):
    """By the free GPUs of a node, most first."""

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """Free units, negated."""
        return -state.free_units[candidates].astype(float)


TITLE = "Emptiest node"
PLACEMENT = LeastAllocated()
