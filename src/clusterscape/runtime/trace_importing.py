"""Reads uploaded files in a child process, so that the server is not affected: traces, which are analyzed there as well, and job
traces. Limits the memory of the child and its children, and the time.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from clusterscape.errors import ClusterScapeError, QueryError, SourceError, TooLargeError
from clusterscape.model.jobs import JobTrace
from clusterscape.model.traces import (
    MEMORY_FILE,
    MODULES_FILE,
    OPERATORS_FILE,
    REPORT_FILE,
    SPANS_FILE,
    STEPS_FILE,
    ImportedTrace,
)
from clusterscape.runtime.processes import NICE, find_machine_memory, kill_tree, read_tree_bytes
from clusterscape.settings.limits import UploadLimits

BOOTSTRAP_SEED = 0  # the same files always give the same intervals
READING_SHARE = 0.6
POLL_S = 0.2
STEPS = 6
"""Approximate number of progress reports of the analysis."""


def import_files(
    paths: Sequence[Path],
    folder: Path,
    progress: Callable[[float], None],
    scheduler: str | None = None,
    limits: UploadLimits | None = None,
) -> ImportedTrace:
    """Read (here or on a Dask cluster) and analyze the files; writes the results to ``folder``."""
    import msgspec
    import numpy as np

    from clusterscape.analyze.trace.document import pack_trace
    from clusterscape.analyze.trace.report import analyze_trace
    from clusterscape.model.trace_report import encode_report
    from clusterscape.runtime.dask_cluster import read_trace_files

    done = 0

    def report_step(_: str) -> None:
        nonlocal done
        done += 1
        progress(READING_SHARE + (1 - READING_SHARE) * min(1.0, done / STEPS))

    def report_file(read: int, total: int, _: str) -> None:
        progress(READING_SHARE * read / total)

    trace = read_trace_files(paths, scheduler, progress=report_file, limits=limits)
    if limits is not None and trace.spans.height > limits.trace_spans:
        raise TooLargeError(
            f"the trace has {trace.spans.height:,} spans, more than {limits.trace_spans:,}",
            setting="limits.uploads.trace_spans",
            hint=_IMPORT_HINT,
        )
    report = analyze_trace(trace, np.random.default_rng(BOOTSTRAP_SEED), report_step)
    packed = pack_trace(report)
    packed.spans.write_parquet(folder / SPANS_FILE, compression="zstd")
    packed.steps.write_parquet(folder / STEPS_FILE, compression="zstd")
    (folder / REPORT_FILE).write_bytes(encode_report(packed.document))
    names = [SPANS_FILE, STEPS_FILE, REPORT_FILE]
    if trace.operators is not None:
        trace.operators.write_parquet(folder / OPERATORS_FILE, compression="zstd")
        names.append(OPERATORS_FILE)
    if packed.modules:
        (folder / MODULES_FILE).write_bytes(msgspec.json.encode(packed.modules))
        names.append(MODULES_FILE)
    if report.trace.memory is not None:
        report.trace.memory.write_parquet(folder / MEMORY_FILE, compression="zstd")
        names.append(MEMORY_FILE)
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
        files={name: folder / name for name in names},
    )


def import_in_subprocess(
    paths: Sequence[Path],
    folder: Path,
    progress: Callable[[float], None],
    is_stopped: Callable[[], bool] = lambda: False,
    scheduler: str | None = None,
    limits: UploadLimits | None = None,
) -> ImportedTrace:
    """Run ``import_files`` in a child process, which is killed soon after ``is_stopped`` returns True.

    ``limits``: limits of files that users uploaded. The process is killed if it takes more memory or time than they allow.
    """
    outcome = _receive(
        (_run_import, (list(paths), folder, scheduler, limits)),
        "trace import",
        limits,
        _IMPORT_HINT,
        progress,
        is_stopped,
    )
    if isinstance(outcome, ImportedTrace):
        return outcome
    if is_stopped():
        raise SourceError("the import was interrupted: ClusterScape was stopped", hint="Import the trace again.")
    raise _ended(outcome, "the import process", _IMPORT_HINT)


def read_job_trace_in_subprocess(path: Path, format: str | None, timezone: str, limits: UploadLimits) -> JobTrace:
    """``read_trace`` of a job trace in a child process, which is killed if it takes more memory or time than the limits allow."""
    work = (_run_job_trace, (path, format, timezone, limits))
    outcome = _receive(work, "job trace reader", limits, _JOB_TRACE_HINT, lambda _: None, lambda: False)
    if isinstance(outcome, JobTrace):
        return outcome
    raise _ended(outcome, "the process that reads the job trace", _JOB_TRACE_HINT)


_IMPORT_HINT = "Import fewer ranks or steps at once."
_JOB_TRACE_HINT = "Split it by time."


@dataclass(frozen=True, slots=True)
class _Refusal:
    """One of our errors, which cannot be pickled themselves."""

    kind: type[ClusterScapeError]
    message: str
    hint: str | None
    setting: str = ""

    def to_error(self) -> ClusterScapeError:
        if issubclass(self.kind, TooLargeError):
            return TooLargeError(self.message, setting=self.setting, hint=self.hint or "")
        return self.kind(self.message, hint=self.hint)


def _refuse(error: ClusterScapeError) -> _Refusal:
    if isinstance(error, TooLargeError):
        return _Refusal(TooLargeError, error.message, error.advice, error.setting)
    return _Refusal(QueryError if isinstance(error, QueryError) else SourceError, error.message, error.hint)


def _receive(
    work: tuple[Callable[..., None], tuple[object, ...]],
    name: str,
    limits: UploadLimits | None,
    hint: str,
    progress: Callable[[float], None],
    is_stopped: Callable[[], bool],
) -> object:
    """Run a function in a child process and return what it sends last, or the exit status of the process."""
    # A fork of a process that has used Polars may deadlock on missing threads: spawn instead.
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    function, arguments = work
    process = context.Process(target=function, args=(sending, *arguments), name=name)
    process.start()
    sending.close()
    watch = None if limits is None or process.pid is None else _ImportLimit(process.pid, limits, hint)
    outcome: object = None
    try:
        while not is_stopped():
            if watch is not None:
                watch.check()
            if not receiving.poll(POLL_S):
                continue
            message = receiving.recv()
            if isinstance(message, float):
                progress(message)
            else:
                outcome = message
    except EOFError:
        process.join()
    finally:
        receiving.close()
        kill_tree(process)
    return process.exitcode if outcome is None else outcome


def _ended(outcome: object, subject: str, hint: str) -> ClusterScapeError:
    if isinstance(outcome, _Refusal):
        return outcome.to_error()
    return SourceError(f"{subject} ended with status {outcome}", hint=f"Was it killed because memory ran out? {hint}")


class _ImportLimit:
    """Limits the memory and the time of an import. Raises TooLargeError above a limit."""

    def __init__(self, pid: int, limits: UploadLimits, hint: str) -> None:
        self._pid = pid
        self._hint = hint
        self._most_bytes = limits.import_memory_bytes or find_machine_memory() // 2
        self._most_s = limits.import_timeout_s
        self._began = time.monotonic()

    def check(self) -> None:
        if read_tree_bytes(self._pid) > self._most_bytes:
            raise TooLargeError(
                f"reading the trace takes more than {self._most_bytes / 2**30:.1f} GiB of memory",
                setting="limits.uploads.import_memory_bytes",
                hint=self._hint,
            )
        if time.monotonic() - self._began > self._most_s:
            raise TooLargeError(
                f"reading the trace takes more than {self._most_s:g} s",
                setting="limits.uploads.import_timeout_s",
                hint=self._hint,
            )


def _run_import(
    sending: Connection, paths: Sequence[Path], folder: Path, scheduler: str | None, limits: UploadLimits | None
) -> None:
    os.nice(NICE)
    try:
        sending.send(import_files(paths, folder, lambda share: sending.send(float(share)), scheduler, limits))
    except ClusterScapeError as error:
        sending.send(_Refusal(SourceError, error.message, error.hint))
    finally:
        sending.close()


def _run_job_trace(sending: Connection, path: Path, format: str | None, timezone: str, limits: UploadLimits) -> None:
    from clusterscape.collect.job_traces import read_trace

    os.nice(NICE)
    try:
        sending.send(read_trace(path, format, timezone=timezone, limits=limits))
    except ClusterScapeError as error:
        sending.send(_refuse(error))
    finally:
        sending.close()
