"""``clusterscape diagnose`` on the demo's long 64-GPU run: the clusters, and what explains them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.demo import running_demo


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("demo"), gpus=512) as url:
        yield url


def ask(*arguments: str) -> Any:
    command = [sys.executable, "-m", "clusterscape.cli", *arguments, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout)


def test_masters_are_a_cluster_of_their_own_when_the_long_run_is_diagnosed(url: str, tmp_path: Path) -> None:
    running = ask("list", "workloads", "--url", url, "--state", "running", "--limit", "1000")["workloads"]
    longest = max(
        (workload for workload in running if workload["name"] == "llm-13b-pretrain"),
        key=lambda workload: workload["run_s"],
    )
    report = tmp_path / "report.html"
    diagnosis = ask("diagnose", longest["workload"], "--url", url, "--html", str(report))
    assert [cluster["size"] for cluster in diagnosis["clusters"]] == [56, 8]
    assert diagnosis["clusters"][1]["explanation"]["sentence"].endswith("they are exactly local rank 0.")
    assert any(finding["kind"] == "imbalance" for finding in diagnosis["findings"])
    assert report.stat().st_size > 10_000
    timelines = ask("diagnose", longest["workload"], "--url", url, "--by", "euclidean")
    assert [cluster["units"] for cluster in timelines["clusters"]] == [
        cluster["units"] for cluster in diagnosis["clusters"]
    ]
