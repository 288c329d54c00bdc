"""Floating-point operations in PyTorch traces: as the profiler wrote them, else estimated from the shapes of matrix products and
convolutions; put on the kernels that do them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.collect.traces.kineto import EventArguments
from clusterscape.model.spans import FlopsSource, SpanClass

Shapes = list[list[int]]
Settings = list[str]
_SHAPES = msgspec.json.Decoder(Shapes)
_SETTINGS = msgspec.json.Decoder(Settings)
_WHOLES = msgspec.json.Decoder(list[int])


def estimate_flops(name: str, own: EventArguments) -> float | None:
    """Of one call; None where the name is no product's or the profiler did not record its shapes."""
    shapes = bytes(own.input_shapes)
    return _estimate(name, shapes, bytes(own.settings)) if name in FORMULAS and shapes else None


@lru_cache(maxsize=65536)
def _estimate(name: str, shapes: bytes, settings: bytes) -> float | None:
    """A run repeats the same products: what they come to is found once."""
    try:
        return FORMULAS[name](_SHAPES.decode(shapes), _SETTINGS.decode(settings) if settings else [])
    except (msgspec.DecodeError, IndexError, ValueError, ZeroDivisionError):  # shapes of lists of tensors, or cut off
        return None


def _product(first: Sequence[int], second: Sequence[int]) -> float:
    """A multiplication and an addition for each element of the inner dimension."""
    if len(first) != len(second) or len(first) < 2 or first[-1] != second[-2]:
        raise ValueError("not the shapes of a product")
    return 2.0 * math.prod(first) * second[-1]


def _convolution(shapes: Shapes, settings: Settings) -> float:
    data, weight = shapes[0], shapes[1]
    stride, padding, dilation = (_WHOLES.decode(settings[place]) for place in (3, 4, 5))
    if settings[6] != "False":
        return 2.0 * math.prod(data) * math.prod(weight[1:])  # transposed: every input element meets the whole kernel
    sizes = [
        (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, gap in zip(data[2:], weight[2:], stride, padding, dilation, strict=True)
    ]
    return 2.0 * data[0] * weight[0] * math.prod(sizes) * math.prod(weight[1:])


def _convolution_backward(shapes: Shapes, settings: Settings) -> float:
    """The gradient of the output with the weight, and with the data, as far as either is wanted."""
    wanted = settings[-1].count("True", 0, settings[-1].rfind(",")) if settings else 2
    return 2.0 * math.prod(shapes[0]) * math.prod(shapes[2][1:]) * wanted


FORMULAS: Mapping[str, Callable[[Shapes, Settings], float]] = {
    "aten::mm": lambda shapes, _: _product(shapes[0], shapes[1]),
    "aten::bmm": lambda shapes, _: _product(shapes[0], shapes[1]),
    "aten::addmm": lambda shapes, _: _product(shapes[1], shapes[2]),
    "aten::baddbmm": lambda shapes, _: _product(shapes[1], shapes[2]),
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
}
"""None of these calls another one: nothing is counted twice."""


def find_source(spans: pl.DataFrame, data: bytes) -> FlopsSource | None:
    """Where the FLOPs of the spans of a file come from."""
    if spans["flops"].null_count() == spans.height:
        return None
    return "recorded" if b'"flops"' in data else "estimated"


def add_flops(spans: pl.DataFrame, estimated: Sequence[tuple[int, float]]) -> pl.DataFrame:
    """The spans with FLOPs on kernels; on host operators where they launched none. ``estimated``: rows and what they come to,
    used where the profiler recorded nothing itself.
    """
    is_recorded = spans["flops"].null_count() < spans.height
    if not is_recorded and not estimated:
        return spans
    flops = spans["flops"].cast(pl.Float64).fill_null(math.nan).to_numpy().copy()
    if not is_recorded:
        flops[[place for place, _ in estimated]] = [found for _, found in estimated]
    _move_to_device(spans, flops)
    return spans.with_columns(pl.Series("flops", flops, nan_to_null=True))


def _move_to_device(spans: pl.DataFrame, flops: NDArray[np.float64]) -> None:
    """A host operator only launches; its FLOPs are done by its kernels, as long as each takes. Changes ``flops``."""
    known = np.flatnonzero(~np.isnan(flops))
    times = spans.select("lane", "start_ns", "end_ns", "is_device", "span_class", "correlation").with_row_index("place")
    calls = (
        times[known]
        .with_columns(pl.Series("flops", flops[known]))
        .filter(~pl.col("is_device"))
        .select("lane", "start_ns", "flops", pl.col("end_ns").alias("until"), pl.col("place").alias("call"))
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
        .select("place", "call", (pl.col("flops") * length / length.sum().over("call")).alias("moved"))
    )
    flops[moved["call"].to_numpy()] = math.nan
    flops[moved["place"].to_numpy()] = moved["moved"].to_numpy()
