"""Small curves under a rank's row: how much of each moment it computed and communicated, and how fast it calculated."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.breakdown import WORK
from clusterscape.analyze.trace.intervals import Times, cover_until, join_times
from clusterscape.model.spans import SpanClass

Floats = NDArray[np.float64]


def draw_curves(spans: pl.DataFrame, start_ns: int, end_ns: int, bins: int) -> pl.DataFrame:
    """``rank``, ``time_ns`` (begin of the bin), ``compute`` and ``communication`` (shares of the bin, 0–1), ``flops`` (per
    second; null where the recorder gave none), ``memory_bytes`` (null: no format that is read has it).
    """
    edges = np.linspace(start_ns, end_ns, bins + 1)
    width = (end_ns - start_ns) / bins
    frames = [pl.DataFrame(schema=_SCHEMA)]
    classes = pl.col("span_class").cast(pl.String)
    near = spans.filter((pl.col("end_ns") > start_ns) & (pl.col("drawn_ns") < end_ns))
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
                    "memory_bytes": pl.Series([None] * bins, dtype=pl.Float64),
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
