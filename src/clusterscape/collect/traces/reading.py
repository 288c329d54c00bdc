"""Reads traces of any format into one ``Trace``: finds the files, detects their format, reads ranks in parallel and joins them.

A file that cannot be read is reported in the notes and skipped.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from clusterscape.collect.traces.files import (
    ARCHIVE_ERRORS,
    Content,
    TraceFile,
    assign_ranks,
    find_trace_files,
    read_content,
)
from clusterscape.collect.traces.formats import TraceFormat, detect_format
from clusterscape.collect.traces.kineto import KinetoFile
from clusterscape.collect.traces.kineto_context import add_step_context
from clusterscape.collect.traces.kineto_measures import MemoryColumns
from clusterscape.collect.traces.kineto_spans import SpanColumns, describe_rank, to_rank
from clusterscape.errors import ClusterScapeError, SourceError, TooLargeError
from clusterscape.model.spans import RankFacts, Trace, make_spans

if TYPE_CHECKING:
    from clusterscape.settings.limits import UploadLimits  # importing it takes a third of a worker's start-up time

Progress = Callable[[int, int, str], None]
"""Called with the number of files done, the number of files, and the name of the last one."""

COMPANIONS = (TraceFormat.MINDSPORE_SCOPES, TraceFormat.MINDSPORE_GRAPH, TraceFormat.CAPTURE)
"""Formats that are read only together with a timeline."""
ONE_PER_RANK = (TraceFormat.KINETO, TraceFormat.NSIGHT)
"""Formats with a file per rank."""
MAX_LENGTH_NS = 30 * 86_400 * 10**9
"""A month, longer than any profiler records."""
PARALLEL_BYTES = 2 << 20  # total file size; below it, starting a process takes longer than reading


@dataclass(frozen=True, slots=True)
class RankSpans:
    """The spans of one rank's file, with a null rank, and the rank that the file states; ``memory`` if it was recorded."""

    file: TraceFile
    facts: RankFacts
    stated_rank: int | None
    spans: pl.DataFrame
    memory: pl.DataFrame | None = None
    unread_share: float = 0.0


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file that could not be read, and why."""

    file: TraceFile
    reason: str


def read_traces(
    paths: Sequence[Path],
    *,
    workers: int | None = None,
    pool: Executor | None = None,
    progress: Progress | None = None,
    limits: "UploadLimits | None" = None,
) -> Trace:
    """Read the trace in the given files, folders and tar archives.

    ``pool`` reads the ranks elsewhere, on machines that see the same files (a Dask cluster). ``limits`` apply to uploaded files.

    Raises
    ------
    SourceError
        If no file can be read.
    """
    try:
        return _read_files(find_trace_files(paths, limits), workers, pool, progress)
    except RecursionError:
        raise SourceError("it is nested too deeply", hint="No profiler writes such files.") from None


def _read_files(
    files: Sequence[TraceFile], workers: int | None, pool: Executor | None, progress: Progress | None
) -> Trace:
    formats = [_detect(file) for file in files]
    known_formats = {trace_format for trace_format in formats if trace_format is not None}
    if not known_formats:
        if not files[0].size_bytes:
            raise SourceError(f"{files[0].title} is empty", hint="Is the copy complete?")
        raise SourceError(
            f"unknown trace format: {files[0].title}", hint="See docs/guide/traces.md for the supported formats."
        )
    trace_format = max(known_formats - set(COMPANIONS) or known_formats, key=formats.count)
    chosen = [file for file, file_format in zip(files, formats, strict=True) if file_format is trace_format]
    skipped = [
        file.title
        for file, file_format in zip(files, formats, strict=True)
        if file_format not in (trace_format, *COMPANIONS)
    ]
    notes = [f"Skipped, because they are not {trace_format.value} traces: {', '.join(skipped[:5])}."] if skipped else []
    if trace_format not in ONE_PER_RANK:
        from clusterscape.collect.traces.formats import read_other_format

        trace = read_other_format(trace_format, chosen)
        trace = replace(trace, notes=tuple(notes) + trace.notes)
    else:
        trace = _join(trace_format, _read_all(chosen, workers, pool, progress), notes)
        captures = [
            file for file, file_format in zip(files, formats, strict=True) if file_format is TraceFormat.CAPTURE
        ]
        if captures:
            from clusterscape.collect.traces.captures import add_captures

            trace = add_captures(trace, captures)
    graphs = [
        file for file, file_format in zip(files, formats, strict=True) if file_format is TraceFormat.MINDSPORE_GRAPH
    ]
    trace = drop_impossible_spans(trace)
    return _with_graph(trace, graphs) if trace_format is not TraceFormat.MINDSPORE_GRAPH else trace


def drop_impossible_spans(trace: Trace) -> Trace:
    """Without the spans that end before they begin, or lie more than a month from the middle of their rank's spans.

    So that nothing that follows depends on how far apart the times of a damaged file are.
    """
    length = pl.col("end_ns").cast(pl.Float64) - pl.col("start_ns").cast(pl.Float64)
    start = pl.col("start_ns").cast(pl.Float64)
    first, last, shortest, longest = trace.spans.select(
        start.min().alias("first"), start.max().alias("last"), length.min().alias("short"), length.max().alias("long")
    ).row(0)
    if first is None or (last - first <= MAX_LENGTH_NS and shortest >= 0 and longest <= MAX_LENGTH_NS):
        return trace
    is_far = (start - start.median().over("rank")).abs() > MAX_LENGTH_NS
    kept = trace.spans.filter(~is_far & length.is_between(0, MAX_LENGTH_NS))
    dropped = trace.spans.height - kept.height
    if not kept.height:
        raise SourceError("the trace has no spans with possible times", hint="Is its clock damaged?")
    note = f"{dropped:,} spans with impossible times were skipped."
    return replace(trace, spans=kept, notes=(*trace.notes, note)) if dropped else trace


def _with_graph(trace: Trace, files: Sequence[TraceFile]) -> Trace:
    """Add the operator graph to the trace. A graph that cannot be read is reported in the notes."""
    if not files:
        return trace
    from clusterscape.collect.traces.mindspore import parse_operators

    try:
        operators, _ = parse_operators(read_content(files[0]), files[0].title)
    except (ClusterScapeError, ValueError, OSError) as error:
        return replace(trace, notes=(*trace.notes, f"Cannot read {files[0].title}: {error}."))
    return replace(trace, operators=operators)


def _detect(file: TraceFile) -> TraceFormat | None:
    try:
        return detect_format(file)
    except (OSError, ClusterScapeError, *ARCHIVE_ERRORS):
        return None


def _read_all(
    files: Sequence[TraceFile], workers: int | None, pool: Executor | None, progress: Progress | None
) -> list[RankSpans | FailedFile]:
    if pool is not None:
        # Workers of the pool have another working directory. The original paths are restored, because they may contain the rank.
        absolute = [replace(file, path=file.path.resolve()) for file in files]
        results = _read_in(pool, absolute, progress)
        return [replace(result, file=file) for result, file in zip(results, files, strict=True)]
    count = min(len(files), workers or os.cpu_count() or 1)
    if count > 1 and sum(file.size_bytes for file in files) >= PARALLEL_BYTES:
        with _start_workers(count - 1) as processes:
            return _read_in(processes, files, progress, reads_too=True)
    results = []
    for file in files:
        results.append(read_rank(file))
        if progress:
            progress(len(results), len(files), file.title)
    return results


def _start_workers(count: int) -> Executor:
    """Start processes, because decoding holds the GIL. They are spawned: a fork of a process that used Polars may deadlock."""
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Exit this worker when its parent process is killed: otherwise it would wait for its queue forever."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _read_in(
    pool: Executor, files: Sequence[TraceFile], progress: Progress | None, *, reads_too: bool = False
) -> list[RankSpans | FailedFile]:
    """``reads_too``: this process reads as well, from the last file backwards, until it reaches one that the pool has started."""
    futures = [pool.submit(_read_without_empty_columns, file) for file in files]
    results: dict[int, RankSpans | FailedFile] = {}

    def add(index: int, result: RankSpans | FailedFile) -> None:
        results[index] = result
        if progress:
            progress(len(results), len(files), files[index].title)

    for index in reversed(range(len(files)) if reads_too else ()):
        if not futures[index].cancel():
            break
        add(index, read_rank(files[index]))
    waiting = {future: index for index, future in enumerate(futures) if index not in results}
    for future in as_completed(waiting):
        error = future.exception()
        file = files[waiting[future]]
        add(waiting[future], _with_all_columns(future.result()) if error is None else FailedFile(file, str(error)))
    return [results[index] for index in range(len(files))]


def _read_without_empty_columns(file: TraceFile) -> RankSpans | FailedFile:
    """``read_rank`` in a worker: columns without values, almost half of the bytes, are not sent back."""
    result = read_rank(file)
    if isinstance(result, FailedFile):
        return result
    return replace(result, spans=result.spans.select(s for s in result.spans if s.null_count() < s.len()))


def _with_all_columns(result: RankSpans | FailedFile) -> RankSpans | FailedFile:
    if isinstance(result, FailedFile):
        return result
    return replace(result, spans=make_spans(result.spans.to_dict(), result.spans.height))


def read_rank(file: TraceFile) -> RankSpans | FailedFile:
    """Read the spans of one rank's file, or why that failed."""
    try:
        if detect_format(file) is TraceFormat.NSIGHT:
            return _read_export(file)
        return parse_rank(file, read_content(file))
    except TooLargeError as error:
        return FailedFile(file, f"{error.message} ({error.setting})")
    except ClusterScapeError as error:
        return FailedFile(file, error.message)
    except RecursionError:
        return FailedFile(file, "it is nested too deeply")
    except ARCHIVE_ERRORS as error:
        return FailedFile(file, f"its archive is damaged: {error}")
    except OSError as error:
        return FailedFile(file, error.strerror or str(error))


def _read_export(file: TraceFile) -> RankSpans:
    if file.member is not None:
        raise SourceError("cannot read an Nsight Systems export within an archive", hint="Extract the archive.")
    from clusterscape.collect.traces.nsight import parse_nsight

    spans, facts = parse_nsight(file)
    return RankSpans(file, facts, None, add_step_context(spans))


def parse_rank(file: TraceFile, content: Content) -> RankSpans:
    """Parse the bytes of one Kineto file."""
    kineto, columns, memory = KinetoFile(content), SpanColumns(), MemoryColumns()
    for events in kineto.iter_events():
        columns.add(events)
        memory.add(events)
    base_ns = kineto.metadata.base_ns or 0
    built = columns.build(base_ns)
    if not built.spans.height:
        raise SourceError("it has no spans")
    facts = describe_rank(kineto.metadata, file.title, (*kineto.notes, *built.notes), is_complete=kineto.is_complete)
    facts = replace(facts, flops_source=built.flops_source)
    info = kineto.metadata.distributed
    rank = to_rank(info.rank) if info else None
    return RankSpans(
        file, facts, rank, add_step_context(built.spans), memory.build(base_ns), unread_share=kineto.unread_share
    )


def _join(trace_format: TraceFormat, results: Sequence[RankSpans | FailedFile], notes: list[str]) -> Trace:
    good = [result for result in results if isinstance(result, RankSpans)]
    failed = [result for result in results if isinstance(result, FailedFile)]
    if not good:
        raise SourceError(
            f"cannot read any of {len(results)} trace files: {failed[0].file.title}: {failed[0].reason}",
            hint="Are the copies complete?",
        )
    ranks, rank_notes = assign_ranks([result.file.name for result in good], [result.stated_rank for result in good])
    notes += rank_notes
    notes += [f"Cannot read {failure.file.title}: {failure.reason}." for failure in failed]
    by_rank: dict[int, RankSpans] = {}
    for rank, result in zip(ranks, good, strict=True):
        other = by_rank.get(rank)
        if other is not None:
            better, worse = (result, other) if result.spans.height > other.spans.height else (other, result)
            notes.append(f"Rank {rank} has two files: {better.file.title} is used, {worse.file.title} is not.")
            by_rank[rank] = better
        else:
            by_rank[rank] = result
    ordered = sorted(by_rank.items())
    spans = pl.concat([result.spans.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank, result in ordered])
    facts = tuple(replace(result.facts, rank=rank) for rank, result in ordered)
    notes += [f"Rank {rank.rank}: {'; '.join(rank.notes)}." for rank in facts if rank.notes]
    memory_tables = [
        result.memory.select(pl.lit(rank, pl.Int32).alias("rank"), "time_ns", "bytes")
        for rank, result in ordered
        if result.memory is not None
    ]
    memory = pl.concat(memory_tables) if memory_tables else None
    return Trace(
        format=trace_format.value,
        spans=spans,
        ranks=facts,
        notes=tuple(notes),
        memory=memory,
        unread_share=_unread_share(results),
    )


def _unread_share(results: Sequence[RankSpans | FailedFile]) -> float:
    """By the sizes of the files as they are stored."""
    total = sum(max(result.file.size_bytes, 1) for result in results)
    unread = sum(
        max(result.file.size_bytes, 1) * (result.unread_share if isinstance(result, RankSpans) else 1.0)
        for result in results
    )
    return unread / total
