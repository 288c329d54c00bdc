"""A real VictoriaMetrics for tests: own folder, free port, ended by its pid."""

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.programs import free_port, need_program

_START_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class VictoriaServer:
    """A running VictoriaMetrics."""

    url: str
    folder: Path
    pid: int

    def flush(self) -> None:
        """Make everything that was written visible; by itself that takes some seconds."""
        with urllib.request.urlopen(f"{self.url}/internal/force_flush", timeout=10) as response:
            response.read()


@contextmanager
def run_victoria(folder: Path, *options: str, port: int | None = None) -> Iterator[VictoriaServer]:
    """A VictoriaMetrics with its data in ``folder``, which keeps samples of any age and one of two equal ones."""
    program = need_program("victoria-metrics", "victoria-metrics")
    port = port or free_port()
    log_path = folder.with_name(folder.name + ".log")
    command = [
        program,
        f"-storageDataPath={folder}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-retentionPeriod=100y",
        "-dedup.minScrapeInterval=1ms",
        "-memory.allowedPercent=20",
        *options,
    ]
    with log_path.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_until_up(f"http://127.0.0.1:{port}", process, log_path)
            yield VictoriaServer(f"http://127.0.0.1:{port}", folder, process.pid)
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_up(url: str, process: "subprocess.Popen[bytes]", log_path: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"VictoriaMetrics did not start:\n{log_path.read_text(errors='replace')[-2000:]}")
