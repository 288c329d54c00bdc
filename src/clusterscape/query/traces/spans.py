"""One span with everything around it: its collective's members, its launch, the same operator elsewhere, its neighbors."""

from typing import Any

import polars as pl

from clusterscape.query.traces.answers import CollectiveMember, RelatedSpan, SpanAnswer

MOST_PEERS = 512
MOST_LAUNCHED = 16


def describe_span(spans: pl.DataFrame, span: int, origin_ns: int) -> SpanAnswer:
    """``spans`` with the columns of ``analyze/trace/relations.py``; ``span`` is a row of it."""
    row = spans.row(span, named=True)
    numbered = spans.lazy().with_row_index("span")
    mine = numbered.filter(pl.col("rank") == row["rank"])
    joined = mine.filter(_equals("correlation", row) & (pl.col("span") != span)).collect()
    launches = joined.filter(~pl.col("is_device")) if row["is_device"] else joined.clear()
    launched = joined.filter(pl.col("is_device")).head(MOST_LAUNCHED) if not row["is_device"] else joined.clear()
    lane = mine.filter(_equals("lane", row) & _equals("span_class", row))
    before = lane.filter(pl.col("end_ns") <= row["start_ns"]).sort("end_ns").last().collect()
    after = lane.filter(pl.col("start_ns") >= row["end_ns"]).sort("start_ns").first().collect()
    same = numbered.filter((pl.col("instance") == row["instance"]) & (pl.col("rank") != row["rank"]))
    length = spans.filter((pl.col("name") == row["name"]) & (pl.col("span_class") == row["span_class"]))
    usual = (length["end_ns"] - length["drawn_ns"]).to_numpy()
    transfer_ns = row["end_ns"] - row["drawn_ns"] - (row["wait_ns"] or 0)
    has_rate = row["collective"] is not None and row["bytes"] is not None and transfer_ns > 0
    return SpanAnswer(
        span=span,
        **{
            name: row[name]
            for name in (
                "rank", "stage", "lane", "is_device", "span_class", "name", "namespace", "phase", "step", "micro_batch",
                "wait_ns", "critical_ns", "slack_ns", "is_outlier", "process_group", "collective", "bytes", "flops",
            )
        },
        start_ns=row["start_ns"] - origin_ns,
        arrive_ns=row["drawn_ns"] - origin_ns,
        end_ns=row["end_ns"] - origin_ns,
        median_ns=float(pl.Series(usual).median() or 0.0),  # type: ignore[arg-type]
        bandwidth_bytes_per_s=row["bytes"] / transfer_ns * 1e9 if has_rate else None,
        members=_members(spans, row, origin_ns),
        message=_first(numbered.filter(pl.col("span") == pl.lit(row["partner"], pl.UInt32)).collect(), origin_ns),
        launch=_first(launches, origin_ns),
        launched=_related(launched, origin_ns),
        peers=_related(same.sort("rank").head(MOST_PEERS).collect(), origin_ns),
        before=_first(before, origin_ns),
        after=_first(after, origin_ns),
    )  # fmt: skip


def _equals(name: str, row: dict[str, Any]) -> pl.Expr:
    """Never true for null: nothing is known to be the same."""
    return pl.lit(False) if row[name] is None else pl.col(name) == row[name]


def _members(spans: pl.DataFrame, row: dict[str, Any], origin_ns: int) -> list[CollectiveMember]:
    """All ranks of the collective, in the order they came."""
    if row["matched"] is None:
        return []
    members = spans.with_row_index("span").filter(pl.col("matched") == row["matched"]).sort("drawn_ns", "rank")
    last = int(members["drawn_ns"][-1])
    return [
        CollectiveMember(
            span=each["span"],
            rank=each["rank"],
            start_ns=each["start_ns"] - origin_ns,
            arrive_ns=each["drawn_ns"] - origin_ns,
            end_ns=each["end_ns"] - origin_ns,
            wait_ns=last - each["drawn_ns"],
            transfer_ns=max(0, each["end_ns"] - last),
            is_last=each["drawn_ns"] == last,
        )
        for each in members.iter_rows(named=True)
    ]


def _related(table: pl.DataFrame, origin_ns: int) -> list[RelatedSpan]:
    return [
        RelatedSpan(
            span=each["span"],
            rank=each["rank"],
            lane=each["lane"],
            span_class=each["span_class"],
            name=each["name"],
            start_ns=each["start_ns"] - origin_ns,
            end_ns=each["end_ns"] - origin_ns,
        )
        for each in table.iter_rows(named=True)
    ]


def _first(table: pl.DataFrame, origin_ns: int) -> RelatedSpan | None:
    found = _related(table.head(1), origin_ns)
    return found[0] if found else None
