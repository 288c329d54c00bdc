"""The cluster at a past minute: cases worked out by hand, and a plain evaluation of random histories."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster, unit
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.errors import QueryError
from clusterscape.model import (
    Allocation,
    NodeId,
    NodeState,
    NodeStateChange,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)
from clusterscape.model.durations import MINUTE_MS
from clusterscape.query.answers import UnitCounts
from clusterscape.query.cluster import MISSING, STEPS
from clusterscape.query.past import reconstruct_at
from clusterscape.query.picture import SNAPSHOT_COLUMNS
from clusterscape.query.timeline import sweep
from clusterscape.settings import StorageSettings
from clusterscape.store.records import open_record_store

MINUTE = UnixMs(NOW // MINUTE_MS * MINUTE_MS)
"""The small cluster's times are not whole minutes; pictures are."""


def past(hours: float) -> UnixMs:
    return UnixMs(NOW - int(hours * HOUR_MS))


def rows(cluster: SmallCluster, at: int) -> dict[str, dict[str, object]]:
    _, picture = cluster.queries.cluster.picture(at)
    assert picture["unit"].is_unique().all()
    return {row["unit"]: row for row in picture.to_dicts()}


def test_ended_job_holds_its_unit_again_when_the_picture_is_of_its_time(small_cluster: SmallCluster) -> None:
    rows_by_unit = rows(small_cluster, past(7))
    held = rows_by_unit["n1:0"]
    assert (held["unit_state"], held["workload"], held["user"], held["workload_state"]) == (
        "allocated", "slurm:0", "eve", "running",
    )  # fmt: skip
    assert held["started_at"] == past(8)
    assert {name: row["unit_state"] for name, row in rows_by_unit.items() if name != "n1:0"} == dict.fromkeys(
        ["n1:1", "n2:0", "n2:1", "n3:0", "n3:1"], "free"
    )


def test_started_jobs_wait_again_when_the_picture_is_before_their_start(small_cluster: SmallCluster) -> None:
    rows_by_unit = rows(small_cluster, past(8.5))
    assert [name for name in rows_by_unit if "#" in name] == ["slurm:0#0"]
    assert (rows_by_unit["slurm:0#0"]["workload_state"], rows_by_unit["slurm:0#0"]["started_at"]) == ("waiting", None)
    later = rows(small_cluster, past(1.5))
    assert [name for name in later if "#" in name] == ["slurm:1#0", "slurm:1#1"]
    assert {row["unit_state"] for name, row in later.items() if "#" not in name} == {"free"}


def test_holder_without_any_times_is_seen_when_it_held_a_unit(small_cluster: SmallCluster) -> None:
    shared = rows(small_cluster, past(0.5))["n1:1"]
    assert (shared["workload"], shared["holders"]) == ("slurm:1", 2)


def test_fields_without_history_are_null_when_the_picture_is_of_the_past(small_cluster: SmallCluster) -> None:
    _, picture = small_cluster.queries.cluster.picture(past(0.5))
    assert tuple(picture.columns) == (*SNAPSHOT_COLUMNS, "free_use")
    assert picture["node_state"].null_count() == picture["node_reason"].null_count() == len(picture)
    assert picture["pending_reason"].null_count() == len(picture)
    assert isinstance(picture.schema["node_state"], pl.Enum)


def test_units_of_a_node_that_was_down_are_unavailable_when_the_picture_is_of_that_minute(
    small_cluster: SmallCluster,
) -> None:
    records = small_cluster.records
    records.write_node_states(
        [
            NodeStateChange(node=NodeId("n3"), from_at=past(6), state=NodeState.DOWN, reason="fan"),
            NodeStateChange(node=NodeId("n3"), from_at=past(4), state=NodeState.IDLE),
        ]
    )
    then = rows(small_cluster, past(5))
    assert (then["n3:0"]["unit_state"], then["n3:0"]["node_state"], then["n3:0"]["node_reason"]) == (
        "unavailable", "down", "fan",
    )  # fmt: skip
    assert (then["n1:1"]["unit_state"], then["n1:1"]["node_state"]) == ("free", None)
    after = rows(small_cluster, past(3))["n3:0"]
    assert (after["unit_state"], after["node_state"], after["node_reason"]) == ("free", "idle", None)


def test_nodes_have_their_past_states_when_a_past_minute_is_requested(small_cluster: SmallCluster) -> None:
    small_cluster.records.write_node_states(
        [
            NodeStateChange(node=NodeId("n1"), from_at=past(9), state=NodeState.IDLE),
            NodeStateChange(node=NodeId("n2"), from_at=past(9), state=NodeState.ALLOCATED),
            NodeStateChange(node=NodeId("n2"), from_at=past(6), state=NodeState.DRAINED, reason="fan"),
        ]
    )
    cluster = small_cluster.queries.cluster

    then = {node.node: (node.state.value, node.reason) for node in cluster.nodes(past(5))}
    assert then == {"n1": ("idle", None), "n2": ("drained", "fan"), "n3": ("unknown", None)}
    assert cluster.summary(past(5)).nodes_unavailable == 1
    before = {node.node: node.state.value for node in cluster.nodes(past(7))}
    assert before == {"n1": "mixed", "n2": "idle", "n3": "unknown"}
    assert cluster.summary(past(7)).nodes_unavailable == 0
    _, picture = cluster.picture(past(7))
    by_node = dict(picture.filter(pl.col("node").is_not_null()).select("node", "node_state").unique().iter_rows())
    assert by_node == {"n1": "mixed", "n2": "idle", "n3": None}


def test_lists_and_details_are_of_the_past_when_a_past_minute_is_requested(small_cluster: SmallCluster) -> None:
    queries = small_cluster.queries
    then = queries.workloads.page(at_ms=past(7))
    assert [(w.workload, w.state.value, w.ended_at) for w in then.workloads] == [("slurm:0", "running", None)]
    assert then.workloads[0].run_s == pytest.approx(3600, abs=60)
    assert queries.workloads.page(at_ms=past(7), user="nobody").total == 0
    assert queries.workloads.page(at_ms=past(7), text="SLURM:0").total == 1
    assert queries.workloads.detail("slurm:0", past(7)).workload.state is WorkloadState.RUNNING
    assert queries.workloads.detail("slurm:0", past(0.1)).workload.state is WorkloadState.FAILED
    node = queries.cluster.node("n1", past(7))
    assert (node.node.gpus_allocated, node.node.state.value) == (1, "unknown")
    assert [w.workload for w in node.workloads] == ["slurm:0"]
    assert queries.waste.waste(hours=1, at_ms=past(7)).end <= past(7)


def test_requeued_job_ran_before_and_waits_between_when_its_runs_are_looked_at(small_cluster: SmallCluster) -> None:
    again = Workload(
        id=WorkloadId("slurm:7"), state=WorkloadState.RUNNING, gpus_requested=1, restarts=1,
        submitted_at=past(4), started_at=past(2),
    )  # fmt: skip
    small_cluster.records.write_workloads([again], at_ms=NOW)
    small_cluster.records.write_allocations(
        [
            Allocation(workload=again.id, unit=unit("n3", 0), from_at=past(5), to_at=past(3)),
            Allocation(workload=again.id, unit=unit("n3", 1), from_at=past(2)),
        ]
    )
    states = {at: rows(small_cluster, past(at)) for at in (4.5, 3.5, 2.5, 1.9)}
    assert (states[4.5]["n3:0"]["workload"], states[4.5]["n3:0"]["started_at"]) == ("slurm:7", past(5))
    assert states[3.5]["n3:0"]["workload"] == "slurm:7"
    assert "slurm:7#0" not in states[3.5]
    assert "slurm:7#0" in states[2.5]
    assert states[1.9]["n3:1"]["started_at"] == past(2)
    curve = small_cluster.queries.timeline.timeline(start_ms=past(5), end_ms=NOW, points=30)
    for at, value in zip(curve.time_ms, curve.waiting_gpus, strict=True):
        assert value == small_cluster.queries.cluster.summary(at).waiting_gpus


def test_tick_has_past_values_when_a_past_minute_is_requested(small_cluster: SmallCluster) -> None:
    cluster = small_cluster.queries.cluster
    at = MINUTE - 9 * MINUTE_MS
    tick = cluster.tick(["gpu_util_ratio"], at)
    low, high = tick.scales["gpu_util_ratio"]
    codes = tick.table["gpu_util_ratio"].to_numpy()
    assert low + codes[0] / STEPS * (high - low) == pytest.approx(0.9, abs=5e-4)
    assert set(codes[2:]) == {MISSING}
    assert (tick.inventory_version, tick.sampled_at) == (cluster.picture(at)[0], at)
    nothing = cluster.tick(["gpu_util_ratio"], past(5))
    assert nothing.sampled_at is None


def test_version_is_of_minute_and_rows_when_a_past_picture_is_asked_twice(small_cluster: SmallCluster) -> None:
    cluster = small_cluster.queries.cluster
    version, picture = cluster.picture(MINUTE - HOUR_MS)
    assert version // MINUTE_MS * MINUTE_MS == MINUTE - HOUR_MS
    again, same = cluster.picture(MINUTE - HOUR_MS + 59_999)
    assert (again, same is picture) == (version, True)
    assert cluster.picture(MINUTE - 2 * HOUR_MS)[0] != version
    small_cluster.records.remove_units([unit("n3", 1)])
    assert cluster.picture(MINUTE - HOUR_MS)[0] != version


def test_recent_past_is_rebuilt_when_the_queue_changed(small_cluster: SmallCluster) -> None:
    cluster = small_cluster.queries.cluster
    at = MINUTE - MINUTE_MS
    assert "slurm:8#0" not in cluster.picture(at)[1]["unit"]
    late = Workload(
        id=WorkloadId("slurm:8"), state=WorkloadState.WAITING, gpus_requested=1, submitted_at=UnixMs(at - 1)
    )
    small_cluster.records.write_workloads([late], at_ms=NOW)
    small_cluster.changes.bump_inventory()
    assert "slurm:8#0" in cluster.picture(at)[1]["unit"]


def test_past_summary_has_null_for_fields_without_history_when_requested(small_cluster: SmallCluster) -> None:
    summary = small_cluster.queries.cluster.summary(past(7))
    assert summary.units == UnitCounts(total=6, allocated=1, free=5, unavailable=0, stale=0, silent=0, faulty=0)
    assert (summary.is_past, summary.at % MINUTE_MS) == (True, 0)
    assert (summary.nodes_unavailable, summary.failing_sources, summary.newest_sample_at) == (None, None, None)
    assert (summary.gpu_util_ratio, summary.power_watts) == (None, None)


@pytest.mark.parametrize("at", [-1, NOW + MINUTE_MS])
def test_moment_is_refused_when_it_is_not_past(small_cluster: SmallCluster, at: int) -> None:
    with pytest.raises(QueryError, match="between 1970 and now"):
        small_cluster.queries.cluster.picture(at)


def test_timeline_agrees_with_the_summaries_when_compared(small_cluster: SmallCluster) -> None:
    queries = small_cluster.queries
    curve = queries.timeline.timeline(start_ms=past(10), end_ms=NOW, points=60)
    assert curve.step_ms == 600_000
    assert len(curve.time_ms) == len(curve.gpu_util_ratio) == 60
    for i, at in enumerate(curve.time_ms):
        summary = queries.cluster.summary(at)
        assert (curve.allocated_gpus[i], curve.waiting_gpus[i]) == (summary.units.allocated, summary.waiting_gpus)
    assert (curve.total_gpus, max(curve.allocated_gpus), max(curve.waiting_gpus)) == (6, 2, 3)
    assert curve.gpu_util_ratio[-1] == pytest.approx(0.7)
    assert curve.gpu_util_ratio[0] is None


def test_timeline_spans_the_stored_history_when_no_range_is_given(small_cluster: SmallCluster) -> None:
    curve = small_cluster.queries.timeline.timeline()
    assert (curve.oldest_at, curve.end, curve.step_ms) == (NOW - 30 * 60_000 - 1000, NOW, MINUTE_MS)
    assert len(curve.time_ms) == 30
    with pytest.raises(QueryError, match="after the start"):
        small_cluster.queries.timeline.timeline(start_ms=NOW, end_ms=NOW - 1)


ENDED = [WorkloadState.COMPLETED, WorkloadState.CANCELLED]
times = st.integers(0, 12)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Workload], list[Allocation]]:
    """Jobs that wait, run, end or vanish, share units, are requeued, and lack some of their times."""
    workloads, allocations = [], []
    for number in range(draw(st.integers(0, 6))):
        submitted, waits, runs = draw(times), draw(st.integers(0, 4)), draw(st.integers(0, 4))
        state = draw(st.sampled_from([WorkloadState.WAITING, WorkloadState.RUNNING, *ENDED]))
        has_started = state is not WorkloadState.WAITING and (state is WorkloadState.RUNNING or draw(st.booleans()))
        started = submitted + waits if has_started else None
        ended = None if state.is_active else submitted + waits + runs
        job = Workload(
            id=WorkloadId(f"slurm:{number}"),
            state=state,
            gpus_requested=draw(st.integers(0, 3)),
            resource_type=draw(st.sampled_from(["A100-2", "V100-1", None])),
            submitted_at=UnixMs(submitted * MINUTE_MS) if draw(st.integers(0, 9)) else None,
            started_at=None if started is None else UnixMs(started * MINUTE_MS),
            ended_at=None if ended is None else UnixMs(ended * MINUTE_MS),
        )
        if job.submitted_at is None and job.started_at is None and job.ended_at is None:
            job = replace(job, submitted_at=UnixMs(submitted * MINUTE_MS))
        workloads.append(job)
        for place in draw(st.sets(st.integers(0, 3), max_size=3)):
            begin = started if started is not None and draw(st.integers(0, 3)) else draw(times)
            stop = draw(st.one_of(st.none(), st.integers(begin, begin + 5)))
            to_at = None if stop is None else UnixMs(stop * MINUTE_MS)
            allocations.append(
                Allocation(workload=job.id, unit=UnitId(f"n:{place}"), from_at=UnixMs(begin * MINUTE_MS), to_at=to_at)
            )
    return workloads, allocations


def plainly(
    workloads: list[Workload], allocations: list[Allocation], at: int
) -> tuple[dict[str, set[str]], set[WorkloadId]]:
    """Holders of each unit at ``at`` and waiting workloads, computed without the code under test."""
    holders: dict[str, set[str]] = {}
    waiting: set[WorkloadId] = set()
    for job in workloads:
        times = [t for t in (job.submitted_at, job.started_at, job.ended_at) if t is not None]
        is_over = job.ended_at is not None and at >= max(job.ended_at, times[0] + 1)
        units = {
            held.unit
            for held in allocations
            if held.workload == job.id and held.from_at <= at and (held.to_at is None or at < held.to_at)
        }
        if is_over:
            continue
        for name in units:
            holders.setdefault(name, set()).add(job.id)
        is_running = job.state is not WorkloadState.WAITING and job.started_at is not None and job.started_at <= at
        if times[0] <= at and not units and not is_running:
            waiting.add(job.id)
    return holders, waiting


@given(histories(), st.integers(0, 20))
def test_past_equals_a_plain_evaluation_when_histories_are_random(
    history: tuple[list[Workload], list[Allocation]], minute: int
) -> None:
    at = UnixMs(minute * MINUTE_MS)
    jobs, counted = reconstruct_at(*history, at)
    holders, waiting = plainly(*history, at)
    result: dict[str, set[str]] = {}
    for held in counted:
        result.setdefault(held.unit, set()).add(held.workload)
    assert result == holders
    assert {job.id for job in jobs if job.state is WorkloadState.WAITING} == waiting
    assert {job.id for job in jobs if job.state is WorkloadState.RUNNING} >= set().union(*holders.values())


@settings(max_examples=40, deadline=None)
@given(history=histories())
def test_stored_history_gives_the_same_curves_when_swept(
    history: tuple[list[Workload], list[Allocation]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    workloads, allocations = history
    folder: Path = tmp_path_factory.mktemp("history")
    records = open_record_store(StorageSettings(data_dir=folder))
    try:
        end = UnixMs(20 * MINUTE_MS)
        records.write_workloads(workloads, at_ms=end)
        records.write_allocations(allocations)
        spans = records.workload_spans(since_ms=UnixMs(0))
        held = records.allocation_spans(start_ms=UnixMs(0), end_ms=end)
    finally:
        records.close()
    grid = np.arange(20, dtype=np.int64) * MINUTE_MS
    units = pl.Series("unit", [f"n:{i}" for i in range(3)])  # n:3 is not there any more
    covered, waited = sweep(grid, units, spans, held)
    gpus = {job.id: job.gpus_requested for job in workloads}
    types = {job.id: job.resource_type for job in workloads}
    for step, at in enumerate(grid.tolist()):
        holders, waiting = plainly(workloads, allocations, at)
        assert covered[:, step].tolist() == [name in holders for name in units]
        kinds = Counter(types[name] for name in waiting if gpus[name] > 0)
        requested = Counter[str | None]()
        for name in waiting:
            requested[types[name]] += gpus[name]
        for row, kind in enumerate(waited.resource_types):
            assert waited.workloads[row, step] == kinds[kind]
            assert waited.gpus[row, step] == requested[kind]
        assert {kind for kind, count in kinds.items() if count} <= set(waited.resource_types)
