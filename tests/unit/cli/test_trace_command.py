"""``clusterscape trace report`` on recorded files, as people and scripts call it."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterscape.cli.entry import app

RECORDED = Path(__file__).parents[2] / "data/h200/traces"
runner = CliRunner()


def test_verdicts_are_in_the_json_when_it_is_requested() -> None:
    files = [str(path) for path in sorted(RECORDED.glob("ddp_*"))]
    done = runner.invoke(app, ["trace", "report", *files, "--json", "--workers", "1"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [(verdict["kind"], verdict["rank"]) for verdict in report["verdicts"][:2]] == [
        ("slow_worker", 0),
        ("input_stall", 3),
    ]
    assert report["alignment"]["error_s"] > 0
    row = report["breakdown"][0]
    assert abs(row["compute_s"] + row["exposed_s"] + row["idle_s"] - row["step_s"]) < 1e-6
    assert set(report["verdicts"][0]) >= {"kind", "rank", "stage", "seconds_per_step", "evidence", "sentence"}


def test_page_holds_the_same_report_when_it_is_written(tmp_path: Path) -> None:
    files = [str(path) for path in sorted(RECORDED.glob("pipe_*"))]
    page = tmp_path / "report.html"
    done = runner.invoke(app, ["trace", "report", *files, "--html", str(page), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "Stage 2 works" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "Stage 2 works" in text
    again = runner.invoke(app, ["trace", "report", *files, "--html", str(page), "--json", "--workers", "1"])
    report = json.loads(again.stdout)
    match = re.search(r'<script type="application/json" id="report">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert match is not None
    answers = json.loads(match[1])["answers"]
    for name in ("verdicts", "breakdown", "bubble", "critical_path", "what_if", "steps", "slack"):
        assert answers["trace"]["report"][name] == report[name]
    assert "instances" not in answers["trace"]["report"]["collectives"]
    typical = sorted(report["steps"], key=lambda step: step["length_s"])[(len(report["steps"]) - 1) // 2]
    assert answers["graph"]["from_ns"] < typical["start_ns"] < typical["end_ns"] < answers["graph"]["to_ns"]


def test_error_is_a_sentence_when_there_is_no_trace(tmp_path: Path) -> None:
    done = runner.invoke(app, ["trace", "report", str(tmp_path)])
    assert done.exit_code == 1
    assert "no traces in" in str(done.exception)


def test_trace_is_kept_listed_compared_and_deleted_when_there_is_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERSCAPE_STORAGE__DATA_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("CLUSTERSCAPE_URL", raising=False)
    file = str(RECORDED / "ddp_rank0.json.gz")
    done = runner.invoke(app, ["trace", "import", file, "--name", "first run", "--workload", "slurm:5", "--json"])
    assert done.exit_code == 0, done.output
    row = json.loads(done.stdout)
    assert (row["name"], row["workload_id"], row["state"], row["ranks"]) == ("first run", "slurm:5", "ready", 1)
    listed = runner.invoke(app, ["trace", "list", "--workload", "slurm:5", "--json"])
    assert [entry["trace_id"] for entry in json.loads(listed.stdout)] == [row["trace_id"]]
    assert "first run" in runner.invoke(app, ["trace", "list"]).stdout
    diff = runner.invoke(app, ["trace", "diff", row["trace_id"], file])
    assert diff.exit_code == 0, diff.output
    assert "takes as long as before" in diff.stdout
    assert runner.invoke(app, ["trace", "delete", row["trace_id"]]).exit_code == 0
    assert json.loads(runner.invoke(app, ["trace", "list", "--json"]).stdout) == []
    missing = runner.invoke(app, ["trace", "diff", "nowhere", file])
    assert "no file, folder or stored trace" in str(missing.exception)


def test_no_verdict_is_given_when_only_an_operator_graph_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERSCAPE_STORAGE__DATA_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("CLUSTERSCAPE_URL", raising=False)
    operator = {"node_id": "1", "name": "Default/MatMul-op1", "scope": "Default", "type": "MatMul"}
    stage = {"rank_ids": ["0", "1"], "op_nodes": [operator]}
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({"metadata": {"parallel_type": "pipeline"}, "graphs": {"0": stage}}))
    page = tmp_path / "report.html"
    reported = runner.invoke(app, ["trace", "report", str(graph), "--html", str(page)])
    assert reported.exit_code == 0, reported.output
    kept = runner.invoke(app, ["trace", "import", str(graph)])
    listed = runner.invoke(app, ["trace", "list"])
    text = page.read_text(encoding="utf-8")
    summary = text[text.index("<noscript>") : text.index("</noscript>")]
    for output in (reported.stdout, kept.stdout, summary):
        assert "Operator graph only: no times recorded." in output
        assert "Nothing significant" not in output
    assert "Operator graph only" in " ".join(listed.stdout.split())
