"""Runs on their way to a real server: sent while they go on, later, in pieces, twice, across a kill −9 of the server."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from servers.programs import free_port
from servers.reliability import note
from tracking.command import Command, wait_for

pytestmark = pytest.mark.server

SCRIPT = (
    "import clusterscape, math\n"
    "with clusterscape.run() as run:\n"
    "    run.params({'lr': 0.1})\n"
    "    for step in range(1000): run.log({'loss': 1 / (step + 1)}, step=step)\n"
    "    run.log({'loss': math.nan}, step=1000)\n"
)


@contextmanager
def server(data: Path, port: int) -> Iterator[tuple[str, int]]:
    """A real ``clusterscape serve``; its address and process."""
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith("CLUSTERSCAPE_")},
        "CLUSTERSCAPE_STORAGE__DATA_DIR": str(data),
    }
    words = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", str(port), "--json"]
    process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(url), "the server's first answer")
        yield url, process.pid
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2):
            return True
    except OSError:
        return False


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def run_and_send(command: Command, url: str, *words: str) -> None:
    """A run that the server has; on a busy machine it is sent afterwards, as the tracker waits only for some seconds."""
    done = command("run", *words, "--url", url, "model.py")
    assert done.returncode == 0, done.stderr
    if "is slow" in done.stderr:
        assert command("runs", "upload", "--url", url).returncode == 0
    else:
        assert "not uploaded" not in done.stderr
        assert f"{url}/runs?run_open={command.runs()[-1].run}" in done.stderr


@pytest.fixture
def command(tmp_path: Path) -> Command:
    (tmp_path / "code").mkdir()
    command = Command(folder=tmp_path / "code", home=tmp_path / "home", deadline_s=180)
    command.script("model.py", SCRIPT)
    return command


def test_run_is_a_workload_with_samples_when_it_was_sent(command: Command, tmp_path: Path) -> None:
    with server(tmp_path / "data", free_port()) as (url, _):
        run_and_send(command, url, "-e", "sizes", "-l", "proc")
        (row,) = get(f"{url}/api/v1/runs")
        assert (row["experiment"], row["state"], row["params"]) == ("sizes", "completed", {"lr": "0.1"})
        assert all(seconds is not None for seconds in row["times"].values())
        workload = get(f"{url}/api/v1/workloads/{row['workload']}")
        assert workload
        shown = get(f"{url}/api/v1/runs/{row['run']}")
        assert shown["not_finite"] == 1
        loss = next(series for series in shown["series"] if series["metric"] == "loss")
        assert (loss["unit"], loss["scope"], loss["method"]) == (row["workload"], "run", "measured")
        assert (loss["count"], loss["first"], loss["last"]) == (1000, 1.0, 0.001)
        assert shown["environment"]["command"]
        assert row["results"]["loss"] == 0.001
        tree = get(f"{url}/api/v1/runs/tree")
        assert [workload["runs"] for workload in tree["experiments"][0]["workloads"]] == [[row["run"]]]
        query = f"run={row['run']}&metric=loss&axis=step&points=100"
        with urllib.request.urlopen(f"{url}/api/v1/runs/series?{query}", timeout=30) as answer:
            line = pl.read_ipc_stream(answer.read())
        assert (line["x"][0], line["x"][-1], line["value"][0], line["value"][-1]) == (0.0, 999.0, 1.0, 0.001)
        assert shown["row"]["samples"] == command.only_run().samples - 1 + 1001  # NaN is not stored, steps are


def test_run_is_repeated_when_only_the_server_has_it(command: Command, tmp_path: Path) -> None:
    command.script(
        "plan.csv", "Experiment,Workload,Devices,File,Listeners\n1,p,cpu,model.py,none\n1,p,cpu,model.py,top\n"
    )
    with server(tmp_path / "data", free_port()) as (url, _):
        assert command("plan", "plan.csv").returncode == 0
        assert command("runs", "upload", "--url", url).returncode == 0
        first, second = command.runs()
        elsewhere = Command(folder=command.folder, home=tmp_path / "elsewhere", deadline_s=180)
        assert "needs --url" in elsewhere("run", "--repeat", first.run).stderr
        assert "no run `nope`" in elsewhere("run", "--url", url, "--repeat", "nope").stderr
        done = elsewhere("run", "--url", url, "--repeat", first.run[-10:])
        assert done.returncode == 0, done.stderr
        again = elsewhere.runs()
        assert [run.about["listeners"] for run in again] == [run.about["listeners"] for run in (first, second)]
        assert [run.tags["repeats"] for run in again] == [first.run, second.run]
        assert elsewhere("runs", "upload", "--url", url).returncode == 0
        (experiment,) = get(f"{url}/api/v1/runs/tree")["experiments"]
        assert sorted(len(workload["runs"]) for workload in experiment["workloads"]) == [2, 2]


def test_nothing_is_lost_when_the_server_is_killed_and_comes_back(command: Command, tmp_path: Path) -> None:
    port = free_port()
    with server(tmp_path / "data", port) as (url, pid):
        run_and_send(command, url, "-l", "none")
        os.kill(pid, signal.SIGKILL)
    done = command("run", "-l", "none", "--url", url, "model.py")
    assert done.returncode == 0
    assert "kept on disk" in done.stderr
    assert "run_open" not in done.stderr
    assert command("runs", "upload", "--url", url).returncode == 1
    with server(tmp_path / "data", port) as (url, _):
        sent = json.loads(command("runs", "upload", "--url", url, "--json").stdout)
        assert list(sent["runs"]) == [command.runs()[1].run]
        everything = [run.run for run in command.runs()]
        again = json.loads(command("runs", "upload", *everything, "--url", url, "--json").stdout)
        assert set(again["runs"].values()) == {0}
        rows = get(f"{url}/api/v1/runs")
        assert {row["samples"] for row in rows} == {2001}
        assert [row["run"] for row in rows] == everything[::-1]
    note(
        "fault",
        what="kill −9 of the server while a run sends",
        promised="nothing of the run is lost",
        measured="all samples there",
    )


def test_run_is_gone_and_not_taken_again_when_its_owner_deletes_it(command: Command, tmp_path: Path) -> None:
    with server(tmp_path / "data", free_port()) as (url, _):
        run_and_send(command, url, "-l", "none")
        run_and_send(command, url, "-l", "none")
        deleted, other = (run.run for run in command.runs())
        refused = command("runs", "delete", deleted, "--url", url)
        assert (refused.returncode, "Use --yes" in refused.stderr) == (2, True)
        done = json.loads(command("runs", "delete", deleted, "--url", url, "--yes", "--json").stdout)
        assert done["deleted"] == [deleted]
        assert [row["run"] for row in get(f"{url}/api/v1/runs")] == [other]
        assert [row["workload"] for row in get(f"{url}/api/v1/workloads")["workloads"]] == [f"run:{other}"]
        again = command("runs", "upload", deleted, other, "--url", url)
        assert again.returncode == 1
        assert f"{deleted} was not uploaded and is kept on disk" in again.stderr
        assert "1 run uploaded" in again.stderr
        assert command("runs", "delete", deleted, "--url", url, "--yes").returncode == 1
        assert {run.run for run in command.runs()} == {deleted, other}, "what was recorded here stays"
        assert command("runs", "delete", deleted, "--local", "--yes").returncode == 0
        assert {run.run for run in command.runs()} == {other}


def test_error_has_the_common_shape_when_the_request_is_wrong(tmp_path: Path) -> None:
    with server(tmp_path / "data", free_port()) as (url, _):
        for path, body in (
            ("a/files/tracker.spool", b"nonsense"),
            ("a/files/x.spool?offset=7", b""),
            ("a%20b/files/x", b""),
        ):
            request = urllib.request.Request(f"{url}/api/v1/runs/{path}", data=body, method="POST")
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request, timeout=30)
            with caught.value as answer:
                assert answer.code == 422
                assert set(json.load(answer)["error"]) == {"code", "message", "hint"}
