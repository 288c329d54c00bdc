"""The processes of a run: started together at a barrier, optionally with NVIDIA's profilers, followed in /proc, and their
outcome with its cause.

Children are started while this process has one thread. Each leads a separate session and is killed if its tracker dies.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from clusterscape.errors import ConfigError

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ZOMBIE = "Z"


class ProcessStat(NamedTuple):
    """Values of /proc/PID/stat. ``cpu_ticks`` includes ended children that were waited for."""

    pid: int
    parent: int
    session: int
    state: str
    cpu_ticks: int
    threads: int
    started_ticks: int
    memory_bytes: int


def read_stat(pid: int) -> ProcessStat | None:
    """The state of a process, or None if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 – thousands of times a minute
            text = file.read()
    except OSError:
        return None
    # The name is in parentheses and may itself contain parentheses and spaces.
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessStat(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        session=int(fields[3]),
        cpu_ticks=int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14]),
        threads=int(fields[17]),
        started_ticks=int(fields[19]),
        memory_bytes=int(fields[21]) * PAGE_BYTES,
    )


def read_io(pid: int) -> tuple[int, int] | None:
    """Bytes read from and written to storage, including children that were waited for; None without permission."""
    try:
        with open(f"/proc/{pid}/io", "rb") as file:  # noqa: PTH123
            counters = dict(line.split(b": ") for line in file.read().splitlines())
        return int(counters[b"read_bytes"]), int(counters[b"write_bytes"])
    except (OSError, KeyError, ValueError):
        return None


def iter_descendants(pid: int) -> Iterator[int]:
    """All processes below ``pid``, parents first."""
    waiting = [pid]
    while waiting:
        children = list(_children(waiting.pop()))
        yield from children
        waiting += children


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 – as above
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                yield from map(int, file.read().split())


class ProcessTree:
    """The processes of one run: descendants of its first process, and orphans of them."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._members: dict[int, int] = {}  # pid to start, so that a reused number is not taken for a member

    def find(self) -> list[ProcessStat]:
        """All current members, including zombies."""
        members: dict[int, ProcessStat] = {}
        root = read_stat(self.root)
        if root is not None:
            members[root.pid] = root
        for pid in iter_descendants(self.root):
            if stat := read_stat(pid):
                members[pid] = stat
        for pid in _children(os.getpid()):  # orphans came to the tracker
            if pid in members or (stat := read_stat(pid)) is None:
                continue
            if stat.session == self.root or self._members.get(pid) == stat.started_ticks:
                members[pid] = stat
                for below in iter_descendants(pid):
                    if inner := read_stat(below):
                        members[below] = inner
        self._members = {pid: stat.started_ticks for pid, stat in members.items()}
        return list(members.values())

    def living(self) -> list[ProcessStat]:
        """Members that still run."""
        return [stat for stat in self.find() if stat.state != ZOMBIE]

    def send(self, number: signal.Signals) -> int:
        """Signal every member that runs; returns how many there were."""
        living = self.living()
        for stat in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(stat.pid, number)
        return len(living)


_WORDS = {
    "nsys": ("profile", "--trace=cuda,nvtx", "--sample=none", "--force-overwrite=true", "--output={report}"),
    "ncu": ("--target-processes=all", "--force-overwrite", "--export={report}"),
}
PROFILERS = tuple(_WORDS)
PROFILE_REPORT = "profile"
"""Name of the report in the run's folder, without its extension."""


def check_profiler(name: str) -> str:
    """The profiler's name; raises ConfigError if it is unknown or not installed."""
    if name not in _WORDS:
        raise ConfigError(f"unknown profiler `{name}`", hint=f"There are: {', '.join(PROFILERS)}.")
    if shutil.which(name) is None:
        raise ConfigError(f"{name} is not installed", hint="It comes with NVIDIA Nsight; put its folder on PATH.")
    return name


def wrap_in_profiler(words: Sequence[str], profiler: str | None, folder: Path) -> list[str]:
    """The command with the profiler in front."""
    if profiler is None:
        return list(words)
    return [profiler, *(word.format(report=folder / PROFILE_REPORT) for word in _WORDS[profiler]), *words]


EXCEPTIONS_FILE = "exceptions.jsonl"
_OUT_OF_MEMORY_TYPES = ("MemoryError", "OutOfMemoryError", "CUDAOutOfMemoryError")


class RunOutcome(NamedTuple):
    """``state`` is a WorkloadState's value. ``cause`` is None only for a completed run."""

    state: str
    cause: str | None
    exit_code: int | None
    exit_signal: int | None

    @property
    def shell_code(self) -> int:
        """The exit code that a shell would report."""
        return 128 + self.exit_signal if self.exit_signal else self.exit_code or 0


class MemoryKills:
    """Number of out-of-memory kills in this process's control group; None if the kernel does not report it."""

    def __init__(self) -> None:
        self._file = _events_file()
        self._before = self._read()

    def has_risen(self) -> bool:
        """Whether there were kills since this object was created."""
        now = self._read()
        return now is not None and self._before is not None and now > self._before

    def _read(self) -> int | None:
        if self._file is None:
            return None
        try:
            events = dict(line.split() for line in self._file.read_text().splitlines())
            return int(events["oom_kill"])
        except (OSError, KeyError, ValueError):
            return None


def _events_file() -> Path | None:
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, _, path = line.split(":", 2)
            if number == "0":
                file = Path(f"/sys/fs/cgroup{path}/memory.events")
                return file if file.is_file() else None
    except (OSError, ValueError):
        pass
    return None


def judge_outcome(status: int, folder: Path, *, was_stopped: bool, memory_ran_out: bool) -> RunOutcome:
    """The outcome of a run, from a wait status."""
    code = os.waitstatus_to_exitcode(status)
    number = -code if code < 0 else None
    exception = _last_exception(folder)
    if code == 0:
        return RunOutcome("completed", None, 0, None)
    if was_stopped:
        return RunOutcome("cancelled", "stopped from outside", code if number is None else None, number)
    if number is not None:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if number == signal.SIGKILL and memory_ran_out:
            return RunOutcome("out_of_memory", "killed by the kernel: out of memory", None, number)
        return RunOutcome("failed", f"killed by signal {name}", None, number)
    if exception is not None:
        kind, text = exception
        state = "out_of_memory" if kind.rpartition(".")[2] in _OUT_OF_MEMORY_TYPES else "failed"
        return RunOutcome(state, f"{kind}: {text}" if text else kind, code, None)
    if memory_ran_out and code == 128 + signal.SIGKILL:  # the command passed on the exit code of a killed child
        return RunOutcome("out_of_memory", "a process was killed by the kernel: out of memory", code, None)
    return RunOutcome("failed", f"exit code {code}", code, None)


def not_started(words: str, error_number: int) -> RunOutcome:
    """The command could not be run at all."""
    return RunOutcome(
        "failed", f"cannot run {words}: {os.strerror(error_number)}", 127 if error_number == 2 else 126, None
    )


def _last_exception(folder: Path) -> tuple[str, str] | None:
    try:
        lines = (folder / EXCEPTIONS_FILE).read_text("utf-8", "replace").splitlines()
        last = json.loads(lines[-1])
        return str(last["type"]), str(last["message"])
    except (OSError, ValueError, IndexError, KeyError):
        return None


_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ERRNO = struct.Struct("<i")
_NOT_FOUND, _NOT_RUNNABLE = 127, 126


class Command(NamedTuple):
    """A command with its folder and environment."""

    words: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]
    output: Path | None = None  # file of its output; None: that of the tracker


class WaitingChild(NamedTuple):
    """A child at the barrier. ``started_fd`` is closed when it executes its command, or receives the error."""

    pid: int
    started_fd: int


class Barrier:
    """Children wait until ``release``; if the tracker dies before, they end without running the command."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._read_fd, self._write_fd = os.pipe()
        # Orphans of a run are reparented to the tracker, so that no process is lost.
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def place(self, command: Command) -> WaitingChild:
        """Fork a child that waits at the barrier."""
        started_fd, error_fd = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(started_fd)
                os.close(self._write_fd)
                self._become(command, error_fd, parent)
            finally:
                os._exit(_NOT_RUNNABLE)
        os.close(error_fd)
        return WaitingChild(pid, started_fd)

    def release(self) -> None:
        """Let all children execute their commands."""
        os.write(self._write_fd, b"g" * 4096)
        os.close(self._write_fd)
        os.close(self._read_fd)

    def _become(self, command: Command, error_fd: int, parent: int) -> NoReturn:
        os.setsid()
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        go = os.read(self._read_fd, 1)
        if not go or os.getppid() != parent:
            os._exit(_NOT_RUNNABLE)
        try:
            if command.output is not None:
                fd = os.open(command.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(fd, 1)
                os.dup2(fd, 2)
            os.chdir(command.cwd)
            os.execvpe(command.words[0], list(command.words), dict(command.environ))  # noqa: S606 – this is the task
        except OSError as error:
            os.write(error_fd, _ERRNO.pack(error.errno or 0))
            os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUNNABLE)


def wait_started(waiting: Sequence[WaitingChild]) -> dict[int, int | None]:
    """By pid: None if the child executes its command, else the errno of the failure."""
    errors: dict[int, int | None] = {}
    poller = select.poll()
    by_fd = {child.started_fd: child for child in waiting}
    for fd in by_fd:
        poller.register(fd, select.POLLIN | select.POLLHUP)
    while len(errors) < len(waiting):
        for fd, _ in poller.poll():
            data = os.read(fd, _ERRNO.size)
            errors[by_fd[fd].pid] = _ERRNO.unpack(data)[0] if len(data) == _ERRNO.size else None
            poller.unregister(fd)
            with contextlib.suppress(OSError):
                os.close(fd)
    return errors
