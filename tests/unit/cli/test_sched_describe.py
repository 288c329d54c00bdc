"""``clusterscape sched describe`` as a user types it, and the report it writes."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from clusters.job_histories import make_trace, random_trace
from unit.cli.test_commands import run

from clusterscape.analyze.jobs.describe import TracesDescription, describe_traces
from clusterscape.cli.report_plots import Scale, format_tick, frame, line
from clusterscape.cli.sched_describe_page import write_report
from clusterscape.model.jobs import JobTrace

HEAD = "job,user,submit_time,wait_time,run_time,wall_time,gpu_num,node_num,new_status\n"


def write_trace(path: Path, trace: JobTrace) -> Path:
    """As Lumos writes it."""
    gpus = trace.size_unit == "gpus"
    words = {"completed": "Pass", "failed": "Failed"}
    rows = [
        f"{row['line']},{row['user']},{row['submit_s']:.0f},{row['wait_s']:.0f},{row['run_s']:.0f},36000,"
        f"{row['gpus'] if gpus else 0},{1 if gpus else row['nodes']},{words[row['status']]}"
        for row in trace.frame.iter_rows(named=True)
    ]
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


class Names(HTMLParser):
    """Collects tags, and that everything is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_verdicts_and_numbers_are_told_when_two_traces_are_described(tmp_path: Path) -> None:
    one = write_trace(tmp_path / "learning.csv", random_trace(400, median_run_s=100))
    other = write_trace(tmp_path / "classic.csv", random_trace(400, seed=2, size_unit="nodes", median_run_s=5000))
    page = tmp_path / "report.html"
    done = run("sched", "describe", str(one), str(other), "--total", "64", "--total", "0", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "supported     Deep-learning jobs are shorter than HPC jobs" in done.stdout
    assert re.search(r"machine +64 GPUs +\d+ nodes \(most ever busy\)", done.stdout)
    assert f"The report is in {page}." in done.stderr
    said = json.loads(run("sched", "describe", str(one), str(other), "--json").stdout)
    assert [trace["name"] for trace in said["traces"]] == ["learning", "classic"]
    assert said["claims"][0]["effect"]["value"] < 0.1


def test_report_needs_nothing_else_when_it_is_written(tmp_path: Path) -> None:
    traces = [random_trace(300, name="<b>odd & name"), random_trace(300, seed=3, name="other", size_unit="nodes")]
    page = tmp_path / "report.html"
    write_report(page, as_plain(describe_traces(traces)))
    text = page.read_text()
    names = Names()
    names.feed(text)
    assert not names.open
    assert "svg" in names.seen
    assert not names.seen & {"script", "link", "img", "iframe", "b"}
    assert not re.search(r"(?:src|href)=|url\(|@import", text)
    assert text.index("<h2>Claims</h2>") < text.index("<h2>Side by side</h2>")
    assert "NaN" not in text
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", text)
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize(
    "trace",
    [
        make_trace(submit_s=[5]),
        make_trace(submit_s=[0, 1, 2], run_s=[0, 0, 0], wait_s=[0, 0, 0]),
        make_trace(submit_s=[0, 1], size=[0.5, 0.5], status=["failed", "completed"], user=["a", "b"]),
    ],
    ids=["one job", "nothing ran", "shared GPUs"],
)
def test_report_is_written_when_a_trace_says_little(tmp_path: Path, trace: JobTrace) -> None:
    page = tmp_path / "report.html"
    write_report(page, as_plain(describe_traces([trace])))
    assert "</html>" in page.read_text()


def as_plain(found: TracesDescription) -> dict[str, Any]:
    """As JSON has it."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(found), allow_nan=False))
    return plain


def test_alike_names_are_told_apart_when_two_files_have_one(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_trace(tmp_path / folder / "log.csv", random_trace(30))
    done = run("sched", "describe", str(tmp_path / "a/log.csv"), str(tmp_path / "b/log.csv"), "--json")
    assert [trace["name"] for trace in json.loads(done.stdout)["traces"]] == ["log", "log (2)"]


def test_errors_say_what_to_do_when_a_description_cannot_be_made(tmp_path: Path) -> None:
    trace = str(write_trace(tmp_path / "log.csv", random_trace(30)))
    for arguments, said in (
        ((str(tmp_path / "nowhere.swf"),), "cannot be read"),
        ((trace,) * 5, "Up to 4 can stand side by side."),
        ((trace, "--total", "5", "--total", "6"), "Give it once for each."),
        ((trace, "--timezone", "Moon/Base"), "there is no time zone"),
        ((trace, "--html", str(tmp_path / "no/such/folder.html")), "cannot write"),
        (("cluster", trace), "can only be described alone"),
        (("cluster", "--url", "http://127.0.0.1:9"), "no ClusterScape answers"),
    ):
        done = run("sched", "describe", *arguments)
        assert done.returncode == 1, arguments
        assert said in " ".join(done.stderr.split()), arguments


def test_ticks_are_round_when_scales_differ() -> None:
    assert Scale(0, 1, 0, 100, "share").ticks(5) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert Scale(1, 86_400, 0, 100, "s", is_log=True).ticks() == [1, 10, 60, 600, 3600, 21_600, 86_400]
    assert Scale(1500, 1700, 0, 100, is_log=True).ticks(5) == [1500, 1550, 1600, 1650, 1700]
    assert Scale(3, 3, 0, 100).place(3) == 50
    assert [format_tick(value, "s") for value in (0, 0.5, 90, 7200)] == ["0", "500 ms", "1.5 min", "2 h"]
    assert [format_tick(value, "count") for value in (0.5, 1234, 123_456, 2e6)] == ["0.5", "1,234", "123 k", "2 M"]


def test_line_breaks_when_a_value_is_missing() -> None:
    plot = frame((0, 3, "count", False), (0, 1, "share", False), labels=("", ""))
    drawn = line(plot, [0, 1, 2, 3], [0.0, 1.0, None, 1.0], "c0", "<t>")
    assert drawn.count("M") == 2
    assert "&lt;t&gt;" in drawn
