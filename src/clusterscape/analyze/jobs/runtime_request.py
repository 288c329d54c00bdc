"""The user's own word: a job runs as long as was asked for. What every batch scheduler plans with."""

import numpy as np

from clusterscape.analyze.jobs.features import AskedJobs
from clusterscape.model.samples import Float64s


class RequestedTime:
    """The time limit."""

    name = "user request"

    def predict(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:  # noqa: ARG002 – of the contract
        """The limit, or what has passed where a job is over it."""
        return np.maximum(jobs.request_s, elapsed_s)
