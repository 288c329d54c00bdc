"""``clusterscape status`` against a server of the small cluster."""

import json
import time
from collections.abc import Iterator

import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster, small_cluster
from servers.in_thread import served_in_thread
from typer.testing import CliRunner

from clusterscape.cli.entry import app
from clusterscape.cli.status import describe_startable, parse_moment
from clusterscape.errors import QueryError, SourceError

__all__ = ["small_cluster"]


@pytest.fixture
def url(small_cluster: SmallCluster) -> Iterator[str]:
    with served_in_thread(small_cluster.queries) as url:
        yield url


def test_past_minute_is_shown_when_one_is_named(url: str) -> None:
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime((NOW - 7 * HOUR_MS) / 1000))
    done = CliRunner().invoke(app, ["status", "--url", url, "--at", moment])
    assert done.exit_code == 0
    assert moment in done.stdout
    assert "1 allocated, 5 free" in done.stdout
    status = json.loads(CliRunner().invoke(app, ["status", "--url", url, "--at", moment, "--json"]).stdout)
    assert status["is_past"] is True
    assert status["waste"]["end"] <= status["at"]
    assert {"stranded", "largest_startable"} <= status["partitions"][0].keys()


def test_present_is_shown_when_no_time_is_named(url: str) -> None:
    done = CliRunner().invoke(app, ["status", "--url", url])
    assert "2 allocated, 0 free, 2 out of service, 2 stale" in done.stdout
    assert "not known" not in done.stdout
    assert "GPU-hours wasted in 24 hours" in done.stdout
    assert "stranded" in done.stdout


def test_blocked_job_size_is_reported_when_free_gpus_are_scattered() -> None:
    place = {"machine_type": "A100-80G", "free": 64, "gpus_per_node": 8, "one_node_gpus": 4, "whole_nodes": 0}
    repaired = {**place, "one_node_gpus": 8, "whole_nodes": 2, "whole_node_gpus": 16}
    parts = [{"name": "small", "is_up": True, "largest_startable": [place, repaired]}]
    scattered, whole = describe_startable(parts)
    assert "small A100-80G: no 8-GPU job can start although 64 GPUs are free" in scattered
    assert "16 GPUs on 2 whole nodes can start" in whole


def test_servers_own_words_are_passed_on_when_it_refuses_a_time(url: str) -> None:
    done = CliRunner().invoke(app, ["status", "--url", url, "--at", "2999-01-01"])
    assert isinstance(done.exception, SourceError)
    assert "between 1970 and now" in done.exception.message


def test_time_is_local_unless_it_names_a_zone_when_parsed() -> None:
    assert parse_moment("2026-11-14T08:41Z") == parse_moment("2026-11-14 09:41+01:00") == 1_794_645_660_000
    assert parse_moment("2026-11-14 09:41") == int(time.mktime((2026, 11, 14, 9, 41, 0, 0, 0, -1))) * 1000
    with pytest.raises(QueryError, match="not a valid time"):
        parse_moment("yesterday")
