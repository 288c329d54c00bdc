"""``clusterscape sched predict`` and ``sched wait``: output and errors."""

import json
from pathlib import Path

import numpy as np
import pytest
from unit.cli.test_commands import run

from clusterscape.cli.sched_predict import describe_start

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 jobs of four users on 8 processors, who request ten times the time they use."""
    random = np.random.default_rng(2)
    lines = ["; MaxProcs: 8"]
    submit = np.sort(random.integers(0, 600 * 420, 600))
    for job in range(600):
        user = int(random.integers(1, 5))
        run_s = int(300 * user * random.lognormal(0, 0.2)) + 1
        size = int(random.integers(1, 8))
        lines.append(f"{job + 1} {submit[job]} -1 {run_s} {size} -1 -1 {size} {run_s * 10} -1 1 {user} 1 1 1 1 -1 -1")
    path = tmp_path_factory.mktemp("trace") / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_predictors_are_compared_when_a_trace_is_given(trace: Path) -> None:
    report = json.loads(run("sched", "predict", str(trace), "--json").stdout)
    assert (report["tested"], len(report["tables"])) == (180, 2)
    rows = {row["name"]: row["accuracy"]["value"] for row in report["tables"][0]["rows"]}
    assert rows["elapsed-aware"] > 0.7 > 0.2 > rows["user request"]


def test_forecasts_are_tested_when_a_trace_is_given(trace: Path, tmp_path: Path) -> None:
    kept = tmp_path / "waits.npz"
    report = json.loads(run("sched", "wait", str(trace), "--sample", "80", "--resume", str(kept), "--json").stdout)
    assert report["error_s"] < report["plan_error_s"]
    assert kept.exists()
    text = run("sched", "wait", str(trace), "--sample", "80", "--resume", str(kept)).stdout
    assert "of the plan from user limits" in text


def test_question_is_refused_when_it_names_neither_trace_nor_server(trace: Path) -> None:
    refused = run("sched", "wait")
    assert refused.returncode != 0
    refused = run("sched", "wait", str(trace), "--recorded")
    assert refused.returncode != 0


def test_start_is_explained_when_a_server_answered() -> None:
    now = 1_790_000_000_000
    start = {
        "partition": "gpu",
        "machine_type": "A100",
        "gpus": 8,
        "hours": 4.0,
        "ahead": 2,
        "is_at_once": False,
        "intervals": [
            {"level": 0.8, "from_at": now, "to_at": now + HOUR_MS},
            {"level": 0.9, "from_at": now, "to_at": now + 72 * HOUR_MS},
        ],
    }
    words = describe_start(start, now)
    assert words.startswith("8 × A100 for 4 h in gpu: likely starts ")
    assert words.endswith("), 2 ahead")
    assert describe_start(start | {"is_at_once": True}, now) == "8 × A100 for 4 h in gpu: starts at once"
