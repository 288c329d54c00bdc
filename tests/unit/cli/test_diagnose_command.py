"""``clusterscape diagnose`` against a server of one run."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from clusters.run_site import HOUR_MS, JOB, NOW, RunSite, run_site
from servers.in_thread import served_in_thread
from typer.testing import CliRunner

from clusterscape.cli.diagnose import parse_moment
from clusterscape.cli.diagnosis_charts import draw_lines, draw_strips, format_value
from clusterscape.cli.entry import app
from clusterscape.errors import QueryError, SourceError
from clusterscape.model import WorkloadState

__all__ = ["run_site"]


@pytest.fixture
def url(run_site: RunSite) -> Iterator[str]:
    with served_in_thread(run_site.queries) as url:
        yield url


def diagnose(url: str, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["diagnose", *arguments, "--url", url])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def test_words_and_report_say_the_same_when_a_rank_is_lazy(run_site: RunSite, url: str, tmp_path: Path) -> None:
    run_site.train()
    report = tmp_path / "report.html"
    told = diagnose(url, JOB, "--html", str(report))
    assert "32 GPUs on 8 nodes (H100), 2 h 0 min" in told
    assert "All 8 differ from the other 24; they are exactly local rank 0." in told
    page = report.read_text(encoding="utf-8")
    assert "All 8 differ from the other 24; they are exactly local rank 0." in page
    assert page.count("<title>n") == 32
    assert "prefers-color-scheme: dark" in page
    # Whoever opens it needs no server: nothing is fetched.
    assert not re.search(r"<script|<link|<img|url\(|src=", page)


def test_window_and_way_are_those_named_when_options_are_given(run_site: RunSite, url: str) -> None:
    run_site.train()
    asked = ("--from", "start+30m", "--to", "start + 90m", "--by", "euclidean", "--metric", "power_watts", "--json")
    told = json.loads(diagnose(url, JOB, *asked))
    assert told["window"] == {"start": NOW - 90 * 60_000, "end": NOW - 30 * 60_000}
    assert (told["by"], told["metric"]) == ("euclidean", "power_watts")


def test_one_sentence_is_said_when_the_workload_waits(run_site: RunSite, url: str, tmp_path: Path) -> None:
    run_site.hold({}, state=WorkloadState.WAITING)
    told = diagnose(url, JOB, "--html", str(tmp_path / "report.html"))
    assert "has not held a GPU yet" in told
    assert "has not held a GPU yet" in (tmp_path / "report.html").read_text(encoding="utf-8")
    with pytest.raises(QueryError, match="has not started"):
        diagnose(url, JOB, "--from", "start+30m")


def test_failure_says_what_to_do_when_there_is_no_such_workload(url: str) -> None:
    with pytest.raises(SourceError, match="no workload"):
        diagnose(url, "slurm:404")


def test_moments_are_read_when_written_in_words() -> None:
    assert parse_moment("2h ago", now_ms=NOW) == NOW - 2 * HOUR_MS
    assert parse_moment("1970-01-01T00:01Z", now_ms=NOW) == 60_000
    with pytest.raises(QueryError, match="not a time"):
        parse_moment("yesterday", now_ms=NOW)


def test_strips_are_drawn_by_cluster_when_there_are_many_gpus() -> None:
    units = [f"n:{i}" for i in range(300)]
    counts = np.ones((300, 4), np.int64)
    picture = draw_strips(units, counts, {unit: i % 2 for i, unit in enumerate(units)})
    names = re.findall(r"<title>(n:\d+)</title>", picture)
    assert names == [*units[::2], *units[1::2]]


def test_line_is_broken_when_samples_are_missing() -> None:
    times = np.arange(4, dtype=np.float64) * 60_000
    picture = draw_lines(times, {0: np.array([0.1, np.nan, 0.2, 0.3])}, "ratio")
    path = re.search(r'class="line c0" d="([^"]*)"', picture)
    assert path is not None
    assert path.group(1).count("M") == 2
    assert format_value(1.98e9, "hertz") == "1.98 GHz"
