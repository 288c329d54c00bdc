"""The pictures of a report as SVG text: histograms of each GPU, or strips where there are many, and lines of clusters."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape

import numpy as np
from numpy.typing import NDArray

from clusterscape.cli.report_page import color_class, draw_svg

Floats = NDArray[np.float64]

WIDTH = 960
CELL_WIDTH, CELL_HEIGHT, CELL_GAP = 113, 40, 8
LABEL_HEIGHT = 13
MOST_CELLS = 128


def draw_cells(units: Sequence[str], counts: NDArray[np.int64], labels: Mapping[str, int | None]) -> str:
    """Small multiples with one scale: a histogram for each GPU, relative to its own number of samples."""
    columns = max(1, (WIDTH + CELL_GAP) // (CELL_WIDTH + CELL_GAP))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    top = float(shares.max(initial=0.0)) or 1.0
    row_height = CELL_HEIGHT + LABEL_HEIGHT + CELL_GAP
    parts = []
    for place, unit in enumerate(units):
        x, y = place % columns * (CELL_WIDTH + CELL_GAP), place // columns * row_height
        bars = _bars(shares[place] / top, x, y + LABEL_HEIGHT)
        name = escape(unit)
        parts.append(
            f'<g class="{color_class(labels.get(unit))}"><title>{name}</title>'
            f'<text x="{x}" y="{y + 10}">{name}</text>'
            f'<path class="axis" d="M{x} {y + LABEL_HEIGHT + CELL_HEIGHT + 0.5}h{CELL_WIDTH}"/>{bars}</g>'
        )
    height = -(-len(units) // columns) * row_height
    return draw_svg(WIDTH, height, "".join(parts), "Histogram of each GPU")


def _bars(heights: Floats, x: float, y: float) -> str:
    width = CELL_WIDTH / len(heights)
    path = "".join(
        f"M{x + i * width:.1f} {y + CELL_HEIGHT}v{-CELL_HEIGHT * h:.1f}h{width:.1f}v{CELL_HEIGHT * h:.1f}z"
        for i, h in enumerate(heights)
        if h > 0
    )
    return f'<path class="fill" d="{path}"/>' if path else ""


def draw_strips(units: Sequence[str], counts: NDArray[np.int64], labels: Mapping[str, int | None]) -> str:
    """One row for each GPU, by cluster; the darker a bin, the more of its samples lie there."""
    order = sorted(range(len(units)), key=lambda i: (_place(labels.get(units[i])), i))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    top = float(shares.max(initial=0.0)) or 1.0
    row_height = 6 if len(units) <= 512 else 2
    width = WIDTH / max(1, counts.shape[1])
    parts = []
    for row, place in enumerate(order):
        cells = "".join(
            f'<rect x="{i * width:.1f}" y="{row * row_height}" width="{width:.1f}" height="{row_height}" '
            f'opacity="{max(0.04, share):.2f}"/>'
            for i, share in enumerate(shares[place] / top)
            if share > 0
        )
        name = escape(units[place])
        parts.append(f'<g class="fill {color_class(labels.get(units[place]))}"><title>{name}</title>{cells}</g>')
    return draw_svg(WIDTH, len(order) * row_height, "".join(parts), "Strip of each GPU")


def _place(label: int | None) -> int:
    return 1_000_000 if label is None else label


def draw_lines(times_ms: Floats, medians: Mapping[int, Floats], unit: str) -> str:
    """The median of each cluster over time; NaN breaks a line."""
    height, left, bottom = 220, 64, 22
    known = np.concatenate([line[np.isfinite(line)] for line in medians.values()] or [np.empty(0)])
    if times_ms.size < 2 or known.size == 0:
        return ""
    low, high = (0.0, 1.0) if unit == "ratio" else (float(known.min()), float(known.max()))
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    x = left + (times_ms - times_ms[0]) / (times_ms[-1] - times_ms[0]) * (WIDTH - left - 4)
    parts = []
    for tick in np.linspace(low, high, 5):
        y = _level(tick, low, high, height - bottom)
        parts.append(f'<path class="axis" d="M{left} {y:.1f}H{WIDTH}"/>')
        parts.append(
            f'<text class="end" x="{left - 6}" y="{y + 4:.1f}">{escape(format_value(float(tick), unit))}</text>'
        )
    for place in np.linspace(0, times_ms.size - 1, 6).astype(int):
        moment = datetime.fromtimestamp(times_ms[place] / 1000).astimezone()
        anchor = "start" if place == 0 else "end" if place == times_ms.size - 1 else "middle"
        parts.append(f'<text text-anchor="{anchor}" x="{x[place]:.1f}" y="{height - 4}">{moment:%m-%d %H:%M}</text>')
    for label, line in medians.items():
        parts.append(f'<path class="line {color_class(label)}" d="{_trace(x, line, low, high, height - bottom)}"/>')
    return draw_svg(WIDTH, height, "".join(parts), "Median of each cluster over time")


def _trace(x: Floats, line: Floats, low: float, high: float, height: float) -> str:
    path, is_open = [], False
    for at, value in zip(x, line, strict=True):
        if np.isfinite(value):
            path.append(f"{'L' if is_open else 'M'}{at:.1f} {_level(float(value), low, high, height):.1f}")
        is_open = bool(np.isfinite(value))
    return "".join(path)


def _level(value: float, low: float, high: float, height: float) -> float:
    share = (min(max(value, low), high) - low) / (high - low)
    return 6 + (1.0 - share) * (height - 12)


_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SIGNS = {
    "watts": "W",
    "bytes": "B",
    "bytes_per_second": "B/s",
    "hertz": "Hz",
    "celsius": "°C",
    "joules": "J",
    "seconds": "s",
}


def format_value(value: float, unit: str) -> str:
    """``85%``, ``430 W``, ``1.98 GHz``."""
    if unit == "ratio":
        return f"{value:.0%}"
    if unit == "celsius":
        return f"{value:.0f} °C"
    size, prefix = next(((size, sign) for size, sign in _PREFIXES if abs(value) >= size), (1.0, ""))
    return f"{value / size:.3g} {prefix}{_SIGNS.get(unit, '')}".rstrip()
