"""Three real servers share the exporters of one site by node: each is scraped by one, and by no other when that one dies."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from servers.demo import get_json, wait_until
from servers.exporters import NodeExporter, node_exporters
from servers.postgres import PostgresServer, postgres_server
from servers.reliability import note
from servers.serving import Served, serving
from servers.victoria import VictoriaServer, run_victoria
from typer.testing import CliRunner

from clusterscape.cli.entry import app
from clusterscape.collect.targets import Shard
from clusterscape.errors import StoreBusyError
from clusterscape.model import UnixMs
from clusterscape.settings import StorageSettings
from clusterscape.store.metrics import VictoriaMetricStore
from clusterscape.store.records import open_record_store

pytestmark = pytest.mark.server

CLUSTER = "shards"
SHARDS = 3
NODES = 9
MIB = 2**20


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaServer]:
    with run_victoria(tmp_path_factory.mktemp("shards") / "victoria") as server:
        yield server


def owned(number: int, exporters: list[NodeExporter]) -> list[NodeExporter]:
    shard = [exporter for exporter in exporters if Shard(number, SHARDS).owns_name(exporter.node)]
    assert shard, "the hash gives every shard a node here"
    return shard


def wait_for_scrapes(exporters: list[NodeExporter], more: int = 4) -> None:
    before = [exporter.scrapes for exporter in exporters]
    wait_until(lambda: all(exporter.scrapes >= was + more for exporter, was in zip(exporters, before, strict=True)))


def stored_numbers(victoria: VictoriaServer) -> dict[str, list[int]]:
    """Stored counts of the exporters, by node."""
    victoria.flush()
    store = VictoriaMetricStore(victoria.url, cluster=CLUSTER)
    rows = store.read_all(["memory_used_bytes"], start_ms=UnixMs(0), end_ms=UnixMs(2**45)).sort("time_ms")
    store.close()
    numbers: dict[str, list[int]] = {}
    for unit, value in rows.select("unit", "value").iter_rows():
        numbers.setdefault(unit.partition(":")[0], []).append(round(value / MIB))
    return numbers


def migrate(environ: dict[str, str], target: Path) -> dict[str, object]:
    words = ["migrate", "--to", str(target), "--json"]
    answer = CliRunner().invoke(app, words, env=environ, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return dict(json.loads(answer.stdout)["parts"])


def test_each_node_is_scraped_by_its_shard_alone_when_one_is_killed_and_replaced(
    postgres: PostgresServer, victoria: VictoriaServer, tmp_path: Path
) -> None:
    records = postgres.new_database()
    with node_exporters(NODES, gpus=1, counts=True) as exporters, ExitStack() as running:
        targets = [exporter.target for exporter in exporters]

        def start(number: int, name: str) -> Served:
            config = (
                f'cluster = "{CLUSTER}"\n[storage]\nmetrics = "{victoria.url}"\nrecords = "{records}"\n'
                f'[collect]\nshard = "{number}/{SHARDS}"\n'
                f"[collect.dcgm]\ntargets = {targets}\ninterval_s = 0.5\njitter_s = 0\ntimeout_s = 60\n"
            )
            role = "all" if number == 1 else "collector"
            return running.enter_context(serving(tmp_path / name, config, "--role", role))

        first, second, third = (start(number, f"shard-{number}") for number in (1, 2, 3))
        for served in (first, second, third):
            wait_until(lambda served=served: served.own_metric("clusterscape_collecting") == 1)  # type: ignore[misc]
        wait_until(lambda: get_json(f"{first.url}/api/v1/cluster")["units"]["total"] == NODES)
        wait_for_scrapes(exporters)

        environ = {
            "CLUSTERSCAPE_CLUSTER": CLUSTER,
            "CLUSTERSCAPE_STORAGE__DATA_DIR": str(tmp_path / "moving"),
            "CLUSTERSCAPE_STORAGE__METRICS": victoria.url,
            "CLUSTERSCAPE_STORAGE__RECORDS": records,
            "CLUSTERSCAPE_RETENTION__COARSE_DAYS": "2",
        }
        with pytest.raises(StoreBusyError, match="a server collects"):
            migrate(environ, tmp_path / "too-early")

        orphans = owned(2, exporters)
        others = [exporter for exporter in exporters if exporter not in orphans]
        second.kill()
        wait_for_scrapes(others, 1)  # one that was under way when it was killed is over by now
        left = {exporter.node: exporter.scrapes for exporter in orphans}
        wait_for_scrapes(others, 6)
        assert {exporter.node: exporter.scrapes for exporter in orphans} == left, (
            "another shard's nodes are nobody else's"
        )
        start(2, "shard-2-again")
        wait_for_scrapes(exporters)
        assert get_json(f"{first.url}/api/v1/cluster")["units"]["total"] == NODES
        running.close()

        stored = stored_numbers(victoria)
        for exporter in exporters:
            numbers = stored[exporter.node]
            assert len(set(numbers)) == len(numbers), f"{exporter.node} was stored twice"
            # A kill may cost the scrape that was under way, an end that of the last moment.
            assert len(numbers) >= exporter.scrapes - (2 if exporter in orphans else 1)

        moved = migrate(environ, tmp_path / "moved")
        assert {"metrics", "records"} <= moved.keys()
        kept = open_record_store(StorageSettings(data_dir=tmp_path / "moved"))
        assert len(list(kept.units())) == NODES
        kept.close()
    note(
        "fault",
        what="kill −9 of one of three collectors that share the exporters; started again",
        promised="each node is scraped by its shard alone, nothing is doubled; `migrate` waits until all have stopped",
        measured=f"{len(orphans)} of {NODES} nodes rested meanwhile, the others went on; every scrape stored once",
    )
