"""Simulation of a GPU cluster: nodes, gangs, GPU sharing, failures, preemption. Importing this compiles nothing.

``contract``: nodes, partitions, jobs, schedules.
``engine``: runs a scenario; calls placements and policies.
``job_kernels``: one job: it waits, starts, ends, is evicted.
``kernels``: nodes: their load, and what fits where.
``measures``: measures of a schedule.
``pass_kernels``: the next events, and scheduling passes over the queue.
``preparing``: from a job trace to jobs.
"""

from clusterscape.simulate.cluster.contract import (
    BACKFILLS,
    Cluster,
    ClusterJobs,
    ClusterScenario,
    ClusterSchedule,
    Integrals,
    NodePool,
)
from clusterscape.simulate.cluster.engine import RunningJobs, simulate_cluster, simulate_from_now
from clusterscape.simulate.cluster.measures import (
    ClusterMeasures,
    compute_cluster_measures,
    jitter_cluster,
    measure_cluster_spread,
)
from clusterscape.simulate.cluster.preparing import prepare_cluster_jobs

__all__ = [
    "BACKFILLS",
    "Cluster",
    "ClusterJobs",
    "ClusterMeasures",
    "ClusterScenario",
    "ClusterSchedule",
    "Integrals",
    "NodePool",
    "RunningJobs",
    "compute_cluster_measures",
    "jitter_cluster",
    "measure_cluster_spread",
    "prepare_cluster_jobs",
    "simulate_cluster",
    "simulate_from_now",
]
