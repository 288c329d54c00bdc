"""Fair share: who has used least goes first. Processor-seconds are charged by the estimate at the start, settled at the end."""

from dataclasses import dataclass

from clusterscape.model.samples import Float64s
from clusterscape.simulate.batch.contract import Waiting

WEEK_S = 7 * 86_400


@dataclass(frozen=True, slots=True)
class FairShare:
    """Usage halves every ``half_life_s``."""

    half_life_s: int = WEEK_S
    is_static: bool = False

    def score(self, waiting: Waiting) -> Float64s:
        """What the job's user has been charged."""
        return waiting.user_usage


POLICY = FairShare()
