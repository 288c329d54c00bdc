"""Reads any traces into one ``Trace``: finds the files, tells their format, reads ranks side by side, joins them.

A file that cannot be read is reported and the rest goes on.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from clusterscape.collect.traces.files import ARCHIVE_ERRORS, Content, TraceFile, find_trace_files, read_content
from clusterscape.collect.traces.formats import TraceFormat, detect_format
from clusterscape.collect.traces.kineto import Document, parse_kineto, paused_collection
from clusterscape.collect.traces.kineto_context import place_in_steps
from clusterscape.collect.traces.kineto_memory import read_memory
from clusterscape.collect.traces.kineto_spans import Built, build_spans, describe_rank, to_rank
from clusterscape.collect.traces.naming import assign_ranks
from clusterscape.errors import ClusterScapeError, SourceError, TooLargeError
from clusterscape.model.spans import RankFacts, Trace
from clusterscape.settings.limits import UploadLimits

Progress = Callable[[int, int, str], None]
"""Told how many files are done, of how many, and the last one's name."""

COMPANIONS = (TraceFormat.MINDSPORE_SCOPES, TraceFormat.MINDSPORE_GRAPH, TraceFormat.CAPTURE)
"""Read with a timeline, never alone."""
ONE_PER_RANK = (TraceFormat.KINETO, TraceFormat.NSIGHT)
"""Formats with a file per rank."""
PARALLEL_BYTES = 2 << 20  # as they lie on the disk; below, getting ready takes longer than reading


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
    limits: UploadLimits | None = None,
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
        trace = _join(kind, _read_all(kind, chosen, workers, pool, progress), notes)
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
    kind: TraceFormat,
    files: Sequence[TraceFile],
    workers: int | None,
    pool: Executor | None,
    progress: Progress | None,
) -> list[RankSpans | Failed]:
    if pool is not None:
        # Who reads there has another working folder; names, which tell ranks, stay as they were given.
        there = [replace(file, path=file.path.resolve()) for file in files]
        found = _read_in(pool, there, progress)
        return [replace(each, file=file) for each, file in zip(found, files, strict=True)]
    if sum(file.size_bytes for file in files) >= PARALLEL_BYTES:
        with _pool_for(kind, min(len(files), workers or os.cpu_count() or 1)) as own:
            return _read_in(own, files, progress)
    results = []
    for place, file in enumerate(files):
        results.append(read_rank(file, is_large=False))
        if progress:
            progress(place + 1, len(files), file.title)
    return results


def _pool_for(kind: TraceFormat, count: int) -> Executor:
    """Unpacking and scanning release the interpreter: threads need no tables handed over. A database's rows do not."""
    if kind is TraceFormat.KINETO:
        return ThreadPoolExecutor(count, thread_name_prefix="ranks")
    # A fork of a process that has used Polars may wait for ever for threads it does not have: start anew.
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


def _read_in(pool: Executor, files: Sequence[TraceFile], progress: Progress | None) -> list[RankSpans | Failed]:
    results: dict[int, RankSpans | Failed] = {}
    waiting = {pool.submit(read_rank, file): place for place, file in enumerate(files)}
    for done in as_completed(waiting):
        place = waiting[done]
        error = done.exception()
        results[place] = done.result() if error is None else Failed(files[place], str(error))
        if progress:
            progress(len(results), len(files), files[place].title)
    return [results[place] for place in range(len(files))]


def read_rank(file: TraceFile, *, is_large: bool = True) -> RankSpans | Failed:
    """Spans of one rank's file, or why there are none. ``is_large``: it is worth loading what reads faster."""
    try:
        if detect_format(file) is TraceFormat.NSIGHT:
            return _read_export(file)
        return parse_rank(file, read_content(file), is_large=is_large)
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


def parse_rank(file: TraceFile, content: Content, *, is_large: bool) -> RankSpans:
    """Spans of one Kineto file's bytes."""
    parsed = _parse(content, is_large=is_large)
    spans = parsed.built.spans
    if not spans.height:
        raise SourceError("it holds no spans")
    facts = describe_rank(parsed.document, file.title, parsed.notes, is_complete=parsed.is_complete)
    facts = replace(facts, flops_source=parsed.built.flops_source)
    info = parsed.document.distributed
    rank = to_rank(info.rank) if info else None
    return RankSpans(file, facts, rank, place_in_steps(spans), parsed.memory)


@dataclass(frozen=True, slots=True)
class _ParsedFile:
    document: Document
    built: Built
    memory: pl.DataFrame | None
    notes: Sequence[str]
    is_complete: bool = True


def _parse(content: Content, *, is_large: bool) -> _ParsedFile:
    """What the fast way does not know, the other reads, too."""
    if is_large and content.cut is None:
        from clusterscape.collect.traces.kineto_scan import scan_kineto

        scanned = scan_kineto(content.data)
        if scanned is not None:
            return _ParsedFile(scanned.document, scanned.built, scanned.memory, scanned.built.notes)
    with paused_collection():
        parsed = parse_kineto(content)
        built = build_spans(parsed.document)
    memory = read_memory(content.data, parsed.document.base_ns or 0)
    return _ParsedFile(parsed.document, built, memory, (*parsed.notes, *built.notes), parsed.is_complete)


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
