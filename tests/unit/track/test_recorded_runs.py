"""Runs recorded on an H200 (driver 580, nvml at 10 Hz): one alone, two under MPS. They must stay readable."""

from pathlib import Path

import pytest
from tracking.site import run_stores

from clusterscape.track.spooled import SpooledRun, read_run

FOLDER = Path(__file__).parents[2] / "data/h200/runs"
OUTSIDE_JOULES = {"solo": 6058.1, "mps": 4659.0, "train_alone": 13395.9, "train_slices": 27342.1, "train_mps": 25460.0}
"""The GPU's own counter, read around the whole command by another process."""


def value(run: SpooledRun, name: str, scope: str) -> tuple[float, str]:
    (metric_row,) = [metric for metric in run.metrics if (metric.name, metric.scope) == (name, scope)]
    assert metric_row.last is not None
    return metric_row.last, metric_row.method


def test_energy_is_that_of_the_counter_when_a_run_was_alone() -> None:
    run = read_run(FOLDER / "solo")
    joules, method = value(run, "energy_joules", "process")
    assert method == "measured"
    assert joules == pytest.approx(OUTSIDE_JOULES["solo"], rel=0.01)
    (power,) = [metric for metric in run.metrics if metric.name == "power_watts"]
    seconds = run.times_s["running"]
    assert power.mean is not None
    assert seconds is not None
    assert power.mean * seconds == pytest.approx(joules, rel=0.02)
    assert power.samples >= 0.99 * 10 * seconds


def test_energy_adds_up_and_says_that_it_is_estimated_when_two_shared_the_gpu() -> None:
    runs = [read_run(FOLDER / name) for name in ("mps_a", "mps_b")]
    parts = [value(run, "energy_joules", "process") for run in runs]
    assert [method for _, method in parts] == ["estimated", "estimated"]
    assert sum(joules for joules, _ in parts) == pytest.approx(OUTSIDE_JOULES["mps"], rel=0.02)
    assert abs(runs[0].moments["running"] - runs[1].moments["running"]) <= 100
    # Under MPS the driver does not say how busy each client was: no value, rather than a wrong one.
    assert not [
        metric for run in runs for metric in run.metrics if (metric.name, metric.scope) == ("gpu_util_ratio", "process")
    ]


def test_slowdown_is_as_recorded_when_trainings_are_compared_with_running_alone(tmp_path: Path) -> None:
    names = ("train_alone", "train_slices_a", "train_slices_b", "train_mps_a", "train_mps_b")
    with run_stores(tmp_path) as stores:
        for name in names:
            stores.take_recorded(name)
        (experiment,) = stores.queries.runs.tree().experiments
    by_group = {workload.group: workload for workload in experiment.workloads}
    for group, workload in by_group.items():
        assert workload.energy is not None
        assert workload.energy.joules == pytest.approx(OUTSIDE_JOULES[f"train_{group}"], rel=0.005)
        assert workload.energy.method == ("measured" if group == "alone" else "estimated")
    assert by_group["slices"].slowdown == pytest.approx(2.12, abs=0.02)
    assert by_group["mps"].slowdown == pytest.approx(1.97, abs=0.02)
    assert by_group["mps"].fairness == pytest.approx(1.0, abs=0.001)
    assert by_group["alone"].work_unit == "samples"
