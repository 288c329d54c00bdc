"""A real Dask cluster on the loopback: one scheduler and one worker, each its own process."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_S = 60.0


@contextmanager
def running_dask(folder: Path) -> Iterator[str]:
    """The scheduler's address; both processes have ended when this returns."""
    about = folder / "scheduler.json"
    shared = ("--scheduler-file", str(about), "--no-dashboard")
    commands = (
        ("distributed.cli.dask_scheduler", *shared, "--host", "127.0.0.1", "--port", "0"),
        ("distributed.cli.dask_worker", *shared, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny"),
    )
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with (folder / f"{command[0]}.log").open("wb") as log:
                started.append(subprocess.Popen([sys.executable, "-m", *command], cwd=folder, stdout=log, stderr=log))
            if len(started) == 1:
                wait_for(about, started[0], folder)
        yield str(json.loads(about.read_text())["address"])
    finally:
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(path: Path, process: subprocess.Popen[bytes], folder: Path) -> None:
    """Until the scheduler has said where it is."""
    until = time.monotonic() + WAIT_S
    while not path.is_file() or not path.read_text().strip().endswith("}"):
        if process.poll() is not None or time.monotonic() > until:
            logs = "\n".join(log.read_text(errors="replace")[-2000:] for log in folder.glob("*.log"))
            raise RuntimeError(f"the Dask scheduler did not start:\n{logs}")
        time.sleep(0.1)
