"""Placements on Alibaba's cluster, against the allocation published with FGD (Weng et al., ATC 2023).

Their procedure: 1,213 GPU nodes in random order; all pods of the workload, shuffled, then pods drawn from it again until
they ask for 130 % of the GPUs; one pod after the other is placed where the policy says, or not at all; nothing ever ends.
"""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from servers.reference import reference_data

from clusterscape.collect.job_traces.openb import read_openb_nodes
from clusterscape.simulate.batch import Backfill, find_policy
from clusterscape.simulate.cluster import Cluster, ClusterJobs, ClusterScenario, simulate_cluster
from clusterscape.simulate.placements import find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU

NEVER_S = 2**40
ARRIVED = 130
SEEDS = (42, 43)
TOLERANCE = 0.5
THEIRS = {
    "random": "01-Random",
    "dot-product": "02-DotProd",
    "gpu-clustering": "03-GpuClustering",
    "gpu-packing": "04-GpuPacking",
    "best-fit": "05-BestFit",
    "fgd": "06-FGD",
}


def read_published(workload: str) -> dict[str, float]:
    """Mean allocation at 130 % arrived, in percent, by policy."""
    with gzip.open(reference_data("sched", "openb", "fgd_expected", "analysis_allo_discrete.csv.gz")) as file:
        table = pl.read_csv(file.read()).filter(pl.col("workload") == f"openb_pod_list_{workload}")
    means = dict(table.group_by("sc_policy").agg(pl.col(str(ARRIVED)).mean()).iter_rows())
    return {ours: means[theirs] for ours, theirs in THEIRS.items()}


def make_cluster(path: Path, random: np.random.Generator) -> Cluster:
    nodes = read_openb_nodes(path).frame.filter(pl.col("gpus") > 0)
    nodes = nodes[random.permutation(nodes.height).tolist()]
    models = sorted(set(nodes["model"].to_list()))
    none = np.zeros(nodes.height, np.int64)
    return Cluster(
        names=tuple(nodes["name"].to_list()),
        gpus=nodes["gpus"].to_numpy(),
        cpu_milli=nodes["cpu_milli"].to_numpy(),
        memory_mib=nodes["memory_mib"].to_numpy(),
        model=np.array([models.index(model) for model in nodes["model"].to_list()]),
        models=tuple(models),
        partition=none,
        slices=none,
    )


def draw_jobs(path: Path, cluster: Cluster, random: np.random.Generator) -> ClusterJobs:
    pods = pl.read_csv(path)
    milli = (pods["num_gpu"] * pods["gpu_milli"]).to_numpy()
    again = random.integers(0, pods.height, 2 * pods.height)
    requested = milli.sum() + np.cumsum(milli[again])
    kept = again[requested <= ARRIVED * 10 * cluster.total_gpus]
    chosen = pods[np.concatenate([random.permutation(pods.height), kept]).tolist()]
    places, none = np.arange(chosen.height), np.zeros(chosen.height, np.int64)
    codes = {model: 1 << place for place, model in enumerate(cluster.models)}
    specs = [sum(codes.get(model, 0) for model in (spec or "").split("|")) for spec in chosen["gpu_spec"].to_list()]
    forever = np.full(chosen.height, NEVER_S)
    return ClusterJobs(
        row=places,
        submit_s=places,
        run_s=forever,
        estimate_s=forever,
        nodes=none + 1,
        gpus=chosen["num_gpu"].to_numpy(),
        units=chosen["gpu_milli"].to_numpy() * (UNITS_PER_GPU // 1000),
        cpu_milli=chosen["cpu_milli"].to_numpy(),
        memory_mib=chosen["memory_mib"].to_numpy(),
        models=np.array(specs),
        partition=none,
        user=none,
        priority=none,
        number=places,
    )


def allocate(workload: str, placement: str, seed: int) -> float:
    """Percent of all GPUs that are allocated while the last percent of the workload arrives."""
    random = np.random.default_rng(seed)
    cluster = make_cluster(reference_data("sched", "openb", "openb_node_list_all_node.csv"), random)
    jobs = draw_jobs(reference_data("sched", "openb", f"openb_pod_list_{workload}.csv"), cluster, random)
    scenario = ClusterScenario(
        cluster, jobs, find_policy("fcfs"), Backfill("first-fit"), find_placement(placement), seed=seed
    )
    schedule = simulate_cluster(scenario)
    is_placed = schedule.has_started & (schedule.start_s < NEVER_S)
    percent = np.cumsum(np.where(is_placed, jobs.total_units, 0)) / UNITS_PER_GPU / cluster.total_gpus * 100
    arrived = np.cumsum(jobs.total_units) / UNITS_PER_GPU / cluster.total_gpus * 100
    return float(percent[np.rint(arrived) == ARRIVED].mean())


def test_allocation_and_order_are_those_published_when_pods_are_placed() -> None:
    published = read_published("default")
    allocated = {name: float(np.mean([allocate("default", name, seed) for seed in SEEDS])) for name in THEIRS}
    for name, percent in allocated.items():
        assert percent == pytest.approx(published[name], abs=TOLERANCE), name
    assert sorted(allocated, key=allocated.__getitem__) == sorted(published, key=published.__getitem__)


@pytest.mark.parametrize("workload", ["gpushare40", "gpuspec33"])
def test_allocation_is_that_published_when_the_workload_is_another(workload: str) -> None:
    published = read_published(workload)
    for name in ("best-fit", "fgd"):
        percent = float(np.mean([allocate(workload, name, seed) for seed in SEEDS]))
        assert percent == pytest.approx(published[name], abs=TOLERANCE), name
