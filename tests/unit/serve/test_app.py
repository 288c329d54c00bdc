"""The HTTP API: one error shape, versions, compression, live updates."""

import asyncio
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from clusters.opened import open_services
from clusters.small import NOW, SmallCluster
from fastapi.testclient import TestClient

from clusterscape.errors import ConfigError
from clusterscape.serve.app import create_app
from clusterscape.serve.identity.addresses import is_loopback, refuse_open_address
from clusterscape.serve.live import LiveHub
from clusterscape.settings import AuthSettings, ServerSettings

TOKEN = "0123456789abcdef"


@pytest.fixture
def client(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "static/assets").mkdir(parents=True)
    (tmp_path / "static/index.html").write_text("<title>ClusterScape</title>")
    (tmp_path / "static/assets/app-1.js").write_text("1")
    queries = small_cluster.queries
    app = create_app(queries, services=open_services(queries), static=tmp_path / "static")
    with TestClient(app) as client:
        yield client


def read_arrow(body: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(body))


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/v1/workloads/nope", 404, "not_found"),
        ("/api/v1/nodes/nope", 404, "not_found"),
        ("/api/v1/nothing", 404, "not_found"),
        ("/api/v1/workloads?limit=x", 422, "query"),
        ("/api/v1/workloads?state=asleep", 422, "query"),
        ("/api/v1/tick?metrics=nope", 422, "query"),
        ("/api/v1/series?metric=gpu_util_ratio", 422, "query"),
        ("/api/v1/search", 422, "query"),
    ],
)
def test_every_error_has_the_one_shape_when_a_request_is_wrong(
    client: TestClient, path: str, status: int, code: str
) -> None:
    response = client.get(path)
    assert response.status_code == status
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"code", "message", "hint"}
    assert response.json()["error"]["code"] == code


def test_snapshot_has_the_picture_and_its_version_when_fetched(client: TestClient, small_cluster: SmallCluster) -> None:
    response = client.get("/api/v1/snapshot")
    table = read_arrow(response.content)
    assert len(table) == 9
    assert response.headers["x-inventory-version"] == str(small_cluster.changes.versions.inventory)
    again = client.get("/api/v1/snapshot", headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304
    small_cluster.changes.bump_inventory()
    assert client.get("/api/v1/snapshot", headers={"If-None-Match": response.headers["etag"]}).status_code == 200


def test_tick_carries_its_scales_when_fetched(client: TestClient) -> None:
    response = client.get("/api/v1/tick?metrics=gpu_util_ratio,power_watts")
    assert read_arrow(response.content).columns == ["gpu_util_ratio", "power_watts"]
    assert json.loads(response.headers["x-scales"])["gpu_util_ratio"] == pytest.approx([0.0, 65.534])
    assert response.headers["x-sampled-at"] == str(NOW - 1000)


def test_series_is_arrow_when_fetched(client: TestClient) -> None:
    response = client.get("/api/v1/series?metric=gpu_util_ratio&workload=slurm:1&points=10")
    assert read_arrow(response.content).columns == ["metric", "unit", "time_ms", "value", "min", "max"]


def test_body_is_the_same_table_when_gzip_is_asked(client: TestClient) -> None:
    with client.stream("GET", "/api/v1/snapshot", headers={"Accept-Encoding": "gzip"}) as response:
        raw = b"".join(response.iter_raw())
    assert response.headers["content-encoding"] == "gzip"
    assert len(read_arrow(gzip.decompress(raw))) == 9


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("node7", False)],
)
def test_open_address_is_refused_when_no_token_is_set(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    if loopback:
        refuse_open_address(ServerSettings(host=host))
    else:
        with pytest.raises(ConfigError, match="without authentication"):
            refuse_open_address(ServerSettings(host=host))
    refuse_open_address(ServerSettings(host=host, token=TOKEN))
    refuse_open_address(ServerSettings(host=host), AuthSettings(modes=("local",)))


def test_page_answers_every_path_of_its_own_when_built(client: TestClient) -> None:
    for path in ("/", "/overview", "/overview/deep?x=1"):
        assert "ClusterScape" in client.get(path).text
    assert "immutable" in client.get("/assets/app-1.js").headers["cache-control"]
    assert client.get("/assets/none.js").status_code == 404
    assert "root:" not in client.get("/%2e%2e/%2e%2e/%2e%2e/etc/passwd").text
    assert "ClusterScape" in client.get(f"/{'a' * 5000}").text


def test_missing_client_is_explained_when_it_is_not_built(small_cluster: SmallCluster, tmp_path: Path) -> None:
    with TestClient(create_app(small_cluster.queries, static=tmp_path / "none")) as client:
        assert client.get("/").status_code == 503
        assert "make setup" in client.get("/").text


def test_own_metrics_report_lag_and_query_times_when_scraped(client: TestClient) -> None:
    client.get("/api/v1/cluster")
    text = client.get("/metrics").text
    assert "clusterscape_scrape_lag_seconds 1.0" in text
    assert 'clusterscape_query_seconds_count{route="/api/v1/cluster",status="200"} 1.0' in text


def test_own_metrics_count_a_rule_as_due_when_it_has_yet_to_judge_the_past(client: TestClient) -> None:
    def count_due() -> float:
        lines = client.get("/metrics").text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("clusterscape_rules_due "))

    before = count_due()
    rule = {"text": "gpu_util max > 1%", "name": "Mine", "severity": "info"}
    assert client.put("/api/v1/rules/mine", json=rule).status_code == 200
    assert count_due() == before + 1


async def test_live_stream_sends_every_change_and_ends_when_the_server_stops(small_cluster: SmallCluster) -> None:
    hub = LiveHub(small_cluster.changes, lambda: NOW)
    hub.open()
    events: list[dict[str, int]] = []

    async def listen() -> None:
        async for event in hub.stream():
            events.append(json.loads(event.partition(b"data: ")[2]))  # noqa: PERF401 – read while it grows

    task = asyncio.create_task(listen())
    await asyncio.sleep(0.01)
    await asyncio.to_thread(small_cluster.changes.bump_inventory)
    await asyncio.sleep(0.05)
    assert events[1]["inventory_version"] == events[0]["inventory_version"] + 1
    assert hub.clients == 1
    hub.close()
    await asyncio.wait_for(task, 5)
    assert hub.clients == 0


def test_server_does_not_deadlock_when_a_frame_is_written_and_read_concurrently() -> None:
    """Polars locks a frame while writing it to a Python buffer; a second reader that holds the GIL must not wait for it."""
    script = """
import threading
import polars as pl
from clusterscape.serve.wire import to_ipc
frame = pl.DataFrame({f"c{i}": range(200_000) for i in range(8)})
done = threading.Event()
def look():
    while not done.is_set():
        frame.lazy().select("c0")
reader = threading.Thread(target=look)
reader.start()
for _ in range(20):
    to_ipc(frame)
done.set()
reader.join()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
