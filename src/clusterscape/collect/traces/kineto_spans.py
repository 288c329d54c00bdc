"""What Kineto's events mean: spans with their class, step, phase and collective. Decoding is ``kineto.py``."""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
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
from clusterscape.collect.traces.kineto import Document, EventArguments, Number
from clusterscape.collect.traces.kineto_flops import FORMULAS, add_flops, estimate_flops
from clusterscape.model.spans import FlopsSource, ProcessGroup, RankFacts, SpanClass, make_spans

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
SPEAKING_CATEGORIES = frozenset({"kernel", "user_annotation"})
"""Of these the name tells the class, too."""
STEP_NAME = re.compile(r"^ProfilerStep#(\d{1,9})$")
ELEMENT_BYTES = {
    "float": 4, "int": 4, "double": 8, "long": 8, "long int": 8, "half": 2, "bfloat16": 2, "c10::half": 2, "c10::bfloat16": 2,
    "char": 1, "byte": 1, "bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_COMMS = "record_param_comms"


def to_whole(value: Number) -> int | None:
    """The number, where it is one that 64 bits hold."""
    try:
        number = value if value is None or isinstance(value, int) else int(float(value))
    except (ValueError, OverflowError):
        return None
    return number if number is None or abs(number) < 2**63 else None


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


def build_spans(document: Document) -> Built:
    """What a document says."""
    events = [each for each in document.events if each.ph == "X" and each.ts is not None and each.cat in CLASSES]
    kept = [each for each in events if (each.dur or 0) >= 0]
    notes = note_negative(len(events) - len(kept))
    arguments = [each.args or NO_ARGUMENTS for each in kept]
    names = [str(each.name) for each in kept]
    # Few names and threads are shared by many spans: what they mean is found once for each.
    pairs = [(each.cat or "", name) for each, name in zip(kept, names, strict=True)]
    meaning = {pair: classify(*pair) for pair in set(pairs)}
    values = {pair: kind.value for pair, kind in meaning.items()}
    classes = [meaning[pair] for pair in pairs]
    on_device = [each.cat in DEVICE_CATEGORIES for each in kept]
    threads = [(is_device, each.tid) for is_device, each in zip(on_device, kept, strict=True)]
    lanes = {each: f"{'stream' if each[0] else 'thread'} {each[1]}" for each in set(threads)}
    starts = _to_ns([each.ts for each in kept], document.base_ns or 0)
    durations = pl.Series([each.dur or 0 for each in kept], dtype=pl.Float64, strict=False)
    spans = make_spans(
        {
            "lane": [lanes[each] for each in threads],
            "is_device": on_device,
            "span_class": [values[pair] for pair in pairs],
            "name": names,
            "start_ns": starts,
            "end_ns": starts + (durations * 1000).round().cast(pl.Int64),
            "bytes": [to_whole(each.bytes) for each in arguments],
            "flops": [to_real(each.flops) for each in arguments],
            "correlation": [to_whole(each.correlation) for each in arguments],
        },
        len(kept),
    )
    speaking = {name for _, name in meaning if is_speaking(name)}
    wanted = [
        place
        for place, (kind, name) in enumerate(zip(classes, names, strict=True))
        if kind is SpanClass.COMMUNICATION or name in speaking
    ]
    spans = describe_collectives(spans, [describe(place, arguments[place], names[place]) for place in wanted])
    products = [(place, estimate_flops(name, arguments[place])) for place, name in enumerate(names) if name in FORMULAS]
    return Built(*add_flops(spans, [(place, flops) for place, flops in products if flops is not None]), notes)


NO_ARGUMENTS = EventArguments()


def note_negative(left_out: int) -> list[str]:
    """What is said of spans that would end before they begin."""
    return [f"{left_out:,} spans with a negative duration were left out"] if left_out else []


def is_speaking(name: str) -> bool:
    """Whether a span of this name tells of a collective, whatever its class."""
    return name == _COMMS or parse_annotation(name) is not None


def _to_ns(values: Sequence[int | float | None], base_ns: int) -> pl.Series:
    """Whole microseconds since 1970 need more than a float's 53 bits once they are nanoseconds."""
    if all(isinstance(value, int) for value in values):
        return place_wholes(pl.Series(values, dtype=pl.Int64), base_ns)
    return place_floats(pl.Series(values, dtype=pl.Float64, strict=False), base_ns)


def place_wholes(microseconds: pl.Series, base_ns: int) -> pl.Series:
    """Nanoseconds of whole microseconds since a base."""
    return microseconds * 1000 + base_ns


def place_floats(floats: pl.Series, base_ns: int) -> pl.Series:
    """Nanoseconds of microseconds with decimals since a base."""
    whole = floats.floor().cast(pl.Int64)
    return whole * 1000 + ((floats - floats.floor()) * 1000).round().cast(pl.Int64) + base_ns


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


Facts = tuple[int, str | None, str | None, int | None, int | None, int | None]
"""Row of the span table, kind, process group, sequence, peer, bytes."""


def describe_collectives(spans: pl.DataFrame, rows: Sequence[Facts]) -> pl.DataFrame:
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


def describe(place: int, own: EventArguments, name: str) -> Facts:
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
    except msgspec.DecodeError:
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


def describe_rank(document: Document, source: str, notes: Sequence[str], *, is_complete: bool) -> RankFacts:
    """Facts of the rank; its number is set by the caller, once ``naming.assign_ranks`` has seen all files."""
    info = document.distributed
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
        device=document.devices[0].name if document.devices else None,
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
