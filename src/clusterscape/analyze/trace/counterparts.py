"""What every communication waits for and belongs to, as columns beside the spans."""

import polars as pl

from clusterscape.analyze.trace.match import Matches


def add_counterparts(spans: pl.DataFrame, parts: pl.DataFrame, matches: Matches) -> pl.DataFrame:
    """The spans with ``drawn_ns``, ``wait_ns``, ``matched`` and ``partner`` (see ``relations.RELATION_SCHEMA``), in their order.

    ``parts`` as ``breakdown.communication_parts`` gives them.
    """
    numbered = spans if "span" in spans.columns else spans.with_row_index("span")
    return _add_matches(_add_waits(numbered, parts), matches)


def _add_waits(spans: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    wait = (pl.min_horizontal("wait_end_ns", "end_ns") - pl.col("arrive_ns")).clip(lower_bound=0)
    known = parts.select(
        "span",
        pl.col("arrive_ns").alias("drawn_ns"),
        pl.when(pl.col("wait_end_ns").is_not_null()).then(wait).alias("wait_ns"),
    )
    joined = spans.join(known, on="span", how="left", maintain_order="left")
    # A collective that ended before its input was there has nothing to draw: it keeps its own start.
    drawn = pl.when(pl.col("drawn_ns") < pl.col("end_ns")).then(pl.col("drawn_ns")).otherwise(pl.col("start_ns"))
    return joined.with_columns(drawn.alias("drawn_ns"))


def _add_matches(spans: pl.DataFrame, matches: Matches) -> pl.DataFrame:
    matched = matches.members.select(pl.col("span", "instance").cast(pl.UInt32)).rename({"instance": "matched"})
    both = [("send_span", "recv_span"), ("recv_span", "send_span")]
    partners = pl.concat(
        [matches.messages.select(pl.col(a).cast(pl.UInt32).alias("span"), pl.col(b).alias("partner")) for a, b in both]
    )
    spans = spans.join(matched, on="span", how="left", maintain_order="left")
    return spans.join(partners, on="span", how="left", maintain_order="left")
