"""``clusterscape rules`` as a user types it: without a server, and its notes against a server of the small cluster."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters.small import SmallCluster, small_cluster
from servers.in_thread import served_in_thread
from typer.testing import CliRunner
from unit.cli.test_commands import run

from clusterscape.cli.entry import app
from clusterscape.errors import ClusterScapeError
from clusterscape.model import UnixMs

DATA = Path(__file__).parents[2] / "data/h200"
LOG, EVENTS = str(DATA / "telemetry.csv"), str(DATA / "events.jsonl")


def test_shipped_rules_are_listed_when_requested() -> None:
    listed = json.loads(run("rules", "list", "--json").stdout)
    assert {"low-utilization", "stalled-training"} <= {rule["key"] for rule in listed}
    assert all(rule["text"] and rule["reason"] for rule in listed)
    assert "stalled-training" in run("rules", "list").stdout


def test_rule_is_explained_in_words_when_shipped_or_written() -> None:
    shipped = run("rules", "explain", "low-utilization").stdout
    assert "Against false alarms." in shipped
    written = json.loads(run("rules", "explain", "power p50 < 70% on any GPU", "--json").stdout)
    assert "70% of the GPU's limit" in written["words"][0]
    assert "if any of its GPUs" in written["words"][-1]


def test_violations_are_reported_when_a_log_is_judged() -> None:
    done = run(
        "rules", "test", "stalled-training", "util p95 < 80% and util p50 < 50% after 10s",
        "--nvidia-smi", LOG, "--events", EVENTS, "--speed", "1", "--min-age", "8s", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    broken = {(result["rule"], result["workload"]): result for result in report["results"] if result["is_broken"]}
    assert set(broken) == {("stalled-training", "hang-550"), ("rule-2", "inputbound-600")}
    hang = broken["stalled-training", "hang-550"]
    assert hang["unit"] == "local:0"
    assert 1794723999_329 < hang["first_violation_at"] < hang["last_violation_at"] <= 1794724024_951
    assert hang["values"]["gpu_util p95 > 90%"] == 1.0
    assert 120 < hang["values"]["power p50 < 70%"] < 123


def test_short_runs_are_judged_when_the_rule_does_not_say_from_which_age_on() -> None:
    r2 = "gpu_util p95 > 90% and power p50 < 70%"
    done = run("rules", "test", r2, "--nvidia-smi", LOG, "--events", EVENTS, "--json")
    assert {row["workload"] for row in json.loads(done.stdout)["results"] if row["is_broken"]} == {"hang-550"}
    assert "evaluated from an age of 15 s" in done.stderr
    tested = run("rules", "test", f"{r2} after 10m", "--nvidia-smi", LOG, "--events", EVENTS)
    assert "0 violations" in tested.stdout
    assert "never evaluated (younger than 10m)" in tested.stderr
    assert "--min-age" in tested.stderr


def test_log_is_one_run_when_no_events_are_given() -> None:
    done = run("rules", "test", "temperature max > 50C after 1m", "--nvidia-smi", LOG)
    assert done.returncode == 0, done.stderr
    assert "telemetry" in done.stdout
    assert "1 violation by 1 rule on 1 life" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("gpu_utl p95 > 90%", "--nvidia-smi", LOG), 2, "^^^^^^^\nDid you mean `gpu_util`?"),
        ((), 1, "--nvidia-smi"),
        (("stalled-training", "--url", "http://127.0.0.1:9"), 1, "no ClusterScape answers"),
        (("stalled-training", "--nvidia-smi", "nowhere.csv"), 1, "cannot read"),
        (("stalled-training", "--nvidia-smi", LOG, "--events", EVENTS, "--timezone", "Asia/Tokyo"), 1, "--timezone"),
        (("stalled-training", "--nvidia-smi", LOG, "--timezone", "Mars/Base"), 1, "unknown time zone"),
        (("stalled-training", "--nvidia-smi", LOG, "--min-age", "soon"), 2, "30m"),
    ],
)
def test_error_says_what_to_do_when_something_is_wrong(arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run("rules", "test", *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["list", "explain", "test"])
def test_every_rules_command_explains_itself_when_help_is_requested(command: str) -> None:
    done = run("rules", command, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


__all__ = ["small_cluster"]


@pytest.fixture
def url(small_cluster: SmallCluster) -> Iterator[str]:
    # The command computes the remaining time of a mute with its own clock.
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


def test_mute_is_in_force_until_it_is_ended_when_created(url: str) -> None:
    output = rules(url, "mute", "idle-corner", "--workload", "slurm:1", "--reason", "a [b] c", "--for", "2d")
    assert "idle-corner is muted for slurm:1 for 1 d 23 h" in output
    (mute,) = rules_json(url, "mutes")
    assert (mute["rule"], mute["workload"], mute["reason"]) == ("idle-corner", "slurm:1", "a [b] c")
    assert mute["author"]
    assert "a [b] c" in rules(url, "mutes")
    assert rules_json(url, "unmute", mute["key"]) == {"unmuted": mute["key"]}
    assert "No active mutes." in rules(url, "mutes")


def test_mute_covers_all_workloads_for_a_week_when_no_option_is_given(url: str) -> None:
    mute = rules_json(url, "mute", "idle-corner", "--reason", "upgrade", "--author", "ann")
    assert (mute["workload"], mute["author"]) == (None, "ann")
    assert mute["expires_at"] - mute["created_at"] == 7 * 24 * 3_600_000


def test_comment_is_listed_until_it_is_deleted_when_written(url: str) -> None:
    comment = rules_json(url, "comment", "slurm:1", "waits for data", "--author", "ann")
    assert rules_json(url, "comments", "--workload", "slurm:1") == [comment]
    assert rules_json(url, "comments", "--workload", "slurm:2") == []
    assert "waits for data" in rules(url, "comments")
    assert rules_json(url, "uncomment", comment["key"]) == {"removed": comment["key"]}
    assert "No comments." in rules(url, "comments")


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_error_says_what_was_wrong_when_the_server_refuses(url: str, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ClusterScapeError) as error:
        rules(url, *arguments)
    assert message in f"{error.value.message} {error.value.hint}"


def test_command_fails_after_its_output_when_most_lines_of_a_log_are_damaged(tmp_path: Path) -> None:
    lines = Path(LOG).read_text().splitlines()
    log = tmp_path / "smi.csv"
    log.write_text("\n".join([*lines[:40], *(line[:15] for line in lines[40:400])]) + "\n")
    done = run("rules", "test", "temperature max > 50C after 1m", "--nvidia-smi", str(log))
    assert done.returncode == 1
    assert "lines do not have a time" in done.stderr
