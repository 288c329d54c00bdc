"""Floating-point operations in PyTorch traces: as the profiler wrote them, else estimated from the shapes of matrix products,
convolutions and fused attention; put on the kernels that do them.
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
    except (
        msgspec.DecodeError,
        IndexError,
        ValueError,
        ArithmeticError,
    ):  # lists of tensors, cut off, or absurdly large
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


def _pairs(query: Sequence[int], key: Sequence[int], *, is_causal: bool) -> int:
    """Queries with the keys they see, of all heads: all of them, or for a causal one those up to its own place."""
    if len(query) != 4 or len(key) != 4:
        raise ValueError("not batch, head, place and width")
    queries, keys = query[2], key[2]
    seen = min(queries, keys)
    each = seen * (seen + 1) // 2 + (queries - seen) * keys if is_causal else queries * keys
    return math.prod(query[:2]) * each


def _is_true(settings: Settings, place: int) -> bool:
    return len(settings) > place and settings[place] == "True"


def _attention(causal_at: int) -> Callable[[Shapes, Settings], float]:
    """A score for each pair, then a value for each score. ``causal_at``: which input says that no query sees a later key."""

    def count(shapes: Shapes, settings: Settings) -> float:
        query, key, value = shapes[:3]
        pairs = _pairs(query, key, is_causal=_is_true(settings, causal_at))
        return 2.0 * pairs * (query[-1] + value[-1])

    return count


def _attention_backward(causal_at: int) -> Callable[[Shapes, Settings], float]:
    """The scores are computed once more; then come the gradients of queries and keys, of scores and of values."""

    def count(shapes: Shapes, settings: Settings) -> float:
        query, key, value = shapes[1:4]  # behind the output's gradient
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
"""None of these calls another one: nothing is counted twice."""


def add_flops(spans: pl.DataFrame, estimated: Sequence[tuple[int, float]]) -> tuple[pl.DataFrame, FlopsSource | None]:
    """The spans with FLOPs on kernels, on host operators where they launched none; and where these come from, if there are any.

    ``estimated``: rows and what they come to, used where the profiler recorded nothing itself.
    """
    is_recorded = spans["flops"].null_count() < spans.height
    if not is_recorded and not estimated:
        return spans, None
    flops = spans["flops"].cast(pl.Float64).fill_null(math.nan).to_numpy().copy()
    if not is_recorded:
        flops[[place for place, _ in estimated]] = [found for _, found in estimated]
    _move_to_device(spans, flops)
    return spans.with_columns(pl.Series("flops", flops, nan_to_null=True)), "recorded" if is_recorded else "estimated"


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
