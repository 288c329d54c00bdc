"""The recorded H200 shapes as flat tables: what one GPU showed in each mode, in a form that can be scaled to other GPUs.

The cut itself is ``shapes/h200.csv``, made by ``tools/cut_h200.py``.
"""

import csv
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]

RECORDED_IDLE_WATTS = 78.5
RECORDED_LIMIT_WATTS = 700.0
RECORDED_IDLE_CELSIUS = 35.0
RECORDED_SM_MHZ = 1980.0
LIGHT_TRAIN_REPEATS = 3


class Mode(IntEnum):
    """What a GPU may be doing. MIXED and MIXED_LIGHT are cycles; in the others the order of samples carries no meaning."""

    IDLE = 0  # nobody holds a context
    CONTEXT = 1  # a process holds the GPU and computes nothing
    HEALTHY = 2
    INPUT_BOUND = 3
    HANG = 4
    MIXED = 5  # training with validation, a data stall and a checkpoint in every cycle
    MIXED_LIGHT = 6  # the same with training three times as long


CYCLIC = frozenset({Mode.MIXED, Mode.MIXED_LIGHT})
_NAMES = {
    Mode.IDLE: "idle",
    Mode.CONTEXT: "context",
    Mode.HEALTHY: "healthy",
    Mode.INPUT_BOUND: "inputbound",
    Mode.HANG: "hang",
    Mode.MIXED: "mixed",
}


@dataclass(frozen=True, slots=True)
class Shapes:
    """Samples of all modes one after another; mode m occupies [offset[m], offset[m] + length[m]).

    ``power`` is relative: 0 at idle, 1 at the limit; ``warmth`` is °C above idle; ``clock`` is relative to the highest.
    ``power_sum`` is the running sum of ``power`` within a mode, before each sample; ``power_mean`` is by mode.
    """

    offset: Int64s
    length: Int64s
    util: Float32s  # percent
    memory_util: Float32s  # percent
    power: Float32s
    warmth: Float32s
    memory_warmth: Float32s
    clock: Float32s
    checkpoint: Float32s  # 1 while a checkpoint is written
    power_sum: Float64s
    power_mean: Float64s


@cache
def read_shapes() -> Shapes:
    """The tables; read once."""
    text = (resources.files("clusterscape.demo") / "shapes" / "h200.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    by_mode = [[row for row in rows if row["mode"] == _NAMES[mode]] for mode in Mode if mode in _NAMES]
    by_mode.append(_lighten(by_mode[Mode.MIXED]))
    ordered = [row for mode_rows in by_mode for row in mode_rows]
    length = np.array([len(mode_rows) for mode_rows in by_mode])
    offset = np.cumsum(length) - length

    def column(name: str) -> Float64s:
        return np.array([float(row[name]) for row in ordered])

    power = (column("power_watts") - RECORDED_IDLE_WATTS) / (RECORDED_LIMIT_WATTS - RECORDED_IDLE_WATTS)
    means = [power[start : start + count].mean() for start, count in zip(offset, length, strict=True)]
    sums = [
        _running_sum(mode, power[start : start + count])
        for mode, start, count in zip(Mode, offset, length, strict=True)
    ]
    return Shapes(
        offset=offset,
        length=length,
        util=column("util_percent").astype(np.float32),
        memory_util=column("memory_util_percent").astype(np.float32),
        power=power.astype(np.float32),
        warmth=(column("gpu_celsius") - RECORDED_IDLE_CELSIUS).astype(np.float32),
        memory_warmth=(column("memory_celsius") - RECORDED_IDLE_CELSIUS).astype(np.float32),
        clock=(column("sm_mhz") / RECORDED_SM_MHZ).astype(np.float32),
        checkpoint=np.array([row["phase"] == "checkpoint" for row in ordered], np.float32),
        power_sum=np.concatenate(sums),
        power_mean=np.array(means),
    )


def _running_sum(mode: Mode, power: Float64s) -> Float64s:
    """Sum before each sample. Where samples are drawn in any order, only the mean is certain."""
    drawn = power if mode in CYCLIC else np.full(len(power), power.mean())
    sums: Float64s = np.cumsum(drawn) - drawn
    return sums


def _lighten(cycles: list[dict[str, str]]) -> list[dict[str, str]]:
    """The cycles with every stretch of training repeated, so that the rest takes a smaller share."""
    light: list[dict[str, str]] = []
    stretch: list[dict[str, str]] = []
    for row in cycles:
        if row["phase"] == "train":
            stretch.append(row)
            continue
        light += stretch * LIGHT_TRAIN_REPEATS
        stretch = []
        light.append(row)
    return light + stretch * LIGHT_TRAIN_REPEATS
