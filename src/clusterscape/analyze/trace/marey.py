"""The enhanced Marey graph of a window as three tables: rows, the aggregated spans on them, and the bands between spans."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.aggregate import (
    MAX_UNMERGED,
    NUMBERS,
    BandEnds,
    Merge,
    Merged,
    Window,
    find_bands,
    find_copy,
    link_spans,
    merge_level,
    relink,
)
from clusterscape.analyze.trace.drawn import (
    CLASSES,
    CODES,
    PHASE_CLASS,
    SHOWN_CLASSES,
    DrawnTrace,
    Level,
    LevelSpans,
    Links,
)

DEPTHS: dict[Level, int] = {"stage": 0, "rank": 1, "lane": 2}


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the graph; ``block`` is its index among all stages, ranks or lanes. Bands do not join an opened row."""

    level: Level
    block: int
    label: str
    stage: int | None
    rank: int | None
    lane: str | None
    is_device: bool
    can_open: bool
    is_open: bool
    order: int
    """Position among the rows that bands join; lanes of one rank share it; −1: not joined."""


@dataclass(frozen=True, slots=True)
class MareyGraph:
    """Three tables; bands refer to spans by row."""

    spans: pl.DataFrame
    rows: pl.DataFrame
    bands: pl.DataFrame


def lay_out_rows(trace: DrawnTrace, level: Level, opened: Collection[str]) -> list[Row]:
    """Rows from the top: stages, below each its ranks, below each its lanes. ``opened``: stages as "0", ranks as "r3"."""
    rows: list[Row] = []
    order = -1
    for stage_at, stage in enumerate(trace.stages):
        is_open = level == "stage" and str(stage_at if stage is None else stage) in opened
        places = [at for at, place in enumerate(trace.ranks) if place.stage == stage]
        if level == "stage":
            order += not is_open
            label = f"stage {stage}" if stage is not None else "all ranks"
            rows.append(Row("stage", stage_at, label, stage, None, None, True, True, is_open, -1 if is_open else order))
            if not is_open:
                continue
        for at in places:
            order += 1
            rows += _rank_rows(trace, at, level, opened, order)
    return rows


def _rank_rows(trace: DrawnTrace, at: int, level: Level, opened: Collection[str], order: int) -> list[Row]:
    rank, stage = trace.ranks[at].rank, trace.ranks[at].stage
    lanes = [(place, lane) for place, lane in enumerate(trace.lanes) if lane.place == at]
    is_open = f"r{rank}" in opened or (level == "rank" and stage is not None and str(stage) in opened)
    rows = []
    if level != "lane":
        has_device = any(lane.is_device for _, lane in lanes)
        rows.append(
            Row("rank", at, f"rank {rank}", stage, rank, None, has_device, True, is_open, -1 if is_open else order)
        )
    if level == "lane" or is_open:
        rows += [
            Row("lane", place, lane.name, stage, rank, lane.name, lane.is_device, False, False, order)
            for place, lane in lanes
        ]
    return rows


def draw_marey(
    trace: DrawnTrace,
    window: Window,
    *,
    level: Level = "rank",
    opened: Collection[str] = (),
    classes: Sequence[str] = SHOWN_CLASSES,
    merge: Merge = "gap",
) -> MareyGraph:
    """The graph of a window."""
    rows = lay_out_rows(trace, level, opened)
    levels: list[Level] = [name for name in DEPTHS if any(row.level == name for row in rows)]
    # Bands between rows of different levels need the spans themselves, not a coarser copy.
    copy = find_copy(trace, levels[0], window.pixel_ns) if merge == "gap" and len(levels) == 1 else None
    spans = {name: trace.level(name, by_key=merge == "gap") if copy is None else copy.spans for name in levels}
    parts = []
    for name in levels:
        blocks = [row.block for row in rows if row.level == name]
        parts.append(merge_level(trace, spans[name], blocks, window, classes, merge))
    if merge == "none" and sum(part.worst.size for part in parts) > MAX_UNMERGED:
        return draw_marey(trace, window, level=level, opened=opened, classes=classes, merge="gap")
    row = np.concatenate([_find_rows(rows, name, part.block) for name, part in zip(levels, parts, strict=True)])
    merged = _concat(parts)
    ends = _find_band_ends(trace, rows, merged, row)
    if copy is None:
        links = _link_rows(trace, [(name, spans[name], part) for name, part in zip(levels, parts, strict=True)], ends)
    else:
        links = relink(copy.links, merged.entry, merged.group, copy.spans.start.size, merged.worst.size)
    at = _sort_by_row_and_start(row, merged.numbers[:, 0])
    places = np.empty(at.size, np.uint32)
    places[at] = np.arange(at.size, dtype=np.uint32)
    return MareyGraph(_span_table(trace, merged, row, at), _row_table(rows), find_bands(links, ends, places))


def _sort_by_row_and_start(row: NDArray[np.int64], start: NDArray[np.float64]) -> NDArray[np.int64]:
    """Like ``np.lexsort``, with one combined key: spans are almost in this order, which a stable sort exploits."""
    length = float(start.max() - start.min()) + 1.0 if start.size else 1.0
    ordered: NDArray[np.int64] = np.argsort(row * length + start, kind="stable")
    return ordered


def _find_rows(rows: Sequence[Row], level: Level, block: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each output span, from its block of the level."""
    row_of_block = np.full(1 + max((row.block for row in rows if row.level == level), default=0), -1, np.int64)
    for at, row in enumerate(rows):
        if row.level == level:
            row_of_block[row.block] = at
    placed: NDArray[np.int64] = row_of_block[block]
    return placed


def _concat(parts: Sequence[Merged]) -> Merged:
    """All levels concatenated, without their entries."""
    if len(parts) == 1:
        return parts[0]
    none = np.zeros(0, np.int64)
    names = ("block", "key", "kind", "outlier", "numbers", "worst", "codes")
    return Merged(none, none, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _find_band_ends(trace: DrawnTrace, rows: Sequence[Row], merged: Merged, row: NDArray[np.int64]) -> BandEnds:
    stage_places = {stage: at for at, stage in enumerate(trace.stages)}
    return BandEnds(
        order=np.array([drawn.order for drawn in rows], np.int64)[row],
        stage=np.array([stage_places[drawn.stage] for drawn in rows], np.int64)[row],
        is_compute=np.isin(merged.kind, [CLASSES.index("compute"), CLASSES.index(PHASE_CLASS)]),
        start=merged.numbers[:, 0],
        end=merged.numbers[:, 1],
        codes=merged.codes,
    )


def _link_rows(trace: DrawnTrace, parts: Sequence[tuple[Level, LevelSpans, Merged]], ends: BandEnds) -> Links:
    """Bands between the spans of joined rows; an opened row is only a heading of the rows below it."""
    chosen, communication, before = [], [], 0
    with trace.blank_owners() as (owner, touched):
        for level, spans, part in parts:
            joined = ends.order[before + part.group] >= 0
            entry, group = part.entry[joined], part.group[joined] + before
            if level == "stage":
                entry_owner = np.full(spans.start.size, -1, np.int32)
                entry_owner[entry] = group
                output = entry_owner[spans.communication_entry].astype(np.int64)
                mine, group = spans.communication_span[output >= 0], output[output >= 0]
                communication.append(mine)
            else:
                mine = spans.span[entry]
                chosen.append(mine)
                communication.append(mine[spans.kind[entry] == CLASSES.index("communication")])
            owner[mine] = group
            touched.append(mine)
            before += part.worst.size
        empty = np.zeros(0, np.int64)
        return link_spans(
            trace, owner, np.concatenate([empty, *chosen]), np.concatenate([empty, *communication]), before
        )


def _span_table(trace: DrawnTrace, merged: Merged, row: NDArray[np.int64], at: NDArray[np.int64]) -> pl.DataFrame:
    from clusterscape.analyze.trace.marey_kernels import take_columns

    number = dict(zip(NUMBERS, take_columns(merged.numbers, at), strict=True))
    code = dict(zip(CODES, take_columns(merged.codes, at), strict=True))
    worst, count = merged.worst[at], number["count"].astype(np.uint32)
    total = number["total"]
    share = np.divide(number["critical"], total, out=np.zeros_like(total), where=total > 0)
    narrow = {
        "min_ns": number["least"],
        "median_ns": number["median"],
        "max_ns": number["most"],
        "wait_ns": number["wait"],
        "critical": np.minimum(share, 1.0),
        "slack_ns": number["slack"],
    }
    return pl.DataFrame(
        [
            pl.Series("row", row[at].astype(np.uint16)),
            pl.Series("start_ns", number["start"]),
            pl.Series("end_ns", number["end"]),
            pl.Series("earliest_ns", number["early"]),
            pl.Series("latest_ns", number["late"]),
            _decode("class", merged.kind[at].astype(np.int32), CLASSES),
            _decode("phase", code["phase"], trace.phases),
            _nullable("micro_batch", code["micro_batch"]),
            _nullable("step", code["step"]),
            _decode("name", code["name"], trace.names),
            _decode("namespace", code["namespace"], trace.namespaces),
            _decode("collective", code["collective"], trace.collectives),
            pl.Series("count", count),
            pl.Series("total_ns", total),
            *(pl.Series(name, values.astype(np.float32), nan_to_null=True) for name, values in narrow.items()),
            pl.Series("worst_span", worst),
            _nullable("span", np.where(count == 1, worst, -1)),
            pl.Series("is_outlier", merged.outlier[at]),
        ]
    )


def _decode(title: str, codes: NDArray[np.int32], names: Sequence[str]) -> pl.Series:
    """Strings by code, as an Enum of only the strings that occur."""
    is_used = np.zeros(len(names) + 1, np.bool_)
    is_used[codes] = True  # null, −1, is the last
    used = np.flatnonzero(is_used[:-1])
    used_names = [names[code] for code in used.tolist()]
    place = np.full(is_used.size, used.size, np.uint32)
    place[used] = np.arange(used.size, dtype=np.uint32)
    return pl.Series(title, [*used_names, None], dtype=pl.Enum(used_names)).gather(place[codes])


def _nullable(title: str, values: NDArray[np.int32] | NDArray[np.int64]) -> pl.Series:
    return pl.Series(title, values).set(pl.Series(values < 0), None)


def _row_table(rows: Sequence[Row]) -> pl.DataFrame:
    labels = list(dict.fromkeys(row.label for row in rows))
    lanes = list(dict.fromkeys(row.lane for row in rows if row.lane is not None))
    return pl.DataFrame(
        {
            "row": range(len(rows)),
            "label": pl.Series([row.label for row in rows], dtype=pl.Enum(labels)),
            "stage": [row.stage for row in rows],
            "rank": [row.rank for row in rows],
            "lane": pl.Series([row.lane for row in rows], dtype=pl.Enum(lanes)),
            "is_device": [row.is_device for row in rows],
            "depth": [DEPTHS[row.level] for row in rows],
            "can_open": [row.can_open for row in rows],
            "is_open": [row.is_open for row in rows],
        },
        schema_overrides={"row": pl.UInt16, "stage": pl.Int32, "rank": pl.Int32, "depth": pl.UInt8},
    )
