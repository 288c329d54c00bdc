"""First come, first served: nothing overtakes the first job that does not fit."""

from clusterscape.simulate.contract import Turn
from clusterscape.simulate.jobs import Job


class Fcfs:
    """Strict order."""

    def schedule(self, turn: Turn) -> Job | None:
        """Start jobs in order until one does not fit; that one is kept for."""
        return next((job for job in turn.waiting() if not turn.start(job)), None)
