"""A small plotting kit for reports, as SVG text: scales with ticks and units, lines, bands, bars and intervals.

Knows nothing about what is plotted. Values in, SVG out; what is not finite is not drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Literal

from clusterscape.cli.report_page import draw_svg

Unit = Literal["s", "share", "count", "ratio", "date", "day"]

LEFT, RIGHT, TOP, BOTTOM = 52.0, 10.0, 8.0, 34.0
_SECONDS = (1e-3, 0.01, 0.1, 1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` laid out on ``begin`` … ``end`` (pixels; ``begin`` may be the larger)."""

    low: float
    high: float
    begin: float
    end: float
    unit: Unit = "count"
    is_log: bool = False

    def place(self, value: float) -> float:
        """Where a value lies; beyond the ends it lies on them."""
        low, high, value = self._linear(self.low), self._linear(self.high), self._linear(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def _linear(self, value: float) -> float:
        return math.log(max(value, self.low * 1e-9, 1e-12)) if self.is_log else value

    def ticks(self, most: int = 6) -> list[float]:
        """Round values in the range."""
        if self.is_log and len(found := _log_ticks(self.low, self.high, self.unit, most)) > 1:
            return found
        if self.unit == "date":
            return [self.low + (self.high - self.low) * place / (most - 1) for place in range(most)]
        step = _round_step((self.high - self.low) / max(most - 1, 1))
        first = math.ceil(self.low / step - 1e-9)
        return [place * step for place in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _round_step(rough: float) -> float:
    if rough <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * (1 - 1e-9))


def _log_ticks(low: float, high: float, unit: Unit, most: int) -> list[float]:
    if unit == "s":
        found = [value for value in _SECONDS if low * 0.999 <= value <= high * 1.001]
    else:
        base = 2.0 if high / max(low, 1e-12) < 100 else 10.0
        first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
        found = [base**power for power in range(first, last + 1)]
    step = -(-len(found) // (most + 1))
    return found[:: max(step, 1)]


def format_tick(value: float, unit: Unit) -> str:
    """``10 min``, ``50%``, ``1.5 k``, ``2024-03-01``."""
    if unit == "s":
        for size, sign in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
            if abs(value) >= size:
                return f"{value / size:.3g} {sign}"
        return "0" if value == 0 else f"{value * 1000:.3g} ms"
    if unit == "share":
        return f"{value * 100:.3g}%"
    if unit == "date":
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d}"
    if unit == "day":
        return f"day {value / 86_400:.0f}"
    if unit == "ratio":
        return f"{value:.3g}×"
    for least, size, prefix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / size:.3g} {prefix}"
    return f"{value:,.4g}"


@dataclass(frozen=True)
class Plot:
    """A frame with two scales; marks are drawn into it in the order they are given."""

    x: Scale
    y: Scale
    width: float
    height: float
    x_label: str
    y_label: str

    def draw(self, marks: Sequence[str], title: str, *, names: Sequence[str] = (), has_ticks: bool = True) -> str:
        """The picture; ``names`` stand under the x axis in place of ticks, evenly. Without ticks: another plot below has them."""
        axes = self._y_axis() + (self._names(names) if names else self._x_axis() if has_ticks else "")
        return draw_svg(self.width, self.height, axes + "".join(marks), title)

    def _y_axis(self) -> str:
        parts = [f'<text x="0" y="9">{escape(self.y_label)}</text>']
        for tick in self.y.ticks(5):
            at = self.y.place(tick)
            parts.append(f'<path class="axis" d="M{self.x.begin:.1f} {at:.1f}H{self.x.end:.1f}"/>')
            label = escape(format_tick(tick, self.y.unit))
            parts.append(f'<text class="end" x="{self.x.begin - 6:.1f}" y="{at + 3.5:.1f}">{label}</text>')
        return "".join(parts)

    def _x_axis(self) -> str:
        parts = [self._caption()]
        for tick in self.x.ticks(6):
            at = self.x.place(tick)
            anchor = "end" if at > self.width - 24 else "start" if at < self.x.begin + 12 else "middle"
            label = escape(format_tick(tick, self.x.unit))
            parts.append(f'<path class="axis" d="M{at:.1f} {self.y.begin:.1f}v4"/>')
            parts.append(f'<text text-anchor="{anchor}" x="{at:.1f}" y="{self.y.begin + 14:.1f}">{label}</text>')
        return "".join(parts)

    def _names(self, names: Sequence[str]) -> str:
        step = (self.x.end - self.x.begin) / len(names)
        return self._caption() + "".join(
            f'<text text-anchor="middle" x="{self.x.begin + (place + 0.5) * step:.1f}" y="{self.y.begin + 14:.1f}">'
            f"{escape(name)}</text>"
            for place, name in enumerate(names)
        )

    def _caption(self) -> str:
        return f'<text class="end" x="{self.x.end:.1f}" y="{self.height - 4:.1f}">{escape(self.x_label)}</text>'


def frame(
    x: tuple[float, float, Unit, bool],
    y: tuple[float, float, Unit, bool],
    *,
    labels: tuple[str, str],
    width: float = 464,
    height: float = 220,
) -> Plot:
    """A plot whose scales are (low, high, unit, is logarithmic)."""
    return Plot(
        Scale(x[0], x[1], LEFT, width - RIGHT, x[2], x[3]),
        Scale(y[0], y[1], height - BOTTOM, TOP + 10, y[2], y[3]),
        width,
        height,
        *labels,
    )


def line(
    plot: Plot, xs: Sequence[float], ys: Sequence[float | None], color: str, title: str, *, steps: bool = False
) -> str:
    """A line; None breaks it. ``steps``: each value holds until the next."""
    path, is_open = [], False
    for x, y in zip(xs, ys, strict=True):
        if y is None:
            is_open = False
            continue
        at, level = plot.x.place(x), plot.y.place(y)
        path.append(
            f"M{at:.1f} {level:.1f}" if not is_open else f"H{at:.1f}V{level:.1f}" if steps else f"L{at:.1f} {level:.1f}"
        )
        is_open = True
    return f'<path class="line {color}" d="{"".join(path)}"><title>{escape(title)}</title></path>'


def band(plot: Plot, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], color: str) -> str:
    """The area between two lines, faint."""
    upper = [f"{plot.x.place(x):.1f} {plot.y.place(y):.1f}" for x, y in zip(xs, highs, strict=True)]
    lower = [f"{plot.x.place(x):.1f} {plot.y.place(y):.1f}" for x, y in zip(xs, lows, strict=True)]
    if not upper:
        return ""
    return f'<path class="fill {color}" opacity=".18" d="M{"L".join(upper)}L{"L".join(reversed(lower))}z"/>'


def area(plot: Plot, xs: Sequence[float], ys: Sequence[float], color: str, title: str) -> str:
    """Steps filled down to the axis: ``ys[i]`` holds from ``xs[i]`` to ``xs[i + 1]``, so there is one x more."""
    path = [f"M{plot.x.place(xs[0]):.1f} {plot.y.begin:.1f}"]
    path += [f"V{plot.y.place(y):.1f}H{plot.x.place(after):.1f}" for y, after in zip(ys, xs[1:], strict=True)]
    path.append(f"V{plot.y.begin:.1f}z")
    return f'<path class="fill {color}" opacity=".75" d="{"".join(path)}"><title>{escape(title)}</title></path>'


def interval(plot: Plot, at: float, value: float, low: float | None, high: float | None, color: str, title: str) -> str:
    """A dot with its whisker; ``at`` in pixels."""
    dot = f'<circle class="fill" cx="{at:.1f}" cy="{plot.y.place(value):.1f}" r="3"/>'
    whisker = ""
    if low is not None and high is not None:
        whisker = f'<path class="line" d="M{at:.1f} {plot.y.place(low):.1f}V{plot.y.place(high):.1f}"/>'
    return f'<g class="{color}"><title>{escape(title)}</title>{whisker}{dot}</g>'


def box(
    plot: Plot, at: float, quartiles: tuple[float, float, float], color: str, title: str, *, width: float = 7
) -> str:
    """The middle half as a bar, the median as a line across it; ``at`` in pixels."""
    low, middle, high = (plot.y.place(value) for value in quartiles)
    return (
        f'<g class="{color}"><title>{escape(title)}</title>'
        f'<rect class="fill" opacity=".4" x="{at - width / 2:.1f}" y="{high:.1f}" width="{width}" '
        f'height="{max(low - high, 1):.1f}"/>'
        f'<path class="line" d="M{at - width / 2 - 1:.1f} {middle:.1f}h{width + 2}"/></g>'
    )


def column(plot: Plot, group: int, groups: int, member: int, members: int) -> float:
    """The x pixel of one of ``members`` that stand together in one of ``groups``."""
    step = (plot.x.end - plot.x.begin) / groups
    inner = min(step * 0.7 / max(members, 1), 22)
    return plot.x.begin + (group + 0.5) * step + (member - (members - 1) / 2) * inner
