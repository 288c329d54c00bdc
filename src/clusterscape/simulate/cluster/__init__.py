"""Simulation of a GPU cluster: nodes, gangs, shares of GPUs, failures, pre-emption. Importing this compiles nothing."""

from clusterscape.simulate.cluster.contract import (
    BACKFILLS,
    Cluster,
    ClusterJobs,
    ClusterScenario,
    ClusterSchedule,
    Integrals,
    Partition,
)
from clusterscape.simulate.cluster.engine import simulate_cluster
from clusterscape.simulate.cluster.measures import (
    ClusterMeasures,
    compute_cluster_measures,
    jitter_cluster,
    measure_cluster_spread,
)
from clusterscape.simulate.cluster.preparing import prepare_cluster_jobs
from clusterscape.simulate.cluster.standing import Standing, simulate_standing

__all__ = [
    "BACKFILLS",
    "Cluster",
    "ClusterJobs",
    "ClusterMeasures",
    "ClusterScenario",
    "ClusterSchedule",
    "Integrals",
    "Partition",
    "Standing",
    "compute_cluster_measures",
    "jitter_cluster",
    "measure_cluster_spread",
    "prepare_cluster_jobs",
    "simulate_cluster",
    "simulate_standing",
]
