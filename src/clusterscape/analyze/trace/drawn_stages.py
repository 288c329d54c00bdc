"""A stage as one row: every operator at its mean start and end over the stage's ranks, with the envelope around it."""

import polars as pl


def average_over_ranks(table: pl.DataFrame) -> pl.DataFrame:
    """One row per (stage, operator instance) of the table of ``drawn.py``.

    ``total``, ``wait_ns`` and ``critical_ns`` are sums over ranks; ``members`` lists the spans. An instance that is an outlier on
    one rank is one on the stage.
    """
    length = pl.col("end") - pl.col("start")
    longest = pl.col("span").sort_by(length, "span").last()
    return table.group_by("stage_place", "instance", maintain_order=True).agg(
        pl.col("kind").first(),
        pl.col("key").max(),  # the last digit of a key says whether it is an outlier
        pl.col("start", "end").mean(),
        pl.col("start").min().alias("early"),
        pl.col("end").max().alias("late"),
        pl.len().cast(pl.UInt32).alias("count"),
        length.sum().alias("total"),
        length.min().alias("least"),
        length.median().alias("middle"),
        length.max().alias("most"),
        longest.alias("worst"),
        longest.alias("span"),
        pl.col("is_outlier").any(),
        # A sum of nothing is not known, not 0.
        pl.when(pl.col("wait_ns").count() > 0).then(pl.col("wait_ns").sum()).alias("wait_ns"),
        pl.col("critical_ns").sum(),
        pl.col("slack_ns").min(),
        pl.col("span").alias("members"),
    )
