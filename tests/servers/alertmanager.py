"""A real Alertmanager for tests: own folder, free port, ended by its pid."""

import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.programs import free_port, need_program

_START_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class AlertmanagerServer:
    """A running Alertmanager."""

    url: str

    def alerts(self) -> list[dict[str, Any]]:
        """Firing alerts from its API, without ended ones."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?active=true", timeout=10) as response:
            alerts: list[dict[str, Any]] = json.load(response)
        return alerts


@contextmanager
def alertmanager_server() -> Iterator[AlertmanagerServer]:
    """A server that keeps alerts and notifies nobody."""
    program = need_program("prometheus-alertmanager", "prometheus-alertmanager")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="clusterscape-alertmanager-", ignore_cleanup_errors=True) as folder:
        config = Path(folder, "alertmanager.yml")
        # YAML takes JSON as it is.
        config.write_text(json.dumps({"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}))
        log_path = Path(folder, "log")
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [
                    program,
                    f"--config.file={config}",
                    f"--storage.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--cluster.listen-address=",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(url, process, log_path)
            yield AlertmanagerServer(url)
        finally:
            process.terminate()
            process.wait(30)


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"Alertmanager did not start:\n{log.read_text()}")
