"""A trace's spans as arrays ready to be drawn: by stage, by rank and by lane, each sorted so that merging is one pass.

Built from the table of ``relations.py`` when a trace is opened, and kept while it is viewed. Does not know windows or pixels.
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
from clusterscape.analyze.trace.pipeline import find_chunk
from clusterscape.model.arrays import Bools, Float64s, Int32s, Int64s
from clusterscape.model.spans import SpanClass


def average_over_ranks(table: pl.DataFrame) -> pl.DataFrame:
    """Averages over the ranks of a stage: one row per (stage, operator instance).

    ``total``, ``wait_ns`` and ``critical_ns`` are sums over ranks; ``members`` lists the spans. An instance that is an outlier
    on one rank is an outlier of the stage.
    """
    length = pl.col("end") - pl.col("start")
    longest = pl.col("span").sort_by(length, "span").last()
    return table.group_by("stage_place", "instance", maintain_order=True).agg(
        pl.col("kind").first(),
        pl.col("key").max(),  # the last digit of a key says whether it is an outlier
        pl.col("start", "end").mean(),
        pl.col("start").min().alias("early"),
        pl.col("end").max().alias("late"),
        pl.len().cast(pl.UInt32).alias("count"),
        length.sum().alias("total"),
        length.min().alias("least"),
        length.median().alias("middle"),
        length.max().alias("most"),
        longest.alias("worst"),
        longest.alias("span"),
        pl.col("is_outlier").any(),
        # The sum of no values is null, not 0.
        pl.when(pl.col("wait_ns").count() > 0).then(pl.col("wait_ns").sum()).alias("wait_ns"),
        pl.col("critical_ns").sum(),
        pl.col("slack_ns").min(),
        pl.col("span").alias("members"),
    )


Level = Literal["stage", "rank", "lane"]
Codes = Int32s

PHASE_CLASS = "phase"
"""The forward, backward or another annotated phase of a rank: the block around its kernels."""
CLASSES: tuple[str, ...] = (*(span_class.value for span_class in SpanClass), PHASE_CLASS)
SHOWN_CLASSES = (SpanClass.COMPUTE.value, SpanClass.COMMUNICATION.value, SpanClass.MEMORY.value, PHASE_CLASS)
"""The classes that are shown by default."""
CODES = ("name", "collective", "phase", "micro_batch", "step", "pass", "namespace")
"""Columns of ``LevelSpans.codes``; −1 is null."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """A rank, in drawing order: by stage, then by rank."""

    rank: int
    stage: int | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream or thread of a rank; ``place`` is the position of the rank in drawing order."""

    place: int
    name: str
    is_device: bool


@dataclass(frozen=True, slots=True)
class LevelSpans:
    """Spans of one level; the entries of row ``block`` are ``offsets[block] : offsets[block + 1]``. All times are nanoseconds.

    An entry is a span, or at the stage level the mean of one operator over the stage's ranks (``span`` is then −1, and
    ``early``/``late`` are its first start and last end).
    """

    offsets: Int64s
    runs: Int64s
    """Offsets of runs of entries that may be merged with one another; within one, ``start`` and ``reach`` ascend."""
    reach: Float64s
    """The latest end of the run so far."""
    span: Int64s
    start: Float64s
    end: Float64s
    early: Float64s
    late: Float64s
    key: Codes
    kind: NDArray[np.uint8]
    outlier: Bools
    count: NDArray[np.uint32]
    total: Float64s
    least: Float64s
    middle: Float64s
    most: Float64s
    worst: Int64s
    wait: Float64s
    critical: Float64s
    slack: Float64s
    codes: Codes
    communication_span: Int64s
    """Communication spans (rows of the trace) …"""
    communication_entry: Int64s
    """… and the entry that contains each."""


Links = dict[str, tuple[NDArray[np.uint32], Float64s]]
"""Bands by kind, sorted by where they start: (from, to, count) of entries or output spans, and edges with the largest skew
(``aggregate.py``); one column per band.
"""


@dataclass(frozen=True, slots=True)
class CoarseCopy:
    """Spans of a level merged where at most ``gap_ns`` lies between them, and the bands between the merged spans
    (``aggregate.py``).
    """

    gap_ns: float
    spans: LevelSpans
    links: Links


class DrawnTrace:
    """Everything that is drawn of a trace. Arrays indexed by span follow the rows of the span table."""

    def __init__(self, spans: pl.DataFrame, stages: Mapping[int, int | None]) -> None:
        self.origin_ns = int(spans["start_ns"].min() or 0) if spans.height else 0  # type: ignore[arg-type]
        self.ranks = tuple(
            RankPlace(rank, stages.get(rank))
            for rank in sorted(stages, key=lambda number: (_none_first(stages.get(number)), number))
        )
        self.lanes, table = _prepare_table(spans, self.ranks, self.origin_ns)
        self._table = table
        self.start: Float64s = table["start"].to_numpy()
        self.end: Float64s = table["end"].to_numpy()
        self.extent_ns = float(self.end.max()) if spans.height else 0.0
        self.partner: Int64s = table["partner"].fill_null(-1).cast(pl.Int64).to_numpy()
        self.is_send: Bools = (
            (table["collective"].cast(pl.String) == "send").fill_null(False) & (table["partner"].is_not_null())
        ).to_numpy()
        self.names, self._name = _encode(table["name"])
        self.collectives, self._collective = _encode(table["collective"])
        self.phases, self._phase = _encode(table["phase"])
        self.namespaces, self.parent, self.depth_of, namespace_codes = _namespace_tree(table["namespace"])
        self._namespace = namespace_codes
        self._levels: dict[tuple[Level, bool], LevelSpans] = {}
        self._blank: list[Codes] = []
        self.copies: dict[Level, tuple[CoarseCopy, ...]] = {}

    @property
    def stages(self) -> tuple[int | None, ...]:
        """Stages in order; ``(None,)`` if there are none."""
        return tuple(dict.fromkeys(place.stage for place in self.ranks))

    def level(self, level: Level, *, by_key: bool) -> LevelSpans:
        """Spans of a level, sorted by merge key (``by_key``) or by class, then by start."""
        spans = self._levels.get((level, by_key))
        if spans is None:
            spans = self._levels[level, by_key] = self._build_level(level, by_key)
        return spans

    @contextmanager
    def blank_owners(self) -> Iterator[tuple[Codes, list[Int64s]]]:
        """An array with −1 for every span, and a list for the spans that the caller gives another value. Both are reset and
        reused: filling an array of millions takes longer than drawing thousands.
        """
        owner = self._blank.pop() if self._blank else np.full(self.start.size, -1, np.int32)
        touched: list[Int64s] = []
        yield owner, touched
        for spans in touched:
            owner[spans] = -1
        self._blank.append(owner)

    @cached_property
    def following(self) -> Int64s:
        """For every span the same operator instance on the next rank of its stage, −1 if there is none."""
        chosen = self._table.filter(pl.col("is_outer") & pl.col("matched").is_null()).sort("instance", "place")
        chosen = chosen.unique(["instance", "place"], keep="first", maintain_order=True)
        return _next_rows(chosen, "instance", self._table.height, neighbors_only=True)

    @cached_property
    def collective_following(self) -> Int64s:
        """For every member of a collective the next member in drawing order, −1 for the last."""
        chosen = self._table.filter(pl.col("matched").is_not_null()).sort("matched", "place")
        return _next_rows(chosen, "matched", self._table.height, neighbors_only=False)

    def _build_level(self, level: Level, by_key: bool) -> LevelSpans:
        codes = np.stack([self._code(name) for name in CODES], axis=1)
        table = self._table.with_columns(pl.Series("key", _compute_merge_keys(self._table)))
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
        coded = {"name": self._name, "collective": self._collective, "phase": self._phase, "namespace": self._namespace}
        if name in coded:
            return coded[name]
        codes: Codes = self._table[name].cast(pl.Int32).fill_null(-1).to_numpy()
        return codes


def _encode(column: pl.Series) -> tuple[list[str], Codes]:
    """Dictionary encoding: the sorted distinct strings, and the index of each row's string; −1 for null."""
    names = column.cast(pl.String).drop_nulls().unique().sort()
    codes: Codes = column.cast(pl.String).cast(pl.Enum(names)).to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
    return names.to_list(), codes


def _none_first(stage: int | None) -> int:
    return -1 if stage is None else stage


def _prepare_table(
    spans: pl.DataFrame, ranks: Sequence[RankPlace], origin_ns: int
) -> tuple[tuple[Lane, ...], pl.DataFrame]:
    """The columns that drawing needs, with the positions of rank, stage and lane in drawing order."""
    stage_places = {stage: at for at, stage in enumerate(dict.fromkeys(place.stage for place in ranks))}
    places = pl.DataFrame(
        {
            "rank": [place.rank for place in ranks],
            "place": range(len(ranks)),
            "stage_place": [stage_places[place.stage] for place in ranks],
        },
        schema={"rank": pl.Int32, "place": pl.Int32, "stage_place": pl.Int32},
    )
    kind = pl.col("span_class").to_physical().cast(pl.UInt8)
    work = spans.filter(pl.col("span_class").cast(pl.String).is_in(WORK))["rank"].unique()
    # A rank without a device computes in host operators: draw them as compute.
    is_stand_in = (
        (pl.col("span_class") == SpanClass.HOST.value) & pl.col("is_outer") & ~pl.col("rank").is_in(work.implode())
    )
    # Annotations around sends and receives are not phases: the messages themselves are drawn as communication.
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
    lane_list = tuple(
        Lane(*row) for row in lanes.select("place", pl.col("lane").cast(pl.String), "is_device").iter_rows()
    )
    table = table.join(
        lanes.select("place", "lane", "lane_place"),
        on=["place", "lane"],
        how="left",
        maintain_order="left",
        nulls_equal=True,
    )
    return lane_list, table.select(
        "span", "place", "stage_place", "lane_place", "kind", "start", "end", "name", "collective", "phase",
        "micro_batch", "step", "pass", "namespace", "instance", "matched", "partner", "is_outlier", "is_outer",
        pl.col("wait_ns", "critical_ns", "slack_ns").cast(pl.Float64),
    )  # fmt: skip


def _namespace_tree(column: pl.Series) -> tuple[list[str], Codes, Codes, Codes]:
    """All namespaces with their ancestors; the code of each one's parent, its depth, and the code of each row's namespace."""
    namespaces = column.cast(pl.String)
    paths: set[str] = set()
    for path in namespaces.drop_nulls().unique():
        parts = path.split("/")
        paths.update("/".join(parts[: end + 1]) for end in range(len(parts)))
    ordered = sorted(paths)
    code = {path: at for at, path in enumerate(ordered)}
    # The parent of "/x" is the empty path, which has no parent. It must not be its own, or the walk up would never end.
    parent = np.array([code[path.rpartition("/")[0]] if "/" in path else -1 for path in ordered], np.int32)
    depth = np.array([path.count("/") for path in ordered], np.int32)
    rows = (
        namespaces.replace_strict(code, default=-1, return_dtype=pl.Int32)
        if code
        else pl.repeat(-1, len(namespaces), dtype=pl.Int32, eager=True)
    )
    return ordered, parent, depth, rows.to_numpy()


def _compute_merge_keys(table: pl.DataFrame) -> Codes:
    """Merge key: spans are merged by gap only if they have the same class, phase, micro-batch, step and outlier flag."""
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


def _next_rows(chosen: pl.DataFrame, by: str, size: int, *, neighbors_only: bool) -> Int64s:
    span, place = chosen["span"].to_numpy(), chosen["place"].to_numpy()
    stage, group = chosen["stage_place"].to_numpy(), chosen[by].to_numpy()
    joined = group[1:] == group[:-1]
    if neighbors_only:
        joined &= (place[1:] - place[:-1] == 1) & (stage[1:] == stage[:-1])
    following: Int64s = np.full(size, -1, np.int64)
    at = np.flatnonzero(joined)
    following[span[at]] = span[at + 1]
    return following


def find_runs(place: Int64s | Codes, order: Codes | NDArray[np.uint8], end: Float64s) -> tuple[Int64s, Float64s]:
    """Offsets of runs of equal place and order, and the running maximum of the end within each run."""
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
    is_communication = table["kind"].to_numpy() == CLASSES.index(SpanClass.COMMUNICATION.value)
    if "members" in table.columns:
        communication = (
            table.with_row_index("entry").filter(is_communication).select("entry", "members").explode("members")
        )
        communication_span, communication_entry = (
            communication["members"].cast(pl.Int64).to_numpy(),
            communication["entry"].cast(pl.Int64).to_numpy(),
        )
        span = np.where(table["count"].to_numpy() == 1, worst, -1)
    else:
        communication_entry = np.flatnonzero(is_communication)
        communication_span, span = worst[communication_entry], worst

    def floats(name: str) -> Float64s:
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
        communication_span=communication_span,
        communication_entry=communication_entry,
    )
