"""What every operator cost in a window: how often, how long, on which rank most, and how unevenly."""

from collections.abc import Collection

import polars as pl

from clusterscape.model.spans import SpanClass

COUNTED = (SpanClass.COMPUTE, SpanClass.COMMUNICATION, SpanClass.MEMORY, SpanClass.HOST, SpanClass.LAUNCH)


def sum_operators(
    spans: pl.DataFrame, start_ns: int, end_ns: int, ranks: Collection[int] = (), steps: Collection[int] = ()
) -> pl.DataFrame:
    """One row per name, class and phase, largest total first. Times are what lies in [start, end); nanoseconds.

    Parameters
    ----------
    spans
        With the columns of ``relations.py``; times of the same clock as ``start_ns`` and ``end_ns``.
    ranks, steps
        Only these; empty: all.

    Returns
    -------
    name, class, phase, count, total_ns, mean_ns, max_ns, worst_span (the longest), share (of all time of the class), ranks,
    worst_rank (that spends most on it), imbalance (max/mean − 1 over the ranks that have it), wait_ns, flops.
    """
    length = pl.min_horizontal("end_ns", pl.lit(end_ns)) - pl.max_horizontal("drawn_ns", pl.lit(start_ns))
    chosen = pl.col("span_class").cast(pl.String).is_in([each.value for each in COUNTED])
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
