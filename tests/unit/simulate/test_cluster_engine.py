"""The GPU cluster: cases worked out by hand, properties of every schedule, and the same starts as the event engine's."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterscape.demo.scheduler import JobStarted, SimNode, Simulation, SubmittedJob
from clusterscape.errors import QueryError
from clusterscape.simulate.batch import PRESETS, Backfill, BackfillKind, find_policy
from clusterscape.simulate.cluster import (
    Cluster,
    ClusterJobs,
    ClusterScenario,
    ClusterSchedule,
    NodePool,
    RunningJobs,
    compute_cluster_measures,
    jitter_cluster,
    simulate_cluster,
    simulate_from_now,
)
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placements import find_placement, placement_names
from clusterscape.simulate.placing import UNITS_PER_GPU

PATIENT = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def make_cluster(
    *gpus: int,
    partition: list[int] | None = None,
    slices: int = 0,
    partitions: tuple[NodePool, ...] = (NodePool("p"),),
) -> Cluster:
    count = len(gpus)
    return Cluster(
        names=tuple(f"n{place}" for place in range(count)),
        gpus=np.array(gpus),
        cpu_milli=np.full(count, 16_000),
        memory_mib=np.full(count, 1_000),
        model=np.arange(count) % 2,
        models=("A", "B"),
        partition=np.array(partition or [0] * count),
        slices=np.full(count, slices),
        partitions=partitions,
    )


def make_jobs(*rows: Mapping[str, int | float]) -> ClusterJobs:
    """Columns by name; ``share`` is of one GPU. Default: 1 GPU of 1 node for 10 s at time 0."""
    usual = {"submit": 0, "run": 10, "nodes": 1, "gpus": 1, "share": 1.0, "cpu": 0, "memory": 0, "models": 0}
    usual |= {"partition": 0, "user": 0, "priority": 0}

    def column(name: str, scale: float = 1) -> np.ndarray:
        return np.array([round((usual | dict(row))[name] * scale) for row in rows], np.int64)

    estimate = np.array([row.get("estimate", row.get("run", 10)) for row in rows], np.int64)
    places = np.arange(len(rows))
    return ClusterJobs(
        places,
        column("submit"),
        column("run"),
        estimate,
        column("nodes"),
        column("gpus"),
        column("share", UNITS_PER_GPU),
        column("cpu"),
        column("memory"),
        column("models"),
        column("partition"),
        column("user"),
        column("priority"),
        places,
    )


def run(
    cluster: Cluster,
    jobs: ClusterJobs,
    kind: BackfillKind = "easy",
    placement: str = "most-allocated",
    **choices: object,
) -> ClusterSchedule:
    scenario = ClusterScenario(cluster, jobs, find_policy("fcfs"), Backfill(kind), find_placement(placement))
    return simulate_cluster(replace(scenario, **choices))  # type: ignore[arg-type]


def test_gang_starts_all_at_once_when_enough_nodes_are_free() -> None:
    jobs = make_jobs({"run": 5, "gpus": 3}, {"nodes": 2, "gpus": 2, "submit": 1}, {"submit": 2, "gpus": 1, "run": 3})
    schedule = run(make_cluster(4, 4), jobs)
    assert schedule.start_s.tolist() == [0, 5, 2]
    assert sorted(schedule.nodes[1:3].tolist()) == [0, 1]
    assert schedule.promise_s[1] == 5


def test_idle_gpus_count_as_blocked_when_they_are_not_where_a_gang_could_use_them() -> None:
    jobs = make_jobs({"gpus": 3}, {"gpus": 3}, {"gpus": 2, "submit": 1, "run": 1})
    schedule = run(make_cluster(4, 4), jobs)
    assert schedule.start_s.tolist() == [0, 0, 10]
    assert schedule.integrals.blocked == 2 * 9


def test_shares_pack_on_one_gpu_when_they_fit_together() -> None:
    jobs = make_jobs(*({"share": 0.5} for _ in range(5)))
    schedule = run(make_cluster(2), jobs)
    assert schedule.start_s.tolist() == [0, 0, 0, 0, 10]


def test_shares_take_whole_slices_when_gpus_are_cut_into_instances() -> None:
    jobs = make_jobs(*({"share": 0.2} for _ in range(5)))  # 2 of 7 slices each
    assert run(make_cluster(1), jobs).start_s.tolist() == [0, 0, 0, 0, 0]
    assert run(make_cluster(1, slices=7), jobs).start_s.tolist() == [0, 0, 0, 10, 10]


def test_processors_memory_and_model_are_respected_when_a_job_requests_them() -> None:
    cluster = make_cluster(8, 8)
    jobs = make_jobs({"cpu": 16_000}, {"cpu": 16_000}, {"cpu": 1}, {"memory": 2_000})
    assert run(cluster, make_jobs({"cpu": 16_000}, {"cpu": 16_000}, {"cpu": 1})).start_s.tolist() == [0, 0, 10]
    assert not run(cluster, jobs).has_started[3]
    model_b = run(cluster, make_jobs({"models": 0b10, "gpus": 8}, {"models": 0b10, "gpus": 8}))
    assert (model_b.start_s.tolist(), model_b.nodes.tolist()) == ([0, 10], [1, 1])


def test_partitions_have_their_own_queues_and_user_limits_when_there_are_several() -> None:
    partitions = (NodePool("a"), NodePool("b", max_gpus_per_user=2))
    cluster = make_cluster(2, 4, partition=[0, 1], partitions=partitions)
    rows = [{"gpus": 2}, {"gpus": 2}, {"partition": 1, "gpus": 2}, {"partition": 1}, {"partition": 1, "user": 1}]
    assert run(cluster, make_jobs(*rows)).start_s.tolist() == [0, 10, 0, 10, 0]


def test_job_starts_again_from_its_checkpoint_when_its_node_fails() -> None:
    fault = NodeFault(node="n0", kind=FaultKind.FAIL, from_s=7, to_s=20)
    jobs = make_jobs({"run": 10})
    without = run(make_cluster(1), jobs, faults=(fault,))
    assert (without.start_s[0], without.end_s[0], without.lost_s[0], without.attempts[0]) == (0, 30, 7, 2)
    saved = run(make_cluster(1), jobs, faults=(fault,), checkpoint_s=3)
    assert (saved.end_s[0], saved.lost_s[0]) == (24, 1)
    assert saved.integrals.lost == 1.0
    drained = run(make_cluster(1), jobs, faults=(replace(fault, kind=FaultKind.DRAIN),))
    assert (drained.end_s[0], drained.attempts[0]) == (10, 1)


def test_job_never_starts_when_its_only_node_never_returns() -> None:
    fault = NodeFault(node="n0", kind=FaultKind.DRAIN, from_s=0)
    schedule = run(make_cluster(1), make_jobs({"submit": 5}), faults=(fault,))
    assert not schedule.has_started.any()
    assert compute_cluster_measures(schedule) is None


def test_cheapest_victim_goes_and_its_work_is_charged_when_a_higher_priority_arrives() -> None:
    rows = [{"gpus": 2, "run": 100}, {"gpus": 2, "run": 100, "submit": 30}, {"gpus": 2, "submit": 50, "priority": 1}]
    jobs = make_jobs(*rows)
    kept = run(make_cluster(2, 2), jobs, preempts=True)
    assert kept.start_s.tolist() == [0, 30, 50]
    assert kept.lost_s.tolist() == [0, 20, 0]
    assert kept.end_s.tolist() == [100, 160, 60]
    patient = run(make_cluster(2, 2), jobs)
    assert patient.start_s.tolist() == [0, 30, 100]


def test_every_job_that_fits_starts_when_nothing_is_promised() -> None:
    jobs = make_jobs({"gpus": 3, "run": 10}, {"gpus": 4, "submit": 1}, {"gpus": 1, "submit": 2, "run": 100})
    assert run(make_cluster(4), jobs, "first-fit").start_s.tolist() == [0, 102, 2]
    assert run(make_cluster(4), jobs, "easy").start_s.tolist() == [0, 10, 20]
    assert not run(make_cluster(4), jobs, "first-fit").has_promise.any()


def test_refusal_says_what_there_is_when_a_choice_has_no_meaning_on_nodes() -> None:
    with pytest.raises(QueryError, match="not available for clusters"):
        run(make_cluster(1), make_jobs({}), "conservative")
    with pytest.raises(QueryError, match="only events = batch"):
        run(make_cluster(1), make_jobs({}), semantics=PRESETS["pyss"])
    with pytest.raises(QueryError, match="unknown node 'x'"):
        run(make_cluster(1), make_jobs({}), faults=(NodeFault(node="x", kind=FaultKind.FAIL, from_s=0),))


@st.composite
def job_rows(draw: st.DrawFn) -> list[dict[str, int | float]]:
    rows = []
    for _ in range(draw(st.integers(1, 30))):
        nodes, gpus, share = draw(st.sampled_from([(1, 4, 1), (2, 4, 1), (1, 1, 1), (3, 2, 1), (1, 1, 0.3), (1, 0, 1)]))
        run_s = draw(st.integers(1, 40))
        rows.append(
            {
                "submit": draw(st.integers(0, 60)),
                "run": run_s,
                "estimate": run_s + draw(st.integers(0, 30)),
                "nodes": nodes,
                "gpus": gpus,
                "share": share,
                "cpu": draw(st.sampled_from([0, 4_000])),
                "user": draw(st.integers(0, 2)),
                "priority": draw(st.integers(0, 1)),
            }
        )
    return sorted(rows, key=lambda row: row["submit"])


@pytest.mark.parametrize("placement", placement_names())
@settings(PATIENT, max_examples=12)
@given(rows=job_rows(), kind=st.sampled_from(["none", "first-fit", "easy", "adaptive"]), fails=st.booleans())
def test_no_gpu_is_given_twice_and_all_jobs_end_when_any_rules_apply(
    placement: str, rows: list[dict[str, int | float]], kind: BackfillKind, fails: bool
) -> None:
    faults = (NodeFault(node="n0", kind=FaultKind.FAIL, from_s=20, to_s=50),) if fails else ()
    jobs, cluster = make_jobs(*rows), make_cluster(4, 4, 4)
    schedule = run(cluster, jobs, kind, placement, faults=faults, preempts=True, checkpoint_s=5)
    assert schedule.has_ended.all()
    assert (schedule.start_s >= jobs.submit_s).all()
    if not (schedule.attempts > 1).any():
        assert (schedule.end_s == schedule.start_s + jobs.run_s).all()
        for node in range(3):
            pods = np.flatnonzero(schedule.nodes == node)
            owners = np.repeat(np.arange(len(jobs)), jobs.nodes)[pods]
            for moment in schedule.start_s[owners]:
                active = owners[(schedule.start_s[owners] <= moment) & (moment < schedule.end_s[owners])]
                assert (jobs.gpus * jobs.units)[active].sum() <= 4 * UNITS_PER_GPU
                assert jobs.cpu_milli[active].sum() <= 16_000


@pytest.mark.parametrize(("kind", "depth"), [("none", 0), ("easy", None)])
@pytest.mark.parametrize("placement", ["most-allocated", "least-allocated"])
@PATIENT
@given(rows=job_rows())
def test_starts_are_those_of_the_event_engine_when_gpus_are_whole(
    kind: BackfillKind, depth: int | None, placement: str, rows: list[dict[str, int | float]]
) -> None:
    rows = [row | {"share": 1.0, "cpu": 0, "gpus": max(1, row["gpus"])} for row in rows]
    schedule = run(make_cluster(4, 4, 2, 4), make_jobs(*rows), kind, placement)
    simulation = Simulation(
        [SimNode(f"n{place}", "p", gpus) for place, gpus in enumerate((4, 4, 2, 4))],
        find_placement(placement),
        depth=depth,
    )
    simulation.add_jobs(
        SubmittedJob(
            id=place,
            partition="p",
            submit_s=int(row["submit"]),
            run_s=int(row["run"]),
            limit_s=int(row["estimate"]),
            gpus_per_node=int(row["gpus"]),
            nodes=int(row["nodes"]),
            priority=int(row["priority"]),
        )
        for place, row in enumerate(rows)
    )
    starts = {event.job.id: event.time_s for event in simulation.run() if isinstance(event, JobStarted)}
    assert schedule.start_s.tolist() == [starts[place] for place in range(len(rows))]


@PATIENT
@given(rows=job_rows(), placement=st.sampled_from(placement_names()))
def test_schedule_and_fingerprint_are_the_same_when_nothing_changed(
    rows: list[dict[str, int | float]], placement: str
) -> None:
    scenario = ClusterScenario(
        make_cluster(4, 4, 4), make_jobs(*rows), find_policy("wfp3"), Backfill(), find_placement(placement)
    )
    again = replace(scenario, jobs=make_jobs(*rows), cluster=make_cluster(4, 4, 4))
    assert scenario.fingerprint() == again.fingerprint()
    first, second = simulate_cluster(scenario), simulate_cluster(again)
    assert first.start_s.tolist() == second.start_s.tolist()
    assert first.nodes.tolist() == second.nodes.tolist()
    assert first.integrals == second.integrals
    assert replace(scenario, seed=1).fingerprint() != scenario.fingerprint()


def test_measures_are_those_worked_out_by_hand_when_a_job_waits() -> None:
    schedule = run(make_cluster(2), make_jobs({"gpus": 2, "run": 10}, {"gpus": 1, "run": 10, "submit": 2}))
    measures = compute_cluster_measures(schedule)
    assert measures is not None
    assert (measures.jobs, measures.wait_s, measures.violation_s) == (2, 4.0, 0.0)
    assert measures.utilization == pytest.approx(30 / 40)
    assert measures.bounded_slowdown == pytest.approx((1 + 1.8) / 2)
    # Idle: 1 GPU for 10 s. Half of the jobs (2 GPUs) cannot use it.
    assert measures.idle_gpu_hours * 3600 == pytest.approx(10)
    assert measures.fragmentation == pytest.approx(10 * 0.5 / 40)


def test_run_times_differ_by_at_most_a_second_when_jittered() -> None:
    scenario = ClusterScenario(
        make_cluster(2), make_jobs({"run": 1}, {"run": 10}), find_policy("fcfs"), Backfill(), find_placement("fgd")
    )
    other = jitter_cluster(scenario, np.random.default_rng(0))
    assert (abs(other.jobs.run_s - scenario.jobs.run_s) <= 1).all()
    assert (other.jobs.estimate_s >= other.jobs.run_s).all()


def scenario(count: int = 60, seed: int = 1) -> ClusterScenario:
    random = np.random.default_rng(seed)
    run = random.integers(10, 500, count)
    zeros, ones = np.zeros(count, np.int64), np.ones(count, np.int64)
    jobs = ClusterJobs(
        row=np.arange(count),
        submit_s=np.sort(random.integers(0, 800, count)),
        run_s=run,
        estimate_s=run + random.integers(0, 300, count),
        nodes=ones,
        gpus=random.integers(1, 9, count),
        units=ones * UNITS_PER_GPU,
        cpu_milli=zeros,
        memory_mib=zeros,
        models=zeros,
        partition=zeros,
        user=zeros,
        priority=zeros,
        number=np.arange(count),
    )
    node = np.zeros(4, np.int64)
    cluster = Cluster(tuple("abcd"), node + 8, node, node, node, ("gpu",), node, node)
    return ClusterScenario(cluster, jobs, find_policy("fcfs"), Backfill("easy"), find_placement("most-allocated"))


def cut(full: ClusterScenario, now_s: int) -> tuple[ClusterScenario, RunningJobs, np.ndarray]:
    """The scenario at ``now_s``: its unfinished jobs, those that run, and the rows of the unfinished jobs."""
    schedule = simulate_cluster(full)
    left = np.flatnonzero(schedule.end_s > now_s)
    runs = (schedule.start_s <= now_s)[left]
    elapsed = np.where(runs, now_s - schedule.start_s[left], 0)
    jobs = full.jobs
    columns = {name: getattr(jobs, name)[left] for name in jobs.__slots__}
    columns["run_s"] = columns["run_s"] - elapsed
    columns["estimate_s"] = columns["estimate_s"] - elapsed
    rows = np.flatnonzero(runs)
    standing = RunningJobs(now_s, rows, schedule.nodes[schedule.first_pod[left[rows]]])
    return replace(full, jobs=ClusterJobs(**columns)), standing, left


@pytest.mark.parametrize("now_s", [0, 100, 333, 700, 1200])
def test_schedule_goes_on_as_before_when_it_is_cut_in_the_middle(now_s: int) -> None:
    full = scenario()
    rest, standing, left = cut(full, now_s)
    ends = simulate_from_now(rest, standing).end_s
    assert ends.tolist() == simulate_cluster(full).end_s[left].tolist()


def test_running_job_ends_on_its_node_when_the_node_is_drained() -> None:
    full = scenario()
    rest, standing, _ = cut(full, 333)
    drained = replace(rest, faults=(NodeFault(node="a", kind=FaultKind.DRAIN, from_s=333),))
    schedule = simulate_from_now(drained, standing)
    on_a = np.flatnonzero(schedule.nodes[schedule.first_pod] == 0)
    assert set(on_a.tolist()) == set(standing.job[standing.node == 0].tolist())
    assert schedule.has_ended.all()


def test_running_jobs_must_fit_when_a_simulation_begins_with_them() -> None:
    full = scenario(2)
    jobs = replace(full.jobs, gpus=np.array([8, 8]), submit_s=np.array([0, 0]))
    with pytest.raises(QueryError, match="too small for its running jobs"):
        simulate_from_now(replace(full, jobs=jobs), RunningJobs(0, np.array([0, 1]), np.array([0, 0])))
