"""Runs server and client with live reload on the demo cluster: ``make dev``. Ctrl-C stops both."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

from watchfiles import PythonFilter, watch

ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "-m", "clusterscape.cli", "demo", *sys.argv[1:]]
CLIENT = ["npm", "run", "dev"]


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a child process and wait for it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """Start both; restart the server whenever its code changes (Vite reloads the client itself)."""
    # An event instead of an exception: Ctrl-C during a restart must not leave a server running.
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    client = subprocess.Popen(CLIENT, cwd=ROOT / "web")
    server = subprocess.Popen(SERVER)
    for _ in watch(ROOT / "src", watch_filter=PythonFilter(), stop_event=stopping, raise_interrupt=False):
        stop(server)
        if stopping.is_set():
            break
        server = subprocess.Popen(SERVER)
    stop(server)
    stop(client)


if __name__ == "__main__":
    main()
