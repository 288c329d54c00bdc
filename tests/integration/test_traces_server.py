"""A trace on its way to a real server: sent by the command, read in a process of its own, drawn, found again after a restart."""

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

import pytest
from servers.programs import free_port
from tracking.command import wait_for

pytestmark = pytest.mark.server

RECORDED = Path(__file__).parents[1] / "data/h200/traces"
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("CLUSTERSCAPE_")}


def fetch(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as response:
        return json.load(response)


def is_up(url: str) -> bool:
    try:
        fetch(f"{url}/api/v1/traces")
    except OSError:
        return False
    return True


@contextmanager
def server(data: Path) -> Iterator[str]:
    """A real ``clusterscape serve``."""
    port = free_port()
    words = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", str(port), "--json"]
    environ = {**CLEAN, "CLUSTERSCAPE_STORAGE__DATA_DIR": str(data)}
    process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: is_up(url), "the server's first answer")
        yield url
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)


def command(*words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "clusterscape.cli", "trace", *words, "--json"],
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_trace_is_drawn_and_survives_a_restart_when_the_command_sends_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for path in RECORDED.glob("ddp_*"):
        (folder / path.name).write_bytes(path.read_bytes())
    with server(tmp_path / "state") as url:
        row = command("import", str(folder), "--url", url)
        assert (row["state"], row["ranks"], row["name"]) == ("ready", 4, "run")
        assert row["headline"].startswith("Rank 0 computes longer than its peers in every step")
    with server(tmp_path / "state") as url:
        assert [trace["trace_id"] for trace in command("list", "--url", url)] == [row["trace_id"]]
        with urllib.request.urlopen(f"{url}/api/v1/traces/{row['trace_id']}/marey", timeout=60) as answer:
            body = answer.read()
            assert sum(map(int, answer.headers["X-Tables"].split(","))) == len(body)
        diff = command("diff", row["trace_id"], row["trace_id"], "--url", url)
        assert diff["sentences"][0].startswith("A step takes as long as before")
