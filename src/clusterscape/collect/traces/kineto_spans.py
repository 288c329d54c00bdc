"""Converts Kineto events to spans with their class and collective. ``kineto.py`` decodes the events."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

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
    KinetoMetadata,
    Number,
    to_column,
    to_int,
)
from clusterscape.collect.traces.kineto_measures import FORMULAS, add_flops, estimate_flops
from clusterscape.model.arrays import Float64s, Uint32s
from clusterscape.model.spans import SPAN_CLASS, FlopsSource, ProcessGroup, RankFacts, SpanClass, make_spans

CLASSES = {
    "kernel": SpanClass.COMPUTE,
    "gpu_memcpy": SpanClass.MEMORY,
    "gpu_memset": SpanClass.MEMORY,
    "cuda_runtime": SpanClass.LAUNCH,
    "cuda_driver": SpanClass.LAUNCH,
    "hip_runtime": SpanClass.LAUNCH,
    "xpu_runtime": SpanClass.LAUNCH,
    "xpu_driver": SpanClass.LAUNCH,
    "mtia_runtime": SpanClass.LAUNCH,
    "privateuse1_runtime": SpanClass.LAUNCH,
    "privateuse1_driver": SpanClass.LAUNCH,
    "mtia_ccp_events": SpanClass.COMPUTE,
    # Of PyTorch 1.8 to 1.11.
    "Operator": SpanClass.HOST,
    "Kernel": SpanClass.COMPUTE,
    "Memcpy": SpanClass.MEMORY,
    "Memset": SpanClass.MEMORY,
    "Runtime": SpanClass.LAUNCH,
    "cpu_op": SpanClass.HOST,
    "python_function": SpanClass.HOST,
    "user_annotation": SpanClass.ANNOTATION,
    "gpu_user_annotation": SpanClass.ANNOTATION,
}
"""Category → class. Other categories (flows, counters, the profiler's own overhead) are not work of the run."""
DEVICE_CATEGORIES = frozenset(
    {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "mtia_ccp_events", "Kernel", "Memcpy", "Memset"}
)
NAMED_CATEGORIES = frozenset({"kernel", "user_annotation"})
"""Categories whose spans are also classified by their names."""
STEP_NAME = re.compile(r"^ProfilerStep#(\d{1,9})$")
ELEMENT_BYTES = {
    "float": 4, "int": 4, "double": 8, "long": 8, "long int": 8, "half": 2, "bfloat16": 2, "c10::half": 2, "c10::bfloat16": 2,
    "char": 1, "byte": 1, "bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_OLD_ANNOTATION = re.compile(r"^(enumerate\(DataLoader\)|Optimizer\.(step|zero_grad)#)")
"""Annotations that old profilers wrote as operators."""
_COMMS = "record_param_comms"


def to_rank(value: Number) -> int | None:
    """Convert to a rank; None if it is not a valid one."""
    number = to_int(value)
    return number if number is not None and 0 <= number < 2**31 else None


def to_float(value: Number) -> float | None:
    """Convert to a float; None if that is not possible."""
    try:
        return None if value is None else float(value)
    except (ValueError, OverflowError):
        return None


class BuiltSpans(NamedTuple):
    """Spans of one rank (its rank still null), without step, phase and namespace; the source of their FLOPs; and notes."""

    spans: pl.DataFrame
    flops_source: FlopsSource | None
    notes: list[str]


class _Kind(NamedTuple):
    """The common properties of spans with the same category, name and thread."""

    span_class: SpanClass
    name: str
    lane: str
    is_device: bool
    is_collective: bool
    is_product: bool


Key = tuple[str, str | int | None, Number]
"""Category, name and thread of an event."""


_KEY_OF: Callable[[CompleteEvent], Key] = attrgetter("cat", "name", "tid")


NOT_WORK = 2**32 - 1
"""The number of all keys whose category is not work of the run."""


class _Kinds(dict[Key, int]):
    """Numbers the keys in order of occurrence. Keys are few, so each is interpreted once for all its spans."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[_Kind] = []
        self.has_details = bytearray()
        """By number: whether details of the arguments are needed."""

    def __missing__(self, key: Key) -> int:
        category, name, thread = key[0], str(key[1]), key[2]
        if category not in CLASSES:
            self[key] = NOT_WORK
            return NOT_WORK
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
        self.has_details.append(self.kinds[-1].is_collective or self.kinds[-1].is_product)
        self[key] = number = len(self.kinds) - 1
        return number


class _Block(NamedTuple):
    """Columns of the spans of a block."""

    kind: Uint32s
    start_us: pl.Series
    duration_us: Float64s
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
        """Add a block of events."""
        complete = [event for event in events if type(event) is CompleteEvent]
        kinds = np.fromiter(map(self._kinds.__getitem__, map(_KEY_OF, complete)), np.uint32, len(complete))
        starts = _to_times([event.ts for event in complete])
        durations = np.array([event.dur or 0 for event in complete], np.float64)
        is_span = kinds != NOT_WORK
        if starts.null_count():
            is_span &= starts.is_not_null().to_numpy()
        is_negative = durations < 0
        if is_negative.any():
            self._negative += int(np.count_nonzero(is_span & is_negative))
            is_span &= ~is_negative
        if not is_span.all():
            complete = list(compress(complete, is_span.tolist()))
            kinds, starts, durations = kinds[is_span], starts.filter(pl.Series(is_span)), durations[is_span]
        arguments = [event.args or NO_ARGUMENTS for event in complete]
        self._add_details(kinds, arguments)
        self._blocks.append(
            _Block(
                kinds,
                starts,
                durations,
                to_column([args.bytes for args in arguments], pl.Int64(), to_int),
                to_column([args.flops for args in arguments], pl.Float64(), to_float),
                to_column([args.correlation for args in arguments], pl.Int64(), to_int),
            )
        )
        self._height += len(complete)

    def _add_details(self, kinds: Uint32s, arguments: Sequence[EventArguments]) -> None:
        """Store the details of collectives and the estimated FLOPs of operators."""
        table = self._kinds.kinds
        has_details = np.frombuffer(bytes(self._kinds.has_details), np.bool_)
        for row in np.flatnonzero(has_details[kinds]).tolist():
            kind = table[kinds[row]]
            if kind.is_collective:
                self._collectives.append(parse_collective(self._height + row, arguments[row], kind.name))
            flops = estimate_flops(kind.name, arguments[row])
            if flops is not None:
                self._flops.append((self._height + row, flops))

    def build(self, base_ns: int) -> BuiltSpans:
        """The spans of all blocks. Times are nanoseconds; ``base_ns`` is the origin of the file's times."""
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
        notes = [f"{self._negative:,} spans with a negative duration were skipped"] if self._negative else []
        return BuiltSpans(spans, flops_source, notes)


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
    kinds, starts, durations, *columns = zip(*blocks, strict=True)
    if any(series.dtype == pl.Float64 for series in starts):
        starts = tuple(series.cast(pl.Float64) for series in starts)
    return _Block(np.concatenate(kinds), pl.concat(starts), np.concatenate(durations), *map(pl.concat, columns))


def _to_times(microseconds: Sequence[int | float | None]) -> pl.Series:
    """Integer microseconds stay integers: as nanoseconds since 1970 they need more than the 53 bits of a float."""
    try:
        return pl.Series(microseconds, dtype=pl.Int64, strict=True)
    except TypeError:  # some have decimals
        return pl.Series(microseconds, dtype=pl.Float64)


def _to_ns(microseconds: pl.Series, base_ns: int) -> pl.Series:
    if microseconds.dtype == pl.Int64:
        return microseconds * 1000 + base_ns
    integer_us = microseconds.floor().cast(pl.Int64)
    return integer_us * 1000 + ((microseconds - microseconds.floor()) * 1000).round().cast(pl.Int64) + base_ns


def is_collective_name(name: str) -> bool:
    """Whether a span of this name describes a collective, regardless of its class."""
    return name == _COMMS or parse_annotation(name) is not None


def classify(category: str, name: str) -> SpanClass:
    """The class of a span. ``category`` must be in CLASSES."""
    span_class = CLASSES[category]
    if span_class is SpanClass.COMPUTE and is_communication_kernel(name):
        return SpanClass.COMMUNICATION
    if category == "Operator" and (STEP_NAME.match(name) or _OLD_ANNOTATION.match(name)):
        return SpanClass.STEP if STEP_NAME.match(name) else SpanClass.ANNOTATION
    if span_class is SpanClass.ANNOTATION and category == "user_annotation":
        if STEP_NAME.match(name):
            return SpanClass.STEP
        collective = parse_annotation(name)
        if collective and collective[0] in HOST_BACKENDS:
            return SpanClass.COMMUNICATION
    return span_class


CollectiveFacts = tuple[int, str | None, str | None, int | None, int | None, int | None]
"""Row of the span table, kind, process group, sequence, peer, bytes."""


def describe_collectives(spans: pl.DataFrame, rows: Sequence[CollectiveFacts]) -> pl.DataFrame:
    """Fill in kind, process group, size and sequence number of each communication, from itself or from the launching call."""
    if not rows:
        return spans
    columns = zip(_FACTS.items(), zip(*rows, strict=True), strict=True)
    facts = pl.DataFrame([pl.Series(name, values, dtype=kind) for (name, kind), values in columns])
    context = spans.select("lane", "start_ns", "end_ns", "is_device", "span_class", "correlation")
    described = context[facts["row"]].hstack(facts)
    launched = described.filter(pl.col("is_device") & (pl.col("span_class") == SpanClass.COMMUNICATION.value))
    filled = _fill_from_calls(launched, described.filter(~pl.col("is_device")), context)
    host = described.filter(~pl.col("is_device") & (pl.col("span_class") == SpanClass.COMMUNICATION.value))
    collectives = pl.concat([filled, host.select(filled.columns)]) if filled.height else host.select(list(_FACTS))
    if not collectives.height:
        return spans
    # For every span its row in ``collectives``, or null.
    collective_rows = np.full(spans.height, -1)
    collective_rows[collectives["row"].to_numpy()] = np.arange(collectives.height)
    at = pl.Series(collective_rows).set(pl.Series(collective_rows < 0), None)
    return spans.with_columns(
        collectives["kind"].cast(pl.Categorical()).gather(at).alias("collective"),
        collectives["process_group"].cast(pl.Categorical()).gather(at),
        collectives["sequence"].gather(at),
        collectives["peer"].cast(pl.Int32).gather(at),
        collectives["size"].gather(at).fill_null(spans["bytes"]).alias("bytes"),
    )


_FACTS: dict[str, pl.DataType] = {
    "row": pl.Int64(),
    "kind": pl.String(),
    "process_group": pl.String(),
    "sequence": pl.Int64(),
    "peer": pl.Int64(),
    "size": pl.Int64(),
}
_CALL_FACTS = ("kind", "process_group", "sequence", "peer", "size")


def parse_collective(row: int, arguments: EventArguments, name: str) -> CollectiveFacts:
    """Parse the collective of a span from its arguments and name."""
    annotation = parse_annotation(name)
    kind = find_kind(arguments.collective) if arguments.collective else None
    kind = kind or (annotation[1] if annotation else None if name == _COMMS else find_kind(name))
    group = None if arguments.group is None else str(arguments.group)
    peer = to_rank(arguments.target_rank if kind == "send" else arguments.source_rank if kind == "recv" else None)
    return row, kind, group, to_int(arguments.sequence), peer, _size_bytes(arguments)


def _size_bytes(arguments: EventArguments) -> int | None:
    elements = to_int(arguments.input_elements)
    if elements is not None and arguments.data_type:
        width = ELEMENT_BYTES.get(arguments.data_type.lower())
        return None if width is None else to_int(elements * width)
    shapes, types = bytes(arguments.input_shapes), bytes(arguments.input_types)
    return to_int(_sum_bytes(shapes, types)) if shapes and types else None


@lru_cache(maxsize=65536)
def _sum_bytes(shapes: bytes, types: bytes) -> int | None:
    """The bytes of all tensors. Cached, because a run repeats the same shapes."""
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
    """Fill in the missing details of kernels from the host call that encloses their launch, on the launching thread."""
    if not launched.height:
        return launched.select(list(_FACTS))
    launches = spans.filter((pl.col("span_class") == SpanClass.LAUNCH.value) & pl.col("correlation").is_not_null())
    launches = launches.select("correlation", pl.col("lane").alias("thread"), pl.col("start_ns").alias("launch_ns"))
    launches = launches.join(launched, on="correlation", how="semi").unique("correlation", keep="first")
    kernels = launched.join(launches, on="correlation", how="left").sort("launch_ns")
    for kind in ("annotation", "comms"):
        kind_calls = calls.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) == (kind == "annotation"))
        kind_calls = kind_calls.select(
            pl.col("lane").alias("thread"),
            pl.col("start_ns").alias("launch_ns"),
            pl.col("end_ns").alias("call_end_ns"),
            *(pl.col(name).alias(f"call_{name}") for name in _CALL_FACTS),
        ).sort("launch_ns")
        joined = kernels.join_asof(kind_calls, on="launch_ns", by="thread", strategy="backward", check_sortedness=False)
        is_inside = pl.col("call_end_ns") >= pl.col("launch_ns")
        is_vague = pl.col("kind").is_null() | (pl.col("kind") == "send_recv")
        better_kind = pl.when(is_inside & is_vague & pl.col("call_kind").is_not_null()).then(pl.col("call_kind"))
        other_columns = [
            pl.col(name).fill_null(pl.when(is_inside).then(pl.col(f"call_{name}")))
            for name in _CALL_FACTS
            if name != "kind"
        ]
        kernels = joined.with_columns(better_kind.otherwise(pl.col("kind")).alias("kind"), *other_columns).select(
            kernels.columns
        )
    return kernels.select(list(_FACTS))


def describe_rank(metadata: KinetoMetadata, source: str, notes: Sequence[str], *, is_complete: bool) -> RankFacts:
    """Facts of the rank; ``files.assign_ranks`` sets its number later, because it needs all files."""
    info = metadata.distributed
    groups = tuple(
        ProcessGroup(name=str(group.pg_name), ranks=tuple(group.ranks), kind=find_group_kind(group.pg_desc))
        for group in (info.pg_config if info else [])
        if group.pg_name is not None
    )
    return RankFacts(
        rank=0,
        source=source,
        world_size=to_int(info.world_size) if info else None,
        backend=info.backend if info else None,
        device=metadata.devices[0].name if metadata.devices else None,
        process_groups=groups,
        is_complete=is_complete,
        notes=tuple(notes),
    )


def find_group_kind(description: str | None) -> str | None:
    """Find dp, tp, pp, ep or cp in a framework's description of the group."""
    words: list[str] = re.findall(r"[a-z]+", (description or "").lower())
    kinds_by_word = {
        "data": "dp",
        "tensor": "tp",
        "pipeline": "pp",
        "expert": "ep",
        "context": "cp",
        "fsdp": "dp",
        "ddp": "dp",
    }
    for word in words:
        if word in ("dp", "tp", "pp", "ep", "cp"):
            return word
        if word in kinds_by_word:
            return kinds_by_word[word]
    return None
