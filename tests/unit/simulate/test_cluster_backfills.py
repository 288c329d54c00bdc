"""Backfilling on nodes: with one GPU per node as in the batch engine; on larger nodes no GPU is given twice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterscape.errors import QueryError
from clusterscape.simulate.batch import Backfill, BackfillKind, BatchJobs, Estimates, Scenario, find_policy, simulate
from clusterscape.simulate.batch.semantics import CLUSTERSCAPE
from clusterscape.simulate.cluster import Cluster, ClusterJobs, ClusterScenario, simulate_cluster
from clusterscape.simulate.cluster.contract import BACKFILLS
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placements import find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU

TOTAL = 8
PATIENT = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
Rows = list[tuple[int, int, int, int, int]]


def make_cluster(*gpus: int) -> Cluster:
    none = np.zeros(len(gpus), np.int64)
    return Cluster(
        names=tuple(f"n{place}" for place in range(len(gpus))),
        gpus=np.array(gpus),
        cpu_milli=none,
        memory_mib=none,
        model=none,
        models=("",),
        partition=none,
        slices=none,
    )


def make_jobs(rows: Rows, nodes: np.ndarray, gpus: np.ndarray) -> ClusterJobs:
    """From (seconds after the one before, run, estimate beyond it, size, user)."""
    gaps, runs, beyond, _, users = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    places, none = np.arange(len(rows)), np.zeros(len(rows), np.int64)
    return ClusterJobs(
        places,
        np.cumsum(gaps),
        runs,
        runs + beyond,
        nodes,
        gpus,
        none + UNITS_PER_GPU,
        none,
        none,
        none,
        none,
        users,
        none,
        places,
    )


def scenario_of(cluster: Cluster, jobs: ClusterJobs, kind: BackfillKind, policy: str = "fcfs") -> ClusterScenario:
    return ClusterScenario(
        cluster, jobs, find_policy(policy), Backfill(kind, 0.5, 3.0), find_placement("most-allocated")
    )


@st.composite
def job_rows(draw: st.DrawFn) -> Rows:
    row = st.tuples(st.integers(0, 4), st.integers(1, 12), st.integers(0, 12), st.integers(1, TOTAL), st.integers(0, 2))
    return draw(st.lists(row, min_size=1, max_size=24))


@pytest.mark.parametrize("kind", BACKFILLS)
@pytest.mark.parametrize("policy", ["fcfs", "sjf", "wfp3"])
@settings(PATIENT, max_examples=25)
@given(rows=job_rows(), estimates=st.sampled_from(["request", "predicted"]))
def test_starts_are_those_of_the_batch_engine_when_every_node_has_one_gpu(
    kind: BackfillKind, policy: str, rows: Rows, estimates: Estimates
) -> None:
    sizes = np.array([row[3] for row in rows], np.int64)
    jobs = make_jobs(rows, sizes, np.ones_like(sizes))
    scenario = replace(scenario_of(make_cluster(*[1] * TOTAL), jobs, kind, policy), estimates=estimates)
    plain = BatchJobs(
        jobs.row, jobs.submit_s, jobs.run_s, jobs.estimate_s, jobs.estimate_s, sizes, jobs.user, jobs.number
    )
    batch = Scenario(plain, TOTAL, find_policy(policy), Backfill(kind, 0.5, 3.0), estimates, CLUSTERSCAPE)
    assert simulate_cluster(scenario).start_s.tolist() == simulate(batch).start_s.tolist()


def test_queue_is_measured_once_per_pass_when_candidates_start_during_it() -> None:
    # The head is promised 10 s. Three wait, so ω is whole and candidates may take 15 s; with two it would be 13 s.
    rows = [(0, 10, 0, 6, 0), (0, 5, 0, 8, 0), (0, 10, 0, 1, 0), (0, 15, 0, 1, 0)]
    sizes = np.array([row[3] for row in rows], np.int64)
    jobs = make_jobs(rows, sizes, np.ones_like(sizes))
    assert simulate_cluster(scenario_of(make_cluster(*[1] * TOTAL), jobs, "adaptive")).start_s[2:].tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["easy-sjbf", "easy++", "frugal"])
@PATIENT
@given(rows=job_rows(), fails=st.booleans())
def test_all_jobs_end_and_no_node_is_overfull_when_predictions_are_exceeded(
    kind: BackfillKind, rows: Rows, fails: bool
) -> None:
    sizes = np.array([row[3] for row in rows], np.int64)
    jobs = make_jobs(rows, np.where(sizes > 4, 2, 1), np.where(sizes > 4, 4, sizes))
    faults = (NodeFault(node="n0", kind=FaultKind.FAIL, from_s=6, to_s=20),) if fails else ()
    schedule = simulate_cluster(replace(scenario_of(make_cluster(4, 4, 4), jobs, kind), faults=faults, checkpoint_s=3))
    assert schedule.has_ended.all()
    assert (schedule.start_s >= jobs.submit_s).all()
    if not (schedule.attempts > 1).any():
        assert (schedule.end_s == schedule.start_s + jobs.run_s).all()
        owners = np.repeat(np.arange(len(jobs)), jobs.nodes)
        for node in range(3):
            here = owners[schedule.nodes == node]
            for moment in schedule.start_s[here]:
                active = here[(schedule.start_s[here] <= moment) & (moment < schedule.end_s[here])]
                assert jobs.gpus[active].sum() <= 4


def test_refusal_says_why_when_conservative_backfilling_is_asked_for_on_nodes() -> None:
    jobs = make_jobs([(0, 1, 0, 1, 0)], np.ones(1, np.int64), np.ones(1, np.int64))
    with pytest.raises(QueryError, match="not available for clusters") as refused:
        scenario_of(make_cluster(1), jobs, "conservative")
    assert "the placement would have to choose" in (refused.value.hint or "")
    assert "frugal" in (refused.value.hint or "")
