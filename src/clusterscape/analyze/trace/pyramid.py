"""Coarser copies of a level's spans, merged by larger and larger gaps, with the bands between them already joined.

Merging by a gap and then by a larger one gives what the larger one gives at once: a picture of the whole of millions of spans is
made from the coarsest copy that is still finer than its pixels. Only medians become those of medians.
"""

import numpy as np

from clusterscape.analyze.trace.aggregate import NUMBERS, Merged, Window, merge_level
from clusterscape.analyze.trace.bands import link_spans, relink
from clusterscape.analyze.trace.drawn import CLASSES, Copy, DrawnTrace, Level, LevelSpans, Links, find_runs
from clusterscape.model.spans import SpanClass

MIN_ENTRIES = 20_000
"""Fewer are merged as fast as they are."""
GAPS = tuple(2048 * 4**power for power in (5, 4, 3, 2, 1, 0))
"""Parts of the trace's extent that the gaps are, finest first."""
LONGEST_GAPS = 8.0
"""No entry is longer than so many gaps: one that crosses a window's edge counts whole, so a picture may count what lies up to 8
pixels beside it.
"""
WORTHWHILE = 0.5
"""A copy is kept where it has at most so much of the entries of the one before."""


def find_copy(trace: DrawnTrace, level: Level, pixel_ns: float) -> Copy | None:
    """The coarsest copy that merges no more than a picture with such pixels does; None: the spans themselves are to be used."""
    if level not in trace.copies:
        trace.copies[level] = _build(trace, level)
    fitting = [copy for copy in trace.copies[level] if copy.gap_ns <= pixel_ns]
    return fitting[-1] if fitting else None


def _build(trace: DrawnTrace, level: Level) -> tuple[Copy, ...]:
    spans = trace.level(level, by_key=True)
    found: list[Copy] = []
    for parts in GAPS:
        if spans.start.size < MIN_ENTRIES:
            break
        gap_ns = trace.extent_ns / parts
        window = Window(0.0, trace.extent_ns, 1)
        blocks = range(spans.offsets.size - 1)
        longest_ns = LONGEST_GAPS * gap_ns
        merged = merge_level(trace, spans, blocks, window, CLASSES, "gap", gap_ns=gap_ns, longest_ns=longest_ns)
        if merged.worst.size > WORTHWHILE * spans.start.size:
            continue
        if found:
            links = relink(found[-1].links, merged.entry, merged.group, spans.start.size, merged.worst.size)
        else:
            links = _first_links(trace, level, spans, merged)
        spans = _as_level(merged, spans)
        found.append(Copy(gap_ns, spans, links))
    return tuple(found)


def _first_links(trace: DrawnTrace, level: Level, spans: LevelSpans, merged: Merged) -> Links:
    entry_owner = np.full(spans.start.size, -1, np.int32)
    entry_owner[merged.entry] = merged.group
    owner = np.full(trace.start.size, -1, np.int32)
    owner[spans.talk_span] = entry_owner[spans.talk_entry]
    chosen = spans.talk_span[:0]
    if level != "stage":
        chosen = spans.span[merged.entry]
        owner[chosen] = merged.group
    return link_spans(trace, owner, chosen, spans.talk_span, merged.worst.size)


def _as_level(merged: Merged, before: LevelSpans) -> LevelSpans:
    """Output spans as entries; they come by block, key and start, as entries must."""
    number = {name: np.ascontiguousarray(merged.numbers[:, at]) for at, name in enumerate(NUMBERS)}
    runs, reach = find_runs(merged.block, merged.key, number["end"])
    count = number["count"].astype(np.uint32)
    talk = np.flatnonzero(merged.kind == CLASSES.index(SpanClass.COMMUNICATION.value))
    return LevelSpans(
        offsets=np.searchsorted(merged.block, np.arange(before.offsets.size)).astype(np.int64),
        runs=runs,
        reach=reach,
        span=np.where(count == 1, merged.worst, -1),
        **{name: number[name] for name in ("start", "end", "early", "late", "total", "least", "most")},
        middle=number["median"],
        key=merged.key,
        kind=merged.kind,
        outlier=merged.outlier,
        count=count,
        worst=merged.worst,
        wait=number["wait"],
        critical=number["critical"],
        slack=number["slack"],
        codes=merged.codes,
        talk_span=merged.worst[talk],
        talk_entry=talk,
    )
