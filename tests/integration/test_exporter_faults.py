"""Exporters that hang, talk nonsense, talk without end or vanish, before a real ``clusterscape serve``; and its own sudden death.

After each: samples of the others are stored, one log line names the fault, and recovery needs no help.
"""

import io
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from servers.demo import get_json, wait_until
from servers.reliability import note

pytestmark = pytest.mark.server

NODES = 4
TIMEOUT_S = 2
ENDLESS_BYTES = 200 * 2**20


@dataclass
class Exporters:
    """One HTTP server that answers as the exporter of every node, each with its own configured behavior."""

    server: ThreadingHTTPServer
    behavior: dict[str, str] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def targets(self) -> list[str]:
        """Their addresses, as the settings name them."""
        port = self.server.server_address[1]
        return [f"http://127.0.0.1:{port}/n{at}/metrics#n{at}" for at in range(NODES)]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answers as a healthy exporter, or with the configured fault."""
        node = handler.path.split("/")[1]
        match self.behavior.get(node, "well"):
            case "hang":
                self.over.wait(60)
            case "gone":
                handler.close_connection = True
            case "garbage":
                self._send(handler, b"\x00\xff<html>502 Bad Gateway</html>\n" * 50)
            case "endless":
                self._send(handler, b"# " + b"x" * 2**20 + b"\n", times=ENDLESS_BYTES // 2**20)
            case _:
                self._send(handler, _metrics(node))

    def _send(self, handler: BaseHTTPRequestHandler, body: bytes, times: int = 1) -> None:
        try:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body) * times))
            handler.end_headers()
            for _ in range(times):
                handler.wfile.write(body)
        except OSError:
            pass  # the client closed the connection


def _metrics(node: str) -> bytes:
    rows = (f'DCGM_FI_DEV_GPU_UTIL{{gpu="{at}",UUID="GPU-{node}-{at}",Hostname="{node}"}} 50' for at in range(2))
    return "\n".join(("# TYPE DCGM_FI_DEV_GPU_UTIL gauge", *rows, "")).encode()


@pytest.fixture
def exporters() -> Iterator[Exporters]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state = Exporters(server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state
    state.over.set()
    server.shutdown()
    server.server_close()


@contextmanager
def serving(folder: Path, targets: list[str]) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    config = folder / "clusterscape.toml"
    config.write_text(
        f'cluster = "faulty"\n[storage]\ndata_dir = "{folder}/data"\n[collect.dcgm]\ntargets = {json.dumps(targets)}\n'
        f"interval_s = 1\ntimeout_s = {TIMEOUT_S}\njitter_s = 0\n"
    )
    command = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", "0", "--json", "--config", str(config)]
    with (folder / "serve.log").open("ab") as log:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    assert child.stdout is not None
    try:
        text = ""
        while not text.rstrip().endswith("}"):
            line = child.stdout.readline().decode()
            assert line, (folder / "serve.log").read_text()
            text += line
        yield json.loads(text)["url"], child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def last_sample_s(url: str, node: str) -> float:
    """When the newest stored value of a node's first GPU was measured; 0: never."""
    start = int(time.time() * 1000) - 900_000
    query = f"metric=gpu_util_ratio&unit={node}:0&start={start}&points=20000"
    with urllib.request.urlopen(f"{url}/api/v1/series?{query}", timeout=60) as answer:
        points = pl.read_ipc_stream(io.BytesIO(answer.read())).drop_nulls("value")
    return max(points["time_ms"].to_list(), default=0.0) / 1000


def failing(url: str) -> dict[str, str]:
    """Messages of failing exporters, by node."""
    groups: Any = get_json(f"{url}/api/v1/sources")["groups"]
    return {row["node"]: row["message"] for group in groups for row in group["failures"]}


@pytest.mark.parametrize("fault", ["hang", "garbage", "endless", "gone"])
def test_others_go_on_and_all_is_well_again_when_exporters_fail(
    fault: str, exporters: Exporters, tmp_path: Path
) -> None:
    with serving(tmp_path, exporters.targets) as (url, _):
        wait_until(lambda: all(last_sample_s(url, f"n{at}") > 0 for at in range(NODES)))
        half = [f"n{at}" for at in range(NODES // 2)]
        exporters.behavior.update(dict.fromkeys(half, fault))
        wait_until(lambda: len(failing(url)) == len(half))
        failures = failing(url)
        began = time.time()
        wait_until(lambda: all(last_sample_s(url, f"n{at}") > began + 2 for at in range(NODES // 2, NODES)))
        assert all(0 < len(message) < 300 and "Traceback" not in message for message in failures.values())
        exporters.behavior.clear()
        exporters.over.set()
        healed = time.time()
        wait_until(lambda: not failing(url) and all(last_sample_s(url, node) > healed for node in half))
    note(
        "fault",
        what=f"half of the exporters: {fault}",
        promised="the others are stored, one line says why, back without help",
        measured=f"others went on; said: {next(iter(failures.values()))}",
    )


def test_what_was_stored_is_there_when_the_server_was_killed(exporters: Exporters, tmp_path: Path) -> None:
    with serving(tmp_path, exporters.targets) as (url, child):
        wait_until(lambda: last_sample_s(url, "n0") > 0)
        stored = last_sample_s(url, "n0")
        child.send_signal(signal.SIGKILL)
        child.wait()
    exporters.behavior.update({f"n{at}": "gone" for at in range(NODES)})
    with serving(tmp_path, exporters.targets) as (url, _):
        assert last_sample_s(url, "n0") >= stored
        exporters.behavior.clear()
        wait_until(lambda: last_sample_s(url, "n0") > stored)
    note(
        "fault",
        what="kill −9 of the server between two scrapes",
        promised="nothing that was shown is lost, collecting goes on after the start",
        measured="the last value shown before was there after",
    )
