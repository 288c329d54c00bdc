"""Data recorded on an H200 that ships with the demo: metrics of one GPU in each mode, as scalable tables ("shapes"),
and traces of four ranks of a data-parallel run and of a pipeline.

The shapes are in ``shapes/h200.csv``, written by ``tools/cut_h200.py``.

The traces are in ``traces``, written by ``tools/cut_traces.py``. Planted faults: rank 0 of the data-parallel run does extra work
before every backward pass and its rank 3 loads data slowly; stage 2 of the pipeline has more layers than the others.
"""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from clusterscape.model.arrays import Float32s, Float64s, Int64s

RECORDED_IDLE_WATTS = 78.5
RECORDED_LIMIT_WATTS = 700.0
RECORDED_IDLE_CELSIUS = 35.0
RECORDED_SM_MHZ = 1980.0
LIGHT_TRAIN_REPEATS = 3


class Mode(IntEnum):
    """Activity of a GPU. MIXED and MIXED_LIGHT are cyclic; in the others the order of samples has no meaning."""

    IDLE = 0  # no process holds a context
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
    """Samples of all modes, concatenated; mode m has the samples [offset[m], offset[m] + length[m]).

    ``power`` is 0 at idle and 1 at the limit; ``warmth`` is °C above idle; ``clock`` is relative to the maximum.
    ``power_sum`` is the cumulative sum of ``power`` before each sample of a mode; ``power_mean`` is one value per mode.
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
    """The shapes of all modes; read once."""
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
    """Cumulative sum before each sample; uses the mean for modes whose samples are drawn in random order."""
    drawn = power if mode in CYCLIC else np.full(len(power), power.mean())
    sums: Float64s = np.cumsum(drawn) - drawn
    return sums


def _lighten(cycles: list[dict[str, str]]) -> list[dict[str, str]]:
    """The cycles with every training phase repeated, so that other phases take a smaller share."""
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


RANKS = 4


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """A recorded trace; ``prefix`` of its file names."""

    prefix: str
    name: str


RECORDED_TRACES = (
    RecordedTrace("pipe", "Pipeline of 4 stages, 8 micro-batches"),
    RecordedTrace("ddp", "Data parallel, 4 ranks"),
)


@contextmanager
def trace_files(trace: RecordedTrace) -> Iterator[list[Path]]:
    """The files of a trace, one per rank."""
    with resources.as_file(resources.files("clusterscape.demo") / "traces") as folder:
        yield sorted(folder.glob(f"{trace.prefix}_rank*.json.gz"))
