"""Fill the fullest nodes first, so that whole nodes stay free (Kubernetes: MostAllocated; Slurm: CR_Pack_Nodes)."""

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.placing import Ask, NodeState, Placement


class MostAllocated(Placement):
    """By the free GPUs of a node, fewest first."""

    def score(self, state: NodeState, candidates: Int64s, ask: Ask) -> Float64s:
        """Free units."""
        return state.free_units[candidates].astype(float)


TITLE = "Fullest node"
PLACEMENT = MostAllocated()
