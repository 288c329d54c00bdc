"""Faults of hardware that no job holds, on a real Slurm with simulated exporters: detected, reported, listed, and ended.

The clock of the site is put forward between looks, so that windows of minutes need none.
"""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from alerting.channels import PaperChannel
from clusters.opened import open_queries
from servers.exporters import NodeExporter, node_exporters
from servers.roots import SUITES
from servers.slurm import SlurmServer, slurm_server

from clusterscape.collect.dcgm import DcgmCollector
from clusterscape.collect.slurm import SlurmCollector
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import UnixMs
from clusterscape.query import QueryContext
from clusterscape.settings import DcgmSettings, RetentionSettings, SlurmSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.watcher import Watch

pytestmark = pytest.mark.server

STEP_MS = 30_000


@dataclass
class Site:
    """Collectors, ingest, rules and alerts over real stores."""

    slurm: SlurmServer
    exporters: list[NodeExporter]
    folder: Path
    ahead_ms: int = 0
    paper: PaperChannel = field(default_factory=PaperChannel)

    def __post_init__(self) -> None:
        storage = StorageSettings(data_dir=self.folder)
        self.metrics, self.records = open_metric_store(storage, RetentionSettings()), open_record_store(storage)
        self.changes = Changes()
        self.alerts = Alerts([self.paper], self.folder / "alerts.db", clock=self.clock)
        self.watch = Watch(
            records=self.records, metrics=self.metrics, changes=self.changes, clock=self.clock, alerts=self.alerts
        )
        self.watch.open()
        self.ingest = Ingest(self.metrics, self.records, self.changes, clock=self.clock, listeners=[self.watch])
        context = QueryContext(
            metrics=self.metrics, records=self.records, changes=self.changes, clock=self.clock, cluster="test"
        )
        self.queries = open_queries(context, self.ingest, watch=self.watch)
        self.collectors = (
            DcgmCollector(
                DcgmSettings(targets=tuple(exporter.address for exporter in self.exporters), jitter_s=0, timeout_s=2),
                self.clock,
            ),
            SlurmCollector(
                SlurmSettings(mode="cli", conf=self.slurm.conf, history_days=0, timeout_s=10, interval_s=15), self.clock
            ),
        )

    def clock(self) -> UnixMs:
        return UnixMs(time.time_ns() // 1_000_000 + self.ahead_ms)

    async def look(self, minutes: float) -> None:
        """Ask all sources every half minute of the site's time, and judge."""
        for _ in range(int(minutes * 2)):
            self.ahead_ms += STEP_MS
            for collector in self.collectors:
                async for observation in collector.poll(self.clock()):
                    self.ingest.accept(observation)
            self.watch.judge()

    async def close(self) -> None:
        for collector in self.collectors:
            await collector.close()
        self.watch.close()
        self.metrics.close()
        self.records.close()

    @property
    def faults(self) -> set[tuple[str, str, str | None]]:
        """Open ones: rule, node or source, GPU."""
        return {
            (violation.rule, violation.workload, violation.unit)
            for violation in self.watch.open_violations
            if violation.workload.startswith(("node:", "source:"))
        }

    async def notifications(self) -> list[tuple[str, str]]:
        await self.alerts.deliver_due()
        self.ahead_ms += 600_000
        await self.alerts.deliver_due()
        return self.paper.delivered()


@pytest.fixture(scope="module", params=[None, *SUITES], ids=lambda version: version or "installed")
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmServer]:
    with (
        slurm_server(version=request.param) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", server.environment["PATH"])
        yield server


@pytest.fixture
async def site(slurm: SlurmServer, tmp_path: Path) -> AsyncIterator[Site]:
    with node_exporters(list(slurm.node_names), gpus=8) as exporters:
        exporters[3].gpus, exporters[3].model = 4, "Tesla V100-SXM2-32GB"
        for exporter in exporters:
            exporter.lines = [f"DCGM_FI_DEV_XID_ERRORS{{{exporter.labels(i)}}} 0" for i in range(exporter.gpus)]
        opened = Site(slurm, exporters, tmp_path)
        yield opened
        await opened.close()


async def test_faults_of_free_gpus_are_reported_and_listed_when_no_job_runs(site: Site) -> None:
    gpu01, gpu02, gpu03, _ = site.exporters
    await site.look(4)
    assert site.faults == set(), "nothing is wrong yet"

    gpu01.lines[3] = f"DCGM_FI_DEV_XID_ERRORS{{{gpu01.labels(3)}}} 79"
    gpu02.gpus, gpu02.lines = 7, gpu02.lines[:7]  # the last one fell off the bus
    gpu03.is_down = True
    await site.look(7)
    assert site.faults == {
        ("gpu-fault", "node:gpu01", "gpu01:3"),
        ("gpu-missing", "node:gpu02", "gpu02:7"),
        ("exporter-silent", "node:gpu03", None),
    }
    counts = site.queries.cluster.summary().units
    assert (counts.faulty, counts.silent, counts.allocated) == (2, 8, 0)
    assert set(await site.notifications()) == {("started", f"node:{node}") for node in ("gpu01", "gpu02", "gpu03")}

    gpu01.lines[3] = f"DCGM_FI_DEV_XID_ERRORS{{{gpu01.labels(3)}}} 0"  # the driver was reloaded
    gpu02.gpus = 8
    gpu03.is_down = False
    await site.look(9)
    assert site.faults == set()
    (fault,) = site.queries.cluster.node("gpu01").faults
    assert (fault.rule_name, fault.unit, fault.readings) == ("Faulty GPU", "gpu01:3", "xid_hardware now 79")
    assert fault.until is not None
    assert fault.since < fault.until < site.clock()


async def test_node_and_scheduler_faults_are_found_when_they_are_down(site: Site) -> None:
    slurm = site.slurm
    await site.look(2)
    slurm.command("scontrol", "update", "nodename=gpu02", "state=down", "reason=power supply")
    slurm.command("scontrol", "update", "nodename=gpu03", "state=drain", "reason=fan")
    try:
        await site.look(3)
        assert site.faults == {("node-down", "node:gpu02", None), ("node-drained", "node:gpu03", None)}
        detail = site.queries.cluster.node("gpu02")
        assert (detail.turns[0].state.value, detail.turns[0].reason) == ("down", "power supply")
        assert detail.faults[0].rule == "node-down"

        slurm.stop("slurmctld")
        await site.look(3)
        away = {("source-away", "source:slurm", None)}
        assert site.faults == away | {("node-down", "node:gpu02", None), ("node-drained", "node:gpu03", None)}
        assert ("started", "source:slurm") in await site.notifications()
    finally:
        if "slurmctld" not in slurm.processes:
            slurm.start_controller()
        for node in ("gpu02", "gpu03"):
            with suppress(RuntimeError):  # one that came back with the controller needs no help
                slurm.command("scontrol", "update", f"nodename={node}", "state=resume")
        slurm.wait_for_nodes()
    await site.look(8)
    assert site.faults == set()
