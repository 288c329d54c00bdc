"""What one rank does that its peers do not: time in data loading, compute and named parts of the step, against their median."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.breakdown import WORK
from clusterscape.analyze.trace.intervals import clip_times, join_times
from clusterscape.model.spans import Phase, SpanClass

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Excess:
    """Mean seconds per step of a rank beyond its peers' median, by what it was spent on; ``low_s`` over the steps."""

    rank: int
    mean_s: float
    low_s: float
    own_s: float
    peers_s: float


def measure_data_loading(spans: pl.DataFrame, steps: pl.DataFrame) -> list[Excess]:
    """Time in annotations of data loading, each rank against its peers."""
    marks = spans.filter(
        (pl.col("span_class") == SpanClass.ANNOTATION.value)
        & ~pl.col("is_device")
        & (pl.col("phase") == Phase.DATA.value)
    )
    return _compare(marks, steps)


def measure_compute(spans: pl.DataFrame, steps: pl.DataFrame) -> list[Excess]:
    """Time the device worked, each rank against its peers."""
    return _compare(spans.filter(pl.col("span_class").cast(pl.String).is_in(WORK)), steps)


def _compare(chosen: pl.DataFrame, steps: pl.DataFrame) -> list[Excess]:
    ranks = sorted(steps["rank"].unique())
    numbers = sorted(steps["step"].unique())
    table = np.zeros((len(ranks), len(numbers)))
    for row, rank in enumerate(ranks):
        mine = chosen.filter(pl.col("rank") == rank)
        times = join_times(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy())
        for step, low, high in steps.filter(pl.col("rank") == rank).select("step", "start_ns", "end_ns").iter_rows():
            table[row, numbers.index(step)] = clip_times(times, low, high).length_ns / 1e9
    found = []
    for row, rank in enumerate(ranks):
        others: Floats = np.delete(table, row, axis=0)
        usual = np.median(others, axis=0) if others.size else table[row]
        beyond = table[row] - usual
        found.append(
            Excess(rank, float(beyond.mean()), float(beyond.min()), float(table[row].mean()), float(usual.mean()))
        )
    return found


def find_extra_work(spans: pl.DataFrame, rank: int, steps: int) -> tuple[str, float] | None:
    """The named part of the step whose device time most exceeds the peers' median: name and seconds per step beyond it."""
    work = spans.filter(pl.col("span_class").cast(pl.String).is_in(WORK) & pl.col("namespace").is_not_null())
    if not work.height:
        return None
    part = pl.col("namespace").cast(pl.String).str.split("/").list.first().alias("part")
    length = ((pl.col("end_ns") - pl.col("start_ns")).sum() / 1e9 / max(1, steps)).alias("length_s")
    table = work.group_by("rank", part).agg(length)
    wide = table.pivot("rank", index="part", values="length_s").fill_null(0.0)
    mine, others = str(rank), [name for name in wide.columns if name not in ("part", str(rank))]
    if mine not in wide.columns or not others:
        return None
    usual = np.median(wide.select(others).to_numpy(), axis=1)
    beyond = wide[mine].to_numpy() - usual
    at = int(np.argmax(beyond))
    return str(wide["part"][at]), float(beyond[at])
