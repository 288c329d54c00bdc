"""``clusterscape rules mute|unmute|mutes|comment|comments|uncomment`` against a server of the small cluster."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from clusters.small import SmallCluster, small_cluster
from servers.in_thread import served_in_thread
from typer.testing import CliRunner

from clusterscape.cli.entry import app
from clusterscape.errors import ClusterScapeError
from clusterscape.model import UnixMs

__all__ = ["small_cluster"]


@pytest.fixture
def url(small_cluster: SmallCluster) -> Iterator[str]:
    # The command tells how long a mute lasts by its own clock.
    small_cluster.now = UnixMs(int(time.time() * 1000))
    with served_in_thread(small_cluster.queries) as url:
        yield url


def rules(url: str, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["rules", *arguments, "--url", url])
    if isinstance(done.exception, ClusterScapeError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def rules_json(url: str, *arguments: str) -> Any:
    return json.loads(rules(url, *arguments, "--json"))


def test_mute_is_in_force_until_it_is_ended_when_made(url: str) -> None:
    said = rules(url, "mute", "idle-corner", "--workload", "slurm:1", "--reason", "a [b] c", "--for", "2d")
    assert "idle-corner is muted for slurm:1 for 1 d 23 h" in said
    (mute,) = rules_json(url, "mutes")
    assert (mute["rule"], mute["workload"], mute["reason"]) == ("idle-corner", "slurm:1", "a [b] c")
    assert mute["author"]
    assert "a [b] c" in rules(url, "mutes")
    assert rules_json(url, "unmute", mute["key"]) == {"unmuted": mute["key"]}
    assert "Nothing is muted." in rules(url, "mutes")


def test_mute_is_of_all_workloads_for_a_week_when_nothing_else_is_said(url: str) -> None:
    mute = rules_json(url, "mute", "idle-corner", "--reason", "upgrade", "--author", "ann")
    assert (mute["workload"], mute["author"]) == (None, "ann")
    assert mute["expires_at"] - mute["created_at"] == 7 * 24 * 3_600_000


def test_comment_is_listed_until_it_is_taken_back_when_written(url: str) -> None:
    comment = rules_json(url, "comment", "slurm:1", "waits for data", "--author", "ann")
    assert rules_json(url, "comments", "--workload", "slurm:1") == [comment]
    assert rules_json(url, "comments", "--workload", "slurm:2") == []
    assert "waits for data" in rules(url, "comments")
    assert rules_json(url, "uncomment", comment["key"]) == {"removed": comment["key"]}
    assert "Nobody wrote anything." in rules(url, "comments")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mute", "nothing", "--reason", "r"), "no rule"),
        (("mute", "idle-corner", "--reason", "r", "--workload", "slurm:none"), "no workload"),
        (("mute", "idle-corner", "--reason", " "), "reason"),
        (("mute", "idle-corner", "--reason", "r", "--for", "soon"), "soon"),
        (("unmute", "nothing"), "no mute"),
        (("comment", "slurm:none", "text"), "no workload"),
        (("uncomment", "nothing"), "no comment"),
    ],
)
def test_error_says_what_was_wrong_when_the_server_refuses(url: str, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(ClusterScapeError) as error:
        rules(url, *arguments)
    assert said in f"{error.value.message} {error.value.hint}"
