"""WFP3 of Tang et al. (Cluster'09): (wait / estimate)³ · processors goes first. Large jobs that waited long are favored."""

from dataclasses import dataclass

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Wfp3:
    """Orders by WFP3; the wait is the time that the job has waited so far."""

    is_static: bool = False

    def score(self, waiting: Waiting) -> Float64s:
        """The WFP3 value, negated: the smallest goes first."""
        ratio: Float64s = waiting.wait_s / waiting.estimate_s
        return -(ratio * ratio * ratio) * waiting.processors


LABEL = "WFP3"
POLICY = Wfp3()
