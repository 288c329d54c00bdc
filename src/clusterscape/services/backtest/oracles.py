"""What nobody can know at submission: forecasts with the true run times, the true later jobs, or both.

They bound what a better run-time model or a better model of arrivals could reach on a log.
"""

import numpy as np

from clusterscape.analyze.jobs.features import JobTable
from clusterscape.analyze.jobs.runtime import LEVELS
from clusterscape.model.arrays import Float64s
from clusterscape.services.backtest.forecasting import Forecaster, QueueState, TraceMoment
from clusterscape.simulate.futures import SampledArrivals

ORACLES = ("perfect run times", "perfect arrivals", "both")
FUTURES = 16
MOST_ARRIVALS = 5_000


def ask_oracles(
    jobs: JobTable, moment: TraceMoment, queue: QueueState, run_s: Float64s, forecaster: Forecaster
) -> Float64s:
    """The median wait of the last job in ``moment`` by each of ORACLES, seconds. ``run_s``: predicted quantiles of run times.

    ``forecaster`` samples FUTURES futures. Later jobs are known until the job started, MOST_ARRIVALS at most.
    """
    row = int(moment.waiting[-1])
    wanted = np.zeros(len(moment.waiting), np.bool_)
    wanted[-1] = True
    true_runs = np.repeat(jobs.run_s[moment.rows][:, None], LEVELS.size, axis=1)
    arrivals = _true_arrivals(jobs, row, moment.now_s, float(jobs.start_s[row]), queue.state.total)
    waits = (
        forecaster.simulate(queue, true_runs, wanted),
        forecaster.simulate(queue, run_s, wanted, arrivals=arrivals),
        forecaster.simulate(queue, true_runs, wanted, arrivals=arrivals),
    )
    return np.array([np.median(wait[:, -1]) for wait in waits])


def _true_arrivals(jobs: JobTable, row: int, now_s: float, until_s: float, total: int) -> SampledArrivals:
    last = min(int(np.searchsorted(jobs.submit_s, until_s, side="right")), row + 1 + MOST_ARRIVALS)
    rows = np.tile(np.arange(row + 1, last), FUTURES)
    return SampledArrivals(
        np.arange(FUTURES + 1, dtype=np.int64) * max(0, last - row - 1),
        np.maximum(jobs.submit_s[rows] - now_s, 0).astype(np.int64),
        np.clip(np.ceil(jobs.size[rows]), 1, total).astype(np.int64),
        np.maximum(np.rint(jobs.run_s[rows]), 1).astype(np.int64),
        np.maximum(np.ceil(jobs.request_s[rows]), 1).astype(np.int64),
    )
