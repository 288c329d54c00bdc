"""A child process for long computations, so that they do not delay requests: threads of one Python process share the GIL.

It is started when first needed, runs at a low priority, and ends itself when idle for some minutes.
"""

import os
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from clusterscape.errors import ClusterScapeError, QueryError, StoppedError
from clusterscape.executors import Report

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Task = TypeVar("Task")
Result = TypeVar("Result")

IDLE_S = 300.0
ENDING_S = 5.0
NICE = 10
"""Requests have priority."""
STOP = "stop"
ATTEMPTS = 3


class WorkerProcess:
    """One computation at a time; others wait for it. Thread-safe."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def compute(self, work: Callable[[Task, Report], Result], task: Task, report: Report) -> Result:
        """See ``executors.Compute``. Raises QueryError if the process ended before it was done."""
        with self._lock:
            for attempt in range(ATTEMPTS):
                connection = self._connection or self._start()
                try:
                    connection.send((work, task))
                    result: Result = self._receive(connection, report)
                    return result
                except (EOFError, ConnectionError):
                    status = self._end()
                    # Status 0: it ended by itself, idle for too long, while the task was being sent. Start another.
                    if status != 0 or attempt == ATTEMPTS - 1:
                        raise QueryError(
                            f"the process that simulates ended with status {status}",
                            hint="If it was killed for lack of memory, request fewer futures.",
                        ) from None
        raise AssertionError("every attempt returns or raises")

    def close(self) -> None:
        """Kill the process, even while it computes; waiting callers get an error."""
        process = self._process
        if process is not None and process.is_alive():
            process.kill()

    def _start(self) -> "Connection":
        import multiprocessing  # slow to import

        # A fork of a process that has used Polars may deadlock on missing threads.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._idle_s), name="simulations", daemon=True)
        process.start()
        theirs.close()
        self._process, self._connection = process, ours
        return ours

    def _receive(self, connection: "Connection", report: Report) -> Any:
        stopped: StoppedError | None = None
        while True:
            kind, value = connection.recv()
            if kind == "progress":
                try:
                    report(value)
                except StoppedError as error:
                    stopped = error
                    connection.send(STOP)
            elif stopped is not None:
                raise stopped
            elif kind == "refused":
                raise QueryError(value[0], hint=value[1])
            elif kind == "failed":
                raise RuntimeError(value)
            else:
                return value

    def _end(self) -> int | None:
        if self._connection is not None:
            self._connection.close()
        process, self._process, self._connection = self._process, None, None
        if process is None:
            return None
        process.join(ENDING_S)
        process.kill()
        process.join()
        return process.exitcode


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
        return "refused", (error.message, error.hint)
    except ServerGoneError:
        raise
    except Exception:
        return "failed", traceback.format_exc()
