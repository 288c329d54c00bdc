"""Runs that executed together, their baselines, and the cost of sharing."""

from dataclasses import replace

import pytest

from clusterscape.analyze.runs.lines import compute_fairness, estimate
from clusterscape.analyze.runs.workloads import RunFacts, find_repeats, find_workloads


def run(name: str, start: int, end: int | None, **more: object) -> RunFacts:
    facts = RunFacts(run=name, experiment="e", host="h", command=("a.py",), devices=("0",), device_type="H200")
    return replace(facts, started_at=start, ended_at=end, **more)  # type: ignore[arg-type]


def test_runs_are_one_workload_when_name_and_time_are_shared() -> None:
    workloads = find_workloads(
        [
            run("a", 0, 1000, group="w"),
            run("b", 10, 500, group="w"),
            run("again", 2000, 3000, group="w"),  # a retry, or the plan started again
            run("elsewhere", 0, 1000, group="w", host="other"),
            run("single", 0, 1000),
        ]
    )
    assert sorted([run.run for run in workload.runs] for workload in workloads) == [
        ["a", "b"],
        ["again"],
        ["elsewhere"],
        ["single"],
    ]


def test_run_is_no_baseline_when_it_was_not_alone_or_did_not_complete() -> None:
    pair = [run("a", 0, 2000, group="pair"), run("b", 0, 2000, group="pair")]
    overlapping = [run("x", 10_000, 11_000, group="x"), run("y", 10_500, 11_500, group="y")]
    failed = run("f", 20_000, 20_500, group="f", state="failed")
    under_mps = run("m", 30_000, 30_500, group="m", collocation="mps=30")
    other_gpu = run("o", 40_000, 40_500, group="o", device_type="A100")
    workloads = find_workloads([*pair, *overlapping, failed, under_mps, other_gpu])
    assert all(not workload.slowdowns for workload in workloads)
    with_solo = find_workloads([*pair, *overlapping, failed, under_mps, other_gpu, run("s", 50_000, 51_000)])
    (together,) = [workload for workload in with_solo if len(workload.runs) == 2]
    assert (together.slowdown, together.fairness) == (2.0, 1.0)
    assert together.slowdowns["a"].baseline == ("s",)
    assert together.slowdowns["a"].basis == "running time"


def test_energy_is_not_added_up_when_whole_gpus_were_shared() -> None:
    whole = {"joules": 100.0, "joules_scope": "device", "group": "w"}
    (same,) = find_workloads([run("a", 0, 1, **whole), run("b", 0, 1, **whole)])
    assert same.joules is None
    (apart,) = find_workloads([run("a", 0, 1, **whole), run("b", 0, 1, devices=("1",), **whole)])
    assert apart.joules == 200


def test_makespan_is_unknown_when_a_run_goes_on() -> None:
    (workload,) = find_workloads([run("a", 0, 1000, group="w"), run("b", 10, None, group="w", state="running")])
    assert workload.makespan_s is None
    assert find_repeats([workload]) == []


def test_workloads_are_repeats_when_they_do_the_same() -> None:
    runs = [run(f"r{n}", n * 10_000, n * 10_000 + 1000, params=(("lr", str(n // 2)),)) for n in range(4)]
    repeat_groups = find_repeats(find_workloads(runs))
    assert [repeats.workloads for repeats in repeat_groups] == [("r0", "r1"), ("r2", "r3")]


def test_interval_is_students_when_repeats_are_few() -> None:
    estimate_of_three = estimate([1.0, 2.0, 3.0])
    assert estimate_of_three is not None
    assert estimate_of_three.high == pytest.approx(2 + 4.302653 / 3**0.5, abs=1e-5)
    estimate_of_one = estimate([5.0])
    assert estimate_of_one is not None
    assert (estimate_of_one.mean, estimate_of_one.low, estimate_of_one.high) == (5.0, None, None)
    assert estimate([]) is None


def test_fairness_is_jains_when_several_share() -> None:
    assert compute_fairness([1.0, 1.0]) == 1.0
    assert compute_fairness([1.0, 0.0]) == 0.5
    assert compute_fairness([1.0]) is None
