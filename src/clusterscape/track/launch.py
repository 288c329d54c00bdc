"""Starts the commands of a workload at the same moment: each child is ready and waits at a barrier before it becomes the command.

Call it while this process has one thread. A child leads a session of its own and is told to end when its tracker dies.
"""

import contextlib
import ctypes
import os
import select
import signal
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ERRNO = struct.Struct("<i")
_NOT_FOUND, _NOT_RUNNABLE = 127, 126


class Command(NamedTuple):
    """What to run, where, and with which environment."""

    words: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]
    output: Path | None = None  # where its output goes; None: where the tracker's goes


class Waiting(NamedTuple):
    """A child at the barrier. ``started_fd`` ends when it became its command, or tells why it could not."""

    pid: int
    started_fd: int


class Barrier:
    """Children wait until ``release``; if the tracker dies before, they end without having run anything."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._read_fd, self._write_fd = os.pipe()
        # Orphans of a run become ours, so that nothing of it gets lost from sight.
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def place(self, command: Command) -> Waiting:
        """A new child that waits."""
        started_fd, told_fd = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(started_fd)
                os.close(self._write_fd)
                self._become(command, told_fd, parent)
            finally:
                os._exit(_NOT_RUNNABLE)
        os.close(told_fd)
        return Waiting(pid, started_fd)

    def release(self) -> None:
        """Let all children go."""
        os.write(self._write_fd, b"g" * 4096)
        os.close(self._write_fd)
        os.close(self._read_fd)

    def _become(self, command: Command, told_fd: int, parent: int) -> NoReturn:
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
            os.write(told_fd, _ERRNO.pack(error.errno or 0))
            os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUNNABLE)


def wait_started(waiting: Sequence[Waiting]) -> dict[int, int | None]:
    """By pid: None once the child is its command, else the error number that kept it from it."""
    found: dict[int, int | None] = {}
    poller = select.poll()
    by_fd = {child.started_fd: child for child in waiting}
    for fd in by_fd:
        poller.register(fd, select.POLLIN | select.POLLHUP)
    while len(found) < len(waiting):
        for fd, _ in poller.poll():
            told = os.read(fd, _ERRNO.size)
            found[by_fd[fd].pid] = _ERRNO.unpack(told)[0] if len(told) == _ERRNO.size else None
            poller.unregister(fd)
            with contextlib.suppress(OSError):
                os.close(fd)
    return found
