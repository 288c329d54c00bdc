"""Reads any traces into one ``Trace``: finds the files, tells their format, reads ranks in parallel processes, joins them.

A file that cannot be read is reported and the rest goes on.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from clusterscape.collect.traces.files import Content, TraceFile, find_trace_files, read_content
from clusterscape.collect.traces.formats import TraceFormat, detect_format
from clusterscape.collect.traces.kineto import parse_kineto, paused_collection
from clusterscape.collect.traces.kineto_context import place_in_steps
from clusterscape.collect.traces.kineto_spans import build_spans, describe_rank, to_whole
from clusterscape.collect.traces.naming import assign_ranks
from clusterscape.errors import ClusterScapeError, SourceError
from clusterscape.model.spans import RankFacts, Trace

Progress = Callable[[int, int, str], None]
"""Told how many files are done, of how many, and the last one's name."""

COMPANIONS = (TraceFormat.MINDSPORE_SCOPES, TraceFormat.MINDSPORE_GRAPH, TraceFormat.CAPTURE)
"""Read with a timeline, never alone."""
ONE_PER_RANK = (TraceFormat.KINETO, TraceFormat.NSIGHT)
"""Formats with a file per rank."""
PARALLEL_BYTES = 4 << 20  # below, starting processes takes longer than reading


@dataclass(frozen=True, slots=True)
class RankSpans:
    """What one rank's file gave: spans with a null rank, and the rank it states."""

    file: TraceFile
    facts: RankFacts
    stated_rank: int | None
    spans: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Failed:
    """A file that could not be read, and why."""

    file: TraceFile
    reason: str


def read_traces(paths: Sequence[Path], *, workers: int | None = None, progress: Progress | None = None) -> Trace:
    """The trace in the given files, folders and tar archives.

    Raises
    ------
    SourceError
        Where nothing can be read at all.
    """
    files = find_trace_files(paths)
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
        trace = _join(kind, _read_all(chosen, workers, progress), notes)
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
    except (OSError, ClusterScapeError):
        return None


def _read_all(files: Sequence[TraceFile], workers: int | None, progress: Progress | None) -> list[RankSpans | Failed]:
    count = min(len(files), workers or os.cpu_count() or 1)
    results: dict[int, RankSpans | Failed] = {}
    if count == 1 or sum(file.size_bytes for file in files) < PARALLEL_BYTES:
        for place, file in enumerate(files):
            results[place] = read_rank(file)
            if progress:
                progress(place + 1, len(files), file.title)
    else:
        # A fork of a process that has used Polars may wait for ever for threads it does not have: start anew.
        with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
            waiting = {pool.submit(read_rank, file): place for place, file in enumerate(files)}
            for done in as_completed(waiting):
                place = waiting[done]
                error = done.exception()
                results[place] = done.result() if error is None else Failed(files[place], str(error))
                if progress:
                    progress(len(results), len(files), files[place].title)
    return [results[place] for place in range(len(files))]


def read_rank(file: TraceFile) -> RankSpans | Failed:
    """Spans of one rank's file, or why there are none."""
    try:
        if detect_format(file) is TraceFormat.NSIGHT:
            return _read_export(file)
        return parse_rank(file, read_content(file))
    except ClusterScapeError as error:
        return Failed(file, error.message)
    except OSError as error:
        return Failed(file, error.strerror or str(error))


def _read_export(file: TraceFile) -> RankSpans:
    if file.member is not None:
        raise SourceError("an Nsight Systems export in an archive cannot be read", hint="Unpack the archive.")
    from clusterscape.collect.traces.nsight import parse_nsight

    spans, facts = parse_nsight(file.path, file.title)
    return RankSpans(file, facts, None, place_in_steps(spans))


def parse_rank(file: TraceFile, content: Content) -> RankSpans:
    """Spans of one Kineto file's bytes."""
    with paused_collection():
        parsed = parse_kineto(content)
        spans, notes = build_spans(parsed.document)
    if not spans.height:
        raise SourceError("it holds no spans")
    spans = place_in_steps(spans)
    info = parsed.document.distributed
    facts = describe_rank(parsed.document, file.title, (*parsed.notes, *notes), is_complete=parsed.is_complete)
    return RankSpans(file, facts, to_whole(info.rank) if info else None, spans)


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
    return Trace(format=kind.value, spans=spans, ranks=facts, notes=tuple(notes))
