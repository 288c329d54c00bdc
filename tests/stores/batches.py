"""Sample batches from plain tuples, for every test that writes samples."""

from typing import TypedDict

import numpy as np

from clusterscape.model import Names, SampleBatch, UnixMs

DAY = 86_400_000
NOON = 19_700 * DAY + DAY // 2

Sample = tuple[str, str, int, float]  # metric, unit, time, value


class Window(TypedDict):
    """The range of a question."""

    start_ms: UnixMs
    end_ms: UnixMs


def window(start: int, end: int) -> Window:
    """[start, end)."""
    return {"start_ms": UnixMs(start), "end_ms": UnixMs(end)}


def batch_of(*samples: Sample) -> SampleBatch:
    """A batch with dictionaries of its own."""
    units, metrics = Names(), Names()
    return SampleBatch(
        units=units,
        metrics=metrics,
        unit=np.array([units.code(sample[1]) for sample in samples], dtype=np.int32),
        metric=np.array([metrics.code(sample[0]) for sample in samples], dtype=np.int32),
        time_ms=np.array([sample[2] for sample in samples], dtype=np.int64),
        value=np.array([sample[3] for sample in samples], dtype=np.float64),
    )
