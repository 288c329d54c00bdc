"""Hardware faults in queries: on the node, on its GPUs, in the picture, and in the list of violations."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from clusters.opened import open_queries
from unit.watch.site import WatchedSite

from clusterscape.model import Names, Node, NodeId, NodeState, NodeStateChange, SampleBatch, UnitId, UnixMs
from clusterscape.query import Queries, QueryContext

NODE = NodeId("n1")
HOUR_MS = 3_600_000


@dataclass
class Faulty:
    """A node with eight free GPUs, of which one reports an XID; the node is drained."""

    site: WatchedSite
    queries: Queries

    def tell(self, **values: float) -> None:
        """Samples of now under the node's name or, where the metric is of a GPU, under ``n1:3``."""
        gpu_metrics = {"xid_hardware_code", "gpu_missing"}
        units, metrics = Names([NODE, UnitId("n1:3")]), Names(values)
        self.site.metrics.append(
            SampleBatch(
                units,
                metrics,
                np.array([int(name in gpu_metrics) for name in values], np.int32),
                np.arange(len(values), dtype=np.int32),
                np.full(len(values), self.site.now, np.int64),
                np.array(list(values.values())),
            )
        )
        self.site.watch.judge()


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[Faulty]:
    site = WatchedSite(tmp_path)
    node = Node(id=NODE, state=NodeState.DRAINED, reason="XID 79 on GPU 3", gpu_count=8, partitions=("all",))
    site.records.write_inventory(nodes=[node], partitions=[], units=[], at_ms=site.now)
    context = QueryContext(
        metrics=site.metrics, records=site.records, changes=site.changes, clock=lambda: site.now, cluster="test"
    )
    result = Faulty(site, open_queries(context, watch=site.watch))
    site.now = UnixMs(site.now + 60_000)
    result.tell(xid_hardware_code=79.0, node_drained=1.0)
    yield result
    site.close()


def test_node_lists_its_faults_and_turns_when_it_is_asked_for(faulty: Faulty) -> None:
    detail = faulty.queries.cluster.node("n1")

    listed = [(fault.rule, fault.unit, fault.severity.value, fault.until, fault.readings) for fault in detail.faults]
    assert sorted(listed) == [
        ("gpu-fault", "n1:3", "critical", None, "xid_hardware now 79"),
        ("node-drained", None, "info", None, "node_drained now 1"),
    ]
    assert [(turn.state.value, turn.reason) for turn in detail.turns] == [("drained", "XID 79 on GPU 3")]


def test_ended_fault_comes_after_ongoing_ones_in_node_details(faulty: Faulty) -> None:
    for _ in range(8):
        faulty.site.now = UnixMs(faulty.site.now + 60_000)
        faulty.tell(xid_hardware_code=0.0, node_drained=1.0)

    faults = faulty.queries.cluster.node("n1").faults
    assert [(fault.rule, fault.until is None) for fault in faults] == [("node-drained", True), ("gpu-fault", False)]


def test_gpu_is_faulty_in_picture_and_summary_when_it_breaks_a_rule_on_gpus(faulty: Faulty) -> None:
    _, picture = faulty.queries.cluster.picture()
    health = dict(picture.select("unit", "unit_health").iter_rows())
    assert {unit for unit, state in health.items() if state == "faulty"} == {"n1:3"}
    assert faulty.queries.cluster.summary().units.faulty == 1


def test_gpu_is_not_faulty_when_the_rule_it_breaks_is_only_a_note(faulty: Faulty) -> None:
    rule = faulty.site.watch.book.find("gpu-fault")
    faulty.site.watch.book.save(replace(rule, severity=type(rule.severity).INFO))
    faulty.site.changes.bump_inventory()
    assert faulty.queries.cluster.summary().units.faulty == 0


def test_rules_mark_the_gpu_and_all_gpus_of_the_node_when_units_are_asked_for(faulty: Faulty) -> None:
    marked = {rule.rule: rule.units for rule in faulty.queries.violations.units().rules}
    assert marked["gpu-fault"] == ["n1:3"]
    assert sorted(marked["node-drained"]) == [f"n1:{index}" for index in range(8)]
    assert marked["low-utilization"] == []
    counts = {rule.key: rule.counts for rule in faulty.queries.rules.all().rules}
    assert counts["gpu-fault"] is not None
    assert (counts["gpu-fault"].workloads, counts["gpu-fault"].units) == (1, 1)
    assert counts["node-drained"] is not None
    assert (counts["node-drained"].workloads, counts["node-drained"].units) == (1, 8)


def test_marks_are_those_of_the_past_when_a_past_minute_is_requested(faulty: Faulty) -> None:
    at = int(faulty.site.now)
    faulty.site.now = UnixMs(faulty.site.now + HOUR_MS)
    marked = {rule.rule: rule.units for rule in faulty.queries.violations.units(at + 1).rules}
    assert marked["gpu-fault"] == ["n1:3"]
    assert sorted(marked["node-drained"]) == [f"n1:{index}" for index in range(8)]


def test_hardware_violations_name_the_node_and_have_no_gpu_hours_when_listed(faulty: Faulty) -> None:
    faulty.site.now = UnixMs(faulty.site.now + HOUR_MS)
    listed = faulty.queries.violations.all()
    assert {(violation.rule, violation.node, violation.workload) for violation in listed.violations} == {
        ("gpu-fault", "n1", "node:n1"),
        ("node-drained", "n1", "node:n1"),
    }
    assert listed.gpu_hours == 0
    assert listed.users == []


def test_state_changes_begin_with_the_earlier_state_when_they_reach_back_further(faulty: Faulty) -> None:
    records, now = faulty.site.records, faulty.site.now
    day_ms = 24 * HOUR_MS
    for days, state in ((50, NodeState.IDLE), (40, NodeState.DOWN), (3, NodeState.IDLE)):
        records.write_node_states([NodeStateChange(node=NODE, from_at=UnixMs(now - days * day_ms), state=state)])
    turns = faulty.queries.cluster.node("n1").turns
    assert [turn.state.value for turn in turns] == ["drained", "idle", "down"]
