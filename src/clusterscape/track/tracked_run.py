"""One run: its folder, its spool, the lock that marks it as running, and the events of its life cycle."""

import contextlib
import fcntl
import getpass
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clusterscape.errors import StoreError
from clusterscape.track.devices import MigInstance
from clusterscape.track.listeners import ListenerChoice
from clusterscape.track.places import LOCK_FILE, RUN_VARIABLE, make_run_folder
from clusterscape.track.processes import EXCEPTIONS_FILE, Command, RunOutcome, wrap_in_profiler
from clusterscape.track.redaction import Redactor
from clusterscape.track.spool import RunClock, Spool

TRACKER_FILE = "tracker.spool"
OUTPUT_FILE = "output.log"
_STARTUP = Path(__file__).parent / "startup"
CPU = "cpu"


class RunRequest(NamedTuple):
    """A run to execute. ``devices`` are GPU indices, ``cpu``, or empty to leave the choice to the command."""

    words: Sequence[str]
    cwd: Path
    name: str
    experiment: str | None = None
    workload: str | None = None
    letter: str | None = None
    devices: tuple[str, ...] = ()
    collocation: str | None = None
    params: Mapping[str, str] = {}
    tags: Mapping[str, str] = {}
    environ: Mapping[str, str] = {}
    instances: tuple[MigInstance, ...] = ()  # MIG instances that stand for its devices
    listeners: Sequence[ListenerChoice] = ()
    queued_at: int | None = None  # Unix ms; None: now
    profiler: str | None = None  # stands in front of the command
    keeps_output: bool = False  # in the run's folder instead of on the terminal


def host_name() -> str:
    """The host's short name, as schedulers use it."""
    return socket.gethostname().partition(".")[0]


def user_name() -> str:
    """The user's name, or the user id if there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


class TrackedRun:
    """A run that this process tracks."""

    def __init__(self, request: RunRequest, state: Path, clock: RunClock) -> None:
        self.request = request
        self.outcome: RunOutcome | None = None
        self.pid = 0
        self.redactor = Redactor({**os.environ, **request.environ}, request.words)
        self._clock = clock
        try:
            self.folder = make_run_folder(state)
            self.id = self.folder.name
            self._lock_fd = os.open(self.folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            self.spool = Spool(self.folder / TRACKER_FILE, self.redactor)
        except OSError as error:
            raise StoreError(
                f"cannot write to {state}: {error.strerror}",
                hint="Free some space, or set XDG_STATE_HOME to a folder that can be written.",
            ) from None
        self._announce()

    def command(self) -> Command:
        """The command of the child process, with the variables of its run and devices."""
        environ = child_environ(self.request)
        environ[RUN_VARIABLE] = f"{self._clock.anchor_ns}:{self.folder}"
        output = self.folder / OUTPUT_FILE if self.request.keeps_output else None
        words = wrap_in_profiler(self.request.words, self.request.profiler, self.folder)
        return Command(words, self.request.cwd, environ, output)

    def moment(self, moment: str) -> None:
        """Record the start of a new phase of the run."""
        self.spool.event("moment", moment=moment, at=self._clock.now_ms())

    def end(self, outcome: RunOutcome) -> None:
        """Record the end of the run."""
        cause = outcome.cause
        self.outcome = outcome = outcome._replace(cause=None if cause is None else self.redactor.text(cause))
        for line in self._read_exceptions():
            self.spool.event("exception", text=line)
        self.spool.flush()
        self.spool.event(
            "end",
            state=outcome.state,
            cause=outcome.cause,
            exit_code=outcome.exit_code,
            exit_signal=outcome.exit_signal,
            at=self._clock.now_ms(),
        )

    def close(self) -> None:
        """Write everything and close the run."""
        self.moment("flushed")
        self.spool.close()
        os.close(self._lock_fd)

    def discard(self) -> None:
        """Delete the folder of a run that was not started."""
        self.spool.close()
        os.close(self._lock_fd)
        with contextlib.suppress(OSError):
            shutil.rmtree(self.folder)

    def _announce(self) -> None:
        request = self.request
        queued_at = request.queued_at or self._clock.now_ms()
        announced = self.spool.event("run", run=self.id, queued_at=queued_at, **describe_request(request))
        if not announced:
            raise StoreError(f"cannot write to {self.folder}", hint="Free some space, or set XDG_STATE_HOME.")
        if request.tags:
            self.spool.event("tags", tags=dict(request.tags))

    def _read_exceptions(self) -> list[str]:
        """The exceptions of its processes. The file is masked again, because more secrets may be known now."""
        file = self.folder / EXCEPTIONS_FILE
        try:
            lines = [self.redactor.text(line) for line in file.read_text("utf-8", "replace").splitlines()[-20:]]
            file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        except OSError:
            return []
        return lines


def child_environ(request: RunRequest) -> dict[str, str]:
    """The environment of the command, without variables that name the run itself."""
    environ = {**os.environ, **request.environ}
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_STARTUP), environ.get("PYTHONPATH")]))
    if request.devices:
        devices = [device for device in request.devices if device != CPU]
        environ["CUDA_VISIBLE_DEVICES"] = ",".join([instance.uuid for instance in request.instances] or devices)
        environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # NVML's order
    return environ


def describe_request(request: RunRequest) -> dict[str, object]:
    """The content of a run's first event, not masked yet."""
    return {
        "name": request.name,
        "experiment": request.experiment,
        "workload": request.workload,
        "letter": request.letter,
        "user": user_name(),
        "host": host_name(),
        "pid": os.getpid(),
        "command": list(request.words),
        "cwd": str(request.cwd),
        "devices": list(request.devices),
        "collocation": request.collocation,
        "profiler": request.profiler,
        "mig": [instance._asdict() for instance in request.instances],
        "params": dict(request.params),
        "listeners": [str(choice) for choice in request.listeners],
    }
