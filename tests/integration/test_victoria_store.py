"""Faults specific to the VictoriaMetrics store: servers that are down, refuse, or are Prometheus instead."""

import time
from pathlib import Path

import pytest
from servers.programs import free_port
from servers.prometheus import exporter, prometheus_server
from servers.victoria import run_victoria
from stores.batches import NOON, batch_of, window

from clusterscape.errors import StoreError
from clusterscape.model import UnitId, UnixMs
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics import SeriesStatistic, VictoriaMetricStore, open_metric_store

pytestmark = pytest.mark.server


def test_error_says_what_to_do_when_server_is_away() -> None:
    store = VictoriaMetricStore(f"http://user:secret@127.0.0.1:{free_port()}", timeout_s=2)
    with pytest.raises(StoreError, match="does not answer") as caught:
        store.append(batch_of(("power_watts", "n1:0", NOON, 1.0)))
    assert caught.value.hint
    assert "secret" not in caught.value.message
    with pytest.raises(StoreError, match="does not answer"):
        store.latest(["power_watts"], at_ms=UnixMs(NOON), lookback_ms=1)
    info = store.info()
    assert (info.samples, info.bytes_on_disk) == (None, None)
    store.close()


def test_store_goes_on_when_server_was_restarted(tmp_path: Path) -> None:
    port = free_port()
    store = VictoriaMetricStore(f"http://127.0.0.1:{port}")
    for index in range(2):
        with run_victoria(tmp_path / "data", port=port) as server:
            server.flush()
            store.append(batch_of(("power_watts", "n1:0", NOON + index, float(index))))
            server.flush()
            rows = store.series(["power_watts"], [UnitId("n1:0")], **window(NOON, NOON + 10))
            assert rows["value"].to_list() == [float(i) for i in range(index + 1)]
    store.close()


def test_user_is_sent_when_the_address_names_one(tmp_path: Path) -> None:
    options = ("-httpAuth.username=cluster scape", "-httpAuth.password=p@ss")
    with run_victoria(tmp_path / "data", *options) as server:
        address = server.url.removeprefix("http://")
        settings = StorageSettings(data_dir=tmp_path, metrics=f"http://cluster%20scape:p%40ss@{address}/")
        store = open_metric_store(settings, RetentionSettings())
        store.append(batch_of(("power_watts", "n1:0", NOON, 1.0)))
        store.close()
        stranger = VictoriaMetricStore(server.url)
        with pytest.raises(StoreError, match="refuses access"):
            stranger.append(batch_of(("power_watts", "n1:0", NOON, 1.0)))
        stranger.close()


def test_error_names_the_answer_when_server_is_something_else() -> None:
    with exporter("hello") as other:
        store = VictoriaMetricStore(f"http://{other.target}")
        with pytest.raises(StoreError):
            store.latest(["power_watts"], at_ms=UnixMs(NOON), lookback_ms=1)
        store.close()


def test_series_are_read_when_server_is_prometheus() -> None:
    text = 'clusterscape_power_watts{unit="n1:0"} 300\nclusterscape_power_watts{unit="n1:1"} 200\n'
    with exporter(text) as source, prometheus_server([source.target]) as url:
        store = VictoriaMetricStore(url)
        units = [UnitId("n1:0"), UnitId("n1:1")]
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            now = int(time.time() * 1000)
            if store.latest(["power_watts"], at_ms=UnixMs(now), lookback_ms=60_000).height == 2:
                break
            time.sleep(0.1)
        last_minute = window(now - 60_000, now + 1)
        rows = store.series(["power_watts"], units, **last_minute)
        assert set(rows.select("unit", "value").rows()) == {("n1:0", 300.0), ("n1:1", 200.0)}
        assert rows["time_ms"].is_between(now - 60_000, now).all()
        steps = store.series(["power_watts"], units, step_ms=10_000, **last_minute)
        assert set(steps.select("unit", "value", "min", "max").rows()) == {
            ("n1:0", 300.0, 300.0, 300.0),
            ("n1:1", 200.0, 200.0, 200.0),
        }
        statistics = [SeriesStatistic.P50, SeriesStatistic.MAX, SeriesStatistic.INCREASE]
        table = store.statistics("power_watts", statistics, **last_minute).sort("unit")
        assert table.rows() == [("n1:0", 300.0, 300.0, 0.0), ("n1:1", 200.0, 200.0, 0.0)]
        with pytest.raises(StoreError, match="import"):
            store.append(batch_of(("power_watts", "n1:0", NOON, 1.0)))
        store.close()
