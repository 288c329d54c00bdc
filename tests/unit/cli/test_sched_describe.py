"""``clusterscape sched describe`` as a user types it, and the report it writes."""

import json
import re
from pathlib import Path

from clusters.job_histories import random_trace
from unit.cli.test_commands import run

from clusterscape.model.jobs import JobTrace

HEAD = "job,user,submit_time,wait_time,run_time,wall_time,gpu_num,node_num,new_status\n"


def write_trace(path: Path, trace: JobTrace) -> Path:
    """Write a trace in the format of Lumos."""
    gpus = trace.size_unit == "gpus"
    words = {"completed": "Pass", "failed": "Failed"}
    rows = [
        f"{row['line']},{row['user']},{row['submit_s']:.0f},{row['wait_s']:.0f},{row['run_s']:.0f},36000,"
        f"{row['gpus'] if gpus else 0},{1 if gpus else row['nodes']},{words[row['status']]}"
        for row in trace.frame.iter_rows(named=True)
    ]
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


def test_verdicts_and_numbers_are_reported_when_two_traces_are_described(tmp_path: Path) -> None:
    learning = write_trace(tmp_path / "learning.csv", random_trace(400, median_run_s=100))
    other = write_trace(tmp_path / "classic.csv", random_trace(400, seed=2, size_unit="nodes", median_run_s=5000))
    page = tmp_path / "report.html"
    done = run("sched", "describe", str(learning), str(other), "--total", "64", "--total", "0", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "supported     Deep-learning jobs are shorter than HPC jobs" in done.stdout
    assert re.search(r"machine +64 GPUs +\d+ nodes \(a guess\)", done.stdout)
    assert f"Report written to {page}." in done.stderr
    description = json.loads(run("sched", "describe", str(learning), str(other), "--json").stdout)
    assert [trace["name"] for trace in description["traces"]] == ["learning", "classic"]
    assert description["claims"][0]["effect"]["value"] < 0.1


def test_report_holds_the_same_document_when_it_is_written(tmp_path: Path) -> None:
    trace = str(write_trace(tmp_path / "<b>odd & name.csv", random_trace(300)))
    page = tmp_path / "report.html"
    done = run("sched", "describe", trace, "--html", str(page), "--json")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="report">(.*?)</script>', text)
    assert data is not None
    assert json.loads(data[1])["answers"] == {"description": json.loads(done.stdout)}
    assert "<title>Job traces: &lt;b&gt;odd &amp; name</title>" in text
    # Browsers without JavaScript show the same text as the terminal.
    assert "unit-hours used" in text[text.index("<noscript>") : text.index("</noscript>")]


def test_equal_names_are_made_distinct_when_two_files_share_one(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_trace(tmp_path / folder / "log.csv", random_trace(30))
    done = run("sched", "describe", str(tmp_path / "a/log.csv"), str(tmp_path / "b/log.csv"), "--json")
    assert [trace["name"] for trace in json.loads(done.stdout)["traces"]] == ["log", "log (2)"]


def test_errors_say_what_to_do_when_a_description_cannot_be_made(tmp_path: Path) -> None:
    trace = str(write_trace(tmp_path / "log.csv", random_trace(30)))
    for arguments, message in (
        ((str(tmp_path / "nowhere.swf"),), "cannot read"),
        ((trace,) * 5, "At most 4 traces can be compared."),
        ((trace, "--total", "5", "--total", "6"), "Give it once per trace."),
        ((trace, "--timezone", "Moon/Base"), "unknown time zone"),
        ((trace, "--html", str(tmp_path / "no/such/folder.html")), "cannot write"),
        (("cluster", trace), "cannot be compared with other traces"),
        (("cluster", "--url", "http://127.0.0.1:9"), "no ClusterScape answers"),
    ):
        done = run("sched", "describe", *arguments)
        assert done.returncode == 1, arguments
        assert message in " ".join(done.stderr.split()), arguments
