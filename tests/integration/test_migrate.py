"""A whole site moves from embedded stores to real servers and back, and goes on where it was when it is killed on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from contract.record_samples import T0, job
from servers.demo import wait_until
from servers.postgres import PostgresServer, postgres_server
from servers.reliability import note
from servers.seaweed import SeaweedServer, seaweed_server
from servers.tenants import Proxy, cluster_proxy
from servers.victoria import VictoriaServer, run_victoria
from stores.batches import batch_of
from typer.testing import CliRunner

from clusterscape.cli.entry import app
from clusterscape.errors import ConfigError, StoreBusyError, StoreError
from clusterscape.model import UnixMs
from clusterscape.settings import MetricsServerSettings, RetentionSettings, StorageSettings
from clusterscape.store import moving
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.metrics import EmbeddedMetricStore, VictoriaMetricStore
from clusterscape.store.metrics.victoria import open_server_store
from clusterscape.store.moving import find_difference, summarize_samples
from clusterscape.store.records import WorkloadFilter, open_record_store
from clusterscape.store.records.advisory_locks import Fence, Leadership
from clusterscape.store.records.engines import record_engine

pytestmark = pytest.mark.server

DAY = 86_400_000
DAYS = 8
SCRAPES = 20
METRICS = ("gpu_util_ratio", "power_watts", "energy_joules")
UNITS = ("n1:0", "n1:1", "n2:0")
LARGE = bytes(range(256)) * 40_000  # more than one part


@pytest.fixture(scope="module")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaServer]:
    folder = tmp_path_factory.mktemp("migrate") / "victoria"
    with run_victoria(folder, "-dedup.minScrapeInterval=0s") as server:  # samples sent twice would be visible
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def seaweed() -> Iterator[SeaweedServer]:
    with seaweed_server() as server:
        yield server


@pytest.fixture
def proxy(victoria: VictoriaServer) -> Iterator[Proxy]:
    with cluster_proxy(victoria.url) as cluster:
        yield cluster


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The data folder of an embedded site with a week of samples, records and artifacts."""
    folder = tmp_path / "site"
    newest = int(time.time() * 1000) // DAY * DAY
    metrics = EmbeddedMetricStore(folder / "metrics", RetentionSettings())
    for day in range(DAYS):
        start = newest - (DAYS - day) * DAY
        written = [
            (metric, unit, start + scrape * 15_000 + place, (0.1 + scrape) * (place + 1) / 3)
            for scrape in range(SCRAPES)
            for place, unit in enumerate(UNITS)
            for metric in METRICS
        ]
        metrics.append_history([batch_of(*written)])
    metrics.append(batch_of(("power_watts", "n1:0", newest + 1, 1.0)))
    metrics.close()
    records = open_record_store(StorageSettings(data_dir=folder))
    records.write_workloads([job(number, name=f"Größe {number}") for number in range(200)], at_ms=T0)
    records.write_document("views", "mine", {"title": "Mine"}, at_ms=T0)
    records.close()
    artifacts = FolderArtifactStore(folder / "artifacts")
    artifacts.put("traces/a/spans.parquet", [LARGE])
    artifacts.put("traces/a/about.json", [b"{}"])
    return folder


def environment(data_dir: Path, tenant: str, seaweed: SeaweedServer) -> dict[str, str]:
    return {
        "CLUSTERSCAPE_STORAGE__DATA_DIR": str(data_dir),
        "CLUSTERSCAPE_RETENTION__COARSE_DAYS": "20",
        "CLUSTERSCAPE_STORAGE__METRICS_SERVER__LAYOUT": "cluster",
        "CLUSTERSCAPE_STORAGE__METRICS_SERVER__TENANT": tenant,
        "CLUSTERSCAPE_STORAGE__S3__ENDPOINT": seaweed.url,
        "CLUSTERSCAPE_STORAGE__S3__ACCESS_KEY": seaweed.access_key,
        "CLUSTERSCAPE_STORAGE__S3__SECRET_KEY": seaweed.secret_key,
    }


def migrate(environ: dict[str, str], *words: str) -> Any:
    answer = CliRunner().invoke(app, ["migrate", *words, "--json"], env=environ, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def all_samples(folder: Path) -> pl.DataFrame:
    store = EmbeddedMetricStore(folder / "metrics", RetentionSettings())
    try:
        rows = store.read_all(METRICS, start_ms=UnixMs(0), end_ms=UnixMs(2**50))
    finally:
        store.close()
    return rows.select("metric", "unit", "time_ms", "value").sort("metric", "unit", "time_ms")


def test_a_site_is_the_same_when_it_went_to_servers_and_came_back(
    site: Path, tmp_path: Path, proxy: Proxy, postgres: PostgresServer, seaweed: SeaweedServer
) -> None:
    environ = environment(site, "1", seaweed)
    places = [proxy.url, postgres.new_database(), "s3://artifacts/there-and-back"]
    to = [word for place in places for word in ("--to", place)]

    planned = migrate(environ, *to, "--dry-run")
    assert planned["moved"] is False
    assert planned["parts"]["records"]["rows"]["workloads"] == 200
    assert planned["parts"]["artifacts"]["bytes"] == len(LARGE) + 2
    assert "clusterscape:" not in json.dumps(planned), "no password is shown"

    before = all_samples(site)
    moved = migrate(environ, *to)["parts"]
    assert moved["metrics"]["samples"] == before.height == DAYS * SCRAPES * len(UNITS) * len(METRICS) + 1
    by_day = moved["metrics"]["by_day_and_metric"]
    assert {row["samples"] for row in by_day if row["metric"] == "gpu_util_ratio"} == {SCRAPES * len(UNITS)}
    assert {row["table"]: row["rows"] for row in moved["records"]["tables"]}["workloads"] == 200
    assert list(site.glob(".migration-*")) == []

    shared = {**environ, "CLUSTERSCAPE_STORAGE__RECORDS": places[1]}  # records that stay where they are are no obstacle
    assert list(migrate(shared, "--to", "s3://artifacts/elsewhere")["parts"]) == ["artifacts"]
    again = migrate(environ, *to)["parts"]  # a second time nothing is doubled, and all is compared again
    assert again["records"]["tables"] == moved["records"]["tables"]

    back = tmp_path / "back"
    returned = migrate(environ, *(word for place in places for word in ("--from", place)), "--to", str(back))["parts"]
    assert returned["records"]["tables"] == moved["records"]["tables"]
    assert [(file["key"], file["sha256"]) for file in returned["artifacts"]["files"]] == [
        (file["key"], file["sha256"]) for file in moved["artifacts"]["files"]
    ]
    after = all_samples(back)
    assert after.drop("value").equals(before.drop("value"))
    assert (after["value"] - before["value"]).abs().max() == pytest.approx(0.0, abs=1e-9)
    here, there = (open_record_store(StorageSettings(data_dir=folder)) for folder in (site, back))
    assert there.workloads(WorkloadFilter(), limit=500) == here.workloads(WorkloadFilter(), limit=500)
    here.close()
    there.close()


@contextmanager
def reading(proxy: Proxy, tenant: str) -> Iterator[VictoriaMetricStore]:
    store = open_server_store(proxy.url, MetricsServerSettings(layout="cluster", tenant=tenant), cluster="cluster")
    try:
        yield store
    finally:
        store.close()


def count_all(proxy: Proxy, tenant: str) -> int:
    """By the server's own count."""
    now = int(time.time() * 1000)
    with reading(proxy, tenant) as store:
        return sum(day.samples for day in store.days(start_ms=UnixMs(now - 20 * DAY), end_ms=UnixMs(now + DAY)))


def count_day(proxy: Proxy, tenant: str, day_ms: int) -> int:
    with reading(proxy, tenant) as store:
        return store.read_all(METRICS, start_ms=UnixMs(day_ms), end_ms=UnixMs(day_ms + DAY)).height


def test_migration_resumes_and_doubles_nothing_when_it_was_killed(
    site: Path, proxy: Proxy, postgres: PostgresServer, seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = environment(site, "2", seaweed)
    monkeypatch.setattr(moving, "VISIBLE_AFTER_S", 0.0)  # this test waits by itself
    to = ["--to", proxy.url, "--to", postgres.new_database(), "--to", "s3://artifacts/killed"]
    proxy.takes = 3
    command = [sys.executable, "-m", "clusterscape.cli", "migrate", *to, "--json"]
    with subprocess.Popen(command, env={**os.environ, **environ}, stdout=subprocess.DEVNULL) as child:
        assert proxy.holding.wait(120), "the fourth day is on its way"
        child.send_signal(signal.SIGKILL)
        child.wait(30)
    assert len(list(site.glob(".migration-*"))) == 1
    proxy.release()  # what was under way arrives all the same; the server shows it when it has forgotten an older answer
    first_ms = min(all_samples(site)["time_ms"].to_list())
    fourth_day = (first_ms // DAY + 3) * DAY
    wait_until(lambda: count_day(proxy, "2", fourth_day) == SCRAPES * len(UNITS) * len(METRICS), 120)

    before = len(proxy.requests)
    moved = migrate(environ, *to)["parts"]
    assert moved["metrics"]["samples"] == DAYS * SCRAPES * len(UNITS) * len(METRICS) + 1
    sent = [path for path, _ in proxy.requests[before:] if path.startswith("/insert")]
    assert len(sent) < DAYS, "what had arrived is not sent again"
    assert count_all(proxy, "2") == moved["metrics"]["samples"], "the server, which keeps doubles, has none"
    assert list(site.glob(".migration-*")) == []
    note(
        "fault",
        what="kill −9 of a move to other stores, on its fourth day",
        promised="run again it goes on; every sample is there once",
        measured=f"{moved['metrics']['samples']:,} samples there once; {len(sent)} of {DAYS} days sent again",
    )


def test_nothing_is_changed_when_the_move_makes_no_sense(
    site: Path, proxy: Proxy, postgres: PostgresServer, seaweed: SeaweedServer
) -> None:
    environ = environment(site, "3", seaweed)
    with pytest.raises(ConfigError, match="the same"):
        migrate(environ, "--to", "embedded")
    with pytest.raises(ConfigError, match="is not a store"):
        migrate(environ, "--to", "ftp://somewhere")
    holder = EmbeddedMetricStore(site / "metrics", RetentionSettings())
    with pytest.raises(StoreBusyError, match="in use"):
        migrate(environ, "--to", proxy.url)
    with pytest.raises(StoreBusyError, match="in use"):  # also where only its records are to be moved
        migrate(environ, "--to", postgres.new_database())
    holder.close()
    collected = postgres.new_database()
    open_record_store(StorageSettings(records=collected)).close()
    engine = record_engine(StorageSettings(records=collected))
    collector = Leadership(engine, "collector 1/1", Fence())
    assert collector.try_acquire()
    with pytest.raises(StoreBusyError, match="a server collects"):
        migrate(environ, "--from", collected, "--to", "sqlite:////nowhere/records.db")
    collector.release()
    engine.dispose()
    filled = postgres.new_database()
    other = open_record_store(StorageSettings(records=filled))
    other.write_workloads([job(7)], at_ms=T0)
    other.close()
    with pytest.raises(StoreError, match="already has other records"):
        migrate(environ, "--to", filled)


def test_a_difference_is_said_in_words_when_samples_did_not_arrive_as_they_were() -> None:
    rows = pl.DataFrame({"metric": ["m", "m"], "unit": ["u", "u"], "time_ms": [1, 2], "value": [1.0, 2.0]})
    assert find_difference(rows, rows.reverse()) is None
    assert "1 of 2 are missing" in str(find_difference(rows, rows.head(1)))
    changed = rows.with_columns(pl.Series("value", [1.0, 2.5]))
    assert "different values" in str(find_difference(rows, changed))
    assert list(summarize_samples(rows)) == list(summarize_samples(rows.reverse()))
    assert list(summarize_samples(rows)) != list(summarize_samples(rows.with_columns(pl.col("time_ms") + 1)))
