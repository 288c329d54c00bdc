"""Job-exact simulation of a batch queue on one homogeneous machine. Importing this does not import the compiled kernels.

``conservative_kernels``: a reservation for every job.
``contract``: jobs, policies, schedules; a backfilling's name and labels.
``engine``: runs a scenario; translates its choices for the kernels.
``indexed_kernels``: queue orders that do not change with time, with one reservation.
``kernels``: compiled functions that all simulations share.
``listed_kernels``: queue orders that change with time.
``measures``: measures of a schedule, and its fairness.
``policies``: queue orders, one file each.
``preparing``: from a job trace to jobs.
``semantics``: implicit choices of other simulators, one named option each.
"""

from clusterscape.simulate.batch.contract import (
    BACKFILLS,
    ESTIMATES,
    LEARNED,
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
    "LEARNED",
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
