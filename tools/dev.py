"""Server and client with live reload, on the demo cluster: ``make dev``. Ctrl-C ends both."""

import signal
import subprocess
import sys
from pathlib import Path

from watchfiles import PythonFilter, watch

ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "-m", "clusterscape.cli", "demo", *sys.argv[1:]]
CLIENT = ["npm", "run", "dev"]


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child and wait for it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)


def main() -> None:
    """Start both; start the server again whenever its code changes (Vite reloads the client itself)."""
    client = subprocess.Popen(CLIENT, cwd=ROOT / "web")
    server = subprocess.Popen(SERVER)
    try:
        for _ in watch(ROOT / "src", watch_filter=PythonFilter()):
            stop(server)
            server = subprocess.Popen(SERVER)
    except KeyboardInterrupt:
        pass
    finally:
        stop(server)
        stop(client)


if __name__ == "__main__":
    main()
