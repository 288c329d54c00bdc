"""Runs a function in a process of its own and reports its peak memory beyond that of its imports."""

import multiprocessing
import resource
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from clusterscape.errors import ClusterScapeError

MIB = 2**20
MOST_DATA_BYTES = 7 * 2**30
"""A function that takes more fails with a MemoryError: the machine of the tests must survive code without limits."""


class Cost(NamedTuple):
    """Result of a call: ``error`` is our own error's message and hint, if it raised one."""

    peak_bytes: int
    value: Any
    error: str | None


def measure(function: Callable[..., Any], *args: Any) -> Cost:
    """``function(*args)`` in a new process. Raises AssertionError with its traceback where it fails otherwise."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(sending, function, args))
    process.start()
    sending.close()
    try:
        outcome = receiving.recv()
    except EOFError:
        outcome = "it was killed"
    process.join()
    assert isinstance(outcome, Cost), outcome
    return outcome


def _call(sending: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA_BYTES, MOST_DATA_BYTES))
    value, error = None, None
    before = _read_memory("VmRSS")
    try:
        value = function(*args)
    except ClusterScapeError as raised:
        error = f"{raised.message} {raised.hint or ''}"
    except BaseException:
        sending.send(traceback.format_exc())
        return
    sending.send(Cost(_read_memory("VmHWM") - before, value, error))


def _read_memory(name: str) -> int:
    """Of this process, bytes. VmHWM: the most it ever had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
