"""First come, first served with EASY backfill (Lifka 1995): later jobs may overtake as long as the first one is not delayed.

The first job that does not fit gets a reservation at the earliest start that the limits of running jobs promise. A later job
starts now if it ends before that time, or uses only GPUs that are left over at that time (the extra-nodes rule).
"""

from itertools import islice

from clusterscape.simulate.contract import Reservation, Turn
from clusterscape.simulate.jobs import Job


class FcfsEasy:
    """``depth``: how many jobs behind the first are tried in one turn (Slurm's ``bf_max_job_test``); None tries all."""

    def __init__(self, depth: int | None = None) -> None:
        self._depth = depth

    def schedule(self, turn: Turn) -> Job | None:
        """Start jobs in order, then backfill behind the first that does not fit; that one is kept for."""
        waiting = turn.waiting()
        head = next((job for job in waiting if not turn.start(job)), None)
        if head is None:
            return None
        reservation: Reservation | None = None
        for job in islice(waiting, self._depth):
            if turn.fits(job):
                # Found only when needed: most turns have nothing that fits.
                reservation = reservation or turn.reserve(head)
                turn.backfill(job, reservation)
        return head
