"""Take nodes in their order (by name), as schedulers without a preference among nodes do."""

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.placing import NodeLoads, Placement, PodRequest


class FirstFit(Placement):
    """Orders by the place of a node in the cluster."""

    def score(self, state: NodeLoads, candidates: Int64s, request: PodRequest) -> Float64s:
        """The index of the node."""
        return candidates.astype(float)


TITLE = "First node in order"
PLACEMENT = FirstFit()
