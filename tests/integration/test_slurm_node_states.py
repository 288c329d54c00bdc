"""States of a real Slurm's nodes, read afterwards: as sinfo reported then, and nothing from before the first poll of Slurm."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from clusters.opened import open_queries
from servers.exporters import NodeExporter, node_exporters
from servers.roots import SUITES
from servers.slurm import SlurmServer, slurm_server

from clusterscape.collect.dcgm import DcgmCollector
from clusterscape.collect.slurm import SlurmCollector
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import NodeState, UnixMs
from clusterscape.query import Queries, QueryContext
from clusterscape.settings import DcgmSettings, RetentionSettings, SlurmSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore

pytestmark = pytest.mark.server

MINUTE_MS = 60_000


@dataclass
class Site:
    """Stores, ingest and queries whose clock is put forward between looks."""

    records: RecordStore
    ingest: Ingest
    queries: Queries
    slurm: SlurmServer
    ahead_ms: int = 0

    def clock(self) -> UnixMs:
        return UnixMs(time.time_ns() // 1_000_000 + self.ahead_ms)

    async def look_at_slurm(self) -> UnixMs:
        """One poll, five minutes after whatever was before; when it was."""
        self.ahead_ms += 5 * MINUTE_MS
        at = self.clock()
        collector = SlurmCollector(SlurmSettings(mode="cli", conf=self.slurm.conf, history_days=0), self.clock)
        async for observation in collector.poll(at):
            self.ingest.accept(observation)
        await collector.close()
        return at

    async def look_at_exporters(self, exporters: list[NodeExporter]) -> UnixMs:
        at = self.clock()
        settings = DcgmSettings(targets=tuple(exporter.address for exporter in exporters), jitter_s=0)
        collector = DcgmCollector(settings, self.clock)
        async for observation in collector.poll(at):
            self.ingest.accept(observation)
        await collector.close()
        return at

    def states_at(self, at: UnixMs) -> dict[str, tuple[str, str | None]]:
        """Of the first whole minute after a look."""
        nodes = self.queries.cluster.nodes(at + MINUTE_MS)
        return {node.node: (node.state.value, node.reason) for node in nodes}


@pytest.fixture(scope="module", params=[None, *SUITES], ids=lambda version: version or "installed")
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmServer]:
    with (
        slurm_server(version=request.param) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", server.environment["PATH"])
        yield server


@pytest.fixture
def site(slurm: SlurmServer, tmp_path: Path) -> Iterator[Site]:
    storage = StorageSettings(data_dir=tmp_path)
    metrics, records, changes = (
        open_metric_store(storage, RetentionSettings()),
        open_record_store(storage),
        Changes(),
    )

    def clock() -> UnixMs:
        return opened.clock()

    ingest = Ingest(metrics, records, changes, clock=clock)
    context = QueryContext(metrics=metrics, records=records, changes=changes, clock=clock, cluster="test")
    opened = Site(records, ingest, open_queries(context, ingest), slurm)
    yield opened
    metrics.close()
    records.close()


async def test_past_states_are_those_that_sinfo_gave_when_nodes_were_drained_and_came_back(site: Site) -> None:
    slurm = site.slurm
    with node_exporters(list(slurm.node_names), gpus=8) as exporters:
        heard_at = await site.look_at_exporters(exporters)
    assert site.records.node_states(at_ms=heard_at) == [], "no state has been reported yet"
    job = slurm.submit("--gpus=3", "-w", "gpu01")
    slurm.wait_for_state(job, "RUNNING")
    try:
        first = await site.look_at_slurm()
        slurm.command("scontrol", "update", "nodename=gpu01,gpu02", "state=drain", "reason=ECC errors on GPU 3")
        drained = await site.look_at_slurm()
        slurm.command("scontrol", "update", "nodename=gpu01,gpu02", "state=resume")
        slurm.wait_for_nodes()
        back = await site.look_at_slurm()
        await site.look_at_slurm()
    finally:
        slurm.cancel_all()

    serving = {"gpu01": ("mixed", None), "gpu02": ("idle", None), "gpu03": ("idle", None), "vgpu1": ("idle", None)}
    assert site.states_at(first) == serving
    why = "ECC errors on GPU 3"
    assert site.states_at(drained) == serving | {"gpu01": ("draining", why), "gpu02": ("drained", why)}
    assert site.states_at(back) == serving
    assert {turn.state for turn in site.records.node_states(at_ms=first)} <= {NodeState.IDLE, NodeState.MIXED}
    assert site.queries.cluster.summary(drained + MINUTE_MS).nodes_unavailable == 2
