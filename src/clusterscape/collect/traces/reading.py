"""Reads any traces into one ``Trace``: finds the files, tells their format, reads ranks side by side, joins them.

A file that cannot be read is reported and the rest goes on.
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

from clusterscape.collect.traces.files import ARCHIVE_ERRORS, Content, TraceFile, find_trace_files, read_content
from clusterscape.collect.traces.formats import TraceFormat, detect_format
from clusterscape.collect.traces.kineto import KinetoFile
from clusterscape.collect.traces.kineto_context import place_in_steps
from clusterscape.collect.traces.kineto_memory import MemoryColumns
from clusterscape.collect.traces.kineto_spans import SpanColumns, describe_rank, to_rank
from clusterscape.collect.traces.naming import assign_ranks
from clusterscape.errors import ClusterScapeError, SourceError, TooLargeError
from clusterscape.model.spans import RankFacts, Trace, make_spans

if TYPE_CHECKING:
    from clusterscape.settings.limits import UploadLimits  # a third of the time that a worker takes to start

Progress = Callable[[int, int, str], None]
"""Told how many files are done, of how many, and the last one's name."""

COMPANIONS = (TraceFormat.MINDSPORE_SCOPES, TraceFormat.MINDSPORE_GRAPH, TraceFormat.CAPTURE)
"""Read with a timeline, never alone."""
ONE_PER_RANK = (TraceFormat.KINETO, TraceFormat.NSIGHT)
"""Formats with a file per rank."""
PARALLEL_BYTES = 2 << 20  # of all files on the disk; below, starting a process takes longer than reading


@dataclass(frozen=True, slots=True)
class RankSpans:
    """What one rank's file gave: spans with a null rank, and the rank it states; ``memory`` where it was recorded."""

    file: TraceFile
    facts: RankFacts
    stated_rank: int | None
    spans: pl.DataFrame
    memory: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Failed:
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
    """The trace in the given files, folders and tar archives.

    ``pool``: where ranks are read instead of here, on machines that see the same files (a Dask cluster). ``limits``: of files
    that somebody else sent.

    Raises
    ------
    SourceError
        Where nothing can be read at all.
    """
    try:
        return _read_files(find_trace_files(paths, limits), workers, pool, progress)
    except RecursionError:
        raise SourceError("it is nested too deeply to be read", hint="No profiler writes such files.") from None


def _read_files(
    files: Sequence[TraceFile], workers: int | None, pool: Executor | None, progress: Progress | None
) -> Trace:
    formats = [_detect(file) for file in files]
    known = {kind for kind in formats if kind is not None}
    if not known:
        raise SourceError(
            f"{files[0].title} is in no known trace format", hint="See docs/guide/traces.md for what is read."
        )
    kind = max(known - set(COMPANIONS) or known, key=formats.count)
    chosen = [file for file, own in zip(files, formats, strict=True) if own is kind]
    left_out = [file.title for file, own in zip(files, formats, strict=True) if own not in (kind, *COMPANIONS)]
    notes = [f"Left out, as they are no {kind.value} traces: {', '.join(left_out[:5])}."] if left_out else []
    if kind not in ONE_PER_RANK:
        from clusterscape.collect.traces.other_formats import read_other

        trace = read_other(kind, chosen)
        trace = replace(trace, notes=tuple(notes) + trace.notes)
    else:
        trace = _join(kind, _read_all(chosen, workers, pool, progress), notes)
        captures = [file for file, own in zip(files, formats, strict=True) if own is TraceFormat.CAPTURE]
        if captures:
            from clusterscape.collect.traces.captures import add_captures

            trace = add_captures(trace, captures)
    graphs = [file for file, own in zip(files, formats, strict=True) if own is TraceFormat.MINDSPORE_GRAPH]
    return _with_graph(trace, graphs) if kind is not TraceFormat.MINDSPORE_GRAPH else trace


def _with_graph(trace: Trace, files: Sequence[TraceFile]) -> Trace:
    """A graph beside the spans is kept with them; one that cannot be read is reported."""
    if not files:
        return trace
    from clusterscape.collect.traces.mindspore_graph import parse_operators

    try:
        operators, _ = parse_operators(read_content(files[0]), files[0].title)
    except (ClusterScapeError, ValueError, OSError) as error:
        return replace(trace, notes=(*trace.notes, f"{files[0].title} could not be read: {error}."))
    return replace(trace, operators=operators)


def _detect(file: TraceFile) -> TraceFormat | None:
    try:
        return detect_format(file)
    except (OSError, ClusterScapeError, *ARCHIVE_ERRORS):
        return None


def _read_all(
    files: Sequence[TraceFile], workers: int | None, pool: Executor | None, progress: Progress | None
) -> list[RankSpans | Failed]:
    if pool is not None:
        # The pool's machines have another working folder; names, which tell ranks, stay as they were given.
        there = [replace(file, path=file.path.resolve()) for file in files]
        results = _read_in(pool, there, progress)
        return [replace(result, file=file) for result, file in zip(results, files, strict=True)]
    count = min(len(files), workers or os.cpu_count() or 1)
    if count > 1 and sum(file.size_bytes for file in files) >= PARALLEL_BYTES:
        with _start_workers(count - 1) as own:
            return _read_in(own, files, progress, reads_too=True)
    results = []
    for file in files:
        results.append(read_rank(file))
        if progress:
            progress(len(results), len(files), file.title)
    return results


def _start_workers(count: int) -> Executor:
    """Processes, as decoding holds the interpreter's lock. A fork of a process that has used Polars may wait forever for
    threads it does not have, so they are started anew.
    """
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this worker when the process that started it is killed: its queue would never be closed."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _read_in(
    pool: Executor, files: Sequence[TraceFile], progress: Progress | None, *, reads_too: bool = False
) -> list[RankSpans | Failed]:
    """``reads_too``: this process reads as well, from the last file on, until it meets a file that the pool has begun."""
    futures = [pool.submit(_read_for_another, file) for file in files]
    results: dict[int, RankSpans | Failed] = {}

    def add(place: int, result: RankSpans | Failed) -> None:
        results[place] = result
        if progress:
            progress(len(results), len(files), files[place].title)

    for place in reversed(range(len(files)) if reads_too else ()):
        if not futures[place].cancel():
            break
        add(place, read_rank(files[place]))
    waiting = {future: place for place, future in enumerate(futures) if place not in results}
    for future in as_completed(waiting):
        error = future.exception()
        file = files[waiting[future]]
        add(waiting[future], _with_all_columns(future.result()) if error is None else Failed(file, str(error)))
    return [results[place] for place in range(len(files))]


def _read_for_another(file: TraceFile) -> RankSpans | Failed:
    """As ``read_rank``, for another process: columns without values, which are almost half of the bytes, are left out."""
    result = read_rank(file)
    if isinstance(result, Failed):
        return result
    return replace(result, spans=result.spans.select(s for s in result.spans if s.null_count() < s.len()))


def _with_all_columns(result: RankSpans | Failed) -> RankSpans | Failed:
    if isinstance(result, Failed):
        return result
    return replace(result, spans=make_spans(result.spans.to_dict(), result.spans.height))


def read_rank(file: TraceFile) -> RankSpans | Failed:
    """Spans of one rank's file, or why there are none."""
    try:
        if detect_format(file) is TraceFormat.NSIGHT:
            return _read_export(file)
        return parse_rank(file, read_content(file))
    except TooLargeError as error:
        return Failed(file, f"{error.message} ({error.setting})")
    except ClusterScapeError as error:
        return Failed(file, error.message)
    except RecursionError:
        return Failed(file, "it is nested too deeply")
    except ARCHIVE_ERRORS as error:
        return Failed(file, f"its archive is damaged: {error}")
    except OSError as error:
        return Failed(file, error.strerror or str(error))


def _read_export(file: TraceFile) -> RankSpans:
    if file.member is not None:
        raise SourceError("an Nsight Systems export in an archive cannot be read", hint="Unpack the archive.")
    from clusterscape.collect.traces.nsight import parse_nsight

    spans, facts = parse_nsight(file)
    return RankSpans(file, facts, None, place_in_steps(spans))


def parse_rank(file: TraceFile, content: Content) -> RankSpans:
    """Spans of one Kineto file's bytes."""
    kineto, columns, memory = KinetoFile(content), SpanColumns(), MemoryColumns()
    for events in kineto.iter_events():
        columns.add(events)
        memory.add(events)
    base_ns = kineto.facts.base_ns or 0
    built = columns.build(base_ns)
    if not built.spans.height:
        raise SourceError("it holds no spans")
    facts = describe_rank(kineto.facts, file.title, (*kineto.notes, *built.notes), is_complete=kineto.is_complete)
    facts = replace(facts, flops_source=built.flops_source)
    info = kineto.facts.distributed
    rank = to_rank(info.rank) if info else None
    return RankSpans(file, facts, rank, place_in_steps(built.spans), memory.build(base_ns))


def _join(kind: TraceFormat, results: Sequence[RankSpans | Failed], notes: list[str]) -> Trace:
    good = [each for each in results if isinstance(each, RankSpans)]
    failed = [each for each in results if isinstance(each, Failed)]
    if not good:
        raise SourceError(
            f"none of {len(results)} trace files can be read: {failed[0].file.title}: {failed[0].reason}",
            hint="Were the files copied whole?",
        )
    ranks, naming = assign_ranks([each.file.name for each in good], [each.stated_rank for each in good])
    notes += naming
    notes += [f"{each.file.title} could not be read: {each.reason}." for each in failed]
    kept: dict[int, RankSpans] = {}
    for rank, each in zip(ranks, good, strict=True):
        other = kept.get(rank)
        if other is not None:
            better, worse = (each, other) if each.spans.height > other.spans.height else (other, each)
            notes.append(f"Two files are of rank {rank}: {better.file.title} is used, {worse.file.title} is not.")
            kept[rank] = better
        else:
            kept[rank] = each
    ordered = sorted(kept.items())
    spans = pl.concat([each.spans.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank, each in ordered])
    facts = tuple(replace(each.facts, rank=rank) for rank, each in ordered)
    notes += [f"Rank {each.rank}: {'; '.join(each.notes)}." for each in facts if each.notes]
    held = [
        each.memory.select(pl.lit(rank, pl.Int32).alias("rank"), "time_ns", "bytes")
        for rank, each in ordered
        if each.memory is not None
    ]
    memory = pl.concat(held) if held else None
    return Trace(format=kind.value, spans=spans, ranks=facts, notes=tuple(notes), memory=memory)
