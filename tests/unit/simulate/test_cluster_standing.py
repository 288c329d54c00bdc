"""A simulation that begins in the middle goes on as the one it was cut from."""

from dataclasses import replace

import numpy as np
import pytest

from clusterscape.errors import QueryError
from clusterscape.simulate.batch.contract import Backfill
from clusterscape.simulate.batch.policies import find_policy
from clusterscape.simulate.cluster import (
    Cluster,
    ClusterJobs,
    ClusterScenario,
    Standing,
    simulate_cluster,
    simulate_standing,
)
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placements import find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU


def scenario(count: int = 60, seed: int = 1) -> ClusterScenario:
    random = np.random.default_rng(seed)
    run = random.integers(10, 500, count)
    zero, one = np.zeros(count, np.int64), np.ones(count, np.int64)
    jobs = ClusterJobs(
        row=np.arange(count),
        submit_s=np.sort(random.integers(0, 800, count)),
        run_s=run,
        estimate_s=run + random.integers(0, 300, count),
        nodes=one,
        gpus=random.integers(1, 9, count),
        units=one * UNITS_PER_GPU,
        cpu_milli=zero,
        memory_mib=zero,
        models=zero,
        partition=zero,
        user=zero,
        priority=zero,
        number=np.arange(count),
    )
    node = np.zeros(4, np.int64)
    cluster = Cluster(tuple("abcd"), node + 8, node, node, node, ("gpu",), node, node)
    return ClusterScenario(cluster, jobs, find_policy("fcfs"), Backfill("easy"), find_placement("most-allocated"))


def cut(whole: ClusterScenario, now_s: int) -> tuple[ClusterScenario, Standing, np.ndarray]:
    """What is left at a moment: who runs holds what he holds, who waits waits. Also the rows that are left."""
    schedule = simulate_cluster(whole)
    left = np.flatnonzero(schedule.end_s > now_s)
    runs = (schedule.start_s <= now_s)[left]
    elapsed = np.where(runs, now_s - schedule.start_s[left], 0)
    jobs = whole.jobs
    columns = {name: getattr(jobs, name)[left] for name in jobs.__slots__}
    columns["run_s"] = columns["run_s"] - elapsed
    columns["estimate_s"] = columns["estimate_s"] - elapsed
    rows = np.flatnonzero(runs)
    standing = Standing(now_s, rows, schedule.nodes[schedule.first_pod[left[rows]]])
    return replace(whole, jobs=ClusterJobs(**columns)), standing, left


@pytest.mark.parametrize("now_s", [0, 100, 333, 700, 1200])
def test_schedule_goes_on_as_before_when_it_is_cut_in_the_middle(now_s: int) -> None:
    whole = scenario()
    rest, standing, left = cut(whole, now_s)
    ends = simulate_standing(rest, standing).end_s
    assert ends.tolist() == simulate_cluster(whole).end_s[left].tolist()


def test_what_runs_on_a_drained_node_ends_there_when_nothing_new_starts_on_it() -> None:
    whole = scenario()
    rest, standing, _ = cut(whole, 333)
    drained = replace(rest, faults=(NodeFault(node="a", kind=FaultKind.DRAIN, from_s=333),))
    schedule = simulate_standing(drained, standing)
    on_a = np.flatnonzero(schedule.nodes[schedule.first_pod] == 0)
    assert set(on_a.tolist()) == set(standing.job[standing.node == 0].tolist())
    assert schedule.has_ended.all()


def test_what_runs_must_fit_when_a_simulation_begins_with_it() -> None:
    whole = scenario(2)
    jobs = replace(whole.jobs, gpus=np.array([8, 8]), submit_s=np.array([0, 0]))
    with pytest.raises(QueryError, match="no room"):
        simulate_standing(replace(whole, jobs=jobs), Standing(0, np.array([0, 1]), np.array([0, 0])))
