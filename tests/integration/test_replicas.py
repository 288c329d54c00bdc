"""Several processes over the same PostgreSQL and VictoriaMetrics: one collects, all serve, and a killed one is replaced."""

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.demo import get_json, wait_until
from servers.exporters import node_exporters
from servers.postgres import PostgresServer, postgres_server
from servers.reliability import note
from servers.serving import Served, serving
from servers.victoria import VictoriaServer, run_victoria

from clusterscape.collect.dcgm import DcgmCollector
from clusterscape.collect.schedule import poll_once
from clusterscape.collect.targets import Shard
from clusterscape.errors import ConfigError
from clusterscape.model import Observation, ScrapeObserved, UnitId, UnixMs
from clusterscape.settings import DcgmSettings, RetentionSettings, Settings, StorageSettings
from clusterscape.store.metrics import EmbeddedMetricStore, VictoriaMetricStore
from clusterscape.store.records.advisory_locks import KIND
from clusterscape.store.records.engines import record_engine

pytestmark = pytest.mark.server

LIMIT_S = 120.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaServer]:
    with run_victoria(tmp_path_factory.mktemp("replicas") / "victoria") as server:
        yield server


class LiveStream(threading.Thread):
    """The server-sent events of one server, as a browser receives them."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._response = urllib.request.urlopen(f"{url}/api/v1/live", timeout=LIMIT_S)
        self.last: dict[str, Any] = {}
        self.start()

    def run(self) -> None:
        try:
            for line in self._response:
                if line.startswith(b"data: "):
                    self.last = json.loads(line[6:])
        except (OSError, ValueError):
            pass

    @property
    def newest_sample_at(self) -> int:
        return int(self.last.get("newest_sample_at") or 0)


def held_by(records: str) -> str | None:
    """The number of the last process that began to collect."""
    engine = record_engine(StorageSettings(records=records))
    with engine.connect() as connection:
        body = connection.exec_driver_sql(f"SELECT body FROM documents WHERE kind = '{KIND}'").scalar()
    engine.dispose()
    return body


def collecting(served: Served) -> bool:
    return served.own_metric("clusterscape_collecting") == 1


def order_rules(url: str, keys: list[str]) -> None:
    """As a person would on a page."""
    request = urllib.request.Request(
        f"{url}/api/v1/rule-order",
        data=json.dumps({"keys": keys}).encode(),
        method="PUT",
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=30).close()


def rule_keys(served: Served) -> list[str]:
    return [rule["key"] for rule in get_json(f"{served.url}/api/v1/rules")["rules"]]


def test_another_takes_over_and_every_page_goes_on_when_the_collector_is_killed(
    postgres: PostgresServer, victoria: VictoriaServer, tmp_path: Path
) -> None:
    records = postgres.new_database()
    with node_exporters(3) as exporters:
        targets = ", ".join(f'"{exporter.target}"' for exporter in exporters)
        config = f"""
cluster = "replicas"
[storage]
metrics = "{victoria.url}"
records = "{records}"
[collect.dcgm]
targets = [{targets}]
interval_s = 0.5
jitter_s = 0
"""
        with (
            serving(tmp_path / "a", config, "--role", "collector") as first,
            serving(tmp_path / "web", config, "--role", "web") as web,
        ):
            wait_until(lambda: collecting(first), LIMIT_S)
            stream = LiveStream(web.url)
            wait_until(lambda: get_json(f"{web.url}/api/v1/cluster")["units"]["total"] == 6, LIMIT_S)
            wait_until(lambda: stream.newest_sample_at > 0, LIMIT_S)
            with serving(tmp_path / "b", config, "--role", "all") as second:
                wait_until(lambda: "is on standby" in second.log.read_text(), LIMIT_S)
                assert (collecting(first), collecting(second), collecting(web)) == (True, False, False)
                assert second.own_metric("clusterscape_samples_total") == 0
                assert held_by(records) == "1"
                turned = rule_keys(second)[::-1]
                order_rules(web.url, turned)
                wait_until(lambda: rule_keys(second) == turned, LIMIT_S)
                stored = first.own_metric("clusterscape_samples_total")
                first.kill()
                killed_at = int(time.time() * 1000)

                wait_until(lambda: collecting(second), LIMIT_S)
                assert held_by(records) == "2"
                wait_until(lambda: second.own_metric("clusterscape_samples_total") > 0, LIMIT_S)
                wait_until(lambda: stream.newest_sample_at > killed_at, LIMIT_S)
                for page in (web, second):
                    assert get_json(f"{page.url}/api/v1/cluster")["units"]["total"] == 6
                assert get_json(f"{web.url}/healthz")["status"] == "ok"
                wait_until(lambda: get_json(f"{web.url}/api/v1/rules")["judged_at"] is not None, LIMIT_S)

                postgres.stop()
                postgres.start()
                restarted_at = int(time.time() * 1000)
                wait_until(lambda: collecting(second), LIMIT_S)
                wait_until(lambda: stream.newest_sample_at > restarted_at, LIMIT_S)
        victoria.flush()
        metrics = VictoriaMetricStore(victoria.url, cluster="replicas")
        samples = metrics.read_all(["gpu_util_ratio"], start_ms=UnixMs(0), end_ms=UnixMs(killed_at))
        metrics.close()
        assert samples.height >= stored, "nothing that was stored is lost"
    note(
        "fault",
        what="two servers over one PostgreSQL; kill −9 of the collecting one",
        promised="one collects at any time, the other takes over, pages go on",
        measured="taken over, nothing doubled",
    )


async def test_three_collectors_scrape_each_exporter_once_when_they_share_them() -> None:
    with node_exporters(7, gpus=1) as exporters:
        settings = DcgmSettings(targets=tuple(exporter.target for exporter in exporters), jitter_s=0)
        scraped_nodes: list[list[str]] = []
        for number in (1, 2, 3):
            collector = DcgmCollector(settings, lambda: UnixMs(0), owns=Shard(number, 3).owns)
            scraped: list[str] = []

            async def keep(observation: Observation, scraped: list[str] = scraped) -> None:
                assert isinstance(observation, ScrapeObserved)
                scraped.extend(scrape.node or "" for scrape in observation.scrapes)

            await poll_once(collector, keep, lambda: UnixMs(0))
            await collector.close()
            scraped_nodes.append(scraped)
        assert sorted(node for nodes in scraped_nodes for node in nodes) == sorted(
            exporter.node for exporter in exporters
        )
        assert [exporter.scrapes for exporter in exporters] == [1] * 7


def test_roles_are_refused_when_the_stores_cannot_be_shared() -> None:
    from clusterscape.runtime.replicas import check_roles

    check_roles(Settings())
    for wrong in ({"server": {"role": "web"}}, {"collect": {"shard": "1/3"}}):
        with pytest.raises(ConfigError, match="several processes can share"):
            check_roles(Settings.model_validate(wrong))
    shared = {"metrics": "http://127.0.0.1:8428", "records": "postgresql://127.0.0.1/db"}
    check_roles(Settings.model_validate({"server": {"role": "web"}, "storage": shared}))


def test_every_stored_scrape_is_there_when_the_server_is_stopped_in_the_middle_of_one(tmp_path: Path) -> None:
    with node_exporters(2) as exporters:
        quick, slow = exporters
        config = f"""
[collect.dcgm]
targets = ["{quick.target}", "{slow.target}"]
interval_s = 0.3
jitter_s = 0
timeout_s = 60
"""
        with serving(tmp_path, config) as served:
            wait_until(lambda: served.own_metric("clusterscape_samples_total") >= 8, LIMIT_S)
            slow.pause_s = 20.0
            slow.is_asked.clear()
            assert slow.is_asked.wait(60)  # a scrape is under way, and will be for long
            stored = served.own_metric("clusterscape_samples_total")
        log = (tmp_path / "serve.log").read_text()
        assert "Traceback" not in log, log
        slow.pause_s = 0.0
        store = EmbeddedMetricStore(tmp_path / "data/metrics", RetentionSettings())
        units = [UnitId(f"{node}:{gpu}") for node in ("gpu-1", "gpu-2") for gpu in (0, 1)]
        rows = store.series(["gpu_util_ratio"], units, start_ms=UnixMs(0), end_ms=UnixMs(2**50))
        store.close()
        assert rows.height >= stored
    note(
        "fault",
        what="SIGTERM in the middle of a scrape",
        promised="every stored scrape is there",
        measured="all there",
    )
