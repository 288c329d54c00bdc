"""Reads and analyzes traces in a process of its own, for the intake of traces: the server's memory and its other answers stay
as they were, and whatever goes wrong there is told here.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from clusterscape.errors import ClusterScapeError, SourceError, TooLargeError
from clusterscape.model.traces import (
    MEMORY_FILE,
    MODULES_FILE,
    OPERATORS_FILE,
    REPORT_FILE,
    SPANS_FILE,
    STEPS_FILE,
    ImportedTrace,
)
from clusterscape.runtime.process_memory import find_machine_memory, iter_tree, read_tree_bytes
from clusterscape.settings.limits import UploadLimits

BOOTSTRAP_SEED = 0  # the same files always give the same intervals
READING_SHARE = 0.6
LOOK_EVERY_S = 0.2
STEPS = 6
"""What is told of the analysis before it is over, roughly."""


def import_files(
    paths: Sequence[Path],
    folder: Path,
    progress: Callable[[float], None],
    scheduler: str | None = None,
    limits: UploadLimits | None = None,
) -> ImportedTrace:
    """Read and analyze in this process, or read on a Dask cluster; writes the files to keep into ``folder``."""
    import msgspec
    import numpy as np

    from clusterscape.analyze.trace.packing import pack_trace
    from clusterscape.analyze.trace.report import analyze_trace
    from clusterscape.model.trace_report import encode_report
    from clusterscape.runtime.trace_reading import read_anywhere

    done = 0

    def tell_step(_: str) -> None:
        nonlocal done
        done += 1
        progress(READING_SHARE + (1 - READING_SHARE) * min(1.0, done / STEPS))

    def tell_file(read: int, total: int, _: str) -> None:
        progress(READING_SHARE * read / total)

    trace = read_anywhere(paths, scheduler, progress=tell_file, limits=limits)
    report = analyze_trace(trace, np.random.default_rng(BOOTSTRAP_SEED), tell_step)
    packed = pack_trace(report)
    packed.spans.write_parquet(folder / SPANS_FILE, compression="zstd")
    packed.steps.write_parquet(folder / STEPS_FILE, compression="zstd")
    (folder / REPORT_FILE).write_bytes(encode_report(packed.document))
    kept = [SPANS_FILE, STEPS_FILE, REPORT_FILE]
    if trace.operators is not None:
        trace.operators.write_parquet(folder / OPERATORS_FILE, compression="zstd")
        kept.append(OPERATORS_FILE)
    if packed.modules:
        (folder / MODULES_FILE).write_bytes(msgspec.json.encode(packed.modules))
        kept.append(MODULES_FILE)
    if report.trace.memory is not None:
        report.trace.memory.write_parquet(folder / MEMORY_FILE, compression="zstd")
        kept.append(MEMORY_FILE)
    verdicts = report.verdicts
    return ImportedTrace(
        format=report.trace.format,
        ranks=len(report.trace.ranks),
        steps=int(report.steps["step"].n_unique()),
        spans=packed.spans.height,
        extent_ns=packed.extent_ns,
        origin_ms=packed.origin_ms,
        stages={facts.rank: facts.stage for facts in report.trace.ranks},
        notes=report.notes,
        headline=verdicts[0].sentence if verdicts else None,
        files={name: folder / name for name in kept},
    )


def import_apart(
    paths: Sequence[Path],
    folder: Path,
    progress: Callable[[float], None],
    is_stopped: Callable[[], bool] = lambda: False,
    scheduler: str | None = None,
    limits: UploadLimits | None = None,
) -> ImportedTrace:
    """The same in a process of its own, which ends soon after ``is_stopped`` says so.

    ``limits``: of files that somebody else sent. The process is ended where it takes more memory or time than they allow.
    """
    # A fork of a process that has used Polars may wait for ever for threads it does not have: start anew.
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sending, list(paths), folder, scheduler, limits), name="trace import")
    process.start()
    sending.close()
    watch = None if limits is None or process.pid is None else _ImportWatch(process.pid, limits)
    outcome: ImportedTrace | ClusterScapeError | None = None
    try:
        while not is_stopped():
            if watch is not None:
                watch.check()
            if not receiving.poll(LOOK_EVERY_S):
                continue
            told = receiving.recv()
            if isinstance(told, float):
                progress(told)
            else:
                outcome = told
    except EOFError:
        process.join()
    finally:
        receiving.close()
        _end(process)
    if isinstance(outcome, ImportedTrace):
        return outcome
    if isinstance(outcome, ClusterScapeError):
        raise outcome
    if is_stopped():
        raise SourceError("the trace was not read to its end: ClusterScape was stopped", hint="Import it again.")
    raise SourceError(
        f"the process that read the trace ended with status {process.exitcode}",
        hint="Was it ended for lack of memory? Import fewer ranks or steps at once.",
    )


class _ImportWatch:
    """Looks after the memory and the time of an import. Raises TooLargeError where either is spent."""

    def __init__(self, pid: int, limits: UploadLimits) -> None:
        self._pid = pid
        self._most_bytes = limits.import_memory_bytes or find_machine_memory() // 2
        self._most_s = limits.import_s
        self._began = time.monotonic()

    def check(self) -> None:
        if read_tree_bytes(self._pid) > self._most_bytes:
            raise TooLargeError(
                f"reading the trace takes more than {self._most_bytes / 2**30:.1f} GiB of memory",
                setting="limits.uploads.import_memory_bytes",
                hint="Import fewer ranks or steps at once.",
            )
        if time.monotonic() - self._began > self._most_s:
            raise TooLargeError(
                f"reading the trace takes more than {self._most_s:g} s",
                setting="limits.uploads.import_s",
                hint="Import fewer ranks or steps at once.",
            )


def _end(process: BaseProcess) -> None:
    """Its workers too: they would outlive a process that is killed."""
    if process.is_alive() and process.pid is not None:
        for pid in reversed(list(iter_tree(process.pid))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.join()


def _work(
    sending: Connection, paths: Sequence[Path], folder: Path, scheduler: str | None, limits: UploadLimits | None
) -> None:
    try:
        sending.send(import_files(paths, folder, lambda share: sending.send(float(share)), scheduler, limits))
    except ClusterScapeError as error:
        sending.send(SourceError(error.message, hint=error.hint))
    finally:
        sending.close()
