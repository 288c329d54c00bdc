"""Fair share: jobs of the user with the least usage go first. Processor-seconds are charged by the estimate at the start and
corrected at the end.
"""

from dataclasses import dataclass

from clusterscape.model.arrays import Float64s
from clusterscape.model.durations import WEEK_S
from clusterscape.simulate.batch.contract import Waiting


@dataclass(frozen=True, slots=True)
class FairShare:
    """Usage halves every ``half_life_s``."""

    half_life_s: int = WEEK_S
    is_static: bool = False

    def score(self, waiting: Waiting) -> Float64s:
        """The usage of the job's user."""
        return waiting.user_usage


POLICY = FairShare()
