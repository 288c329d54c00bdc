"""What Kineto's events mean: spans with their class, step, phase and collective. Decoding is ``kineto.py``."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.collect.traces.collective_names import (
    HOST_BACKENDS,
    find_kind,
    is_communication_kernel,
    parse_annotation,
)
from clusterscape.collect.traces.kineto import (
    CompleteEvent,
    Event,
    EventArguments,
    Facts,
    Number,
    to_column,
    to_whole,
)
from clusterscape.collect.traces.kineto_flops import FORMULAS, add_flops, estimate_flops
from clusterscape.model.spans import SPAN_CLASS, FlopsSource, ProcessGroup, RankFacts, SpanClass, make_spans

Codes = NDArray[np.uint32]
Floats = NDArray[np.float64]

CLASSES = {
    "kernel": SpanClass.COMPUTE,
    "gpu_memcpy": SpanClass.MEMORY,
    "gpu_memset": SpanClass.MEMORY,
    "cuda_runtime": SpanClass.LAUNCH,
    "cuda_driver": SpanClass.LAUNCH,
    "hip_runtime": SpanClass.LAUNCH,
    "xpu_runtime": SpanClass.LAUNCH,
    "cpu_op": SpanClass.HOST,
    "python_function": SpanClass.HOST,
    "user_annotation": SpanClass.ANNOTATION,
    "gpu_user_annotation": SpanClass.ANNOTATION,
}
"""Category → class. Others (flows, counters, the profiler's own overhead) are no work of the run."""
DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"})
NAMED_CATEGORIES = frozenset({"kernel", "user_annotation"})
"""Categories whose spans are classified by their names, too."""
STEP_NAME = re.compile(r"^ProfilerStep#(\d{1,9})$")
ELEMENT_BYTES = {
    "float": 4, "int": 4, "double": 8, "long": 8, "long int": 8, "half": 2, "bfloat16": 2, "c10::half": 2, "c10::bfloat16": 2,
    "char": 1, "byte": 1, "bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_COMMS = "record_param_comms"


def to_rank(value: Number) -> int | None:
    """The rank, where it can be one."""
    number = to_whole(value)
    return number if number is not None and 0 <= number < 2**31 else None


def to_real(value: Number) -> float | None:
    """The number, where it is one."""
    try:
        return None if value is None else float(value)
    except (ValueError, OverflowError):
        return None


class Built(NamedTuple):
    """Spans of one rank (its rank still null), without step, phase and namespace; where their FLOPs come from; and notes."""

    spans: pl.DataFrame
    flops_source: FlopsSource | None
    notes: list[str]


class _Kind(NamedTuple):
    """What spans of one category, name and thread are."""

    span_class: SpanClass
    name: str
    lane: str
    is_device: bool
    is_collective: bool
    is_product: bool


Key = tuple[str, str | int | None, Number]
"""Category, name and thread of an event."""


class _Kinds(dict[Key, int]):
    """Numbers the keys in the order in which they occur. They are few, and each is interpreted once for all its spans."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[_Kind] = []

    def __missing__(self, key: Key) -> int:
        category, name, thread = key[0], str(key[1]), key[2]
        span_class = classify(category, name)
        is_device = category in DEVICE_CATEGORIES
        self.kinds.append(
            _Kind(
                span_class,
                name,
                f"{'stream' if is_device else 'thread'} {thread}",
                is_device,
                is_collective=span_class is SpanClass.COMMUNICATION or is_collective_name(name),
                is_product=name in FORMULAS,
            )
        )
        self[key] = code = len(self)
        return code


class _Block(NamedTuple):
    """Columns of the spans of a block."""

    kind: Codes
    start_us: pl.Series
    duration_us: Floats
    bytes: pl.Series
    flops: pl.Series
    correlation: pl.Series


class SpanColumns:
    """Collects the spans of a file, a block of events at a time."""

    def __init__(self) -> None:
        self._kinds = _Kinds()
        self._blocks: list[_Block] = []
        self._collectives: list[CollectiveFacts] = []
        self._flops: list[tuple[int, float]] = []
        self._height = 0
        self._negative = 0

    def add(self, events: Iterable[Event]) -> None:
        """Take in a block of events."""
        complete = [
            event for event in events if type(event) is CompleteEvent and event.ts is not None and event.cat in CLASSES
        ]
        durations = np.array([event.dur or 0 for event in complete], np.float64)
        negative = int(np.count_nonzero(durations < 0))
        if negative:
            self._negative += negative
            complete = [event for event in complete if (event.dur or 0) >= 0]
            durations = durations[durations >= 0]
        keys = zip(
            [event.cat or "" for event in complete],
            [event.name for event in complete],
            [event.tid for event in complete],
            strict=True,
        )
        kinds = np.fromiter(map(self._kinds.__getitem__, keys), np.uint32, len(complete))
        arguments = [event.args or NO_ARGUMENTS for event in complete]
        self._describe(kinds, arguments)
        self._blocks.append(
            _Block(
                kinds,
                _to_times([event.ts for event in complete]),
                durations,
                to_column([own.bytes for own in arguments], pl.Int64(), to_whole),
                to_column([own.flops for own in arguments], pl.Float64(), to_real),
                to_column([own.correlation for own in arguments], pl.Int64(), to_whole),
            )
        )
        self._height += len(complete)

    def _describe(self, kinds: Codes, arguments: Sequence[EventArguments]) -> None:
        """Note what the arguments of collectives and products say."""
        table = self._kinds.kinds
        collectives = np.array([kind.is_collective for kind in table], np.bool_)
        for row in np.flatnonzero(collectives[kinds]).tolist():
            self._collectives.append(describe(self._height + row, arguments[row], table[kinds[row]].name))
        products = np.array([kind.is_product for kind in table], np.bool_)
        for row in np.flatnonzero(products[kinds]).tolist():
            flops = estimate_flops(table[kinds[row]].name, arguments[row])
            if flops is not None:
                self._flops.append((self._height + row, flops))

    def build(self, base_ns: int) -> Built:
        """The spans of all blocks. Times are nanoseconds, ``base_ns`` is what the file's times count from."""
        columns = _join(self._blocks or [_NO_SPANS])
        kinds = self._kinds.kinds
        is_device = np.array([kind.is_device for kind in kinds], np.bool_)[columns.kind]
        classes = pl.Series([kind.span_class.value for kind in kinds], dtype=SPAN_CLASS)
        starts = _to_ns(columns.start_us, base_ns)
        spans = make_spans(
            {
                "lane": pl.Series([kind.lane for kind in kinds], dtype=pl.Categorical()).gather(columns.kind),
                "is_device": pl.Series(is_device),
                "span_class": classes.gather(columns.kind),
                "name": pl.Series([kind.name for kind in kinds], dtype=pl.Categorical()).gather(columns.kind),
                "start_ns": starts,
                "end_ns": starts + (pl.Series(columns.duration_us) * 1000).round().cast(pl.Int64),
                "bytes": columns.bytes,
                "flops": columns.flops,
                "correlation": columns.correlation,
            },
            self._height,
        )
        spans, flops_source = add_flops(describe_collectives(spans, self._collectives), self._flops)
        notes = [f"{self._negative:,} spans with a negative duration were left out"] if self._negative else []
        return Built(spans, flops_source, notes)


NO_ARGUMENTS = EventArguments()
_NO_SPANS = _Block(
    np.zeros(0, np.uint32),
    pl.Series(dtype=pl.Int64),
    np.zeros(0),
    pl.Series(dtype=pl.Int64),
    pl.Series(dtype=pl.Float64),
    pl.Series(dtype=pl.Int64),
)


def _join(blocks: Sequence[_Block]) -> _Block:
    kinds, starts, durations, *rest = zip(*blocks, strict=True)
    if any(series.dtype == pl.Float64 for series in starts):
        starts = tuple(series.cast(pl.Float64) for series in starts)
    return _Block(np.concatenate(kinds), pl.concat(starts), np.concatenate(durations), *map(pl.concat, rest))


def _to_times(microseconds: Sequence[int | float | None]) -> pl.Series:
    """Whole microseconds stay whole: since 1970 they need more than a float's 53 bits once they are nanoseconds."""
    try:
        return pl.Series(microseconds, dtype=pl.Int64, strict=True)
    except TypeError:  # some have decimals
        return pl.Series(microseconds, dtype=pl.Float64)


def _to_ns(microseconds: pl.Series, base_ns: int) -> pl.Series:
    if microseconds.dtype == pl.Int64:
        return microseconds * 1000 + base_ns
    whole = microseconds.floor().cast(pl.Int64)
    return whole * 1000 + ((microseconds - microseconds.floor()) * 1000).round().cast(pl.Int64) + base_ns


def is_collective_name(name: str) -> bool:
    """Whether a span of this name describes a collective, whatever its class."""
    return name == _COMMS or parse_annotation(name) is not None


def classify(category: str, name: str) -> SpanClass:
    """The class of a span of a known category."""
    found = CLASSES[category]
    if found is SpanClass.COMPUTE and is_communication_kernel(name):
        return SpanClass.COMMUNICATION
    if found is SpanClass.ANNOTATION and category == "user_annotation":
        if STEP_NAME.match(name):
            return SpanClass.STEP
        collective = parse_annotation(name)
        if collective and collective[0] in HOST_BACKENDS:
            return SpanClass.COMMUNICATION
    return found


CollectiveFacts = tuple[int, str | None, str | None, int | None, int | None, int | None]
"""Row of the span table, kind, process group, sequence, peer, bytes."""


def describe_collectives(spans: pl.DataFrame, rows: Sequence[CollectiveFacts]) -> pl.DataFrame:
    """Kind, process group, size and number of each communication: its own, else of the call that launched it."""
    if not rows:
        return spans
    columns = zip(_FACTS.items(), zip(*rows, strict=True), strict=True)
    facts = pl.DataFrame([pl.Series(name, values, dtype=kind) for (name, kind), values in columns])
    seen = spans.select("lane", "start_ns", "end_ns", "is_device", "span_class", "correlation")
    own = seen[facts["place"]].hstack(facts)
    launched = own.filter(pl.col("is_device") & (pl.col("span_class") == SpanClass.COMMUNICATION.value))
    filled = _fill_from_calls(launched, own.filter(~pl.col("is_device")), seen)
    host = own.filter(~pl.col("is_device") & (pl.col("span_class") == SpanClass.COMMUNICATION.value))
    found = pl.concat([filled, host.select(filled.columns)]) if filled.height else host.select(list(_FACTS))
    if not found.height:
        return spans
    # For every span its row of what was found, or null.
    rows_of = np.full(spans.height, -1)
    rows_of[found["place"].to_numpy()] = np.arange(found.height)
    at = pl.Series(rows_of).set(pl.Series(rows_of < 0), None)
    return spans.with_columns(
        found["kind"].cast(pl.Categorical()).gather(at).alias("collective"),
        found["process_group"].cast(pl.Categorical()).gather(at),
        found["sequence"].gather(at),
        found["peer"].cast(pl.Int32).gather(at),
        found["size"].gather(at).fill_null(spans["bytes"]).alias("bytes"),
    )


_FACTS: dict[str, pl.DataType] = {
    "place": pl.Int64(),
    "kind": pl.String(),
    "process_group": pl.String(),
    "sequence": pl.Int64(),
    "peer": pl.Int64(),
    "size": pl.Int64(),
}
_CALL_FACTS = ("kind", "process_group", "sequence", "peer", "size")


def describe(place: int, own: EventArguments, name: str) -> CollectiveFacts:
    """What a span's arguments and name say of its collective."""
    annotation = parse_annotation(name)
    kind = find_kind(own.collective) if own.collective else None
    kind = kind or (annotation[1] if annotation else None if name == _COMMS else find_kind(name))
    group = None if own.group is None else str(own.group)
    peer = to_rank(own.target_rank if kind == "send" else own.source_rank if kind == "recv" else None)
    return place, kind, group, to_whole(own.sequence), peer, _size_bytes(own)


def _size_bytes(own: EventArguments) -> int | None:
    elements = to_whole(own.input_elements)
    if elements is not None and own.data_type:
        width = ELEMENT_BYTES.get(own.data_type.lower())
        return None if width is None else to_whole(elements * width)
    shapes, types = bytes(own.input_shapes), bytes(own.input_types)
    return to_whole(_sum_bytes(shapes, types)) if shapes and types else None


@lru_cache(maxsize=65536)
def _sum_bytes(shapes: bytes, types: bytes) -> int | None:
    """Of all tensors; a run repeats the same ones."""
    try:
        pairs = zip(
            msgspec.json.decode(shapes, type=list[list[int]]), msgspec.json.decode(types, type=list[str]), strict=False
        )
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    total = 0
    for shape, kind in pairs:
        width = ELEMENT_BYTES.get(kind.lower())
        if width is None:
            return None
        total += math.prod(shape) * width
    return total


def _fill_from_calls(launched: pl.DataFrame, calls: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """What a kernel does not say of itself is taken from the host call that encloses its launch, on the launching thread."""
    if not launched.height:
        return launched.select(list(_FACTS))
    launches = spans.filter((pl.col("span_class") == SpanClass.LAUNCH.value) & pl.col("correlation").is_not_null())
    launches = launches.select("correlation", pl.col("lane").alias("thread"), pl.col("start_ns").alias("launch_ns"))
    launches = launches.join(launched, on="correlation", how="semi").unique("correlation", keep="first")
    where = launched.join(launches, on="correlation", how="left").sort("launch_ns")
    for kind in ("annotation", "comms"):
        chosen = calls.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) == (kind == "annotation"))
        chosen = chosen.select(
            pl.col("lane").alias("thread"),
            pl.col("start_ns").alias("launch_ns"),
            pl.col("end_ns").alias("call_end_ns"),
            *(pl.col(name).alias(f"call_{name}") for name in _CALL_FACTS),
        ).sort("launch_ns")
        joined = where.join_asof(chosen, on="launch_ns", by="thread", strategy="backward", check_sortedness=False)
        is_inside = pl.col("call_end_ns") >= pl.col("launch_ns")
        vague = pl.col("kind").is_null() | (pl.col("kind") == "send_recv")
        better_kind = pl.when(is_inside & vague & pl.col("call_kind").is_not_null()).then(pl.col("call_kind"))
        rest = [
            pl.col(name).fill_null(pl.when(is_inside).then(pl.col(f"call_{name}")))
            for name in _CALL_FACTS
            if name != "kind"
        ]
        where = joined.with_columns(better_kind.otherwise(pl.col("kind")).alias("kind"), *rest).select(where.columns)
    return where.select(list(_FACTS))


def describe_rank(facts: Facts, source: str, notes: Sequence[str], *, is_complete: bool) -> RankFacts:
    """Facts of the rank; its number is set by the caller, once ``naming.assign_ranks`` has seen all files."""
    info = facts.distributed
    groups = tuple(
        ProcessGroup(name=str(group.pg_name), ranks=tuple(group.ranks), kind=find_group_kind(group.pg_desc))
        for group in (info.pg_config if info else [])
        if group.pg_name is not None
    )
    return RankFacts(
        rank=0,
        source=source,
        world_size=to_whole(info.world_size) if info else None,
        backend=info.backend if info else None,
        device=facts.devices[0].name if facts.devices else None,
        process_groups=groups,
        is_complete=is_complete,
        notes=tuple(notes),
    )


def find_group_kind(description: str | None) -> str | None:
    """dp, tp, pp, ep, cp from what a framework calls the group."""
    words: list[str] = re.findall(r"[a-z]+", (description or "").lower())
    long = {"data": "dp", "tensor": "tp", "pipeline": "pp", "expert": "ep", "context": "cp", "fsdp": "dp", "ddp": "dp"}
    for word in words:
        if word in ("dp", "tp", "pp", "ep", "cp"):
            return word
        if word in long:
            return long[word]
    return None
