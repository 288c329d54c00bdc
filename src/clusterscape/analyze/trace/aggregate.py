"""Visual aggregation: the spans of a window merged where they are too close to be distinguished, the bands that join the same
operator on neighboring rows, and coarser copies of both.

A merged span has the count, total, minimum, median and maximum duration of its members, and its longest member. An outlier (at
least 3 times as long as usual) is merged only with other outliers.

Bands join ranks of a stage operator by operator, neighboring stages by the pass of a micro-batch, members of a collective, and a
send with its receive. The edges of a band are those of the joined spans, not of the merged spans that contain them.

Merging by a small gap and then by a larger one gives the same result as merging by the larger one at once. So an overview of
millions of spans is drawn from the coarsest copy that is still finer than its pixels. Only medians become medians of medians.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.drawn import CLASSES, CODES, CoarseCopy, DrawnTrace, Level, LevelSpans, Links, find_runs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.spans import SpanClass

Merge = Literal["gap", "namespace", "none"]
MERGE_MODES: dict[Merge, int] = {"none": 0, "gap": 1, "namespace": 2}
NUMBERS = (
    "start", "end", "early", "late", "count", "total", "least", "median", "most", "wait", "critical", "slack",
)  # fmt: skip
"""Columns of ``Merged.numbers``; nanoseconds, except the count. Missing is NaN."""
MAX_UNMERGED = 100_000
"""More spans than this are merged by gap even with ``merge="none"``: no screen can show them."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time range that is drawn, in nanoseconds since the trace's origin, and its width in pixels."""

    start_ns: float
    end_ns: float
    pixels: int

    @property
    def pixel_ns(self) -> float:
        """Nanoseconds per pixel."""
        return max(0.0, self.end_ns - self.start_ns) / self.pixels


@dataclass(frozen=True, slots=True)
class Merged:
    """Output spans of some blocks of one level, in no particular order.

    ``entry``: the level's entries within the window; ``group``: the output span of each, ascending. The other arrays have one row
    per output span; ``codes`` as in ``drawn.CODES``.
    """

    entry: NDArray[np.int64]
    group: NDArray[np.int64]
    block: NDArray[np.int64]
    key: NDArray[np.int32]
    kind: NDArray[np.uint8]
    outlier: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    worst: NDArray[np.int64]
    codes: NDArray[np.int32]


def merge_level(
    trace: DrawnTrace,
    spans: LevelSpans,
    blocks: Sequence[int],
    window: Window,
    classes: Sequence[str],
    merge: Merge,
    *,
    gap_ns: float | None = None,
    longest_ns: float = math.inf,
) -> Merged:
    """Merge the spans of the given blocks that touch the window; by default spans at most a pixel apart, without a maximum
    length.
    """
    from clusterscape.analyze.trace.marey_kernels import cut_runs, merge_spans, summarize_outputs

    order = np.sort(np.asarray(blocks, np.int64))
    first, last = (
        np.searchsorted(spans.runs, spans.offsets[order]),
        np.searchsorted(spans.runs, spans.offsets[order + 1]),
    )
    lows, highs = cut_runs(first, last, spans.runs, spans.start, spans.reach, window.start_ns, window.end_ns)
    entry, offsets = merge_spans(
        lows,
        highs,
        spans.start,
        spans.end,
        spans.key,
        spans.kind,
        spans.codes,
        spans.outlier,
        np.array([name in classes for name in CLASSES]),
        window.start_ns,
        window.end_ns,
        window.pixel_ns if gap_ns is None else gap_ns,
        longest_ns,
        MERGE_MODES[merge],
    )
    numbers, worst, codes = summarize_outputs(
        entry,
        offsets,
        spans.start,
        spans.end,
        spans.early,
        spans.late,
        spans.count,
        spans.total,
        spans.least,
        spans.middle,
        spans.most,
        spans.worst,
        spans.wait,
        spans.critical,
        spans.slack,
        spans.codes,
        trace.parent,
        trace.depth_of,
    )
    lead = entry[offsets[:-1]]
    block = np.repeat(np.arange(spans.offsets.size - 1), np.diff(np.searchsorted(lead, spans.offsets)))
    group = np.repeat(np.arange(lead.size), np.diff(offsets))
    return Merged(entry, group, block, spans.key[lead], spans.kind[lead], spans.outlier[lead], numbers, worst, codes)


class BandKind(StrEnum):
    """What a band connects."""

    SAME = "same"
    COLLECTIVE = "collective"
    MESSAGE = "message"


BAND_KINDS = pl.Enum([kind.value for kind in BandKind])
EDGES = ("from_start", "from_end", "to_start", "to_end")
BAND_SCHEMA: dict[str, pl.DataType] = {
    "from_span": pl.UInt32(),
    "to_span": pl.UInt32(),
    "kind": BAND_KINDS,
    **dict.fromkeys(EDGES, pl.Float64()),
    "count": pl.UInt32(),
    "max_skew_ns": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class BandEnds:
    """Output spans with what bands need to know of them.

    ``order``: position of the span's row among the rows that bands join (lanes of one rank share it; −1: not joined);
    ``stage``: position of its stage; ``codes`` as in ``drawn.CODES``.
    """

    order: Int64s
    stage: Int64s
    is_compute: NDArray[np.bool_]
    start: Float64s
    end: Float64s
    codes: NDArray[np.int32]


def link_spans(
    trace: DrawnTrace, owner: NDArray[np.int32], chosen: Int64s, communication: Int64s, outputs: int
) -> Links:
    """Bands between output spans, from the spans in them.

    ``owner``: output span of each span of the trace, −1 where it has none that is joined; ``chosen``: the spans that have one,
    ordered by output span; ``communication``: the communication spans; ``outputs``: the number of output spans.
    """
    from clusterscape.analyze.trace.marey_kernels import join_spans

    sends = communication[trace.is_send[communication]]
    pairs = {
        BandKind.SAME: (chosen, trace.following[chosen]),
        BandKind.COLLECTIVE: (communication, trace.collective_following[communication]),
        BandKind.MESSAGE: (sends, trace.partner[sends]),
    }
    links = {}
    for kind, (spans, following) in pairs.items():
        has_next = following >= 0
        links[kind.value] = join_spans(spans[has_next], following[has_next], owner, trace.start, trace.end, outputs)
    return links


def relink(links: Links, entry: Int64s, group: Int64s, entries: int, outputs: int) -> Links:
    """Bands between output spans, from the bands between their entries.

    ``entry``: the entries within the window, ascending; ``group``: the output span of each; ``entries`` and ``outputs``: counts.
    """
    from clusterscape.analyze.trace.marey_kernels import join_links

    owner = np.full(entries, -1, np.int32)
    owner[entry] = group
    return {kind: join_links(pairs, edges, entry, owner, outputs) for kind, (pairs, edges) in links.items()}


def find_bands(links: Links, ends: BandEnds, places: NDArray[np.uint32]) -> pl.DataFrame:
    """All bands (``BAND_SCHEMA``); ``from_span``/``to_span`` are rows of the drawn spans, looked up in ``places``."""
    tables = [_make_band_table(pairs, edges, kind, places) for kind, (pairs, edges) in links.items()]
    return pl.concat([*tables, _join_passes(ends, places)])


def _make_band_table(pairs: NDArray[np.uint32], edges: Float64s, kind: str, places: NDArray[np.uint32]) -> pl.DataFrame:
    """One row per pair of output spans: pairs are unique because spans are ordered by output span."""
    integer_columns = {name: pl.Series(places[pairs[at]]) for at, name in enumerate(("from_span", "to_span"))}
    integer_columns["count"] = pl.Series(pairs[2])
    float_columns = {name: pl.Series(column) for name, column in zip((*EDGES, "max_skew_ns"), edges, strict=True)}
    kind_column = {"kind": pl.Series([kind], dtype=BAND_KINDS).new_from_index(0, pairs.shape[1])}
    columns = integer_columns | float_columns | kind_column
    return pl.DataFrame({name: columns[name] for name in BAND_SCHEMA})


def _join_passes(ends: BandEnds, places: NDArray[np.uint32]) -> pl.DataFrame:
    """Bands between the passes of a micro-batch on neighboring stages."""
    at = CODES.index("pass")
    if not ends.stage.size or (ends.stage == ends.stage[0]).all():
        return pl.DataFrame(schema=BAND_SCHEMA)
    chosen = np.flatnonzero(ends.is_compute & (ends.order >= 0) & (ends.codes[:, at] >= 0))
    table = pl.DataFrame(
        {
            "index": places[chosen],
            "order": ends.order[chosen],
            "stage": ends.stage[chosen],
            "pass": ends.codes[chosen, at],
            "start": ends.start[chosen],
            "end": ends.end[chosen],
        }
    )
    whole = table.group_by("order", "stage", "pass").agg(
        pl.col("index").sort_by("start").first(), pl.col("start").min(), pl.col("end").max()
    )
    following = whole.with_columns(pl.col("order") - 1)
    joined = whole.join(following, on=["order", "pass"], suffix="_next").filter(pl.col("stage") != pl.col("stage_next"))
    joined = joined.sort("order", "start", "index").select(
        pl.col("index").alias("from_span"),
        pl.col("index_next").alias("to_span"),
        pl.col("start").alias("from_start"),
        pl.col("end").alias("from_end"),
        pl.col("start_next").alias("to_start"),
        pl.col("end_next").alias("to_end"),
        pl.lit(1).alias("count"),
        (pl.col("start_next") - pl.col("start")).abs().alias("max_skew_ns"),
    )
    return _cast_bands(joined, BandKind.SAME.value)


def _cast_bands(table: pl.DataFrame, kind: str) -> pl.DataFrame:
    return table.with_columns(pl.lit(kind, BAND_KINDS).alias("kind")).select(
        pl.col(name).cast(dtype) for name, dtype in BAND_SCHEMA.items()
    )


MIN_ENTRIES = 20_000
"""A level with fewer entries gets no coarser copy: it is merged fast enough."""
GAPS = tuple(2048 * 4**power for power in (5, 4, 3, 2, 1, 0))
"""The gap of each copy is the trace's extent divided by one of these; finest first."""
LONGEST_GAPS = 8.0
"""Maximum length of an entry, in gaps. An entry that crosses the window's edge counts whole, so the numbers of a window may
include up to 8 pixels outside it.
"""
WORTHWHILE = 0.5
"""A copy is kept only if it has at most this share of the previous copy's entries."""


def find_copy(trace: DrawnTrace, level: Level, pixel_ns: float) -> CoarseCopy | None:
    """The coarsest copy whose gap is at most a pixel; None: use the spans themselves."""
    if level not in trace.copies:
        trace.copies[level] = _build_copies(trace, level)
    fitting = [copy for copy in trace.copies[level] if copy.gap_ns <= pixel_ns]
    return fitting[-1] if fitting else None


def _build_copies(trace: DrawnTrace, level: Level) -> tuple[CoarseCopy, ...]:
    spans = trace.level(level, by_key=True)
    copies: list[CoarseCopy] = []
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
        if copies:
            links = relink(copies[-1].links, merged.entry, merged.group, spans.start.size, merged.worst.size)
        else:
            links = _link_first_copy(trace, level, spans, merged)
        spans = _convert_to_level(merged, spans)
        copies.append(CoarseCopy(gap_ns, spans, links))
    return tuple(copies)


def _link_first_copy(trace: DrawnTrace, level: Level, spans: LevelSpans, merged: Merged) -> Links:
    entry_owner = np.full(spans.start.size, -1, np.int32)
    entry_owner[merged.entry] = merged.group
    owner = np.full(trace.start.size, -1, np.int32)
    owner[spans.communication_span] = entry_owner[spans.communication_entry]
    chosen = spans.communication_span[:0]
    if level != "stage":
        chosen = spans.span[merged.entry]
        owner[chosen] = merged.group
    return link_spans(trace, owner, chosen, spans.communication_span, merged.worst.size)


def _convert_to_level(merged: Merged, before: LevelSpans) -> LevelSpans:
    """Output spans as entries of a level. They are already sorted by block, key and start, as entries must be."""
    columns = {name: np.ascontiguousarray(merged.numbers[:, at]) for at, name in enumerate(NUMBERS)}
    runs, reach = find_runs(merged.block, merged.key, columns["end"])
    count = columns["count"].astype(np.uint32)
    is_communication = np.flatnonzero(merged.kind == CLASSES.index(SpanClass.COMMUNICATION.value))
    return LevelSpans(
        offsets=np.searchsorted(merged.block, np.arange(before.offsets.size)).astype(np.int64),
        runs=runs,
        reach=reach,
        span=np.where(count == 1, merged.worst, -1),
        **{name: columns[name] for name in ("start", "end", "early", "late", "total", "least", "most")},
        middle=columns["median"],
        key=merged.key,
        kind=merged.kind,
        outlier=merged.outlier,
        count=count,
        worst=merged.worst,
        wait=columns["wait"],
        critical=columns["critical"],
        slack=columns["slack"],
        codes=merged.codes,
        communication_span=merged.worst[is_communication],
        communication_entry=is_communication,
    )
