"""The live queue of a server, printed in the terminal."""

import pytest
from clusters.queued import QueuedCluster, queued_cluster
from fastapi.testclient import TestClient

from clusterscape.cli.sched_queue import _parse_counts, print_explanation, print_queue, print_what_if
from clusterscape.errors import QueryError
from clusterscape.serve.app import create_app

__all__ = ["queued_cluster"]


def test_queue_story_and_differences_are_printed_when_the_server_answers(
    queued_cluster: QueuedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    queued_cluster.wait("slurm:10", 8, since_h=3)
    queued_cluster.services.promises.update()
    queued_cluster.wait("slurm:11", 8, priority=900)
    queued_cluster.services.promises.update()
    client = TestClient(create_app(queued_cluster.queries))
    print_queue(client.get("/api/v1/scheduling/queue").json())
    print_explanation(client.get("/api/v1/scheduling/queue/slurm:10").json())
    print_what_if(client.post("/api/v1/scheduling/whatif", json={"policy": "sjf", "futures": 2}).json())
    output = capsys.readouterr().out
    assert "2 wait for 16 GPUs" in output
    assert "priority 900 vs 100" in output
    assert "A workload was submitted that is ahead of it (slurm:11)" in output
    assert "With policy sjf" in output


def test_empty_queue_is_reported_when_no_job_waits(capsys: pytest.CaptureFixture[str]) -> None:
    print_queue({"workloads": [], "reservations": [], "awaited": []})
    assert "No workloads are waiting" in capsys.readouterr().out


def test_the_queue_is_not_called_empty_when_the_scheduler_has_not_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_queue({"workloads": [], "reservations": [], "awaited": ["slurm"]})
    printed = capsys.readouterr().out
    assert "No workloads are waiting" not in printed
    assert "The queue is not known yet: slurm has not responded yet." in printed


def test_pair_is_refused_when_it_has_no_number() -> None:
    assert _parse_counts(["main:4"], ":") == {"main": 4}
    with pytest.raises(QueryError, match="not a name and a number"):
        _parse_counts(["main"], ":")
