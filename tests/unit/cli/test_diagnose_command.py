"""``clusterscape diagnose`` against a server of one run."""

import base64
import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from clusters.run_site import HOUR_MS, JOB, NOW, RunSite, run_site
from servers.in_thread import served_in_thread
from typer.testing import CliRunner

from clusterscape.cli.diagnose import parse_moment
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


def recorded(page: str) -> Any:
    """The answers in a report."""
    data = re.search(r'<script type="application/json" id="report">(.*?)</script>', page)
    assert data is not None
    return json.loads(data[1])["answers"]


def read_tables(tables: dict[str, Any]) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(gzip.decompress(base64.b64decode(tables["body"]))))


def test_text_and_report_agree_when_a_rank_is_slow(run_site: RunSite, url: str, tmp_path: Path) -> None:
    run_site.train()
    report = tmp_path / "report.html"
    output = diagnose(url, JOB, "--html", str(report))
    assert "32 GPUs on 8 nodes (H100), 2 h" in output
    assert "All 8 differ from the other 24; they are exactly local rank 0." in output
    page = report.read_text(encoding="utf-8")
    assert "All 8 differ from the other 24; they are exactly local rank 0." in page
    answers = recorded(page)
    assert answers["diagnosis"] == json.loads(diagnose(url, JOB, "--json"))
    histograms = read_tables(answers["histograms"])
    assert histograms.height == 32
    assert json.loads(answers["histograms"]["headers"]["X-Domain"]) == [0.0, 1.0]
    lines = read_tables(answers["lines"])
    assert set(lines["metric"].cast(pl.String)) == set(answers["metrics"])
    assert set(lines["unit"].cast(pl.String)) == {unit["unit"] for unit in answers["diagnosis"]["units"]} | {"median"}


def test_window_and_method_follow_the_options_when_given(run_site: RunSite, url: str) -> None:
    run_site.train()
    options = ("--from", "start+30m", "--to", "start + 90m", "--by", "euclidean", "--metric", "power_watts", "--json")
    document = json.loads(diagnose(url, JOB, *options))
    assert document["window"] == {"start": NOW - 90 * 60_000, "end": NOW - 30 * 60_000}
    assert (document["by"], document["metric"]) == ("euclidean", "power_watts")


def test_one_sentence_is_printed_when_the_workload_waits(run_site: RunSite, url: str, tmp_path: Path) -> None:
    run_site.hold({}, state=WorkloadState.WAITING)
    output = diagnose(url, JOB, "--html", str(tmp_path / "report.html"))
    assert "has not held a GPU yet" in output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "has not held a GPU yet" in page
    assert recorded(page)["histograms"] is None
    with pytest.raises(QueryError, match="has not started"):
        diagnose(url, JOB, "--from", "start+30m")


def test_failure_says_what_to_do_when_there_is_no_such_workload(url: str) -> None:
    with pytest.raises(SourceError, match="no workload"):
        diagnose(url, "slurm:404")


def test_moments_are_read_when_written_in_words() -> None:
    assert parse_moment("2h ago", now_ms=NOW) == NOW - 2 * HOUR_MS
    assert parse_moment("1970-01-01T00:01Z", now_ms=NOW) == 60_000
    with pytest.raises(QueryError, match="not a valid time"):
        parse_moment("yesterday", now_ms=NOW)
