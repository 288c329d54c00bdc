"""A writer in a process of its own, killed at a chosen moment."""

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

Where = TypeVar("Where")

# Not forked: Polars has threads from its import on, and a fork may wait for ever for a lock that one of them held.
_PROCESSES = multiprocessing.get_context("spawn")
ACKNOWLEDGED_S = 300.0


def run_and_kill(
    write_until_killed: "Callable[[Where, int, Connection[int, None]], None]", where: Where, first: int, seconds: float
) -> int:
    """Let a writer run for ``seconds`` after its first write, kill it, and return the last write it acknowledged."""
    reading, writing = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=write_until_killed, args=(where, first, writing))
    process.start()
    writing.close()
    assert process.pid is not None
    assert reading.poll(ACKNOWLEDGED_S), "the writer acknowledged nothing"
    last: int = reading.recv()
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with contextlib.suppress(EOFError, OSError):
        while True:
            last = reading.recv()
    reading.close()
    assert process.exitcode == -signal.SIGKILL
    return last
