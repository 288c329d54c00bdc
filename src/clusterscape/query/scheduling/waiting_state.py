"""The machine at a moment of a recorded or simulated history: who ran, who waited, how much of the limits was left."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.features import RanJobs
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.forecast import QueueState


@dataclass(frozen=True, slots=True)
class Moment:
    """A state with the rows of its jobs in the history. The job that is asked about waits last."""

    now_s: float
    running: Int64s
    waiting: Int64s
    elapsed_s: Float64s
    state: QueueState

    @property
    def rows(self) -> Int64s:
        """Running jobs, then waiting ones."""
        return np.concatenate([self.running, self.waiting])


def see_submission(jobs: RanJobs, row: int, total: int) -> Moment:
    """What could be known when job ``row`` was submitted, after everything else of that second but later submissions."""
    now = float(jobs.submit_s[row])
    started = jobs.start_s < now
    # A job that started at this very second was submitted before or waits still, as the one asked about does.
    started |= (jobs.start_s == now) & (jobs.submit_s < now)
    here = np.flatnonzero((jobs.submit_s <= now) & (jobs.end_s > now))
    here = here[here <= row]
    running, waiting = here[started[here]], here[~started[here]]
    elapsed = now - jobs.start_s[running]
    left = np.maximum(jobs.request_s[running] - elapsed, 1.0)
    state = QueueState(
        max(total, int(jobs.size[running].sum())),
        _whole(jobs.size[running]),
        _whole(left),
        _whole(jobs.size[waiting]),
        _whole(jobs.request_s[waiting]),
    )
    return Moment(now, running, waiting, elapsed, state)


def _whole(values: Float64s) -> Int64s:
    return np.ceil(values).astype(np.int64)
