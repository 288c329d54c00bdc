"""The commands that ask a running server, against the demo."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from servers.demo import running_demo


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("demo"), gpus=64) as url:
        yield url


def ask(*arguments: str) -> str:
    command = [sys.executable, "-m", "clusterscape.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout


def ask_json(*arguments: str) -> Any:
    return json.loads(ask(*arguments, "--json"))


def test_status_says_what_is_held_when_a_server_runs(url: str) -> None:
    summary = ask_json("status", "--url", url)
    assert summary["units"]["total"] == 64
    assert "64 GPUs on" in ask("status", "--url", url)


def test_workloads_are_listed_as_filtered_when_asked(url: str) -> None:
    running = ask_json("list", "workloads", "--url", url, "--state", "running")
    assert running["total"] > 0
    assert {workload["state"] for workload in running["workloads"]} == {"running"}
    user = running["workloads"][0]["user"]
    assert {workload["user"] for workload in ask_json("list", "--url", url, "--user", user)["workloads"]} == {user}
    assert user in ask("list", "--url", url)


def test_nodes_and_sources_are_listed_when_asked(url: str) -> None:
    nodes = ask_json("list", "nodes", "--url", url)
    assert sum(node["gpu_count"] for node in nodes) == 64
    assert nodes[0]["rack"]
    assert nodes[0]["node"] in ask("list", "nodes", "--url", url)
    kinds = {group["kind"] for group in ask_json("list", "sources", "--url", url)["groups"]}
    assert kinds == {"dcgm", "slurm"}
    assert "respond" in ask("list", "sources", "--url", url)


def test_past_is_the_same_cluster_when_the_demo_starts_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("twice")
    ends = []
    for _ in range(2):
        with running_demo(folder, gpus=16) as url:
            page = ask_json("list", "workloads", "--url", url, "--state", "completed", "--limit", "1000")
            ends.append({workload["workload"]: workload["ended_at"] for workload in page["workloads"]})
    assert ends[0]
    assert ends[0].items() <= ends[1].items()
