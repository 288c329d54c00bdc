"""The ``clusterscape`` command as a user types it, in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clusterscape.track.places import runs_folder
from clusterscape.track.spooled import SpooledRun, list_runs, read_run

DEADLINE_S = 300.0
_DROPPED = ("VIRTUAL_ENV", "CONDA_PREFIX", "XDG_RUNTIME_DIR", "PYTEST_CURRENT_TEST", "MLFLOW_TRACKING_URI")


@dataclass
class Command:
    """Runs commands in ``folder``; what they track is below ``home``."""

    folder: Path
    home: Path
    variables: dict[str, str] = field(default_factory=dict)
    deadline_s: float = DEADLINE_S

    @property
    def state(self) -> Path:
        return self.home / "clusterscape"

    @property
    def environ(self) -> dict[str, str]:
        left = {k: v for k, v in os.environ.items() if k not in _DROPPED}
        left = {k: v for k, v in left.items() if not k.startswith("CLUSTERSCAPE_")}
        return {**left, "XDG_STATE_HOME": str(self.home), **self.variables}

    def script(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words),
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=self.deadline_s,
        )

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "clusterscape.cli", *words]

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            self.words(*words),
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()

    def runs(self) -> list[SpooledRun]:
        """Oldest first; those of one workload by their letter. Names of folders tell the second only."""
        if not runs_folder(self.state).is_dir():
            return []
        runs = [read_run(folder) for folder in list_runs(self.state)]
        return sorted(runs, key=lambda run: (int(str(run.about["queued_at"])), str(run.about.get("letter"))))

    def only_run(self) -> SpooledRun:
        (run,) = self.runs()
        return run


def wait_for(condition: Callable[[], bool], event: str) -> None:
    """Waits until the condition holds; fails after the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"{event} did not happen"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs, zombies not counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
