"""Fill the fullest nodes first, so that whole nodes stay free (Kubernetes: MostAllocated; Slurm: CR_Pack_Nodes)."""

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import NodeLoads, Placement, PodRequest


class MostAllocated(Placement):
    """Orders by the free GPUs of a node, fewest first."""

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """Free units."""
        return state.free_units[candidates].astype(float)


TITLE = "Fullest node"
PLACEMENT = MostAllocated()
