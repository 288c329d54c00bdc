"""What held GPUs did, step by step, by their metrics: used, stalled, execution-idle or idle; and their energy."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.usage.sums import MEASURED, MEASURED_SCHEMA
from clusterscape.model.arrays import Float64s, Int64s

IDLE_BELOW = 0.05
"""A GPU whose mean utilization is lower is idle."""
STALLED_BELOW = 0.1
"""A GPU that is utilized, but whose multiprocessors are active for less than this, waits within its kernels."""
LOADED_BYTES = 2**30
"""An idle GPU with this much memory in use has a program loaded: execution-idle."""


@dataclass(frozen=True, slots=True)
class UnitSteps:
    """Mean values, units × steps; NaN where nothing was measured."""

    util_ratio: NDArray[np.float64]
    sm_active_ratio: NDArray[np.float64]
    memory_used_bytes: NDArray[np.float64]
    power_watts: NDArray[np.float64]


def sum_measured(
    workloads: pl.Series, unit: Int64s, begin: Int64s, stop: Int64s, values: UnitSteps, *, span: Int64s, step_s: float
) -> pl.DataFrame:
    """Seconds and joules by workload and span: MEASURED_SCHEMA.

    Allocation i of ``workloads[i]`` held unit ``unit[i]`` in the steps [begin[i], stop[i]). ``span``: that of each step. A unit
    that several workloads hold is divided evenly. Steps without utilization count nowhere.
    """
    shape = values.util_ratio.shape
    change = np.zeros((shape[0], shape[1] + 1), np.int32)
    np.add.at(change, (unit, begin), 1)
    np.add.at(change, (unit, stop), -1)
    holders = np.cumsum(change, axis=1)[:, :-1]
    count = np.maximum(stop - begin, 0)
    row = np.repeat(np.arange(len(unit)), count)
    step = begin[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row]
    cell = (unit[row], step)
    seconds = step_s / holders[cell]
    states = _classify(values, cell)
    power = np.nan_to_num(values.power_watts[cell])
    table = pl.DataFrame({"id": workloads.gather(row), "span": span[step]}, schema={"id": pl.String, "span": pl.Int64})
    sums = {name: seconds * (states == index) for index, name in enumerate(MEASURED[:4])}
    sums["energy_joules"] = seconds * power
    table = table.with_columns(pl.Series(name, sums[name], pl.Float64) for name in MEASURED)
    return table.group_by("id", "span").sum().select(*MEASURED_SCHEMA)


def _classify(values: UnitSteps, cell: tuple[Int64s, Int64s]) -> Float64s:
    """The place in MEASURED: 0 used, 1 stalled, 2 execution-idle, 3 idle; −1 unknown."""
    util = values.util_ratio[cell]
    is_stalled = values.sm_active_ratio[cell] < STALLED_BELOW
    is_loaded = values.memory_used_bytes[cell] >= LOADED_BYTES
    state = np.where(util < IDLE_BELOW, np.where(is_loaded, 2, 3), np.where(is_stalled, 1, 0))
    return np.where(np.isfinite(util), state, -1).astype(np.float64)
