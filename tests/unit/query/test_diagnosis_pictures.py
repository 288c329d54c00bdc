"""Charts of a run: lines that keep every extreme, histograms that lose no sample, scatter plots, events."""

import json

import numpy as np
import polars as pl
import pytest
from clusters.opened import open_services
from clusters.run_site import HOUR_MS, JOB, NOW, STEP_MS, RunSite

from clusterscape.model import Allocation, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.rules import Violation
from clusterscape.query.diagnosis.answers import EventKind
from clusterscape.query.diagnosis.loading import align


def test_every_extreme_is_kept_when_a_line_has_few_pixels(run_site: RunSite) -> None:
    run_site.train(hours=20.0)
    unit = run_site.units[5]
    peak = NOW - 7 * HOUR_MS + 3 * STEP_MS
    run_site.store("power_watts", unit, np.array([peak]), np.array([1234.0]))
    lines = run_site.diagnosis.lines(JOB, metrics=["power_watts"], points=50, summary="median")
    mine = lines.filter(pl.col("unit") == unit)
    assert mine["value"].max() == 1234.0
    at = mine.filter(pl.col("value") == 1234.0)["time_ms"].item()
    assert abs(at - peak) <= 20 * HOUR_MS / 50
    assert max(lines.group_by("unit").len()["len"]) <= 2 * 50 + 2
    assert set(lines["unit"]) == {*run_site.units, "median"}


def test_lines_are_raw_samples_when_zoomed_in(run_site: RunSite) -> None:
    times = run_site.train()
    unit = run_site.units[0]
    lines = run_site.diagnosis.lines(
        JOB, metrics=["gpu_util_ratio"], units=[unit], start_ms=int(times[40]), end_ms=int(times[80])
    )
    assert (lines["unit"].unique().to_list(), lines.height) == ([unit], 40)
    assert abs(lines["time_ms"][0] - times[40]) < 1000


def test_units_are_summed_up_when_there_are_many(run_site: RunSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterscape.query.diagnosis.pictures.MAX_LINES", 8)
    run_site.train()
    lines = run_site.diagnosis.lines(JOB, metrics=["gpu_util_ratio"], units=run_site.units[:1])
    assert set(lines["unit"]) == {run_site.units[0], "median", "p5", "p95"}
    means = dict(lines.group_by("unit").agg(pl.col("value").mean()).iter_rows())
    assert means["p5"] < means["median"] < means["p95"]


def test_histograms_count_every_sample_when_bins_are_shared(run_site: RunSite) -> None:
    times = run_site.train()
    picture = run_site.diagnosis.histograms(JOB, metric="gpu_util_ratio", bins=20)
    assert json.loads(picture.headers["X-Domain"]) == [0.0, 1.0]
    assert picture.table.drop("unit").sum_horizontal().to_list() == [times.size] * 32
    watts = run_site.diagnosis.histograms(JOB, metric="power_watts", bins=20)
    low, high = json.loads(watts.headers["X-Domain"])
    assert 100 < low < high <= 600


def test_outliers_are_all_there_when_points_are_sampled(run_site: RunSite) -> None:
    run_site.train()
    unit = run_site.units[3]
    odd_times = NOW - HOUR_MS + np.arange(5) * 4 * STEP_MS
    run_site.store("power_watts", unit, odd_times, np.full(5, 20.0))
    for robust in (False, True):
        picture = run_site.diagnosis.scatter(JOB, x="gpu_util_ratio", y="power_watts", robust=robust, most=500)
        counts = json.loads(picture.headers["X-Counts"])
        outliers = picture.table.filter("is_outlier")
        assert outliers.height == counts["outliers"]
        assert picture.table.height == counts["outliers"] + 500
        assert outliers.filter((pl.col("unit") == unit) & (pl.col("y") == 20.0)).height == 5
        covered = json.loads(picture.headers["X-Density"])
        assert picture.density.height == covered["columns"] ** 2
        assert picture.density["count"].sum() == counts["points"] == 32 * 480
    few = run_site.diagnosis.scatter(JOB, x="gpu_util_ratio", y="power_watts", units=[unit])
    assert few.table["unit"].unique().to_list() == [unit]


def test_note_is_added_when_a_metric_is_constant(run_site: RunSite) -> None:
    times = run_site.train()
    run_site.store_many("sm_clock_hertz", {unit: (times, np.full(times.size, 1e9)) for unit in run_site.units})
    picture = run_site.diagnosis.scatter(JOB, x="gpu_util_ratio", y="sm_clock_hertz")
    assert "constant" in json.loads(picture.headers["X-Note"])


def test_events_are_listed_when_a_workload_changed_often(run_site: RunSite) -> None:
    times = run_site.train()
    shared = run_site.units[2]
    other = Workload(id=WorkloadId("slurm:8"), state=WorkloadState.COMPLETED, gpus_requested=1)
    run_site.records.write_workloads([other], at_ms=NOW)
    run_site.records.write_allocations(
        [Allocation(workload=other.id, unit=shared, from_at=UnixMs(int(times[100])), to_at=UnixMs(int(times[200])))]
    )
    since = UnixMs(int(times[240]))
    run_site.records.write_violations(
        [Violation(rule="idle", workload=JOB, unit=unit, since=since) for unit in run_site.units[:3]]
    )
    codes = np.where(times >= times[300], 79.0, 0.0)
    run_site.store("xid_error_code", run_site.units[9], times, codes)
    open_services(run_site.queries).notes.comment(workload=JOB, author="ada", text="checkpoint")
    run_site.now = UnixMs(NOW + 60_000)
    events = [(event.kind, event.unit) for event in run_site.diagnosis.events(JOB)]
    assert events == [
        (EventKind.START, None),
        (EventKind.COTENANT_IN, shared),
        (EventKind.COTENANT_OUT, shared),
        (EventKind.VIOLATION, None),
        (EventKind.XID, run_site.units[9]),
        (EventKind.ANNOTATION, None),
    ]
    xid = next(event.text for event in run_site.diagnosis.events(JOB) if event.kind is EventKind.XID)
    assert xid == "XID 79: GPU has fallen off the bus; drain the node and reboot it"
    early = run_site.diagnosis.events(JOB, start_ms=int(times[0]), end_ms=int(times[50]))
    assert [event.kind for event in early] == [EventKind.START]


def test_samples_are_means_when_there_are_too_many(run_site: RunSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterscape.query.diagnosis.query.MAX_COMPARED", 32 * 120)
    run_site.train()
    answer = run_site.diagnosis.diagnosis(JOB)
    assert answer.step_ms == 60_000
    assert any("means over 60 s" in note for note in answer.notes)
    assert [cluster.size for cluster in answer.clusters] == [24, 8]


def test_slots_hold_one_sample_each_when_exporters_have_their_own_offsets() -> None:
    rng = np.random.default_rng(0)
    ticks = np.arange(100) * 15_000
    offsets = [3_000, 14_900, 40]
    times = np.concatenate([ticks + offset + rng.integers(-200, 200, 100) for offset in offsets])
    column = np.repeat(np.arange(3), 100)
    grid, row = align(times.astype(np.int64), column, 15_000)
    assert len({*zip(row.tolist(), column.tolist(), strict=True)}) == 300
    assert np.abs(grid[row] - times).max() < 15_000
    assert (np.diff(grid) == 15_000).all()


def test_fine_and_coarse_sampling_share_a_grid_when_history_is_coarser(run_site: RunSite) -> None:
    begin = NOW - 2 * HOUR_MS
    units = run_site.units
    run_site.hold(dict.fromkeys(units, (begin, None)))
    coarse = np.arange(begin, NOW - HOUR_MS // 6, 60_000)
    live = np.arange(NOW - HOUR_MS // 6, NOW, STEP_MS) + 4_000
    times = np.concatenate([coarse, live])
    run_site.store_many(
        "power_watts", {unit: (times + 100 * i, np.full(times.size, 300.0 + i)) for i, unit in enumerate(units)}
    )
    lines = run_site.diagnosis.lines(JOB, metrics=["power_watts"], points=5000)
    assert lines["value"].null_count() == 0
    assert abs(lines.height / len(units) - 120) <= 1


def test_times_stay_as_they_are_when_all_units_share_them() -> None:
    times = np.array([5, 900, 1000, 5, 900, 1000])
    grid, row = align(times, np.array([0, 0, 0, 1, 1, 1]), 500)
    assert grid.tolist() == [5, 900, 1000]
    assert row.tolist() == [0, 1, 2, 0, 1, 2]


def test_clusters_have_lines_of_their_own_when_they_are_asked_for(run_site: RunSite) -> None:
    run_site.train()
    lines = run_site.diagnosis.lines(JOB, metrics=["gpu_util_ratio"], points=60, summary="clusters")
    means = dict(lines.group_by("unit").agg(pl.col("value").mean()).iter_rows())
    assert set(means) == {"median", *(f"c{label}:{level}" for label in (0, 1) for level in ("median", "p5", "p95"))}
    assert means["c0:p5"] < means["c0:median"] < means["c0:p95"]
    assert abs(means["c0:median"] - means["c1:median"]) > 0.1


def test_all_units_of_a_node_are_selected_when_a_wildcard_names_it(run_site: RunSite) -> None:
    run_site.train(hours=0.2)
    named = [*(f"n1:{index}" for index in range(4)), "n2:3"]
    for units in (named, ["n1:*", "n2:3", "nobody:*", "n9:9"]):
        points = run_site.diagnosis.scatter(JOB, x="gpu_util_ratio", y="power_watts", units=units).table
        assert sorted(points["unit"].unique()) == named
        lines = run_site.diagnosis.lines(JOB, metrics=["power_watts"], units=units)
        assert sorted(lines["unit"].unique()) == named
