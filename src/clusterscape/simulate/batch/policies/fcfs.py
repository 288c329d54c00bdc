"""First come, first served."""

from dataclasses import dataclass

from clusterscape.model.arrays import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Fcfs:
    """Orders by submission."""

    is_static: bool = True

    def score(self, waiting: Waiting) -> Float64s:
        """Submission in seconds since the first of the trace."""
        return (waiting.submit_s - waiting.origin_s).astype(float)


LABEL = "FCFS"
TITLE = "First come, first served"
POLICY = Fcfs()
