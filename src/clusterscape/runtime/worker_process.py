"""Child processes for long computations, so that they do not delay requests: threads of one Python process share the GIL.

They start when first needed, run at a low priority, and end themselves when idle for some minutes. One that takes more memory
than allowed is killed; one that ends by itself is reported and replaced.
"""

import logging
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from clusterscape.errors import ClusterScapeError, QueryError, StoppedError, TooLargeError
from clusterscape.executors import Report
from clusterscape.runtime.processes import NICE, find_machine_memory, kill_tree, read_tree_bytes
from clusterscape.supervision import BackgroundLoops

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Task = TypeVar("Task")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

IDLE_S = 300.0
ENDING_S = 5.0
CHECK_EVERY_S = 0.2
"""How often the memory of a computation is checked, and whether one that waits for a process is still wanted."""
MEMORY_SHARE = 0.5
"""Of the machine's memory, for all processes together, where no limit is set."""
STOP = "stop"
ATTEMPTS = 3


class WorkerProcesses:
    """A few processes with one computation each; further ones wait their turn, in the order in which they came. Thread-safe."""

    def __init__(
        self,
        count: int = 1,
        *,
        memory_bytes: int | None = None,
        idle_s: float = IDLE_S,
        loops: BackgroundLoops | None = None,
    ) -> None:
        """``memory_bytes``: of one process; None: a share of the machine's. ``loops`` says when a process ended by itself."""
        most_bytes = memory_bytes or int(MEMORY_SHARE * find_machine_memory()) // count
        self._health = (loops or BackgroundLoops()).loop(
            "computations", log, fails="a process that computes ended", works="computations succeed again"
        )
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._all = [_WorkerProcess(idle_s, most_bytes) for _ in range(count)]
        self._free = list(self._all)

    def compute(self, work: Callable[[Task, Report], Result], task: Task, report: Report) -> Result:
        """See ``executors.Compute``. Raises QueryError if the process ended before it was done, TooLargeError if it took too much
        memory.
        """
        with self._process(report) as process:
            try:
                result = process.compute(work, task, report)
            except _ProcessEndedError as error:
                self._note_end(error)
                raise QueryError(
                    error.message, hint="If it was killed for lack of memory, ask for less at once."
                ) from None
        self._health.succeed()
        return result

    def close(self) -> None:
        """Kill the processes, even while they compute; their callers get an error."""
        for process in self._all:
            process.close()

    @contextmanager
    def _process(self, report: Report) -> Iterator["_WorkerProcess"]:
        """A free process: the one that was used last, so that others may end. ``report`` raises StoppedError while it waits."""
        turn = object()
        with self._changed:
            self._waiting.append(turn)
            try:
                while not self._free or self._waiting[0] is not turn:
                    self._changed.wait(CHECK_EVERY_S)
                    report(0.0)
                process = self._free.pop()
            finally:
                self._waiting.remove(turn)
                self._changed.notify_all()
        try:
            yield process
        finally:
            with self._changed:
                self._free.append(process)
                self._changed.notify_all()

    def _note_end(self, error: "_ProcessEndedError") -> None:
        if not error.is_wanted:
            with self._health:
                raise error


class _ProcessEndedError(ClusterScapeError):
    """A process ended during a computation. ``is_wanted``: because the server stops."""

    def __init__(self, status: int | None, *, is_wanted: bool) -> None:
        super().__init__(f"the process that computes ended with status {status}")
        self.is_wanted = is_wanted


@dataclass(slots=True)
class _Child:
    process: "BaseProcess"
    connection: "Connection"


class _WorkerProcess:
    """One process, used by one caller at a time."""

    def __init__(self, idle_s: float, most_bytes: int) -> None:
        self._idle_s = idle_s
        self._most_bytes = most_bytes
        self._child: _Child | None = None
        self._is_closed = False

    def compute(self, work: Callable[[Task, Report], Result], task: Task, report: Report) -> Result:
        for attempt in range(ATTEMPTS):
            if self._is_closed:
                raise _ProcessEndedError(None, is_wanted=True)
            if self._child is not None and not self._child.process.is_alive():
                self._end()
            child = self._child or self._start()
            try:
                child.connection.send((work, task))
                result: Result = self._receive(child, report)
                return result
            except (EOFError, ConnectionError):
                status = self._end()
                # Status 0: it ended by itself, idle for too long, while the task was being sent. Start another.
                if status != 0 or attempt == ATTEMPTS - 1:
                    raise _ProcessEndedError(status, is_wanted=self._is_closed) from None
        raise AssertionError("every attempt returns or raises")

    def close(self) -> None:
        self._is_closed = True
        child = self._child
        if child is not None and child.process.is_alive():
            child.process.kill()

    def _start(self) -> _Child:
        import multiprocessing  # slow to import

        # A fork of a process that has used Polars may deadlock on missing threads.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._idle_s), name="computations", daemon=True)
        process.start()
        theirs.close()
        self._child = _Child(process, ours)
        return self._child

    def _receive(self, child: _Child, report: Report) -> Any:
        """The result. A computation that is stopped but does not notice is killed."""
        share, stopped, stopped_at_s = 0.0, None, 0.0
        while True:
            if child.connection.poll(CHECK_EVERY_S):
                kind, value = child.connection.recv()
                if kind != "progress":
                    return _take_result(kind, value, stopped)
                share = value
            else:
                self._check_memory(child)
            if stopped is None:
                try:
                    report(share)
                except StoppedError as error:
                    stopped, stopped_at_s = error, time.monotonic()
                    child.connection.send(STOP)
            elif time.monotonic() - stopped_at_s > ENDING_S:
                self._end(kill=True)
                raise stopped

    def _check_memory(self, child: _Child) -> None:
        if child.process.pid is not None and read_tree_bytes(child.process.pid) > self._most_bytes:
            self._end(kill=True)
            raise TooLargeError(
                f"the computation takes more than {self._most_bytes / 2**30:.1f} GiB of memory",
                setting="limits.work.process_memory_bytes",
                hint="Ask for less at once.",
            )

    def _end(self, *, kill: bool = False) -> int | None:
        child, self._child = self._child, None
        if child is None:
            return None
        child.connection.close()
        if not kill:
            child.process.join(ENDING_S)
        kill_tree(child.process)
        return child.process.exitcode


def _take_result(kind: str, value: Any, stopped: StoppedError | None) -> Any:
    if stopped is not None:
        raise stopped
    if kind == "refused":
        raise value
    if kind == "failed":
        raise RuntimeError(value)
    return value


def _serve(connection: "Connection", idle_s: float) -> None:
    """Compute tasks until the server ends, or no task came for ``idle_s``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when this ends
    os.nice(NICE)
    with connection, suppress(EOFError, ConnectionError, ServerGoneError):
        while connection.poll(idle_s):
            message = connection.recv()
            if message != STOP:  # a stop may arrive after the computation is over
                connection.send(_compute(connection, *message))


class ServerGoneError(Exception):
    """The other end of the connection was closed during a computation."""


def _compute(connection: "Connection", work: Callable[[Task, Report], object], task: Task) -> tuple[str, object]:
    def report(share: float) -> None:
        try:
            connection.send(("progress", share))
            is_stopped = connection.poll() and connection.recv() == STOP
        except (EOFError, ConnectionError) as error:
            raise ServerGoneError from error
        if is_stopped:
            raise StoppedError("the computation was stopped")

    try:
        return "done", work(task, report)
    except ClusterScapeError as error:
        return "refused", error
    except ServerGoneError:
        raise
    except Exception:
        return "failed", traceback.format_exc()
