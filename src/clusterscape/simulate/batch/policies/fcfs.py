"""First come, first served."""

from dataclasses import dataclass

from clusterscape.model.samples import Float64s
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class Fcfs:
    """By submission."""

    is_static: bool = True

    def score(self, waiting: Waiting) -> Float64s:
        """Seconds since the trace began."""
        return (waiting.submit_s - waiting.origin_s).astype(float)


LABEL = "FCFS"
TITLE = "First come, first served"
POLICY = Fcfs()
