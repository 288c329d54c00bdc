"""The diagnosis of a workload from real stores, and its notes when data is missing."""

import numpy as np
import pytest
from clusters.run_site import GPUS_PER_NODE, HOUR_MS, JOB, NOW, STEP_MS, RunSite

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import UnixMs, WorkloadState
from clusterscape.model.rules import Violation
from clusterscape.query.diagnosis.answers import By, EnergySource, UnitRule
from clusterscape.query.diagnosis.query import ComparisonOptions


def test_clusters_are_explained_by_local_rank_when_the_first_gpu_of_each_node_idles(run_site: RunSite) -> None:
    run_site.train()
    answer = run_site.diagnosis.diagnosis(JOB)
    assert (answer.metric, answer.gpus, answer.nodes, answer.step_ms) == ("gpu_util_ratio", 32, 8, None)
    assert [cluster.size for cluster in answer.clusters] == [24, 8]
    explanation = answer.clusters[1].explanation
    assert explanation is not None
    assert (explanation.attribute, explanation.values) == ("local rank", ["0"])
    assert explanation.sentence == "All 8 differ from the other 24; they are exactly local rank 0."
    assert {unit.unit for unit in answer.units if unit.cluster == 1} == {f"n{node}:0" for node in range(8)}
    assert [unit.global_rank for unit in answer.units] == list(range(32))
    assert [unit.local_rank for unit in answer.units] == list(range(4)) * 8
    assert any(finding.kind == "imbalance" for finding in answer.findings)
    assert answer.gpu_hours == pytest.approx(64.0)
    assert answer.wasted_gpu_hours == 0.0
    assert answer.notes == []


def test_tree_and_cut_belong_together_when_clusters_are_shown(run_site: RunSite) -> None:
    run_site.train()
    answer = run_site.diagnosis.diagnosis(JOB)
    assert np.array(answer.linkage).shape == (31, 4)
    assert sorted(answer.leaves) == sorted(answer.compared) == sorted(run_site.units)
    assert answer.cut_kind == "automatic"
    assert answer.cut_height == pytest.approx(answer.heights_for_counts[1])
    for count in (1, 3, 5):
        cut = run_site.diagnosis.diagnosis(JOB, options=ComparisonOptions(height=answer.heights_for_counts[count - 1]))
        assert (len(cut.clusters), cut.cut_kind) == (count, "height")
    assert len(run_site.diagnosis.diagnosis(JOB, options=ComparisonOptions(count=3)).clusters) == 3
    with pytest.raises(QueryError, match="not both"):
        run_site.diagnosis.diagnosis(JOB, options=ComparisonOptions(count=3, height=0.1))


@pytest.mark.parametrize("by", ["histogram", "euclidean"])
def test_clusters_are_the_same_when_compared_by_histogram_or_timeline(run_site: RunSite, by: By) -> None:
    run_site.train()
    assert [
        cluster.size for cluster in run_site.diagnosis.diagnosis(JOB, options=ComparisonOptions(by=by)).clusters
    ] == [
        24,
        8,
    ]


def test_nothing_is_odd_when_all_gpus_do_the_same(run_site: RunSite) -> None:
    run_site.train(lazy_rank=None)
    answer = run_site.diagnosis.diagnosis(JOB)
    assert [cluster.size for cluster in answer.clusters] == [32]
    assert (answer.odd, answer.clusters[0].explanation) == ([], None)


def test_a_window_is_diagnosed_when_it_is_named(run_site: RunSite) -> None:
    times = run_site.train()
    answer = run_site.diagnosis.diagnosis(JOB, start_ms=int(times[0]), end_ms=int(times[0]) + HOUR_MS)
    assert answer.gpu_hours == pytest.approx(32.0)
    assert answer.window is not None
    assert answer.window.end - answer.window.start == HOUR_MS
    assert answer.life is not None
    assert answer.life.end == NOW
    with pytest.raises(QueryError, match="outside"):
        run_site.diagnosis.diagnosis(JOB, start_ms=0, end_ms=1)


def test_parallel_layout_is_an_attribute_when_tags_give_it(run_site: RunSite) -> None:
    times = run_site.train(lazy_rank=None)
    run_site.hold(dict.fromkeys(run_site.units, (int(times[0]), None)), tags={"tp": "4", "pp": "2", "dp": "4"})
    slow = {unit: (times, np.full(times.size, 300.0)) for unit in run_site.units[:16]}
    fast = {unit: (times, np.full(times.size, 600.0)) for unit in run_site.units[16:]}
    run_site.store_many("sm_clock_hertz", slow | fast)
    answer = run_site.diagnosis.diagnosis(JOB, options=ComparisonOptions(metric="sm_clock_hertz", count=2))
    assert answer.layout == {"tp": 4, "dp": 4, "pp": 2}
    explanation = answer.clusters[0].explanation
    assert explanation is not None
    assert (explanation.attribute, explanation.values) == ("pipeline stage", ["0"])


def test_energy_is_that_of_the_counters_when_all_gpus_have_them(run_site: RunSite) -> None:
    times = run_site.train(hours=1.0)
    by_power = run_site.diagnosis.diagnosis(JOB)
    assert by_power.energy_from is EnergySource.POWER
    assert by_power.energy_joules is not None
    joules = 400.0 * (times - times[0]) / 1000
    run_site.store_many("energy_joules", dict.fromkeys(run_site.units, (times, 1000000.0 + joules)))
    run_site.now = UnixMs(NOW + 60_000)  # data loaded a minute ago is not read again
    answer = run_site.diagnosis.diagnosis(JOB)
    assert answer.energy_from is EnergySource.COUNTER
    assert answer.energy_joules == pytest.approx(32 * joules[-1])


def test_hours_are_wasted_when_all_gpus_idle(run_site: RunSite) -> None:
    begin = NOW - 2 * HOUR_MS
    run_site.hold(dict.fromkeys(run_site.units[:4], (begin, None)))
    times = np.arange(begin, NOW, STEP_MS)
    run_site.store_many("gpu_util_ratio", {unit: (times, np.zeros(times.size)) for unit in run_site.units[:4]})
    answer = run_site.diagnosis.diagnosis(JOB)
    assert answer.wasted_gpu_hours == pytest.approx(answer.gpu_hours, rel=0.1)
    assert any(finding.kind == "idle_tail" for finding in answer.findings)


def test_units_list_their_rules_when_violated_now_or_before(run_site: RunSite) -> None:
    run_site.train(hours=1.0)
    unit = run_site.units[0]
    run_site.records.write_violations(
        [
            Violation(rule="own", workload=JOB, unit=unit, since=UnixMs(NOW - 600_000)),
            Violation(rule="all", workload=JOB, unit=None, since=UnixMs(NOW - 900_000), until=UnixMs(NOW - 800_000)),
        ]
    )
    answer = run_site.diagnosis.diagnosis(JOB)
    by_unit = {unit.unit: unit.rules for unit in answer.units}
    assert by_unit[unit] == [UnitRule(rule="all", state="past"), UnitRule(rule="own", state="now")]
    assert by_unit[run_site.units[1]] == [UnitRule(rule="all", state="past")]


# missing data


def test_an_unknown_workload_is_not_found(run_site: RunSite) -> None:
    run_site.train(hours=0.1)
    with pytest.raises(NotFoundError):
        run_site.diagnosis.diagnosis("slurm:404")
    with pytest.raises(QueryError, match="unknown metric"):
        run_site.diagnosis.diagnosis(JOB, options=ComparisonOptions(metric="speed"))


def test_note_is_added_when_the_workload_waits(run_site: RunSite) -> None:
    run_site.hold({}, state=WorkloadState.WAITING)
    answer = run_site.diagnosis.diagnosis(JOB)
    assert answer.notes == ["Nothing to diagnose: the workload is waiting and has not held a GPU yet."]
    assert (answer.gpus, answer.window, answer.units, answer.clusters, answer.gpu_hours) == (0, None, [], [], 0.0)
    assert run_site.diagnosis.histograms(JOB, metric="gpu_util_ratio").table.is_empty()
    assert run_site.diagnosis.lines(JOB, metrics=["gpu_util_ratio"]).is_empty()
    assert run_site.diagnosis.scatter(JOB, x="gpu_util_ratio", y="power_watts").table.is_empty()
    assert run_site.diagnosis.events(JOB) == []


def test_note_is_added_when_there_are_no_samples(run_site: RunSite) -> None:
    run_site.hold(dict.fromkeys(run_site.units, (NOW - HOUR_MS, None)))
    answer = run_site.diagnosis.diagnosis(JOB)
    assert answer.notes == ["There are no samples in this window."]
    assert (answer.gpus, answer.clusters, answer.findings, answer.wasted_gpu_hours) == (32, [], [], None)
    picture = run_site.diagnosis.histograms(JOB, metric="gpu_util_ratio")
    assert picture.headers["X-Domain"] == "null"
    assert picture.table.height == 32
    assert run_site.diagnosis.lines(JOB, metrics=["power_watts"], summary="median").is_empty()


def test_note_is_added_when_there_is_one_sample(run_site: RunSite) -> None:
    run_site.hold(dict.fromkeys(run_site.units, (NOW - HOUR_MS, None)))
    moment = np.array([NOW - 60_000])
    run_site.store_many("gpu_util_ratio", {unit: (moment, np.array([0.5])) for unit in run_site.units})
    answer = run_site.diagnosis.diagnosis(JOB)
    assert any("There is only one sample" in note for note in answer.notes)
    assert answer.findings == []
    lines = run_site.diagnosis.lines(JOB, metrics=["gpu_util_ratio"])
    assert lines["time_ms"].unique().to_list() == [NOW - 60_000]


def test_note_is_added_when_there_is_one_gpu(run_site: RunSite) -> None:
    unit = run_site.units[0]
    run_site.hold({unit: (NOW - HOUR_MS, None)})
    times = np.arange(NOW - HOUR_MS, NOW, STEP_MS)
    run_site.store("gpu_util_ratio", unit, times, np.full(times.size, 0.9))
    answer = run_site.diagnosis.diagnosis(JOB)
    assert any("one GPU" in note for note in answer.notes)
    assert answer.odd == []
    assert run_site.diagnosis.histograms(JOB, metric="gpu_util_ratio", bins=10).table.row(0)[10] == times.size


def test_note_is_added_when_no_exporter_responded_for_a_time(run_site: RunSite) -> None:
    run_site.hold(dict.fromkeys(run_site.units, (NOW - 2 * HOUR_MS, None)))
    times = np.arange(NOW - 2 * HOUR_MS, NOW, STEP_MS)
    times = times[(times < NOW - HOUR_MS) | (times > NOW - HOUR_MS // 2)]
    run_site.store_many("gpu_util_ratio", {unit: (times, np.full(times.size, 0.9)) for unit in run_site.units})
    answer = run_site.diagnosis.diagnosis(JOB)
    assert any("no samples of any GPU for 30 min" in note for note in answer.notes)
    lines = run_site.diagnosis.lines(JOB, metrics=["gpu_util_ratio"], units=run_site.units[:1])
    assert lines["value"].null_count() == 1


def test_note_names_the_gpus_when_some_lack_the_metric(run_site: RunSite) -> None:
    times = run_site.train(lazy_rank=None)
    measured = run_site.units[:-2]
    run_site.store_many("sm_active_ratio", {unit: (times, np.full(times.size, 0.5)) for unit in measured})
    answer = run_site.diagnosis.diagnosis(JOB, options=ComparisonOptions(metric="sm_active_ratio"))
    assert any("SM active is missing on 2 of 32 GPUs (n7:2, n7:3)" in note for note in answer.notes)
    assert [unit.unit for unit in answer.units if unit.cluster is None] == ["n7:2", "n7:3"]


def test_both_gpus_are_shown_while_held_when_one_was_replaced(run_site: RunSite) -> None:
    begin, middle = NOW - 2 * HOUR_MS, NOW - HOUR_MS
    kept, old, new = run_site.units[: GPUS_PER_NODE - 2], run_site.units[2], run_site.units[3]
    run_site.hold({**dict.fromkeys(kept, (begin, None)), old: (begin, middle), new: (middle, None)})
    times = np.arange(begin, NOW, STEP_MS)
    # Both GPUs report all the time, as exporters do; only the time in which the job held them counts.
    run_site.store_many(
        "gpu_util_ratio", {unit: (times, np.full(times.size, 0.9)) for unit in run_site.units[:GPUS_PER_NODE]}
    )
    answer = run_site.diagnosis.diagnosis(JOB)
    assert answer.gpu_hours == pytest.approx(6.0)
    assert any(f"{old} stops where {new} starts" in note for note in answer.notes)
    ranks = {unit.unit: (unit.global_rank, unit.held_from, unit.held_to) for unit in answer.units}
    assert ranks[old] == (2, begin, middle)
    assert ranks[new] == (2, middle, None)
    counts = run_site.diagnosis.histograms(JOB, metric="gpu_util_ratio", bins=1).table
    assert dict(counts.iter_rows()) == {kept[0]: 480, kept[1]: 480, old: 240, new: 240}


def test_samples_of_a_clock_that_jumped_are_a_gap_when_they_fall_out_of_the_life(run_site: RunSite) -> None:
    begin = NOW - 2 * HOUR_MS
    run_site.hold(dict.fromkeys(run_site.units, (begin, None)))
    times = np.arange(begin, NOW, STEP_MS)
    jumped = np.where((times > NOW - HOUR_MS) & (times < NOW - HOUR_MS // 2), times - 24 * HOUR_MS, times)
    rng = np.random.default_rng(0)
    columns = {unit: (times, 0.9 + rng.normal(0, 0.01, times.size)) for unit in run_site.units}
    first = run_site.units[0]
    run_site.store_many("gpu_util_ratio", columns | {first: (np.sort(jumped), columns[first][1])})
    answer = run_site.diagnosis.diagnosis(JOB)
    assert [unit.unit for unit in answer.odd] == [first]
    assert "silence" in answer.odd[0].kinds
    assert "is often missing" in answer.odd[0].sentence


def test_all_pictures_are_there_when_there_is_hardly_anything_to_draw(run_site: RunSite) -> None:
    unit = run_site.units[0]
    run_site.hold({unit: (NOW - HOUR_MS, None)})
    for metric in ("gpu_util_ratio", "power_watts"):
        run_site.store(metric, unit, np.array([NOW - 60_000]), np.array([0.5]))
    scatter = run_site.diagnosis.scatter(JOB, x="gpu_util_ratio", y="power_watts", robust=True)
    assert scatter.table.select("unit", "x", "is_outlier").row(0) == (unit, 0.5, False)
    assert "Fewer than 3 points" in scatter.headers["X-Note"]
    assert scatter.density["count"].sum() == 1
    lines = run_site.diagnosis.lines(JOB, metrics=["power_watts"], summary="clusters")
    assert lines["unit"].to_list() == ["median", "c0:median", "c0:p5", "c0:p95"]


def test_note_is_added_and_samples_are_read_again_when_history_is_being_loaded(run_site: RunSite) -> None:
    run_site.hold(dict.fromkeys(run_site.units, (NOW - 4 * HOUR_MS, None)))
    start = NOW - 4 * HOUR_MS

    def store(begin: int, end: int) -> None:
        times = np.arange(begin, end, STEP_MS)
        run_site.store_many("gpu_util_ratio", {unit: (times, np.full(times.size, 0.9)) for unit in run_site.units})

    store(NOW - HOUR_MS, NOW)
    late = "The first sample is 3.0 h after the start of this window"
    answer = run_site.diagnosis.diagnosis(JOB, start_ms=start, end_ms=NOW)
    assert f"{late}: earlier samples were not collected, or are no longer stored." in answer.notes
    run_site.queries.context.changes.bump_history(NOW)
    answer = run_site.diagnosis.diagnosis(JOB, start_ms=start, end_ms=NOW)
    assert f"{late}: earlier samples are still being loaded." in answer.notes
    store(NOW - 4 * HOUR_MS, NOW - HOUR_MS)
    run_site.queries.context.changes.bump_history(NOW)
    answer = run_site.diagnosis.diagnosis(JOB, start_ms=start, end_ms=NOW)
    assert not any("first sample" in note for note in answer.notes)
    counts = run_site.diagnosis.histograms(JOB, metric="gpu_util_ratio", bins=1, start_ms=start, end_ms=NOW).table
    assert set(counts["b0"]) == {960}
