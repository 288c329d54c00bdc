"""``clusterscape trace report`` on recorded files, as people and scripts call it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from clusterscape.cli.entry import app

RECORDED = Path(__file__).parents[2] / "data/h200/traces"
runner = CliRunner()


def test_verdicts_are_in_the_json_when_it_is_asked_for() -> None:
    files = [str(path) for path in sorted(RECORDED.glob("ddp_*"))]
    done = runner.invoke(app, ["trace", "report", *files, "--json", "--workers", "1"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [(one["kind"], one["rank"]) for one in found["verdicts"][:2]] == [("slow_worker", 0), ("input_stall", 3)]
    assert found["alignment"]["error_s"] > 0
    row = found["breakdown"][0]
    assert abs(row["compute_s"] + row["exposed_s"] + row["idle_s"] - row["step_s"]) < 1e-6
    assert set(found["verdicts"][0]) >= {"kind", "rank", "stage", "seconds_per_step", "evidence", "sentence"}


def test_page_stands_alone_when_it_is_written(tmp_path: Path) -> None:
    files = [str(path) for path in sorted(RECORDED.glob("pipe_*"))]
    page = tmp_path / "report.html"
    done = runner.invoke(app, ["trace", "report", *files, "--html", str(page), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "Stage 2 works" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "Stage 2 works" in text
    assert "http" not in text


def test_error_is_a_sentence_when_there_is_no_trace(tmp_path: Path) -> None:
    done = runner.invoke(app, ["trace", "report", str(tmp_path)])
    assert done.exit_code == 1
    assert "no traces in" in str(done.exception)
