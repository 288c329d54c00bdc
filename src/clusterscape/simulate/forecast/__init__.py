"""Sampled futures of a queue, each played by the batch engine. Importing this does not import the compiled kernels."""

from clusterscape.simulate.forecast.arrivals import Arrivals, PastArrivals, no_arrivals
from clusterscape.simulate.forecast.contract import Futures, QueueState, RunQuantiles
from clusterscape.simulate.forecast.forecasting import forecast_waits, plan_waits
from clusterscape.simulate.forecast.sampling import sample_runs

__all__ = [
    "Arrivals",
    "Futures",
    "PastArrivals",
    "QueueState",
    "RunQuantiles",
    "forecast_waits",
    "no_arrivals",
    "plan_waits",
    "sample_runs",
]
