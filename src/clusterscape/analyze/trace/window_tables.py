"""Tables of a time window of a trace, shown next to its graph: the cost of every operator, traffic between ranks, and curves
per rank.
"""

from collections.abc import Collection

import numpy as np
import polars as pl

from clusterscape.analyze.trace.breakdown import WORK
from clusterscape.analyze.trace.intervals import Times, cover_until, join_times
from clusterscape.model.arrays import Float64s
from clusterscape.model.spans import SpanClass

COUNTED_CLASSES = (SpanClass.COMPUTE, SpanClass.COMMUNICATION, SpanClass.MEMORY, SpanClass.HOST, SpanClass.LAUNCH)


def sum_operators(
    spans: pl.DataFrame, start_ns: int, end_ns: int, ranks: Collection[int] = (), steps: Collection[int] = ()
) -> pl.DataFrame:
    """One row per name, class and phase, largest total first. Times are nanoseconds within [start, end).

    Parameters
    ----------
    spans
        With the columns of ``relations.py``; times of the same clock as ``start_ns`` and ``end_ns``.
    ranks, steps
        Only these; empty: all.

    Returns
    -------
    name, class, phase, count, total_ns, mean_ns, max_ns, worst_span (the longest), share (of all time of the class), ranks,
    worst_rank (with the most time), imbalance (max/mean − 1 over the ranks that have it), wait_ns, flops.
    """
    length = pl.min_horizontal("end_ns", pl.lit(end_ns)) - pl.max_horizontal("drawn_ns", pl.lit(start_ns))
    chosen = pl.col("span_class").cast(pl.String).is_in([span_class.value for span_class in COUNTED_CLASSES])
    chosen &= pl.col("is_outer") & (pl.col("end_ns") > start_ns) & (pl.col("drawn_ns") < end_ns)
    if ranks:
        chosen &= pl.col("rank").is_in(list(ranks))
    if steps:
        chosen &= pl.col("step").is_in(list(steps))
    table = spans.with_row_index("span").filter(chosen).with_columns(length.alias("length"))
    keys = ["name", "span_class", "phase"]
    by_rank = table.group_by(*keys, "rank").agg(pl.col("length").sum().alias("own"))
    uneven = by_rank.group_by(keys).agg(
        pl.len().alias("ranks"),
        pl.col("rank").sort_by("own", "rank", descending=[True, False]).first().alias("worst_rank"),
        (pl.col("own").max() / pl.col("own").mean() - 1).alias("imbalance"),
    )
    sums = table.group_by(keys).agg(
        pl.len().alias("count"),
        pl.col("length").sum().alias("total_ns"),
        pl.col("length").mean().alias("mean_ns"),
        pl.col("length").max().alias("max_ns"),
        pl.col("span").sort_by("length").last().alias("worst_span"),
        pl.when(pl.col("wait_ns").count() > 0).then(pl.col("wait_ns").sum()).alias("wait_ns"),
        pl.when(pl.col("flops").count() > 0).then(pl.col("flops").sum()).alias("flops"),
    )
    joined = sums.join(uneven, on=keys, nulls_equal=True)
    share = pl.col("total_ns") / pl.col("total_ns").sum().over("span_class")
    return (
        joined.with_columns(share.fill_nan(0.0).alias("share"), pl.col("imbalance").fill_nan(0.0))
        .rename({"span_class": "class"})
        .sort("total_ns", pl.col("name").cast(pl.String), descending=[True, False])
        .select(
            pl.col("name", "class", "phase").cast(pl.String),
            pl.col("count").cast(pl.UInt32),
            pl.col("total_ns", "mean_ns", "max_ns", "share", "imbalance").cast(pl.Float64),
            pl.col("wait_ns", "flops").cast(pl.Float64),
            pl.col("ranks").cast(pl.UInt32),
            "worst_rank",
            pl.col("worst_span").cast(pl.Int64),
        )
    )


LINK_SCHEMA: dict[str, pl.DataType] = {
    "from_rank": pl.Int32(),
    "to_rank": pl.Int32(),  # null for a collective
    "kind": pl.String(),  # send, or the collective
    "process_group": pl.String(),
    "count": pl.UInt32(),
    "bytes": pl.Float64(),
    "time_ns": pl.Float64(),  # transferring
    "wait_ns": pl.Float64(),
    "bandwidth_bytes_per_s": pl.Float64(),
}


def sum_links(spans: pl.DataFrame) -> pl.DataFrame:
    """One row per link of messages, and per rank, process group and kind of matched collectives (``LINK_SCHEMA``).

    ``spans`` with the columns of ``relations.py``. Transfer is the time of a span after its wait; that of a message is measured
    at its receiver. Bandwidth is null if bytes are unknown.
    """
    table = spans.with_row_index("span").filter(pl.col("collective").is_not_null())
    transfer = (pl.col("end_ns") - pl.col("drawn_ns") - pl.col("wait_ns").fill_null(0)).clip(lower_bound=0)
    table = table.with_columns(
        transfer.alias("transfer"),
        pl.col("process_group").cast(pl.String).fill_null("world"),
        pl.col("collective").cast(pl.String),
    )
    return pl.concat([_sum_messages(table), _sum_collectives(table)]).sort(
        "time_ns", "from_rank", "to_rank", descending=[True, False, False], nulls_last=True
    )


def _sum_messages(table: pl.DataFrame) -> pl.DataFrame:
    receives = table.filter((pl.col("collective") == "recv") & pl.col("partner").is_not_null())
    sends = table.select(
        pl.col("span").alias("partner"), pl.col("rank").alias("from_rank"), pl.col("bytes").alias("sent")
    )
    both = receives.join(sends, on="partner").with_columns(
        pl.col("rank").alias("to_rank"), pl.lit("send").alias("kind"), pl.coalesce("bytes", "sent").alias("bytes")
    )
    return _sum(both, ["from_rank", "to_rank", "kind", "process_group"])


def _sum_collectives(table: pl.DataFrame) -> pl.DataFrame:
    members = table.filter(pl.col("matched").is_not_null()).with_columns(
        pl.col("rank").alias("from_rank"), pl.lit(None, pl.Int32).alias("to_rank"), pl.col("collective").alias("kind")
    )
    return _sum(members, ["from_rank", "to_rank", "kind", "process_group"])


def _sum(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    has_bytes = pl.col("bytes").count() == pl.len()
    sums = table.group_by(keys).agg(
        pl.len().alias("count"),
        pl.when(has_bytes).then(pl.col("bytes").sum()).alias("bytes"),
        pl.col("transfer").sum().alias("time_ns"),
        pl.col("wait_ns").sum(),
    )
    rate = pl.when(pl.col("time_ns") > 0).then(pl.col("bytes") / pl.col("time_ns") * 1e9)
    return sums.with_columns(rate.alias("bandwidth_bytes_per_s")).select(
        pl.col(name).cast(kind) for name, kind in LINK_SCHEMA.items()
    )


def draw_curves(
    spans: pl.DataFrame, start_ns: int, end_ns: int, bins: int, memory: pl.DataFrame | None = None
) -> pl.DataFrame:
    """``rank``, ``time_ns`` (start of the bin, since ``start_ns``), ``compute`` and ``communication`` (shares of the bin, 0–1),
    ``flops`` (per second), ``memory_bytes`` (maximum in the bin); the last two are null if they were not recorded.
    """
    # Relative to the start: float64 cannot represent nanoseconds since 1970 exactly.
    edges = np.linspace(0.0, end_ns - start_ns, bins + 1)
    width = (end_ns - start_ns) / bins
    frames = [pl.DataFrame(schema=_SCHEMA)]
    classes = pl.col("span_class").cast(pl.String)
    visible = spans.filter((pl.col("end_ns") > start_ns) & (pl.col("drawn_ns") < end_ns))
    visible = visible.with_columns(pl.col("drawn_ns", "end_ns") - start_ns)
    if memory is not None:
        memory = memory.with_columns(pl.col("time_ns") - start_ns)
    for (rank,), mine in sorted(visible.group_by("rank"), key=lambda item: str(item[0]).zfill(12)):
        work = mine.filter(classes.is_in(WORK))
        if not work.height:
            work = mine.filter(classes == SpanClass.HOST.value)
        communication = mine.filter(classes == SpanClass.COMMUNICATION.value)
        frames.append(
            pl.DataFrame(
                {
                    "rank": np.full(bins, int(str(rank)), np.int32),
                    "time_ns": edges[:-1],
                    "compute": (np.diff(cover_until(_union(work), edges)) / width).astype(np.float32),
                    "communication": (np.diff(cover_until(_union(communication), edges)) / width).astype(np.float32),
                    "flops": _flop_rate(mine, edges, width),
                    "memory_bytes": _max_memory(memory, int(str(rank)), edges),
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


def _union(part: pl.DataFrame) -> Times:
    return join_times(part["drawn_ns"].to_numpy(), part["end_ns"].to_numpy())


def _max_memory(memory: pl.DataFrame | None, rank: int, edges: Float64s) -> pl.Series:
    """Maximum allocated bytes in each bin, including the value at its start; null before the first record."""
    empty = pl.Series([None] * (edges.size - 1), dtype=pl.Float64)
    mine = None if memory is None else memory.filter(pl.col("rank") == rank).sort("time_ns", maintain_order=True)
    if mine is None or not mine.height:
        return empty
    times, held = mine["time_ns"].to_numpy(), mine["bytes"].to_numpy().astype(np.float64)
    at = np.searchsorted(times, edges, side="right")
    before = np.concatenate([[np.nan], held])[at[:-1]]
    inside = np.full(edges.size - 1, np.nan)
    filled = np.flatnonzero(at[1:] > at[:-1])
    # No records lie between filled bins, so each reduceat slice covers exactly one filled bin.
    if filled.size:
        inside[filled] = np.maximum.reduceat(held[: at[-1]], at[filled])
    return pl.Series(np.fmax(before, inside), nan_to_null=True)


def _flop_rate(mine: pl.DataFrame, edges: Float64s, width: float) -> pl.Series:
    """FLOPs per second; those of a span are spread evenly over its time."""
    with_flops = mine.drop_nulls("flops").filter(pl.col("end_ns") > pl.col("drawn_ns"))
    if not with_flops.height:
        return pl.Series([None] * (edges.size - 1), dtype=pl.Float64)
    start, end = with_flops["drawn_ns"].to_numpy(), with_flops["end_ns"].to_numpy()
    speed = with_flops["flops"].to_numpy() / (end - start)
    # The integral of a sum of boxes is piecewise linear: its slope changes only at starts and ends.
    moments = np.concatenate([start, end]).astype(np.float64)
    change = np.concatenate([speed, -speed])
    order = np.argsort(moments, kind="stable")
    moments, slope = moments[order], np.cumsum(change[order])
    done = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(moments))])
    return pl.Series(np.diff(np.interp(edges, moments, done)) / width * 1e9)
