"""Visual aggregation: the spans of a window, merged where they are too near to be told apart, without losing what matters.

Every merged span knows how many it stands for, their total, least, median and longest time, and its worst member. A span at least
3 times as long as is usual is never merged with others than its like.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.trace.drawn import CLASSES, DrawnTrace, LevelSpans

Merge = Literal["gap", "namespace", "none"]
MERGE_MODES: dict[Merge, int] = {"none": 0, "gap": 1, "namespace": 2}
NUMBERS = (
    "start", "end", "early", "late", "count", "total", "least", "median", "most", "wait", "critical", "slack",
)  # fmt: skip
"""Columns of ``Merged.numbers``; nanoseconds but for the count. Null is NaN."""
MAX_UNMERGED = 100_000
"""More spans than these are merged by gap even where none is asked for: no screen shows them."""


@dataclass(frozen=True, slots=True)
class Window:
    """A picture's time, in nanoseconds since the trace's origin, and how wide it is drawn."""

    start_ns: float
    end_ns: float
    pixels: int

    @property
    def pixel_ns(self) -> float:
        """How long a pixel lasts."""
        return max(0.0, self.end_ns - self.start_ns) / self.pixels


@dataclass(frozen=True, slots=True)
class Merged:
    """Output spans of some blocks of one level, in no particular order.

    ``owner``: for each entry of the level its output span, −1 where it is not in the picture. ``codes`` as ``drawn.CODES``.
    """

    owner: NDArray[np.int32]
    block: NDArray[np.int64]
    kind: NDArray[np.uint8]
    outlier: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    worst: NDArray[np.int64]
    codes: NDArray[np.int32]


def merge_level(
    trace: DrawnTrace, spans: LevelSpans, blocks: Sequence[int], window: Window, classes: Sequence[str], merge: Merge
) -> Merged:
    """Merge the spans of the wanted blocks of a level that touch the window."""
    from clusterscape.analyze.trace.marey_kernels import merge_spans, sum_up

    order = np.sort(np.asarray(blocks, np.int64))
    lows, highs = spans.offsets[order], spans.offsets[order + 1]
    wanted = np.array([name in classes for name in CLASSES])
    owner, first, last, _ = merge_spans(
        lows,
        highs,
        spans.start,
        spans.end,
        spans.key,
        spans.kind,
        spans.codes[:, -1].copy(),
        spans.outlier,
        wanted,
        window.start_ns,
        window.end_ns,
        window.pixel_ns,
        MERGE_MODES[merge],
    )
    numbers, worst, codes = sum_up(
        owner,
        first,
        last,
        spans.start,
        spans.end,
        spans.early,
        spans.late,
        spans.count,
        spans.total,
        spans.least,
        spans.middle,
        spans.most,
        spans.worst,
        spans.wait,
        spans.critical,
        spans.slack,
        spans.codes,
        trace.parent,
        trace.depth_of,
    )
    block = order[np.searchsorted(lows, first, side="right") - 1] if first.size else first
    return Merged(owner, block, spans.kind[first], spans.outlier[first], numbers, worst, codes)
