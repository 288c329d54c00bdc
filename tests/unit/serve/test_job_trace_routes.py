"""Job traces over HTTP: listed, uploaded, described side by side, removed."""

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clusters.small import SmallCluster
from fastapi.testclient import TestClient

from clusterscape.collect.job_traces import read_trace
from clusterscape.query import Queries
from clusterscape.serve.app import create_app
from clusterscape.store.artifacts import FolderArtifactStore

SWF = "; MaxProcs: 8\n" + "".join(
    f"{job} {job * 60} 30 {100 + job % 7} {1 + job % 4} -1 -1 -1 600 -1 {job % 2} {job % 5} -1 -1 -1 -1 -1 -1\n"
    for job in range(1, 200)
)
BROKEN = SWF + "200 x 30 100 1 -1 -1 -1 600 -1 1 1 -1 -1 -1 -1 -1 -1\n201 5 30\n"


@pytest.fixture
def client(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[TestClient]:
    context = replace(
        small_cluster.queries.context,
        artifacts=FolderArtifactStore(tmp_path / "artifacts"),
        read_job_trace=lambda path, format, zone: read_trace(path, format, timezone=zone),
    )
    with TestClient(create_app(Queries(context))) as client:
        yield client


def upload(client: TestClient, name: str, body: bytes, **query: str) -> dict[str, object]:
    answer = client.post("/api/v1/job-traces", params={"name": name, **query}, content=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_own_history_is_listed_and_described_when_nothing_was_uploaded(client: TestClient) -> None:
    (own,) = client.get("/api/v1/job-traces").json()["traces"]
    assert (own["trace"], own["name"], own["is_own"]) == ("cluster", "small", True)
    found = client.get("/api/v1/job-traces/cluster/description").json()
    assert found["traces"][0]["jobs"] == 3
    assert found["claims"][0]["verdict"] == "cannot_tell"


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "../../a b/log"])
def test_a_trace_is_kept_and_described_when_it_is_uploaded(client: TestClient, name: str) -> None:
    row = upload(client, name, gzip.compress(SWF.encode()))
    assert (row["name"], row["format"], row["jobs"], row["total_units"]) == ("log", "swf", 199, 8)
    assert [each["trace"] for each in client.get("/api/v1/job-traces").json()["traces"]] == ["cluster", row["trace"]]
    found = client.get(f"/api/v1/job-traces/{row['trace']}/description").json()
    assert found["traces"][0]["occupancy"]["capacity_units"] == 8
    assert client.delete(f"/api/v1/job-traces/{row['trace']}").status_code == 204
    assert len(client.get("/api/v1/job-traces").json()["traces"]) == 1
    assert client.get(f"/api/v1/job-traces/{row['trace']}/description").status_code == 404


def test_lines_and_reasons_are_told_when_rows_are_wrong(client: TestClient) -> None:
    row = upload(client, "broken.swf", BROKEN.encode())
    assert row["dropped"] == 2
    assert row["notes"] == [
        {"action": "dropped", "reason": "fewer than 18 fields", "count": 1, "lines": [202]},
        {"action": "dropped", "reason": "submit_s cannot be read", "count": 1, "lines": [201]},
    ]
    assert client.get("/api/v1/job-traces").json()["traces"][1]["notes"] == row["notes"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is empty"),
        (b"hello, world\n", "no known format"),
        (b"; MaxProcs: 8\n1 2 3\n", "no row is a job"),
        (b"\x1f\x8b broken", "cannot be read"),
    ],
)
def test_nothing_is_kept_when_a_file_is_no_trace(client: TestClient, tmp_path: Path, body: bytes, said: str) -> None:
    answer = client.post("/api/v1/job-traces?name=odd.swf", content=body)
    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"]
    assert str(tmp_path) not in answer.text
    assert not [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    assert len(client.get("/api/v1/job-traces").json()["traces"]) == 1


def test_traces_stand_side_by_side_when_they_are_compared(client: TestClient) -> None:
    one = upload(client, "one.swf", SWF.encode())["trace"]
    two = upload(client, "two.swf", BROKEN.encode(), total_units="8")["trace"]
    found = client.get(f"/api/v1/job-traces/{one}/description?compare={two},cluster,{one}").json()
    assert [each["name"] for each in found["traces"]] == ["one", "two", "small"]
    assert {claim["key"] for claim in found["claims"]} >= {
        "deep_learning_jobs_are_shorter",
        "larger_jobs_fail_more_everywhere",
        "elapsed_time_predicts",
    }
    many = client.get(f"/api/v1/job-traces/{one}/description?compare={two},cluster,a,b")
    assert many.status_code == 404
    zone = client.get(f"/api/v1/job-traces/{one}/description?timezone=Moon/Base")
    assert (zone.status_code, zone.json()["error"]["code"]) == (422, "query")


def test_it_is_refused_when_the_own_history_is_to_be_removed_or_nothing_can_be_kept(
    client: TestClient, small_cluster: SmallCluster
) -> None:
    assert client.delete("/api/v1/job-traces/cluster").status_code == 422
    with TestClient(create_app(small_cluster.queries)) as bare:
        assert bare.post("/api/v1/job-traces?name=a.swf", content=b"x").status_code == 503


def test_traces_are_told_apart_when_they_have_the_same_name(client: TestClient) -> None:
    first, second = (upload(client, "log.swf", SWF.encode() + b"; %d\n" % each)["trace"] for each in range(2))
    found = client.get(f"/api/v1/job-traces/{first}/description", params={"compare": str(second)}).json()
    assert [each["name"] for each in found["traces"]] == ["log", "log (2)"]
