"""The whole program as a user starts it: ``clusterscape demo`` in a process of its own, on a free port, in a temporary folder."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

START_LIMIT_S = 300
ANSWER_LIMIT_S = 120
"""While a large cluster is built on a busy machine."""


@contextmanager
def running_demo(
    folder: Path,
    *,
    gpus: int,
    port: int = 0,
    placement: str = "spread",
    needs_history: bool = True,
    limit_s: float = START_LIMIT_S,
    headers: Mapping[str, str] = {},
) -> Iterator[str]:
    """The address of a demo that shows all its GPUs and jobs and has its history, where that is needed.

    ``headers`` are sent with its first requests, if it requires authentication.
    """
    command = [sys.executable, "-m", "clusterscape.cli", "demo", "--gpus", str(gpus), "--port", str(port), "--json"]
    command += ["--placement", placement]
    log = (folder / "demo.log").open("wb")
    child = subprocess.Popen([*command, "--data-dir", str(folder / "data")], stdout=subprocess.PIPE, stderr=log)
    try:
        url = _read_ready(child, folder / "demo.log")["url"]
        wait_until(lambda: get_json(f"{url}/api/v1/cluster", headers)["units"]["total"] >= gpus, limit_s)
        wait_until(lambda: get_json(f"{url}/api/v1/cluster", headers)["running"] > 0, limit_s)
        if needs_history:
            wait_until(lambda: b"History filled in" in (folder / "demo.log").read_bytes(), limit_s)
        yield url
    finally:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout:
            child.stdout.close()
        log.close()


def get_json(url: str, headers: Mapping[str, str] = {}) -> Any:
    """The JSON answer of ``url``."""
    request = urllib.request.Request(url, headers=dict(headers))
    with urllib.request.urlopen(request, timeout=ANSWER_LIMIT_S) as response:
        return json.load(response)


def wait_until(condition: Callable[[], bool], limit_s: float = START_LIMIT_S) -> None:
    """Polls until the condition holds; a timeout counts as not yet."""
    end = time.monotonic() + limit_s
    while True:
        with suppress(TimeoutError):
            if condition():
                return
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


def _read_ready(child: subprocess.Popen[bytes], log: Path) -> Any:
    assert child.stdout is not None
    text = ""
    while "}" not in text:
        line = child.stdout.readline().decode()
        assert line, f"the demo ended before it was ready: {log.read_text()}"
        text += line
    return json.loads(text)
