"""The live queue over HTTP, and the commands that ask for it."""

import time

from clusters.queued import QueuedCluster, queued_cluster
from fastapi.testclient import TestClient

from clusterscape.serve.app import create_app

__all__ = ["queued_cluster"]


def test_queue_story_and_what_if_answer_when_something_waits(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8)
    client = TestClient(create_app(queued_cluster.queries))
    assert [row["workload"] for row in client.get("/api/v1/scheduling/queue").json()["workloads"]] == ["slurm:10"]
    story = client.get("/api/v1/scheduling/queue/slurm%3A10").json()
    assert story["row"]["position"] == 1
    answer = client.post("/api/v1/scheduling/whatif", json={"policy": "sjf", "futures": 2}).json()
    assert answer["changes"] == ["policy sjf"]


def test_what_if_is_looked_after_over_http_when_it_takes_a_while(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8)
    client = TestClient(create_app(queued_cluster.queries))
    begun = client.post("/api/v1/scheduling/whatif/runs", json={"policy": "sjf", "futures": 2}).json()
    for _ in range(2_400):
        found = client.get(f"/api/v1/scheduling/whatif/runs/{begun['run']}").json()
        if found["state"] != "running":
            break
        time.sleep(0.05)
    assert (found["state"], found["answer"]["changes"]) == ("done", ["policy sjf"])
    assert client.delete(f"/api/v1/scheduling/whatif/runs/{begun['run']}").json()["state"] == "done"
    assert client.get("/api/v1/scheduling/whatif/runs/nothing").status_code == 404


def test_problem_is_told_when_the_workload_or_the_policy_is_unknown(queued_cluster: QueuedCluster) -> None:
    client = TestClient(create_app(queued_cluster.queries))
    missing = client.get("/api/v1/scheduling/queue/slurm:404")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong = client.post("/api/v1/scheduling/whatif", json={"policy": "chaos"})
    assert wrong.status_code == 422
    assert "size-priority" in wrong.json()["error"]["hint"]
