"""``clusterscape serve`` in a process of its own, with whatever settings a test writes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_server(folder: Path, config: str, *, port: int = 0) -> Iterator[str]:
    """The address of a server with these settings; its log is ``serve.log`` in ``folder``."""
    (folder / "clusterscape.toml").write_text(config)
    command = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", str(port), "--json", "--config"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CLUSTERSCAPE_")}
    with (folder / "serve.log").open("wb") as log:
        child = subprocess.Popen(
            [*command, str(folder / "clusterscape.toml")], stdout=subprocess.PIPE, stderr=log, env=environ
        )
        assert child.stdout is not None
        try:
            text = ""
            while not text.rstrip().endswith("}"):
                line = child.stdout.readline().decode()
                assert line, (folder / "serve.log").read_text()
                text += line
            yield json.loads(text)["url"]
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(timeout=60)
            child.stdout.close()
