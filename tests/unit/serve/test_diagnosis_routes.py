"""The diagnosis over HTTP: JSON and Arrow, headers, errors."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from clusters.run_site import HOUR_MS, JOB, NOW, RunSite
from fastapi.testclient import TestClient

from clusterscape.serve.app import create_app

BASE = f"/api/v1/workloads/{JOB}"


@pytest.fixture
def client(run_site: RunSite, tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "static/assets").mkdir(parents=True)
    (tmp_path / "static/index.html").write_text("<title>ClusterScape</title>")
    run_site.train()
    with TestClient(create_app(run_site.queries, static=tmp_path / "static")) as client:
        yield client


def read_arrow(body: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(body))


def test_everything_answers_when_a_workload_is_diagnosed(client: TestClient) -> None:
    start = NOW - HOUR_MS
    diagnosis = client.get(f"{BASE}/diagnosis", params={"from": start, "by": "euclidean"}).json()
    assert diagnosis["window"] == {"start": start, "end": NOW}
    assert (diagnosis["by"], [cluster["size"] for cluster in diagnosis["clusters"]]) == ("euclidean", [24, 8])
    histograms = client.get(f"{BASE}/histograms", params={"metric": "gpu_util_ratio", "bins": 12})
    table = read_arrow(histograms.content)
    assert table.columns == ["unit", *(f"b{i}" for i in range(12))]
    assert table["b0"].dtype == pl.UInt32
    assert table.height == 32
    assert json.loads(histograms.headers["X-Domain"]) == [0, 1]
    lines = client.get(f"{BASE}/lines", params={"metrics": "gpu_util_ratio,power_watts", "summary": "median"})
    assert read_arrow(lines.content).columns == ["metric", "unit", "time_ms", "value"]
    scatter = client.get(f"{BASE}/scatter", params={"x": "gpu_util_ratio", "y": "power_watts", "units": "n0:0,n0:1"})
    assert set(read_arrow(scatter.content)["unit"].to_list()) == {"n0:0", "n0:1"}
    assert json.loads(scatter.headers["X-Counts"])["points"] == 2 * 480
    first, _ = (int(size) for size in scatter.headers["X-Tables"].split(","))
    covered = json.loads(scatter.headers["X-Density"])
    assert read_arrow(scatter.content[first:])["count"].len() == covered["columns"] ** 2
    assert [event["kind"] for event in client.get(f"{BASE}/events").json()] == ["start"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/workloads/slurm:404/diagnosis", 404),
        ("/api/v1/workloads/slurm:404/events", 404),
        (f"{BASE}/diagnosis?metric=speed", 422),
        (f"{BASE}/diagnosis?by=magic", 422),
        (f"{BASE}/diagnosis?count=2&height=1", 422),
        (f"{BASE}/diagnosis?from=1&to=2", 422),
        (f"{BASE}/histograms", 422),
        (f"{BASE}/lines?metrics=speed", 422),
        (f"{BASE}/scatter?x=gpu_util_ratio&y=power_watts&significance=2", 422),
    ],
)
def test_every_error_has_the_one_shape_when_a_question_is_wrong(client: TestClient, path: str, status: int) -> None:
    response = client.get(path)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message", "hint"}
