"""A trace's spans as arrays ready to be drawn: by stage, by rank and by lane, each ordered so that merging is one pass.

Made from the table of ``relations.py`` when a trace is opened, kept while it is looked at. Owns no window and no pixels.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.breakdown import WORK
from clusterscape.analyze.trace.drawn_stages import average_over_ranks
from clusterscape.analyze.trace.pipeline import find_chunk
from clusterscape.model.spans import SpanClass

Level = Literal["stage", "rank", "lane"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

PHASE_CLASS = "phase"
"""The forward, backward or another phase that a rank announced: the block in which its kernels lie."""
CLASSES: tuple[str, ...] = (*(each.value for each in SpanClass), PHASE_CLASS)
SHOWN_CLASSES = (SpanClass.COMPUTE.value, SpanClass.COMMUNICATION.value, SpanClass.MEMORY.value, PHASE_CLASS)
"""What a picture shows where nothing else is asked for."""
CODES = ("name", "collective", "phase", "micro_batch", "step", "pass", "namespace")
"""Columns of ``LevelSpans.codes``; −1 is null."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """A rank in the order of the picture: by stage, then by rank."""

    rank: int
    stage: int | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream or thread of a rank; ``place`` is the rank's in the order of the picture."""

    place: int
    name: str
    is_device: bool


@dataclass(frozen=True, slots=True)
class LevelSpans:
    """Spans of one level; row ``block`` of it lies in ``offsets[block] : offsets[block + 1]``. All times nanoseconds.

    An entry is a span, or at the level of stages the mean of one operator over the stage's ranks (``span`` is then −1, and
    ``early``/``late`` are its first start and last end).
    """

    offsets: Ints
    runs: Ints
    """Offsets of runs of entries that may be merged with one another; within one, ``start`` and ``reach`` ascend."""
    reach: Floats
    """The latest end of the run so far."""
    span: Ints
    start: Floats
    end: Floats
    early: Floats
    late: Floats
    key: Codes
    kind: NDArray[np.uint8]
    outlier: Flags
    count: NDArray[np.uint32]
    total: Floats
    least: Floats
    middle: Floats
    most: Floats
    worst: Ints
    wait: Floats
    critical: Floats
    slack: Floats
    codes: Codes
    talk_span: Ints
    """Spans of communication (rows of the trace) …"""
    talk_entry: Ints
    """… and the entry that each is part of."""


Links = dict[str, tuple[NDArray[np.uint32], Floats]]
"""Bands by their kind, in the order of what they start at: (from, to, count) of entries or output spans, and edges with the
largest skew (``bands.py``); a column each.
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """Spans of a level merged wherever at most ``gap_ns`` lies between them, and the bands between these (``pyramid.py``)."""

    gap_ns: float
    spans: LevelSpans
    links: Links


class DrawnTrace:
    """Everything a picture is made from. Arrays that are indexed by span follow the rows of the span table."""

    def __init__(self, spans: pl.DataFrame, stages: Mapping[int, int | None]) -> None:
        self.origin_ns = int(spans["start_ns"].min() or 0) if spans.height else 0  # type: ignore[arg-type]
        self.ranks = tuple(
            RankPlace(rank, stages.get(rank))
            for rank in sorted(stages, key=lambda each: (_none_first(stages.get(each)), each))
        )
        self.lanes, table = _prepare(spans, self.ranks, self.origin_ns)
        self._table = table
        self.start: Floats = table["start"].to_numpy()
        self.end: Floats = table["end"].to_numpy()
        self.extent_ns = float(self.end.max()) if spans.height else 0.0
        self.partner: Ints = table["partner"].fill_null(-1).cast(pl.Int64).to_numpy()
        self.is_send: Flags = (
            (table["collective"].cast(pl.String) == "send").fill_null(False) & (table["partner"].is_not_null())
        ).to_numpy()
        self.names, self._name = _coded(table["name"])
        self.collectives, self._collective = _coded(table["collective"])
        self.phases, self._phase = _coded(table["phase"])
        self.namespaces, self.parent, self.depth_of, own = _namespace_tree(table["namespace"])
        self._namespace = own
        self._levels: dict[tuple[Level, bool], LevelSpans] = {}
        self._blank: list[Codes] = []
        self.copies: dict[Level, tuple[Copy, ...]] = {}

    @property
    def stages(self) -> tuple[int | None, ...]:
        """Stages in order; one None where there are none."""
        return tuple(dict.fromkeys(place.stage for place in self.ranks))

    def level(self, level: Level, *, by_key: bool) -> LevelSpans:
        """Spans of a level, ordered by what may be merged by gap (``by_key``) or by class; then by start."""
        found = self._levels.get((level, by_key))
        if found is None:
            found = self._levels[level, by_key] = self._make(level, by_key)
        return found

    @contextmanager
    def blank_owners(self) -> Iterator[tuple[Codes, list[Ints]]]:
        """An array of −1 for every span, and a list to put the spans into that were given another value. Kept for the next
        picture: filling millions takes longer than drawing thousands.
        """
        owner = self._blank.pop() if self._blank else np.full(self.start.size, -1, np.int32)
        touched: list[Ints] = []
        yield owner, touched
        for spans in touched:
            owner[spans] = -1
        self._blank.append(owner)

    @cached_property
    def following(self) -> Ints:
        """For every span the same operator instance on the next rank of its stage, −1 where there is none."""
        chosen = self._table.filter(pl.col("is_outer") & pl.col("matched").is_null()).sort("instance", "place")
        chosen = chosen.unique(["instance", "place"], keep="first", maintain_order=True)
        return _next_rows(chosen, "instance", self._table.height, neighbors_only=True)

    @cached_property
    def collective_following(self) -> Ints:
        """For every member of a collective the next member in the order of the picture, −1 for the last."""
        chosen = self._table.filter(pl.col("matched").is_not_null()).sort("matched", "place")
        return _next_rows(chosen, "matched", self._table.height, neighbors_only=False)

    def _make(self, level: Level, by_key: bool) -> LevelSpans:
        codes = np.stack([self._code(name) for name in CODES], axis=1)
        table = self._table.with_columns(pl.Series("key", _keys(self._table)))
        block = {"stage": "stage_place", "rank": "place", "lane": "lane_place"}[level]
        if level != "lane":
            table = table.filter(pl.col("is_outer"))
        count = {"stage": len(self.stages), "rank": len(self.ranks), "lane": len(self.lanes)}[level]
        if level == "stage" and len(self.stages) < len(self.ranks):
            table = average_over_ranks(table)
        else:
            length = pl.col("end") - pl.col("start")
            table = table.with_columns(
                pl.col("start").alias("early"),
                pl.col("end").alias("late"),
                pl.lit(1, pl.UInt32).alias("count"),
                *(length.alias(name) for name in ("total", "least", "middle", "most")),
                pl.col("span").alias("worst"),
            )
        order = "key" if by_key else "kind"
        table = table.sort(block, order, "start", "span")
        return _pack(table, block, order, count, codes)

    def _code(self, name: str) -> Codes:
        own = {"name": self._name, "collective": self._collective, "phase": self._phase, "namespace": self._namespace}
        if name in own:
            return own[name]
        codes: Codes = self._table[name].cast(pl.Int32).fill_null(-1).to_numpy()
        return codes


def _coded(column: pl.Series) -> tuple[list[str], Codes]:
    """The strings that occur, and the place of each row's among them; −1 for null."""
    names = column.cast(pl.String).drop_nulls().unique().sort()
    codes: Codes = column.cast(pl.String).cast(pl.Enum(names)).to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
    return names.to_list(), codes


def _none_first(stage: int | None) -> int:
    return -1 if stage is None else stage


def _prepare(spans: pl.DataFrame, ranks: Sequence[RankPlace], origin_ns: int) -> tuple[tuple[Lane, ...], pl.DataFrame]:
    """The columns that drawing needs, with places of rank, stage and lane in the picture."""
    stage_places = {stage: at for at, stage in enumerate(dict.fromkeys(each.stage for each in ranks))}
    places = pl.DataFrame(
        {
            "rank": [each.rank for each in ranks],
            "place": range(len(ranks)),
            "stage_place": [stage_places[each.stage] for each in ranks],
        },
        schema={"rank": pl.Int32, "place": pl.Int32, "stage_place": pl.Int32},
    )
    kind = pl.col("span_class").to_physical().cast(pl.UInt8)
    work = spans.filter(pl.col("span_class").cast(pl.String).is_in(WORK))["rank"].unique()
    # A rank without a device computes in its host operators: they are drawn as what they stand for.
    is_stand_in = (
        (pl.col("span_class") == SpanClass.HOST.value) & pl.col("is_outer") & ~pl.col("rank").is_in(work.implode())
    )
    # Annotations of messages only enclose them; what they announce is drawn as communication.
    is_phase = (
        (pl.col("span_class") == SpanClass.ANNOTATION.value)
        & pl.col("phase").is_not_null()
        & pl.col("is_outer")
        & ~pl.col("is_device")
        & ~pl.col("name").cast(pl.String).str.contains("(?i)send|recv")
    )
    table = spans.with_row_index("span").join(places, on="rank", how="left", maintain_order="left")
    table = table.with_columns(
        pl.when(is_stand_in)
        .then(pl.lit(CLASSES.index("compute"), pl.UInt8))
        .when(is_phase)
        .then(pl.lit(CLASSES.index(PHASE_CLASS), pl.UInt8))
        .otherwise(kind)
        .alias("kind"),
        (pl.col("drawn_ns") - origin_ns).cast(pl.Float64).alias("start"),
        (pl.col("end_ns") - origin_ns).cast(pl.Float64).alias("end"),
        pl.struct("step", "phase", "micro_batch", find_chunk()).rank("dense").cast(pl.Int32).alias("pass"),
    )
    is_pass = pl.col("phase").cast(pl.String).is_in(["forward", "backward"]) & pl.col("micro_batch").is_not_null()
    table = table.with_columns(pl.when(is_pass).then(pl.col("pass")))
    lanes = (
        table.group_by("place", "lane")
        .agg(pl.col("is_device").first())
        .with_columns(pl.col("lane").cast(pl.String).str.extract(r"(\d+)").cast(pl.Int64, strict=False).alias("number"))
        .sort("place", "is_device", "number", pl.col("lane").cast(pl.String), descending=[False, True, False, False])
        .with_row_index("lane_place")
    )
    found = tuple(Lane(*row) for row in lanes.select("place", pl.col("lane").cast(pl.String), "is_device").iter_rows())
    table = table.join(
        lanes.select("place", "lane", "lane_place"),
        on=["place", "lane"],
        how="left",
        maintain_order="left",
        nulls_equal=True,
    )
    return found, table.select(
        "span", "place", "stage_place", "lane_place", "kind", "start", "end", "name", "collective", "phase",
        "micro_batch", "step", "pass", "namespace", "instance", "matched", "partner", "is_outlier", "is_outer",
        pl.col("wait_ns", "critical_ns", "slack_ns").cast(pl.Float64),
    )  # fmt: skip


def _namespace_tree(column: pl.Series) -> tuple[list[str], Codes, Codes, Codes]:
    """All namespaces with those around them; the code of the one around each, how deep each is, and the code of each row."""
    own = column.cast(pl.String)
    paths: set[str] = set()
    for path in own.drop_nulls().unique():
        parts = path.split("/")
        paths.update("/".join(parts[: end + 1]) for end in range(len(parts)))
    ordered = sorted(paths)
    code = {path: at for at, path in enumerate(ordered)}
    # A path that begins with "/" has the empty one around it, which has none: not itself, or the way up would never end.
    parent = np.array([code[path.rpartition("/")[0]] if "/" in path else -1 for path in ordered], np.int32)
    depth = np.array([path.count("/") for path in ordered], np.int32)
    rows = (
        own.replace_strict(code, default=-1, return_dtype=pl.Int32)
        if code
        else pl.repeat(-1, len(own), dtype=pl.Int32, eager=True)
    )
    return ordered, parent, depth, rows.to_numpy()


def _keys(table: pl.DataFrame) -> Codes:
    """One number for everything that spans merged by gap have in common."""
    parts = [
        table["kind"].cast(pl.Int64).to_numpy(),
        table["phase"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy(),
        table["micro_batch"].cast(pl.Int64).fill_null(-1).to_numpy(),
        table["step"].rank("dense").cast(pl.Int64).fill_null(0).to_numpy(),
        table["is_outlier"].cast(pl.Int64).to_numpy(),
    ]
    key = np.zeros(table.height, np.int64)
    for part in parts:
        low = int(part.min()) if part.size else 0
        span = int(part.max()) - low + 1 if part.size else 1
        key = key * span + (part - low)
    if key.size and int(key.max()) >= 2**31:
        key = np.unique(key, return_inverse=True)[1]
    return key.astype(np.int32)


def _next_rows(chosen: pl.DataFrame, by: str, size: int, *, neighbors_only: bool) -> Ints:
    span, place = chosen["span"].to_numpy(), chosen["place"].to_numpy()
    stage, group = chosen["stage_place"].to_numpy(), chosen[by].to_numpy()
    joined = group[1:] == group[:-1]
    if neighbors_only:
        joined &= (place[1:] - place[:-1] == 1) & (stage[1:] == stage[:-1])
    found: Ints = np.full(size, -1, np.int64)
    at = np.flatnonzero(joined)
    found[span[at]] = span[at + 1]
    return found


def find_runs(place: Ints | Codes, order: Codes | NDArray[np.uint8], end: Floats) -> tuple[Ints, Floats]:
    """Offsets of runs of equal place and order, and the latest end so far within each."""
    is_new = np.ones(place.size, bool)
    is_new[1:] = (place[1:] != place[:-1]) | (order[1:] != order[:-1])
    runs = np.append(np.flatnonzero(is_new), place.size).astype(np.int64)
    number = pl.Series(np.cumsum(is_new))
    reach = pl.DataFrame({"run": number, "end": end}).select(pl.col("end").cum_max().over("run")).to_series()
    return runs, reach.to_numpy()


def _pack(table: pl.DataFrame, block: str, order: str, blocks: int, codes: Codes) -> LevelSpans:
    place = table[block].to_numpy()
    runs, reach = find_runs(place, table[order].to_numpy(), table["end"].to_numpy())
    worst = table["worst"].cast(pl.Int64).to_numpy()
    is_talk = table["kind"].to_numpy() == CLASSES.index(SpanClass.COMMUNICATION.value)
    if "members" in table.columns:
        talk = table.with_row_index("entry").filter(is_talk).select("entry", "members").explode("members")
        talk_span, talk_entry = talk["members"].cast(pl.Int64).to_numpy(), talk["entry"].cast(pl.Int64).to_numpy()
        span = np.where(table["count"].to_numpy() == 1, worst, -1)
    else:
        talk_entry = np.flatnonzero(is_talk)
        talk_span, span = worst[talk_entry], worst

    def floats(name: str) -> Floats:
        return np.ascontiguousarray(table[name].cast(pl.Float64).fill_null(np.nan).to_numpy())

    return LevelSpans(
        offsets=np.searchsorted(place, np.arange(blocks + 1)).astype(np.int64),
        runs=runs,
        reach=reach,
        span=span,
        **{name: floats(name) for name in ("start", "end", "early", "late", "total", "least", "middle", "most")},
        key=table["key"].to_numpy(),
        kind=table["kind"].to_numpy(),
        outlier=table["is_outlier"].to_numpy(),
        count=table["count"].to_numpy(),
        worst=worst,
        wait=floats("wait_ns"),
        critical=floats("critical_ns"),
        slack=floats("slack_ns"),
        codes=np.ascontiguousarray(codes[worst]) if worst.size else codes[:0],
        talk_span=talk_span,
        talk_entry=talk_entry,
    )
