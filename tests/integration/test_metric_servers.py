"""Metrics servers as sites run them: tenants of a cluster and of vmauth, remote write, and servers that are away for a while."""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servers.programs import free_port
from servers.prometheus import prometheus_server
from servers.reliability import note
from servers.tenants import Proxy, cluster_proxy, vmauth_server
from servers.victoria import VictoriaServer, run_victoria
from stores.batches import NOON, batch_of, window

from clusterscape.errors import StoreError
from clusterscape.model import UnitId
from clusterscape.settings import MetricsServerSettings, RemoteWriteSettings, RetentionSettings, StorageSettings
from clusterscape.store.metrics import MetricStore, open_metric_store
from clusterscape.store.metrics.prometheus_api import PrometheusApi
from clusterscape.store.metrics.victoria import open_remote_writer, open_server_store
from clusterscape.watch.exporting import batch_of as batch_of_rows

pytestmark = pytest.mark.server

UNIT = UnitId("n1:0")


@pytest.fixture(scope="module")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaServer]:
    with run_victoria(tmp_path_factory.mktemp("servers") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def proxy(victoria: VictoriaServer) -> Iterator[Proxy]:
    with cluster_proxy(victoria.url) as cluster:
        yield cluster


def values(store: MetricStore, start: int = NOON, end: int = NOON + 3_600_000) -> list[float]:
    samples: list[float] = store.series(["power_watts"], [UNIT], **window(start, end))["value"].to_list()
    return samples


def wait_for(is_so: Callable[[], bool], limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


@pytest.mark.parametrize("writes", ["import", "remote_write"])
def test_tenants_of_a_cluster_see_their_own_samples_when_they_share_its_addresses(
    victoria: VictoriaServer, proxy: Proxy, writes: str
) -> None:
    stores = []
    for number, tenant in enumerate(("7", "7:3")):
        settings = MetricsServerSettings.model_validate(
            {"layout": "cluster", "tenant": tenant, "write_protocol": writes}
        )
        store = open_server_store(proxy.url, settings, cluster=writes)
        store.append(batch_of(("power_watts", UNIT, NOON, float(number))))
        store.append_history([batch_of(("power_watts", UNIT, NOON + 15_000, 10.0 + number))])
        stores.append(store)
    victoria.flush()
    assert [values(store) for store in stores] == [[0.0, 10.0], [1.0, 11.0]]
    assert all(store.info().samples is None for store in stores), "a cluster does not tell of one tenant"
    for store in stores:
        store.close()
    paths = {path.partition("?")[0].rpartition("/")[0] for path, _ in proxy.requests}
    assert {"/insert/7/prometheus/api/v1", "/select/7:3/prometheus/api/v1"} <= paths


def test_headers_and_parameters_go_along_when_they_are_set(proxy: Proxy) -> None:
    settings = MetricsServerSettings(
        layout="cluster",
        token="a token",
        org_id="gpu-team",
        headers={"AccountID": "4"},
        query_parameters={"dedup": "true", "partial_response": "false"},
    )
    store = open_server_store(proxy.url, settings, cluster=None)
    proxy.requests.clear()
    values(store)
    store.append(batch_of(("power_watts", UNIT, NOON, 1.0)))
    store.close()
    assert {path.split("/")[1] for path, _ in proxy.requests} == {"select", "insert"}
    for _, headers in proxy.requests:
        sent = (headers["Authorization"], headers["X-Scope-OrgID"], headers["AccountID"])
        assert sent == ("Bearer a token", "gpu-team", "4")


def test_vmauth_keeps_tenants_apart_when_each_has_its_token(victoria: VictoriaServer, tmp_path: Path) -> None:
    with vmauth_server(tmp_path, victoria.url, {"token-of-a": "a", "token-of-b": "b"}) as url:
        stores = [
            open_server_store(url, MetricsServerSettings(token=f"token-of-{tenant}"), cluster="vmauth")
            for tenant in "ab"
        ]
        for number, store in enumerate(stores):
            store.append(batch_of(("power_watts", UNIT, NOON, float(number))))
        victoria.flush()
        latest = [
            store.latest(["power_watts"], at_ms=window(NOON, 0)["start_ms"], lookback_ms=1000)["power_watts"].to_list()
            for store in stores
        ]
        assert latest == [[0.0], [1.0]]
        stranger = open_server_store(url, MetricsServerSettings(token="nobody's"), cluster="vmauth")
        with pytest.raises(StoreError, match="refuses access"):
            stranger.append(batch_of(("power_watts", UNIT, NOON, 1.0)))
        for store in (*stores, stranger):
            store.close()


def test_samples_wait_on_disk_and_arrive_in_order_when_the_server_was_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    storage = StorageSettings(data_dir=tmp_path / "site", metrics=f"http://127.0.0.1:{port}")
    caplog.set_level(logging.WARNING)
    store = open_metric_store(storage, RetentionSettings(), spools=True)
    for index in range(5):
        store.append(batch_of(("power_watts", UNIT, NOON + index * 15_000, float(index))))
    assert store.info().spooled_samples == 5
    with pytest.raises(StoreError, match="does not answer"):
        values(store)
    store.close()  # a restart loses no queued sample

    store = open_metric_store(storage, RetentionSettings(), spools=True)
    store.append(batch_of(("power_watts", UNIT, NOON + 5 * 15_000, 5.0)))
    assert store.info().spooled_samples == 6
    with run_victoria(tmp_path / "victoria", port=port) as server:
        wait_for(lambda: store.info().spooled_samples == 0)
        store.append(batch_of(("power_watts", UNIT, NOON + 6 * 15_000, 6.0)))
        server.flush()
        wait_for(lambda: len(values(store)) == 7)
        assert values(store) == [float(index) for index in range(7)]
    assert store.info().lost_samples == 0
    store.close()
    messages = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert sum("samples wait on disk" in line for line in messages) == 1, "one clear line, not one for each scrape"
    assert sum("accepts samples again" in line for line in messages) == 1
    note(
        "fault",
        what="the time-series database is away",
        promised="samples wait on disk and arrive in order",
        measured="all arrived, in order",
    )


def test_our_own_metrics_reach_prometheus_by_remote_write_when_it_receives() -> None:
    now = int(time.time() * 1000)
    with prometheus_server([], receives=True) as url:
        settings = RemoteWriteSettings(url=f"{url}/api/v1/write", labels={"site": "north"})
        writer = open_remote_writer(settings, {"cluster": "c1"})
        assert writer is not None
        labels = {"rule": "idle", "severity": "warning"}
        writer.write(batch_of_rows([("violations_open", labels, now, 3.0), ("cluster_units", {}, now, 72.0)]))
        writer.write(batch_of(("power_watts", UNIT, now, 300.0)))
        writer.close()
        api = PrometheusApi(url, timeout_s=10)
        matchers = 'cluster="c1",site="north"'
        for name, label, expected in (
            ("violations_open", "rule", (["idle"], [3.0])),
            ("cluster_units", "site", (["north"], [72.0])),
            ("power_watts", "unit", ([UNIT], [300.0])),
        ):
            names, values = api.query(f"clusterscape_{name}{{{matchers}}}", time_ms=now, label=label)
            assert (names, values.tolist()) == expected
        api.close()


def test_samples_are_counted_as_lost_when_the_server_will_never_take_them(tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    with prometheus_server([]) as plain, prometheus_server([], receives=True) as url:
        deaf = open_server_store(plain, MetricsServerSettings(write_protocol="remote_write"), cluster=None)
        with pytest.raises(StoreError):  # it receives nothing
            deaf.append(batch_of(("power_watts", UNIT, now, 1.0)))
        deaf.close()
        storage = StorageSettings(
            data_dir=tmp_path, metrics=url, metrics_server=MetricsServerSettings(write_protocol="remote_write")
        )
        store = open_metric_store(storage, RetentionSettings(), spools=True)
        store.append(batch_of(("power_watts", UNIT, now, 1.0)))
        store.append(batch_of(("power_watts", UNIT, now, 2.0)))  # another value at the same time
        store.append(batch_of(("power_watts", UNIT, now + 1, 3.0)))
        assert values(store, now, now + 2) == [1.0, 3.0]
        assert (store.info().lost_samples, store.info().spooled_samples) == (1, 0)
        store.close()
