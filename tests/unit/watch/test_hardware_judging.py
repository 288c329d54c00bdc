"""GPUs, nodes and sources are judged regardless of holders: violations begin, end, survive a restart, and are reported."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from alerting.channels import PaperChannel
from unit.watch.site import MINUTE, T0, WatchedSite

from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.model import Names, Node, NodeId, SampleBatch, SourceStatus, Unit, UnixMs, gpu_unit_id
from clusterscape.model.rules import Rule, Severity, Violation
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.alerts.channels.site_info import SiteInfo
from clusterscape.watch.trial import try_rule

N1, N2 = NodeId("n1"), NodeId("n2")
FAULT = "xid_error now >= 46 or ecc_dbe_volatile now > 0 for every GPU"


class Hardware:
    """Two nodes with free GPUs; alerts go to an in-memory channel."""

    def __init__(self, folder: Path) -> None:
        self.paper = PaperChannel()
        self.alerts = Alerts([self.paper], folder / "alerts.db", clock=lambda: self.site.now)
        self.site = WatchedSite(folder, alerts=self.alerts)
        nodes = [Node(id=name, gpu_count=gpus, partitions=("a100",)) for name, gpus in ((N1, 8), (N2, 2))]
        units = [Unit(id=gpu_unit_id(N2, i), node=N2, index=i, machine_type="H100-80G") for i in range(2)]
        self.site.records.write_inventory(nodes=nodes, partitions=[], units=units, at_ms=self.site.now)
        for rule in self.site.watch.book.rules():
            self.site.watch.book.save(replace(rule, is_enabled=False))

    def save(self, text: str, key: str = "mine") -> Rule:
        return self.site.watch.save_rule(parse_rule(text, key=key, name=key, severity=Severity.CRITICAL))

    def tell(self, values: dict[tuple[str, str], float]) -> None:
        """Samples of now, by unit and metric; then all rules are judged."""
        units, metrics = Names(), Names()
        rows = [(units.code(unit), metrics.code(metric), value) for (unit, metric), value in values.items()]
        unit, metric, value = zip(*rows, strict=True)
        self.site.metrics.append(
            SampleBatch(
                units,
                metrics,
                np.array(unit, np.int32),
                np.array(metric, np.int32),
                np.full(len(rows), self.site.now, np.int64),
                np.array(value, np.float64),
            )
        )
        self.site.watch.judge()

    def run(self, minutes: float, values: dict[tuple[str, str], float]) -> None:
        """The same samples every half minute."""
        until = self.site.now + minutes * MINUTE
        while self.site.now < until:
            self.site.now = UnixMs(self.site.now + 30_000)
            self.tell(values)

    @property
    def open(self) -> list[tuple[str, str | None, int]]:
        violations = self.site.records.open_violations()
        return sorted((violation.workload, violation.unit, violation.gpus) for violation in violations)

    async def delivered(self) -> list[tuple[str, str]]:
        await self.alerts.deliver_due()
        self.site.now = UnixMs(self.site.now + 600_000)
        await self.alerts.deliver_due()
        return self.paper.delivered()


@pytest.fixture
def hardware(tmp_path: Path) -> Iterator[Hardware]:
    hardware = Hardware(tmp_path)
    yield hardware
    hardware.site.close()


def minutes(violations: Sequence[Violation]) -> list[tuple[float, float | None]]:
    return [
        ((violation.since - T0) / MINUTE, None if violation.until is None else (violation.until - T0) / MINUTE)
        for violation in violations
    ]


async def test_fault_of_a_gpu_is_stored_and_reported_when_nobody_holds_it(hardware: Hardware) -> None:
    hardware.save(FAULT)
    well = {("n1:3", "xid_error_code"): 0.0, ("n2:1", "ecc_dbe_volatile_count"): 0.0}
    hardware.run(2, well)
    assert hardware.open == []
    hardware.run(2, {**well, ("n1:3", "xid_error_code"): 79.0})
    assert hardware.open == [("node:n1", "n1:3", 1)]
    (violation,) = hardware.site.records.open_violations()
    assert violation.values["xid_error now >= 46"] == 79.0
    assert hardware.site.watch.open_violations == (violation,)
    hardware.run(8, well)
    assert hardware.open == []
    assert minutes(hardware.site.records.violations()) == [(2.5, 4.5)]
    assert await hardware.delivered() == [("started", "node:n1"), ("stopped", "node:n1")]


def test_violation_counts_all_gpus_of_a_node_when_it_is_down(hardware: Hardware) -> None:
    hardware.save("node_down min over last 2m > 0 for every node with 2 samples")
    hardware.run(3, {("n1", "node_down"): 0.0, ("n2", "node_down"): 0.0})
    hardware.run(1, {("n1", "node_down"): 1.0, ("n2", "node_down"): 0.0})
    assert hardware.open == [], "not yet: it was well within the window"
    hardware.run(2, {("n1", "node_down"): 1.0, ("n2", "node_down"): 0.0})
    assert hardware.open == [("node:n1", None, 8)]


def test_source_is_judged_when_most_of_its_parts_fail(hardware: Hardware) -> None:
    status = SourceStatus(source="slurm queue", kind="slurm", is_ok=False, at=hardware.site.now)
    hardware.site.records.write_sources([status])
    hardware.save("source_failing min over last 2m > 50% for every source")
    hardware.run(2, {("source:slurm", "source_failing_ratio"): 0.8})
    assert hardware.open == [("source:slurm", None, 0)]


def test_fault_stays_open_when_its_metric_is_no_longer_reported(hardware: Hardware) -> None:
    hardware.save(FAULT)
    hardware.run(1, {("n1:3", "xid_error_code"): 79.0})
    hardware.run(30, {("n2:0", "xid_error_code"): 0.0})  # the exporter of n1 is silent
    assert hardware.open == [("node:n1", "n1:3", 1)]


def test_fault_is_the_same_when_the_program_starts_again(hardware: Hardware) -> None:
    hardware.save(FAULT)
    hardware.run(1, {("n1:3", "xid_error_code"): 79.0})
    before = hardware.site.records.open_violations()
    hardware.site.open_watch()
    hardware.run(1, {("n1:3", "xid_error_code"): 79.0})
    assert hardware.site.records.open_violations() == before
    assert len(hardware.site.records.violations()) == 1


def test_fault_ends_when_its_gpu_is_taken_out(hardware: Hardware) -> None:
    hardware.save(FAULT)
    hardware.run(1, {("n1:3", "xid_error_code"): 79.0})
    hardware.site.records.remove_units([gpu_unit_id(N1, 3)])
    hardware.run(1, {("n1:2", "xid_error_code"): 0.0})
    assert hardware.open == []


def test_nothing_is_left_when_the_rule_is_removed(hardware: Hardware) -> None:
    hardware.save(FAULT)
    hardware.run(1, {("n1:3", "xid_error_code"): 79.0})
    hardware.site.watch.remove_rule("mine")
    assert (hardware.open, hardware.site.records.violations()) == ([], [])
    assert hardware.site.watch.open_violations == ()


def test_scope_narrows_hardware_when_it_names_machines_or_nodes(hardware: Hardware) -> None:
    hardware.save("xid_error now >= 46 for every GPU for machine type H100*", "by-type")
    hardware.save("xid_error now >= 46 for every GPU for name n1 on any GPU", "by-name")
    hardware.save("xid_error now >= 46 for every GPU for partition other", "elsewhere")
    hardware.run(1, {("n1:3", "xid_error_code"): 79.0, ("n2:1", "xid_error_code"): 48.0})
    violations = {
        (violation.rule, violation.workload, violation.unit) for violation in hardware.site.records.open_violations()
    }
    assert violations == {("by-type", "node:n2", "n2:1"), ("by-name", "node:n1", None)}


def test_window_is_read_from_the_store_when_a_rule_looks_back(hardware: Hardware) -> None:
    hardware.run(20, {("n1:3", "gpu_temperature_celsius"): 95.0, ("n1:4", "gpu_temperature_celsius"): 60.0})
    hardware.save("gpu_temperature p50 over last 15m >= 87C for every GPU with 5 samples")
    hardware.site.watch.judge()
    assert hardware.open == [("node:n1", "n1:3", 1)]


def test_trial_finds_what_judging_found_when_the_past_is_tried(hardware: Hardware) -> None:
    rule = hardware.save(FAULT)
    for code in (0.0, 79.0, 0.0):
        hardware.run(20, {("n1:3", "xid_error_code"): code, ("n1:4", "xid_error_code"): 0.0})
    tried = try_rule(
        rule,
        records=hardware.site.records,
        metrics=hardware.site.metrics,
        start_ms=UnixMs(T0),
        end_ms=hardware.site.now,
        step_ms=30_000,
    )
    assert (tried.lives, tried.judged) == (10, 2)
    assert [(violation.workload, violation.unit) for violation in tried.violations] == [("node:n1", "n1:3")]
    assert minutes(tried.violations) == minutes(hardware.site.records.violations()) == [(20.5, 40.5)]


def test_past_is_judged_again_when_a_rule_on_gpus_is_saved(hardware: Hardware) -> None:
    for code in (79.0, 0.0):
        hardware.run(60, {("n1:3", "xid_error_code"): code})
    hardware.save(FAULT)
    hardware.site.watch.rejudging.rejudge_due()
    (violation,) = hardware.site.records.violations()
    assert (violation.workload, violation.unit) == ("node:n1", "n1:3")
    assert violation.until is not None


def test_message_leads_to_the_node_when_it_is_about_hardware() -> None:
    site = SiteInfo(cluster="test", page_url="https://site.example.org")
    assert site.workload_url("node:n 1") == "https://site.example.org/?select=node:n%201"
    assert site.workload_url("source:slurm") == "https://site.example.org/"
    assert site.workload_url("slurm:7") == "https://site.example.org/?select=workload:slurm:7"
