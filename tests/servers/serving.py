"""``clusterscape serve`` in a process of its own, to be stopped or killed."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def own_metric(self, name: str) -> float:
        """One of its own metrics, all of its labels added up."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as response:
            text = response.read().decode()
        values = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, values))

    def kill(self) -> None:
        """Kill −9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)


@contextmanager
def serving(folder: Path, config: str, *words: str, environment: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A server with these settings; it is stopped at the end, if it still runs, and must exit cleanly."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "clusterscape.toml").write_text(config)
    command = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", "0", "--json", *words]
    log_path = folder / "serve.log"
    with log_path.open("wb") as log:
        child = subprocess.Popen(
            [*command, "--config", str(folder / "clusterscape.toml")],
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "CLUSTERSCAPE_STORAGE__DATA_DIR": str(folder / "data"), **(environment or {})},
        )
    assert child.stdout is not None
    try:
        text = ""
        while not text.rstrip().endswith("}"):
            line = child.stdout.readline().decode()
            assert line, log_path.read_text()
            text += line
        started = json.loads(text)
        assert "url" in started, text + log_path.read_text()
        yield Served(started["url"], child, log_path)
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            assert child.wait(timeout=60) == 0, log_path.read_text()
        child.stdout.close()
