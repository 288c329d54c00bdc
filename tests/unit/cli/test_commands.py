"""The command as a user types it: exit codes, messages, JSON."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from clusterscape.cli.checks import _describe_sources
from clusterscape.model import SourceStatus, UnixMs
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics import open_metric_store

KEPT = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}  # of a checkout that is not installed


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clusterscape.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "COLUMNS": "200", **KEPT, **environment},
        check=False,
    )


def write(folder: Path, text: str) -> str:
    path = folder / "clusterscape.toml"
    path.write_text(text)
    return str(path)


def test_version_is_printed_when_requested() -> None:
    assert run("--version").stdout.startswith("clusterscape ")


def test_key_and_choices_are_named_with_exit_2_when_the_config_is_wrong(tmp_path: Path) -> None:
    done = run("serve", "--config", write(tmp_path, "[server]\nprt = 1\n"))
    assert done.returncode == 2
    assert "unknown setting `server.prt`" in done.stderr
    assert "Did you mean `port`?" in done.stderr
    assert "Traceback" not in done.stderr


def test_error_is_json_when_json_is_requested(tmp_path: Path) -> None:
    done = run("doctor", "--json", "--config", write(tmp_path, "[server]\nport = 'x'\n"))
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "config"


def test_open_address_is_refused_when_no_token_is_set(tmp_path: Path) -> None:
    done = run("serve", "--host", "0.0.0.0", "--config", write(tmp_path, f"[storage]\ndata_dir = '{tmp_path}'\n"))
    assert done.returncode == 2
    assert "without authentication" in done.stderr


def test_port_in_use_is_reported_when_serving(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        done = run("serve", "--port", str(port), "--config", write(tmp_path, f"[storage]\ndata_dir = '{tmp_path}'\n"))
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr


def test_missing_server_is_reported_when_status_finds_none() -> None:
    done = run("status", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "no ClusterScape answers at" in done.stderr
    assert "clusterscape demo" in done.stderr


def test_doctor_reports_problem_and_fix_when_sources_are_down(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        f"""
        [storage]
        data_dir = "{tmp_path}/data"
        [collect.dcgm]
        targets = ["127.0.0.1:9"]
        [collect.slurm]
        mode = "rest"
        url = "http://127.0.0.1:9"
        [collect.prometheus]
        url = "http://127.0.0.1:9"
        """,
    )
    done = run("doctor", "--json", "--config", config)
    assert done.returncode == 1
    checks = json.loads(done.stdout)
    assert {c["what"] for c in checks if c["ok"]} >= {
        "settings",
        "address",
        "data folder",
        "metric store",
        "record store",
    }
    failed = [c for c in checks if not c["ok"]]
    assert len(failed) >= 3
    assert all(c["message"] and c["hint"] for c in failed)


def test_newer_store_is_refused_untouched_when_serving(tmp_path: Path) -> None:
    config = write(tmp_path, f"[storage]\ndata_dir = '{tmp_path}/data'\n")
    open_metric_store(StorageSettings(data_dir=tmp_path / "data"), RetentionSettings()).close()
    note = tmp_path / "data/metrics/FORMAT"
    note.write_text(note.read_text().replace("1", "999"))
    before = {path: path.read_bytes() for path in (tmp_path / "data/metrics").rglob("*") if path.is_file()}
    done = run("serve", "--port", "0", "--config", config)
    assert done.returncode == 1
    assert "supports formats up to" in done.stderr
    assert before == {path: path.read_bytes() for path in (tmp_path / "data/metrics").rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["demo", "serve", "doctor", "status", "list"])
def test_every_command_explains_itself_when_help_is_requested(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


def test_doctor_summarizes_healthy_sources_when_there_are_many() -> None:
    def status(number: int, *, is_ok: bool) -> SourceStatus:
        hint = None if is_ok else "start it"
        return SourceStatus(source=f"t{number}", kind="dcgm", is_ok=is_ok, at=UnixMs(0), message=None, hint=hint)

    checks = _describe_sources([status(i, is_ok=i != 7) for i in range(1250)])
    assert [(check.what, check.is_ok) for check in checks] == [("dcgm", True), ("t7", False)]
    assert checks[0].message == "1,249 of 1,250 sources respond"


@pytest.mark.parametrize("words", [("run", "--show-recorded", "--", "true"), ("--help",), ("sched", "--help")])
def test_command_ends_quietly_when_its_pipe_is_closed(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "clusterscape.cli", *words], stdout=writing, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")
