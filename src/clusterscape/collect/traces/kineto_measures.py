"""FLOPs in PyTorch traces (recorded by the profiler, else estimated from shapes), and memory: the allocated bytes after every
allocation and release, if the profiler recorded them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.collect.traces.kineto import (
    MAX_US,
    AllocationArguments,
    Event,
    EventArguments,
    InstantEvent,
    to_column,
    to_int,
)
from clusterscape.model.spans import FlopsSource, SpanClass

Shapes = list[list[int]]
Settings = list[str]
_SHAPES = msgspec.json.Decoder(Shapes)
_SETTINGS = msgspec.json.Decoder(Settings)
_WHOLES = msgspec.json.Decoder(list[int])


def estimate_flops(name: str, arguments: EventArguments) -> float | None:
    """Estimate the FLOPs of one call; None if the operator has no formula or the profiler did not record its shapes."""
    shapes = bytes(arguments.input_shapes)
    return _estimate(name, shapes, bytes(arguments.settings)) if name in FORMULAS and shapes else None


@lru_cache(maxsize=65536)
def _estimate(name: str, shapes: bytes, settings: bytes) -> float | None:
    """Cached, because a run repeats the same operators with the same shapes."""
    try:
        return FORMULAS[name](_SHAPES.decode(shapes), _SETTINGS.decode(settings) if settings else [])
    except (
        msgspec.DecodeError,
        IndexError,
        ValueError,
        ArithmeticError,
    ):  # lists of tensors, truncated, or absurdly large
        return None


def _product(first: Sequence[int], second: Sequence[int]) -> float:
    """Matrix product: a multiplication and an addition for each element of the inner dimension."""
    if len(first) != len(second) or len(first) < 2 or first[-1] != second[-2]:
        raise ValueError("not the shapes of a matrix product")
    return 2.0 * math.prod(first) * second[-1]


def _convolution(shapes: Shapes, settings: Settings) -> float:
    data, weight = shapes[0], shapes[1]
    stride, padding, dilation = (_WHOLES.decode(settings[index]) for index in (3, 4, 5))
    if settings[6] != "False":
        return 2.0 * math.prod(data) * math.prod(weight[1:])  # transposed: every input element meets the whole kernel
    sizes = [
        (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, gap in zip(data[2:], weight[2:], stride, padding, dilation, strict=True)
    ]
    return 2.0 * data[0] * weight[0] * math.prod(sizes) * math.prod(weight[1:])


def _convolution_backward(shapes: Shapes, settings: Settings) -> float:
    """The gradients of data and weight, as far as they are requested."""
    gradients = settings[-1].count("True", 0, settings[-1].rfind(",")) if settings else 2
    return 2.0 * math.prod(shapes[0]) * math.prod(shapes[2][1:]) * gradients


def _pairs(query: Sequence[int], key: Sequence[int], *, is_causal: bool) -> int:
    """The number of (query, key) pairs of all heads; with causal attention a query sees only keys up to its own position."""
    if len(query) != 4 or len(key) != 4:
        raise ValueError("not batch, head, position and width")
    queries, keys = query[2], key[2]
    shorter = min(queries, keys)
    pairs_per_head = shorter * (shorter + 1) // 2 + (queries - shorter) * keys if is_causal else queries * keys
    return math.prod(query[:2]) * pairs_per_head


def _is_true(settings: Settings, index: int) -> bool:
    return len(settings) > index and settings[index] == "True"


def _attention(causal_at: int) -> Callable[[Shapes, Settings], float]:
    """A score for each pair, then a value for each score. ``causal_at`` is the index of the input ``is_causal``."""

    def count(shapes: Shapes, settings: Settings) -> float:
        query, key, value = shapes[:3]
        pairs = _pairs(query, key, is_causal=_is_true(settings, causal_at))
        return 2.0 * pairs * (query[-1] + value[-1])

    return count


def _attention_backward(causal_at: int) -> Callable[[Shapes, Settings], float]:
    """The scores are recomputed; then follow the gradients of queries and keys, of scores and of values."""

    def count(shapes: Shapes, settings: Settings) -> float:
        query, key, value = shapes[1:4]  # after the gradient of the output
        pairs = _pairs(query, key, is_causal=_is_true(settings, causal_at))
        return 2.0 * pairs * (3 * query[-1] + 2 * value[-1])

    return count


FORMULAS: Mapping[str, Callable[[Shapes, Settings], float]] = {
    "aten::mm": lambda shapes, _: _product(shapes[0], shapes[1]),
    "aten::bmm": lambda shapes, _: _product(shapes[0], shapes[1]),
    "aten::addmm": lambda shapes, _: _product(shapes[1], shapes[2]),
    "aten::baddbmm": lambda shapes, _: _product(shapes[1], shapes[2]),
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    "aten::_scaled_dot_product_flash_attention": _attention(4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention(4),
    "aten::_scaled_dot_product_efficient_attention": _attention(6),
    "aten::_scaled_dot_product_cudnn_attention": _attention(6),
    "aten::_scaled_dot_product_flash_attention_backward": _attention_backward(11),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward(7),
    "aten::_scaled_dot_product_efficient_attention_backward": _attention_backward(11),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention_backward(14),
}
"""None of these operators calls another one, so nothing is counted twice."""


def add_flops(spans: pl.DataFrame, estimated: Sequence[tuple[int, float]]) -> tuple[pl.DataFrame, FlopsSource | None]:
    """Add FLOPs to kernels, or to host operators that launched none; also returns the source of the FLOPs, if there are any.

    ``estimated``: (row, FLOPs), used if the profiler recorded none.
    """
    is_recorded = spans["flops"].null_count() < spans.height
    if not is_recorded and not estimated:
        return spans, None
    flops = spans["flops"].cast(pl.Float64).fill_null(math.nan).to_numpy().copy()
    if not is_recorded:
        flops[[row for row, _ in estimated]] = [estimate for _, estimate in estimated]
    _move_to_device(spans, flops)
    return spans.with_columns(pl.Series("flops", flops, nan_to_null=True)), "recorded" if is_recorded else "estimated"


def _move_to_device(spans: pl.DataFrame, flops: NDArray[np.float64]) -> None:
    """Move the FLOPs of a host operator to its kernels, in proportion to their durations. Modifies ``flops``."""
    known_rows = np.flatnonzero(~np.isnan(flops))
    times = spans.select("lane", "start_ns", "end_ns", "is_device", "span_class", "correlation").with_row_index("row")
    calls = (
        times[known_rows]
        .with_columns(pl.Series("flops", flops[known_rows]))
        .filter(~pl.col("is_device"))
        .select("lane", "start_ns", "flops", pl.col("end_ns").alias("until"), pl.col("row").alias("call"))
    )
    launches = times.filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value) & pl.col("correlation").is_not_null()
    ).select("lane", "start_ns", "correlation")
    within = (
        launches.sort("start_ns")
        .join_asof(calls.sort("start_ns"), on="start_ns", by="lane", strategy="backward", check_sortedness=False)
        .filter(pl.col("start_ns") <= pl.col("until"))
        .unique("correlation", maintain_order=True)
        .select("correlation", "call", "flops")
    )
    length = (pl.col("end_ns") - pl.col("start_ns")).clip(1)
    moved = (
        times.filter(pl.col("is_device") & (pl.col("span_class") == SpanClass.COMPUTE.value))
        .join(within, on="correlation")
        .select("row", "call", (pl.col("flops") * length / length.sum().over("call")).alias("moved"))
    )
    flops[moved["call"].to_numpy()] = math.nan
    flops[moved["row"].to_numpy()] = moved["moved"].to_numpy()


_NAME = b'"[memory]"'
_NO_ARGUMENTS = AllocationArguments()
_TIME = r'^"?(?<whole>[0-9]{1,16})(?:\.(?<decimals>[0-9]*))?"?$'


class MemoryColumns:
    """Collects the memory events of a file, a block of events at a time."""

    def __init__(self) -> None:
        self._times: list[str] = []
        self._arguments: list[AllocationArguments] = []

    def add(self, events: Iterable[Event]) -> None:
        """Add a block of events."""
        instants = [event for event in events if type(event) is InstantEvent]
        marks = [event for event in instants if bytes(event.name) == _NAME]
        self._times += [str(event.ts, "latin-1") for event in marks]
        self._arguments += [event.args or _NO_ARGUMENTS for event in marks]

    def build(self, base_ns: int) -> pl.DataFrame | None:
        """``time_ns`` and the ``bytes`` allocated from then on, for the device with the largest maximum; for the host if only
        it has events. None if nothing was recorded.
        """
        table = pl.DataFrame(
            {
                "time_ns": parse_times(self._times) + base_ns,
                "bytes": to_column([arguments.total for arguments in self._arguments], pl.Int64(), to_int),
                "type": to_column(
                    [arguments.device_type for arguments in self._arguments], pl.Int64(), to_int
                ).fill_null(0),
                "device": to_column([arguments.device for arguments in self._arguments], pl.Int64(), to_int).fill_null(
                    -1
                ),
            }
        )
        table = table.drop_nulls()  # older profilers wrote only the change, without the total
        if not table.height:
            return None
        if (table["type"] != 0).any():  # 0 is the host
            table = table.filter(pl.col("type") != 0)
        largest = table.group_by("device").agg(pl.col("bytes").max()).sort("bytes", "device")["device"][-1]
        table = table.filter(pl.col("device") == largest).sort("time_ns", maintain_order=True)
        return table.select("time_ns", "bytes")


def parse_times(texts: Sequence[str]) -> pl.Series:
    """Convert microseconds with decimals, which some profilers quote, to integer nanoseconds; null for other texts."""
    strings = pl.Series(texts, dtype=pl.String)
    microseconds = strings.cast(pl.Int64, strict=False)
    nanoseconds = microseconds * 1000
    if microseconds.null_count():
        parts = strings.str.extract_groups(_TIME).struct
        microseconds = parts.field("whole").cast(pl.Int64)
        decimals = parts.field("decimals").fill_null("").str.pad_end(3, "0").str.slice(0, 3).cast(pl.Int64)
        nanoseconds = microseconds * 1000 + decimals
    return nanoseconds.set(~microseconds.is_between(0, MAX_US), None)
