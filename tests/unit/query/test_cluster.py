"""The picture of the cluster and its summary."""

import numpy as np
import pytest
from clusters.small import NOW, SmallCluster, unit
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.cli.listing import filter_units
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import Node, NodeId, SourceStatus, Unit, UnitId, UnitKind, mig_unit_id
from clusterscape.query.answers import UnitCounts
from clusterscape.query.cluster import MISSING, STEPS, quantize
from clusterscape.query.picture import SNAPSHOT_COLUMNS, build_picture, build_places


def rows(cluster: SmallCluster) -> dict[str, dict[str, object]]:
    _, picture = cluster.queries.cluster.picture()
    return {row["unit"]: row for row in picture.to_dicts()}


def test_every_unit_and_every_requested_gpu_is_one_row_when_the_picture_is_built(small_cluster: SmallCluster) -> None:
    rows_by_unit = rows(small_cluster)
    places = [unit(f"n{n}", i) for n in (1, 2, 3) for i in (0, 1)]
    assert list(rows_by_unit) == [*places, "slurm:3#0", "slurm:3#1", "slurm:3#2"]
    _, picture = small_cluster.queries.cluster.picture()
    assert tuple(picture.columns) == (*SNAPSHOT_COLUMNS, "free_use")


def test_states_distinguish_held_drained_silent_and_requested_when_the_picture_is_built(
    small_cluster: SmallCluster,
) -> None:
    states = {name: row["unit_state"] for name, row in rows(small_cluster).items()}
    assert states == {
        "n1:0": "allocated",
        "n1:1": "allocated",
        "n2:0": "unavailable",
        "n2:1": "unavailable",
        "n3:0": "stale",
        "n3:1": "stale",
        "slurm:3#0": "requested",
        "slurm:3#1": "requested",
        "slurm:3#2": "requested",
    }


def test_shared_unit_is_counted_once_with_its_most_certain_holder_when_two_hold_it(small_cluster: SmallCluster) -> None:
    shared = rows(small_cluster)["n1:1"]
    assert (shared["workload"], shared["holders"], shared["allocation_source"]) == ("slurm:1", 2, "scheduler_index")


def test_instances_replace_their_gpu_when_it_is_split() -> None:
    node = NodeId("n1")
    gpu = Unit(id=UnitId("n1:0"), node=node, index=0)
    parts = [
        Unit(id=mig_unit_id(node, 0, i), kind=UnitKind.MIG, node=node, index=0, parent=gpu.id, mig_profile="3g.40gb")
        for i in (1, 2)
    ]
    places = build_places([Node(id=node)], [gpu, *parts], frozenset())
    picture = build_picture(places=places, workloads=[], allocations=[])
    assert picture["unit"].to_list() == ["n1:0/1", "n1:0/2"]


def test_summary_counts_each_unit_once_when_a_node_is_in_two_partitions(small_cluster: SmallCluster) -> None:
    summary = small_cluster.queries.cluster.summary()
    assert summary.units == UnitCounts(total=6, allocated=2, free=0, unavailable=2, stale=2, silent=2, faulty=0)
    assert (summary.running, summary.waiting, summary.waiting_gpus) == (1, 1, 3)
    assert summary.gpu_util_ratio == pytest.approx(0.7)
    assert summary.power_watts == pytest.approx(600)
    assert (summary.nodes, summary.nodes_unavailable, summary.failing_sources) == (3, 1, 1)
    by_name = {part.name: part for part in summary.partitions}
    assert (by_name["main"].units.total, by_name["debug"].units.total) == (6, 2)
    assert (by_name["main"].waiting_gpus, by_name["debug"].waiting_gpus) == (0, 3)


def test_silent_gpus_count_all_when_a_workload_holds_some_of_them(small_cluster: SmallCluster) -> None:
    silent = SourceStatus(source="dcgm n1", kind="dcgm", is_ok=False, at=NOW, node=NodeId("n1"), message="gone")
    small_cluster.records.write_sources([silent])
    small_cluster.changes.bump_inventory()

    counts = small_cluster.queries.cluster.summary().units
    assert (counts.allocated, counts.stale, counts.silent) == (2, 2, 4)
    health = {name: row["unit_health"] for name, row in rows(small_cluster).items()}
    assert [health[name] for name in ("n1:0", "n2:0", "n3:0", "slurm:3#0")] == ["silent", "ok", "silent", None]


def test_node_is_not_stale_when_another_of_its_exporters_answers(small_cluster: SmallCluster) -> None:
    well = SourceStatus(source="dcgm under another address", kind="dcgm", is_ok=True, at=NOW, node=NodeId("n3"))
    small_cluster.records.write_sources([well])
    small_cluster.changes.bump_inventory()

    assert small_cluster.queries.cluster.summary().units.silent == 0
    assert not any(node.is_stale for node in small_cluster.queries.cluster.nodes())


def test_unit_has_one_row_with_all_its_partitions_when_it_is_free(small_cluster: SmallCluster) -> None:
    _, held = small_cluster.queries.cluster.picture()
    shown = {row["unit"]: (row["partition"], row["node_partitions"]) for row in held.iter_rows(named=True)}
    assert shown["n1:0"] == ("main", "main + debug")  # its holder's partition
    assert shown["n3:0"] == ("main", "main")
    assert shown["slurm:3#0"][1] is None
    nodes, units = small_cluster.records.nodes(), small_cluster.records.units()
    free = build_picture(places=build_places(nodes, units, frozenset()), workloads=[], allocations=[])
    assert free["partition"].value_counts().sort("partition").rows() == [("main + debug", 2), ("main", 4)]
    main, debug = small_cluster.queries.cluster.summary().partitions[::-1]
    assert (main.name, main.shared_nodes, main.shared_with) == ("main", 1, ["debug"])
    assert (debug.name, debug.shared_nodes, debug.shared_with) == ("debug", 1, ["main"])
    assert [len(filter_units(held, {"partition": name}, ["allocated"], None)) for name in ("main", "debug")] == [2, 2]


def test_tick_follows_the_pictures_order_when_metrics_are_asked(small_cluster: SmallCluster) -> None:
    tick = small_cluster.queries.cluster.tick(["gpu_util_ratio", "power_watts"])
    low, high = tick.scales["gpu_util_ratio"]
    codes = tick.table["gpu_util_ratio"].to_numpy()
    assert low + codes[0] / STEPS * (high - low) == pytest.approx(0.9, abs=5e-4)
    assert low + codes[1] / STEPS * (high - low) == pytest.approx(0.5, abs=5e-4)
    assert set(codes[2:]) == {MISSING}
    assert tick.sampled_at == NOW - 1000


def test_tick_is_empty_when_samples_are_older_than_now(small_cluster: SmallCluster) -> None:
    small_cluster.now = type(NOW)(NOW + 10 * 60_000)
    tick = small_cluster.queries.cluster.tick(["gpu_util_ratio"])
    assert set(tick.table["gpu_util_ratio"]) == {MISSING}


def test_unknown_metric_is_named_when_a_tick_asks_for_it(small_cluster: SmallCluster) -> None:
    with pytest.raises(QueryError, match="no_such"):
        small_cluster.queries.cluster.tick(["no_such"])


def test_answers_are_made_once_when_nothing_changed(small_cluster: SmallCluster) -> None:
    queries = small_cluster.queries
    first = queries.cluster.picture()
    assert queries.cluster.picture()[1] is first[1]
    small_cluster.changes.bump_inventory()
    assert queries.cluster.picture()[1] is not first[1]


def test_node_lists_its_current_workloads(small_cluster: SmallCluster) -> None:
    detail = small_cluster.queries.cluster.node("n1")
    assert detail.node.gpus_allocated == 2
    assert [w.workload for w in detail.workloads] == ["slurm:1"]
    with pytest.raises(NotFoundError):
        small_cluster.queries.cluster.node("n9")


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e12)), min_size=1, max_size=50))
def test_quantized_values_are_within_half_a_step_when_decoded(values: list[float | None]) -> None:
    array = np.array([np.nan if v is None else v for v in values])
    codes, (low, high) = quantize(array, None)
    decoded = low + codes / STEPS * (high - low)
    for value, code, back in zip(values, codes, decoded, strict=True):
        if value is None:
            assert code == MISSING
        else:
            assert abs(back - value) <= (high - low) / STEPS * 0.5001 + 1e-9 * abs(value)
