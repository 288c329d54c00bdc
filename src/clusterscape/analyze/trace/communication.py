"""Who sent how much to whom, how long it took and how long it was waited for: links of messages, shares in collectives."""

import polars as pl

SCHEMA: dict[str, pl.DataType] = {
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
    """One row per link of messages, and per rank, process group and kind of matched collectives (``SCHEMA``).

    ``spans`` with the columns of ``relations.py``. Transfer is what is left of a span after its wait; a message's lies at its
    receiver. Bandwidth is null where bytes are not known.
    """
    table = spans.with_row_index("span").filter(pl.col("collective").is_not_null())
    transfer = (pl.col("end_ns") - pl.col("drawn_ns") - pl.col("wait_ns").fill_null(0)).clip(lower_bound=0)
    table = table.with_columns(
        transfer.alias("transfer"),
        pl.col("process_group").cast(pl.String).fill_null("world"),
        pl.col("collective").cast(pl.String),
    )
    return pl.concat([_messages(table), _collectives(table)]).sort(
        "time_ns", "from_rank", "to_rank", descending=[True, False, False], nulls_last=True
    )


def _messages(table: pl.DataFrame) -> pl.DataFrame:
    receives = table.filter((pl.col("collective") == "recv") & pl.col("partner").is_not_null())
    sends = table.select(
        pl.col("span").alias("partner"), pl.col("rank").alias("from_rank"), pl.col("bytes").alias("sent")
    )
    both = receives.join(sends, on="partner").with_columns(
        pl.col("rank").alias("to_rank"), pl.lit("send").alias("kind"), pl.coalesce("bytes", "sent").alias("bytes")
    )
    return _sum(both, ["from_rank", "to_rank", "kind", "process_group"])


def _collectives(table: pl.DataFrame) -> pl.DataFrame:
    members = table.filter(pl.col("matched").is_not_null()).with_columns(
        pl.col("rank").alias("from_rank"), pl.lit(None, pl.Int32).alias("to_rank"), pl.col("collective").alias("kind")
    )
    return _sum(members, ["from_rank", "to_rank", "kind", "process_group"])


def _sum(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    known = pl.col("bytes").count() == pl.len()
    sums = table.group_by(keys).agg(
        pl.len().alias("count"),
        pl.when(known).then(pl.col("bytes").sum()).alias("bytes"),
        pl.col("transfer").sum().alias("time_ns"),
        pl.col("wait_ns").sum(),
    )
    rate = pl.when(pl.col("time_ns") > 0).then(pl.col("bytes") / pl.col("time_ns") * 1e9)
    return sums.with_columns(rate.alias("bandwidth_bytes_per_s")).select(
        pl.col(name).cast(kind) for name, kind in SCHEMA.items()
    )
