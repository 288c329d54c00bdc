"""Draws how speed grows or falls: lines over logarithmic axes, as an SVG that needs nothing but a browser."""

import math
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT, EDGE = 440, 260, 72
COLORS = ("#3457c9", "#c2571a", "#2f7d4f")

Line = tuple[str, Sequence[tuple[float, float]]]


def draw(path: Path, title: str, panels: Sequence[tuple[str, str, Sequence[Line]]]) -> None:
    """Draws panels side by side: (label of x, label of y, lines); a line is a name and its points."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT + 24}" '
        'font-family="system-ui, sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{EDGE}" y="16" font-size="13" fill="#1c1f26">{title}</text>',
    ]
    for place, (across, up, lines) in enumerate(panels):
        parts.append(f'<g transform="translate({place * WIDTH},24)">')
        parts += _panel(across, up, lines)
        parts.append("</g>")
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def _panel(across: str, up: str, lines: Sequence[Line]) -> list[str]:
    points = [point for _, line in lines for point in line]
    left, right = (bound(math.log10(x) for x, _ in points) for bound in (min, max))
    low = math.floor(min(math.log10(y) for _, y in points))
    high = math.ceil(max(math.log10(y) for _, y in points))

    def at(x: float, y: float) -> tuple[float, float]:
        share_x = (math.log10(x) - left) / max(right - left, 1e-9)
        share_y = (math.log10(y) - low) / max(high - low, 1)
        return EDGE + share_x * (WIDTH - 2 * EDGE), HEIGHT - EDGE + 16 - share_y * (HEIGHT - EDGE - 24)

    parts = []
    for power in range(low, high + 1):
        _, height = at(10**left, 10**power)
        parts.append(f'<path d="M{EDGE} {height:.1f}H{WIDTH - EDGE}" stroke="#dfe3ea"/>')
        parts.append(f'<text x="{EDGE - 6}" y="{height + 4:.1f}" text-anchor="end" fill="#5a6272">{10**power:,}</text>')
    for x in sorted({x for x, _ in points}):
        across_at, _ = at(x, 10**low)
        parts.append(f'<text x="{across_at:.1f}" y="{HEIGHT - 20}" text-anchor="middle" fill="#5a6272">{x:,.0f}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 4}" text-anchor="middle" fill="#1c1f26">{across}</text>')
    parts.append(f'<text x="{EDGE}" y="8" fill="#1c1f26">{up}</text>')
    for place, (name, line) in enumerate(lines):
        color = COLORS[place % len(COLORS)]
        places = [at(x, y) for x, y in line]
        drawn = " ".join(f"{right:.1f},{down:.1f}" for right, down in places)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{right:.1f}" cy="{down:.1f}" r="3" fill="{color}"/>' for right, down in places]
        end_x, end_y = places[-1]
        parts.append(f'<text x="{end_x:.1f}" y="{end_y - 8:.1f}" text-anchor="end" fill="{color}">{name}</text>')
    return parts
