"""The compiled loop that brings the samples of a batch to the lives they belong to. Importing this imports numba."""

import numpy as np
from numba import njit

from clusterscape.model.samples import Float64s, Int32s, Int64s


@njit(cache=True, nogil=True)
def route_samples(
    unit: Int32s, metric: Int32s, time_ms: Int64s, value: Float64s,
    unit_of: Int32s, metric_of: Int32s, metric_count: int,
    life_offsets: Int64s, life_rows: Int64s, from_at: Int64s, until_at: Int64s,
) -> tuple[Int64s, Int64s, Int64s, Float64s, bool]:  # fmt: skip
    """Each sample for each life of its unit that was going on at its time, grouped by metric.

    ``unit_of`` and ``metric_of`` turn the batch's codes into ours; −1 leaves the sample out. Lives of unit ``u`` are
    ``life_rows[life_offsets[u]:life_offsets[u + 1]]``; row ``r`` lasts from ``from_at[r]`` until before ``until_at[r]``.

    Returns borders of the metrics, rows, times, values, and whether every series came in time order.
    """
    counts = np.zeros(metric_count + 1, np.int64)
    for i in range(len(value)):
        u, m = unit_of[unit[i]], metric_of[metric[i]]
        if u < 0 or m < 0:
            continue
        for k in range(life_offsets[u], life_offsets[u + 1]):
            row = life_rows[k]
            if from_at[row] <= time_ms[i] < until_at[row]:
                counts[m + 1] += 1
    offsets = np.cumsum(counts)
    place = offsets[:-1].copy()
    rows, times = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    values = np.empty(offsets[-1], np.float64)
    newest = np.zeros((metric_count, len(from_at)), np.int64)
    in_order = True
    for i in range(len(value)):
        u, m = unit_of[unit[i]], metric_of[metric[i]]
        if u < 0 or m < 0:
            continue
        for k in range(life_offsets[u], life_offsets[u + 1]):
            row = life_rows[k]
            if from_at[row] <= time_ms[i] < until_at[row]:
                rows[place[m]], times[place[m]], values[place[m]] = row, time_ms[i], value[i]
                place[m] += 1
                in_order = in_order and time_ms[i] >= newest[m, row]
                newest[m, row] = time_ms[i]
    return offsets, rows, times, values, in_order
