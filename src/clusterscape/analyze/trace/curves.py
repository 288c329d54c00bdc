"""Small curves under a rank's row: how much of each moment it computed and communicated, how fast it calculated, and how much
memory it held.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.breakdown import WORK
from clusterscape.analyze.trace.intervals import Times, cover_until, join_times
from clusterscape.model.spans import SpanClass

Floats = NDArray[np.float64]


def draw_curves(
    spans: pl.DataFrame, start_ns: int, end_ns: int, bins: int, memory: pl.DataFrame | None = None
) -> pl.DataFrame:
    """``rank``, ``time_ns`` (begin of the bin, since ``start_ns``), ``compute`` and ``communication`` (shares of the bin, 0–1),
    ``flops`` (per second), ``memory_bytes`` (most in the bin); the last two null where the recorder gave none.
    """
    # Relative to the start: as floats, nanoseconds since 1970 are whole multiples of 256.
    edges = np.linspace(0.0, end_ns - start_ns, bins + 1)
    width = (end_ns - start_ns) / bins
    frames = [pl.DataFrame(schema=_SCHEMA)]
    classes = pl.col("span_class").cast(pl.String)
    near = spans.filter((pl.col("end_ns") > start_ns) & (pl.col("drawn_ns") < end_ns))
    near = near.with_columns(pl.col("drawn_ns", "end_ns") - start_ns)
    if memory is not None:
        memory = memory.with_columns(pl.col("time_ns") - start_ns)
    for (rank,), mine in sorted(near.group_by("rank"), key=lambda item: str(item[0]).zfill(12)):
        work = mine.filter(classes.is_in(WORK))
        if not work.height:
            work = mine.filter(classes == SpanClass.HOST.value)
        talk = mine.filter(classes == SpanClass.COMMUNICATION.value)
        frames.append(
            pl.DataFrame(
                {
                    "rank": np.full(bins, int(str(rank)), np.int32),
                    "time_ns": edges[:-1],
                    "compute": (np.diff(cover_until(_joined(work), edges)) / width).astype(np.float32),
                    "communication": (np.diff(cover_until(_joined(talk), edges)) / width).astype(np.float32),
                    "flops": _rate(mine, edges, width),
                    "memory_bytes": _held(memory, int(str(rank)), edges),
                }
            )
        )
    return pl.concat(frames)


_SCHEMA: dict[str, pl.DataType] = {
    "rank": pl.Int32(),
    "time_ns": pl.Float64(),
    "compute": pl.Float32(),
    "communication": pl.Float32(),
    "flops": pl.Float64(),
    "memory_bytes": pl.Float64(),
}


def _joined(part: pl.DataFrame) -> Times:
    return join_times(part["drawn_ns"].to_numpy(), part["end_ns"].to_numpy())


def _held(memory: pl.DataFrame | None, rank: int, edges: Floats) -> pl.Series:
    """The most that was allocated in each bin: what was when it began, or more since. Null before the first record."""
    empty = pl.Series([None] * (edges.size - 1), dtype=pl.Float64)
    mine = None if memory is None else memory.filter(pl.col("rank") == rank).sort("time_ns", maintain_order=True)
    if mine is None or not mine.height:
        return empty
    times, held = mine["time_ns"].to_numpy(), mine["bytes"].to_numpy().astype(np.float64)
    at = np.searchsorted(times, edges, side="right")
    before = np.concatenate([[np.nan], held])[at[:-1]]
    inside = np.full(edges.size - 1, np.nan)
    filled = np.flatnonzero(at[1:] > at[:-1])
    # Between two filled bins nothing was recorded: the parts that reduceat takes are those of the filled ones.
    if filled.size:
        inside[filled] = np.maximum.reduceat(held[: at[-1]], at[filled])
    return pl.Series(np.fmax(before, inside), nan_to_null=True)


def _rate(mine: pl.DataFrame, edges: Floats, width: float) -> pl.Series:
    """Operations per second: each span's are spread evenly over its time."""
    known = mine.drop_nulls("flops").filter(pl.col("end_ns") > pl.col("drawn_ns"))
    if not known.height:
        return pl.Series([None] * (edges.size - 1), dtype=pl.Float64)
    start, end = known["drawn_ns"].to_numpy(), known["end_ns"].to_numpy()
    speed = known["flops"].to_numpy() / (end - start)
    # The integral of a sum of boxes is piecewise linear: its slope changes at starts and ends only.
    moments = np.concatenate([start, end]).astype(np.float64)
    change = np.concatenate([speed, -speed])
    order = np.argsort(moments, kind="stable")
    moments, slope = moments[order], np.cumsum(change[order])
    done = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(moments))])
    return pl.Series(np.diff(np.interp(edges, moments, done)) / width * 1e9)
