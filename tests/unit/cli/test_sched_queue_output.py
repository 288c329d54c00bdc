"""The live queue in the terminal: what the server answers, printed."""

import pytest
from clusters.queued import QueuedCluster, queued_cluster
from fastapi.testclient import TestClient

from clusterscape.cli.sched_queue import _read_counts
from clusterscape.cli.sched_queue_output import print_queue, print_story, print_what_if
from clusterscape.errors import QueryError
from clusterscape.serve.app import create_app

__all__ = ["queued_cluster"]


def test_queue_story_and_differences_are_printed_when_the_server_answers(
    queued_cluster: QueuedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    queued_cluster.wait("slurm:10", 8, since_h=3)
    queued_cluster.queries.promises.look()
    queued_cluster.wait("slurm:11", 8, priority=900)
    queued_cluster.queries.promises.look()
    client = TestClient(create_app(queued_cluster.queries))
    print_queue(client.get("/api/v1/scheduling/queue").json())
    print_story(client.get("/api/v1/scheduling/queue/slurm:10").json())
    print_what_if(client.post("/api/v1/scheduling/whatif", json={"policy": "sjf", "futures": 2}).json())
    told = capsys.readouterr().out
    assert "2 wait for 16 GPUs" in told
    assert "priority 900 vs 100" in told
    assert "A workload came that goes first (slurm:11)" in told
    assert "With policy sjf" in told


def test_nothing_waits_is_printed_when_the_queue_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    print_queue({"workloads": [], "reservations": [], "awaited": []})
    assert "Nothing waits" in capsys.readouterr().out


def test_the_queue_is_not_called_empty_when_the_scheduler_has_not_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_queue({"workloads": [], "reservations": [], "awaited": ["slurm"]})
    printed = capsys.readouterr().out
    assert "Nothing waits" not in printed
    assert "What waits is not known yet: slurm has not answered yet." in printed


def test_pair_is_refused_when_it_has_no_number() -> None:
    assert _read_counts(["main:4"], ":") == {"main": 4}
    with pytest.raises(QueryError, match="not a name and a number"):
        _read_counts(["main"], ":")
