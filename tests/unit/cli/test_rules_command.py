"""``clusterscape rules`` as a user types it, without a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from unit.cli.test_commands import run

DATA = Path(__file__).parents[2] / "data/h200"
LOG, EVENTS = str(DATA / "telemetry.csv"), str(DATA / "events.jsonl")


def test_shipped_rules_are_listed_when_asked() -> None:
    listed = json.loads(run("rules", "list", "--json").stdout)
    assert {"low-utilization", "stalled-training"} <= {rule["key"] for rule in listed}
    assert all(rule["text"] and rule["reason"] for rule in listed)
    assert "stalled-training" in run("rules", "list").stdout


def test_rule_is_explained_in_words_when_shipped_or_written() -> None:
    shipped = run("rules", "explain", "low-utilization").stdout
    assert "Against false alarms." in shipped
    written = json.loads(run("rules", "explain", "power p50 < 70% on any GPU", "--json").stdout)
    assert "70% of the GPU's own limit" in written["words"][0]
    assert "if any of its GPUs" in written["words"][-1]


def test_violations_are_reported_when_a_log_is_judged() -> None:
    done = run(
        "rules", "test", "stalled-training", "util p95 < 80% and util p50 < 50% after 10s",
        "--nvidia-smi", LOG, "--events", EVENTS, "--speed", "1", "--min-age", "8s", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    broken = {(one["rule"], one["workload"]): one for one in report["results"] if one["is_broken"]}
    assert set(broken) == {("stalled-training", "hang-550"), ("rule-2", "inputbound-600")}
    hang = broken["stalled-training", "hang-550"]
    assert hang["unit"] == "local:0"
    assert 1794723999_329 < hang["first_violation_at"] < hang["last_violation_at"] <= 1794724024_951
    assert hang["values"]["gpu_util p95 > 90%"] == 1.0
    assert 120 < hang["values"]["power p50 < 70%"] < 123


def test_short_runs_are_judged_when_the_rule_does_not_say_from_which_age_on() -> None:
    r2 = "gpu_util p95 > 90% and power p50 < 70%"
    done = run("rules", "test", r2, "--nvidia-smi", LOG, "--events", EVENTS, "--json")
    assert {one["workload"] for one in json.loads(done.stdout)["results"] if one["is_broken"]} == {"hang-550"}
    assert "judged from 15 s of age on" in done.stderr
    said = run("rules", "test", f"{r2} after 10m", "--nvidia-smi", LOG, "--events", EVENTS)
    assert "0 violations" in said.stdout
    assert "never judged (younger than 10m)" in said.stderr
    assert "--min-age" in said.stderr


def test_log_is_one_run_when_no_events_are_given() -> None:
    done = run("rules", "test", "temperature max > 50C after 1m", "--nvidia-smi", LOG)
    assert done.returncode == 0, done.stderr
    assert "telemetry" in done.stdout
    assert "1 violation by 1 rule on 1 life" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("gpu_utl p95 > 90%", "--nvidia-smi", LOG), 2, "^^^^^^^\nDid you mean `gpu_util`?"),
        ((), 1, "--nvidia-smi"),
        (("stalled-training", "--url", "http://127.0.0.1:9"), 1, "no ClusterScape answers"),
        (("stalled-training", "--nvidia-smi", "nowhere.csv"), 1, "cannot be read"),
        (("stalled-training", "--nvidia-smi", LOG, "--events", EVENTS, "--timezone", "Asia/Tokyo"), 1, "--timezone"),
        (("stalled-training", "--nvidia-smi", LOG, "--timezone", "Mars/Base"), 1, "no time zone"),
        (("stalled-training", "--nvidia-smi", LOG, "--min-age", "soon"), 2, "30m"),
    ],
)
def test_error_says_what_to_do_when_something_is_wrong(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run("rules", "test", *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["list", "explain", "test"])
def test_every_rules_command_explains_itself_when_help_is_asked(command: str) -> None:
    done = run("rules", command, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout
