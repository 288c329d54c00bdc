"""Visual aggregation: the spans of a window, merged where they are too near to be told apart, without losing what matters.

Every merged span knows how many it stands for, their total, least, median and longest time, and its worst member. A span at least
3 times as long as is usual is never merged with others than its like.
"""

import math
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

    ``entry``: the level's entries that are in the picture; ``group``: the output span of each, ascending. The others have one row
    per output span; ``codes`` as ``drawn.CODES``.
    """

    entry: NDArray[np.int64]
    group: NDArray[np.int64]
    block: NDArray[np.int64]
    key: NDArray[np.int32]
    kind: NDArray[np.uint8]
    outlier: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    worst: NDArray[np.int64]
    codes: NDArray[np.int32]


def merge_level(
    trace: DrawnTrace,
    spans: LevelSpans,
    blocks: Sequence[int],
    window: Window,
    classes: Sequence[str],
    merge: Merge,
    *,
    gap_ns: float | None = None,
    longest_ns: float = math.inf,
) -> Merged:
    """Merge the spans of the wanted blocks of a level that touch the window; by default those a pixel apart, however many."""
    from clusterscape.analyze.trace.marey_kernels import cut_runs, merge_spans, sum_up

    order = np.sort(np.asarray(blocks, np.int64))
    first, last = (
        np.searchsorted(spans.runs, spans.offsets[order]),
        np.searchsorted(spans.runs, spans.offsets[order + 1]),
    )
    lows, highs = cut_runs(first, last, spans.runs, spans.start, spans.reach, window.start_ns, window.end_ns)
    entry, offsets = merge_spans(
        lows,
        highs,
        spans.start,
        spans.end,
        spans.key,
        spans.kind,
        spans.codes,
        spans.outlier,
        np.array([name in classes for name in CLASSES]),
        window.start_ns,
        window.end_ns,
        window.pixel_ns if gap_ns is None else gap_ns,
        longest_ns,
        MERGE_MODES[merge],
    )
    numbers, worst, codes = sum_up(
        entry,
        offsets,
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
    lead = entry[offsets[:-1]]
    block = np.repeat(np.arange(spans.offsets.size - 1), np.diff(np.searchsorted(lead, spans.offsets)))
    group = np.repeat(np.arange(lead.size), np.diff(offsets))
    return Merged(entry, group, block, spans.key[lead], spans.kind[lead], spans.outlier[lead], numbers, worst, codes)
