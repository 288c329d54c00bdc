"""Time travel and saved views over HTTP."""

import io
from collections.abc import Iterator

import polars as pl
import pytest
from clusters.opened import open_services
from clusters.small import HOUR_MS, NOW, SmallCluster
from fastapi.testclient import TestClient

from clusterscape.model.durations import MINUTE_MS
from clusterscape.serve.app import create_app

SEVEN_HOURS_AGO = NOW - 7 * HOUR_MS
VIEW = {"version": 1, "title": "By project", "layers": [{"by": "project"}]}


@pytest.fixture
def client(small_cluster: SmallCluster) -> Iterator[TestClient]:
    queries = small_cluster.queries
    with TestClient(create_app(queries, services=open_services(queries))) as client:
        yield client


def test_snapshot_tick_and_summary_are_of_one_version_when_asked_for_a_past_minute(client: TestClient) -> None:
    snapshot = client.get(f"/api/v1/snapshot?at={SEVEN_HOURS_AGO}")
    tick = client.get(f"/api/v1/tick?metrics=gpu_util_ratio&at={SEVEN_HOURS_AGO - 1}")
    summary = client.get(f"/api/v1/cluster?at={SEVEN_HOURS_AGO}").json()
    table = pl.read_ipc_stream(io.BytesIO(snapshot.content))
    assert len(table) == len(pl.read_ipc_stream(io.BytesIO(tick.content))) == 6
    assert table.filter(pl.col("workload").is_not_null())["workload"].to_list() == ["slurm:0"]
    version = int(snapshot.headers["x-inventory-version"])
    assert version == int(tick.headers["x-inventory-version"]) == summary["inventory_version"]
    assert version // MINUTE_MS == SEVEN_HOURS_AGO // MINUTE_MS
    assert (tick.headers["x-sampled-at"], summary["is_past"], summary["units"]["allocated"]) == ("", True, 1)


def test_past_answer_stays_when_only_the_present_changes(client: TestClient, small_cluster: SmallCluster) -> None:
    path = f"/api/v1/snapshot?at={SEVEN_HOURS_AGO}"
    cached = {"If-None-Match": client.get(path).headers["etag"]}
    small_cluster.changes.bump_inventory()
    assert client.get(path, headers=cached).status_code == 304
    assert client.get(f"/api/v1/snapshot?at={SEVEN_HOURS_AGO - MINUTE_MS}", headers=cached).status_code == 200
    assert client.get("/api/v1/snapshot", headers=cached).status_code == 200


def test_timeline_is_columns_of_one_length_when_fetched(client: TestClient) -> None:
    answer = client.get(f"/api/v1/timeline?start={NOW - 10 * HOUR_MS}&points=60").json()
    columns = [answer[name] for name in ("time_ms", "allocated_gpus", "waiting_gpus", "gpu_util_ratio")]
    assert {len(column) for column in columns} == {60}
    assert (answer["total_gpus"], max(answer["allocated_gpus"])) == (6, 2)


def test_views_are_kept_listed_and_forgotten_when_put_and_deleted(client: TestClient) -> None:
    saved = client.put("/api/v1/views/by-project", json=VIEW)
    assert (saved.status_code, saved.json()["document"]) == (200, VIEW)
    assert client.put("/api/v1/start-view", json={"name": "by-project"}).json() == {"name": "by-project"}
    listed = client.get("/api/v1/views").json()
    assert (listed["start_view"], [view["name"] for view in listed["views"]]) == ("by-project", ["by-project"])
    assert client.delete("/api/v1/views/by-project").status_code == 204
    assert client.get("/api/v1/views").json() == {"views": [], "start_view": None}
    assert client.put("/api/v1/start-view", json={"name": None}).json() == {"name": None}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", f"/api/v1/snapshot?at={NOW + HOUR_MS}", None, 422, "query"),
        ("GET", "/api/v1/snapshot?at=yesterday", None, 422, "query"),
        ("GET", "/api/v1/cluster?at=-1", None, 422, "query"),
        ("GET", "/api/v1/tick?metrics=nope&at=0", None, 422, "query"),
        ("GET", f"/api/v1/timeline?start={NOW + HOUR_MS}", None, 422, "query"),
        ("GET", "/api/v1/timeline?points=0", None, 422, "query"),
        ("PUT", "/api/v1/views/Not%20a%20name", VIEW, 422, "query"),
        ("PUT", "/api/v1/views/v", {"title": "no version"}, 422, "query"),
        ("PUT", "/api/v1/views/v", {"version": "1", "title": "text"}, 422, "query"),
        ("PUT", "/api/v1/views/v", [1], 422, "query"),
        ("PUT", "/api/v1/views/v", {**VIEW, "more": "x" * 65_536}, 422, "query"),
        ("DELETE", "/api/v1/views/v", None, 404, "not_found"),
        ("PUT", "/api/v1/start-view", {"name": "v"}, 404, "not_found"),
        ("PUT", "/api/v1/start-view", {}, 422, "query"),
    ],
)
def test_errors_have_the_one_shape_when_a_request_is_wrong(
    client: TestClient, method: str, path: str, body: object, status: int, code: str
) -> None:
    response = client.request(method, path, json=body) if body is not None else client.request(method, path)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message", "hint"}
    assert response.json()["error"]["code"] == code
