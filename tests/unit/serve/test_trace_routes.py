"""Traces over HTTP: upload, import, lists, queries, charts, deletion; every refusal has a message."""

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from clusters.opened import open_queries
from clusters.small import SmallCluster
from fastapi.testclient import TestClient

from clusterscape.ingest.traces import TraceIntake
from clusterscape.model import UnixMs
from clusterscape.query import QueryContext
from clusterscape.runtime.trace_importing import import_files
from clusterscape.serve.app import create_app
from clusterscape.store.artifacts import FolderArtifactStore

RECORDED = Path(__file__).parents[2] / "data/h200/traces"
NOW = UnixMs(1_790_000_000_000)
MOST = 2_000_000


def make_client(cluster: SmallCluster, folder: Path) -> TestClient:
    artifacts = FolderArtifactStore(folder / "artifacts")
    numbers = iter(range(100))
    intake = TraceIntake(
        artifacts,
        import_files,
        clock=lambda: NOW,
        token=lambda: f"{next(numbers):06x}",
        scratch=folder,
        max_upload_bytes=MOST,
    )
    context = QueryContext(
        metrics=cluster.metrics,
        records=cluster.records,
        changes=cluster.changes,
        clock=lambda: cluster.now,
        cluster="small",
        artifacts=artifacts,
    )
    return TestClient(create_app(open_queries(context), trace_writer=intake))


@pytest.fixture
def client(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[TestClient]:
    with make_client(small_cluster, tmp_path) as client:
        yield client


def send(client: TestClient, kind: str, workload: str | None = None) -> str:
    created = client.post("/api/v1/traces", json={"name": kind, "workload_id": workload})
    assert created.status_code == 201, created.text
    trace = str(created.json()["trace_id"])
    for path in sorted(RECORDED.glob(f"{kind}_*")):
        sent = client.put(f"/api/v1/traces/{trace}/files/{path.name}", content=path.read_bytes())
        assert sent.json() == {"path": path.name, "size": path.stat().st_size}
    assert client.post(f"/api/v1/traces/{trace}/import").status_code == 202
    for _ in range(600):
        row = client.get(f"/api/v1/traces/{trace}").json()["row"]
        if row["state"] != "importing":
            break
        time.sleep(0.05)
    assert row["state"] == "ready", row
    return trace


def table(client: TestClient, path: str) -> pl.DataFrame:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return pl.read_ipc_stream(io.BytesIO(answer.content))


def tables(client: TestClient, path: str) -> list[pl.DataFrame]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    frames, at = [], 0
    for length in map(int, answer.headers["x-tables"].split(",")):
        frames.append(pl.read_ipc_stream(io.BytesIO(answer.content[at : at + length])))
        at += length
    assert at == len(answer.content)
    return frames


def test_every_route_answers_when_a_trace_was_uploaded(client: TestClient) -> None:
    trace = send(client, "ddp")
    base = f"/api/v1/traces/{trace}"
    answer: dict[str, Any] = client.get(base).json()
    report = answer["report"]
    assert [row["rank"] for row in answer["ranks"]] == [0, 1, 2, 3]
    assert answer["stages"] == [{"stage": None, "ranks": [0, 1, 2, 3]}]
    assert answer["process_groups"][0]["ranks"] == [0, 1, 2, 3]
    assert [(verdict["kind"], verdict["rank"]) for verdict in report["verdicts"][:2]] == [
        ("slow_worker", 0),
        ("input_stall", 3),
    ]
    assert all(verdict["spans"] for verdict in report["verdicts"])
    assert report["what_if"][0]["speed_up"] > 1
    steps = table(client, f"{base}/steps")
    parts = steps["compute_ns"] + steps["exposed_wait_ns"] + steps["exposed_transfer_ns"] + steps["idle_ns"]
    assert ((parts - steps["duration_ns"]).abs() < 1e3).all()
    _check_pictures(client, base)
    _check_spans(client, base, report["verdicts"][0]["spans"])


def _check_pictures(client: TestClient, base: str) -> None:
    spans, rows, bands = tables(client, f"{base}/marey?pixels=800")
    assert rows["label"].cast(pl.String).to_list() == [f"rank {rank}" for rank in range(4)]
    assert set(bands["kind"].cast(pl.String)) == {"same", "collective"}
    assert spans["row"].max() == 3
    zoomed, _, _ = tables(client, f"{base}/marey?from_ns=1e8&to_ns=1.1e8&pixels=800&classes=compute&merge=none")
    assert (zoomed["end_ns"] >= 1e8).all()
    assert (zoomed["count"] == 1).all()
    _, lanes, _ = tables(client, f"{base}/marey?level=rank&open=r1")
    assert lanes.filter(pl.col("rank") == 1)["depth"].to_list()[:2] == [1, 2]
    operators = table(client, f"{base}/operators?ranks=0")
    assert operators["worst_rank"].unique().to_list() == [0]
    links = table(client, f"{base}/communication")
    assert links["kind"].cast(pl.String).unique().to_list() == ["all_reduce"]
    assert (links["bandwidth_bytes_per_s"] > 0).all()
    curves = table(client, f"{base}/curves?pixels=50")
    assert curves.height == 200
    assert curves.select(pl.col("compute", "communication").is_between(0, 1.0001).all()).row(0) == (True, True)


def _check_spans(client: TestClient, base: str, spans: list[dict[str, Any]]) -> None:
    details = [client.get(f"{base}/spans/{span['span']}").json() for span in spans]
    talk = next(detail for detail in details if detail["collective"] is not None)
    assert [member["rank"] for member in talk["members"]][-1] == 0
    assert [member["is_last"] for member in talk["members"]] == [False, False, False, True]
    last = talk["members"][-1]
    assert all(m["wait_ns"] == pytest.approx(last["arrive_ns"] - m["arrive_ns"]) for m in talk["members"])
    assert {peer["rank"] for peer in talk["peers"]} == {1, 2, 3}
    missing = client.get(f"{base}/spans/123456789")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


def test_requests_are_answered_or_refused_with_a_reason_when_a_trace_has_a_pipeline(client: TestClient) -> None:
    trace = send(client, "pipe")
    base = f"/api/v1/traces/{trace}"
    balanced = client.post(f"{base}/whatif", json={"change": {"kind": "balance"}}).json()
    assert balanced["question"] == "stages balanced"
    assert balanced["speed_up"] > 1
    refused = client.post(f"{base}/whatif", json={"change": {"kind": "straggler", "rank": 1}})
    assert refused.status_code == 422
    assert "no peers" in refused.json()["error"]["message"]
    same = client.get(f"/api/v1/traces/diff?a={trace}&b={trace}").json()
    assert same["sentences"][0].startswith("A step takes as long as before")
    assert not any(change["is_significant"] for change in same["changes"])
    for path, word in (
        ("marey?classes=nonsense", "unknown class nonsense"),
        ("marey?from_ns=5&to_ns=1", "must be after its start"),
        ("operators?ranks=a", "whole numbers"),
        ("operators?ranks=²", "whole numbers"),
        (f"operators?ranks={'9' * 5000}", "whole numbers"),
        (f"highlights?nodes={'9' * 1000}", "whole numbers"),
        ("highlights?nodes=0,²", "whole numbers"),
        ("flow?open=²", "namespace numbers"),
        (f"flow?open=*{'9' * 5000}", "namespace numbers"),
    ):
        answer = client.get(f"{base}/{path}")
        assert answer.status_code == 422
        assert word in answer.json()["error"]["message"]


def test_traces_are_listed_by_workload_when_they_belong_to_one(client: TestClient, small_cluster: SmallCluster) -> None:
    workload = str(small_cluster.queries.workloads.page(limit=1).workloads[0].workload)
    first, second = send(client, "ddp", workload), send(client, "pipe")
    assert {row["trace_id"] for row in client.get("/api/v1/traces").json()["traces"]} == {first, second}
    listed = client.get("/api/v1/traces", params={"workload": workload}).json()["traces"]
    assert [row["trace_id"] for row in listed] == [first]
    unknown = client.post("/api/v1/traces", json={"name": "x", "workload_id": "slurm:nothing"})
    assert unknown.status_code == 404
    assert client.delete(f"/api/v1/traces/{first}").status_code == 204
    assert client.get(f"/api/v1/traces/{first}").status_code == 404
    assert client.get(f"/api/v1/traces/{first}/marey").status_code == 404


def test_upload_is_refused_with_a_reason_when_it_cannot_be_stored(client: TestClient) -> None:
    trace = client.post("/api/v1/traces", json={"name": "x"}).json()["trace_id"]
    base = f"/api/v1/traces/{trace}"
    large = client.put(f"{base}/files/a.json", content=b"1" * (MOST + 1))
    assert large.status_code == 413
    assert "storage.max_upload_bytes" in large.json()["error"]["hint"]
    assert "may have" in large.json()["error"]["message"]
    streamed = client.put(f"{base}/files/a.json", content=iter([b"1" * MOST, b"1"]))
    assert streamed.status_code == 413
    assert client.put(f"{base}/files/..%2f..%2fx", content=b"1").status_code in (404, 405, 422)
    assert client.post(f"{base}/import").json()["error"]["message"] == "no files were uploaded for this trace"
    assert client.get(f"{base}/marey").status_code == 422
    assert client.get(f"{base}").json()["report"] is None
    assert client.put("/api/v1/traces/nowhere/files/a.json", content=b"1").status_code == 404


def test_server_says_so_when_it_keeps_no_traces(small_cluster: SmallCluster) -> None:
    with TestClient(create_app(small_cluster.queries)) as client:
        assert client.get("/api/v1/traces").status_code == 503
        assert client.post("/api/v1/traces", json={"name": "x"}).status_code == 503
