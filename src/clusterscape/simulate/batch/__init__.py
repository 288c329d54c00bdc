"""Job-exact simulation of a batch queue on one homogeneous machine. Importing this does not import the compiled kernels."""

from clusterscape.simulate.batch.contract import (
    BACKFILLS,
    ESTIMATES,
    RELAXED,
    Backfill,
    BackfillKind,
    BatchJobs,
    Estimates,
    Policy,
    Scenario,
    Schedule,
    Waiting,
)
from clusterscape.simulate.batch.engine import simulate
from clusterscape.simulate.batch.measures import (
    Measures,
    Spread,
    compare_with_fcfs,
    compute_bounded_slowdown,
    compute_measures,
    jitter,
    measure_spread,
)
from clusterscape.simulate.batch.policies import find_policy, policy_names
from clusterscape.simulate.batch.preparing import prepare_jobs
from clusterscape.simulate.batch.semantics import PRESETS, Semantics

__all__ = [
    "BACKFILLS",
    "ESTIMATES",
    "PRESETS",
    "RELAXED",
    "Backfill",
    "BackfillKind",
    "BatchJobs",
    "Estimates",
    "Measures",
    "Policy",
    "Scenario",
    "Schedule",
    "Semantics",
    "Spread",
    "Waiting",
    "compare_with_fcfs",
    "compute_bounded_slowdown",
    "compute_measures",
    "find_policy",
    "jitter",
    "measure_spread",
    "policy_names",
    "prepare_jobs",
    "simulate",
]
