"""Server and client with live reload, on the demo cluster: ``make dev``. Ctrl-C ends both."""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from watchfiles import PythonFilter, watch

ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "-m", "clusterscape.cli", "demo", *sys.argv[1:]]
CLIENT = ["npm", "run", "dev"]


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child and wait for it, even while Ctrl-C is pressed again."""
    while process.poll() is None:
        with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)


def main() -> None:
    """Start both; start the server again whenever its code changes (Vite reloads the client itself)."""
    client = subprocess.Popen(CLIENT, cwd=ROOT / "web")
    server = subprocess.Popen(SERVER)
    try:
        for _ in watch(ROOT / "src", watch_filter=PythonFilter(), raise_interrupt=False):
            stop(server)
            server = subprocess.Popen(SERVER)
    finally:
        stop(server)
        stop(client)


if __name__ == "__main__":
    main()
