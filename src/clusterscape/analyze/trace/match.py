"""The same collective on every rank, and the receive of every send. What cannot be told apart is reported, never guessed."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from clusterscape.model.spans import SpanClass

SYNCHRONOUS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""No member ends before the last has come."""
SAME_SIZE = ("all_reduce", "barrier", "broadcast")
"""Every member has the same number of bytes."""
POINT_TO_POINT = ("send", "recv", "send_recv")

MEMBER_COLUMNS = (
    "instance", "rank", "process_group", "collective", "step", "name", "start_ns", "arrive_ns", "end_ns", "bytes", "span",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Matches:
    """``members``: one row for each rank in each collective (``MEMBER_COLUMNS``; ``span`` is the row of the span table).

    ``messages``: one row for each send with its receive. ``unmatched`` counts the spans that belong to neither.
    """

    members: pl.DataFrame
    messages: pl.DataFrame
    instances: int
    unmatched: int
    notes: tuple[str, ...]


def match_collectives(spans: pl.DataFrame) -> Matches:
    """Match by (process group, collective, sequence); failing that by order within the step, within the trace."""
    numbered = spans.with_row_index("span").filter(
        (pl.col("span_class") == SpanClass.COMMUNICATION.value) & pl.col("collective").is_not_null()
    )
    table = numbered.with_columns(
        pl.col("process_group").cast(pl.String).fill_null("world"),
        pl.col("collective").cast(pl.String),
        pl.max_horizontal("start_ns", pl.col("ready_ns").fill_null(pl.col("start_ns"))).alias("arrive_ns"),
        pl.col("step").fill_null(-1).alias("at_step"),
    )
    found, notes, unmatched = [], [], 0
    many = table.filter(~pl.col("collective").is_in(POINT_TO_POINT))
    for (group, kind), part in sorted(many.group_by("process_group", "collective"), key=lambda item: str(item[0])):
        ranks = part["rank"].n_unique()
        if ranks < 2:  # its other members, if any, are not in the trace
            continue
        matched, problem = _match(part, ranks, str(kind))
        found.append(matched)
        unmatched += part.height - matched.height
        if problem:
            notes.append(f"{kind} of process group {group}: {problem}.")
    members = _number(found)
    messages, lone = match_messages(table.filter(pl.col("collective").is_in(("send", "recv"))))
    if lone:
        notes.append(f"{lone} sends or receives have no counterpart in the trace.")
    instances = members["instance"].n_unique() if members.height else 0
    return Matches(members, messages, instances, unmatched + lone, tuple(notes))


def _match(part: pl.DataFrame, ranks: int, kind: str) -> tuple[pl.DataFrame, str | None]:
    """Rows of collectives that all ranks took part in, with a ``key``; and what was unclear."""
    attempts: list[tuple[Sequence[str], bool]] = [(("at_step", "sequence"), False), (("at_step",), True), ((), True)]
    if kind in SAME_SIZE and part["bytes"].null_count() == 0:
        attempts.insert(2, (("at_step", "bytes"), True))
    best: pl.DataFrame | None = None
    for keys, by_order in attempts:
        if "sequence" in keys and part["sequence"].null_count():
            continue
        keyed = _keyed(part, keys, by_order)
        whole = _whole(keyed, ranks, kind)
        if whole.height == part.height:
            return whole, None
        if keys and (best is None or whole.height > best.height):
            best = whole
    assert best is not None
    lost = part.height - best.height
    return best, f"{lost} of {part.height} do not match on all {ranks} ranks and are left out"


def _keyed(part: pl.DataFrame, keys: Sequence[str], by_order: bool) -> pl.DataFrame:
    fields = [pl.col(key).cast(pl.String) for key in keys]
    if by_order:
        part = part.sort("rank", "start_ns")
        fields.append(pl.int_range(pl.len()).over(["rank", *keys]).cast(pl.String))
    return part.with_columns(pl.concat_str(fields, separator="/").alias("key"))


def _whole(keyed: pl.DataFrame, ranks: int, kind: str) -> pl.DataFrame:
    """Only collectives with each rank once, in steps where every rank has as many; of one size where it must be so."""
    per_step = (
        keyed.group_by("at_step", "rank")
        .len()
        .group_by("at_step")
        .agg((pl.col("len").n_unique() == 1) & (pl.col("rank").n_unique() == ranks))
    )
    by_key = keyed.group_by("key").agg(
        pl.len().alias("count"), pl.col("rank").n_unique().alias("ranks"), pl.col("bytes").n_unique().alias("sizes")
    )
    good = by_key.filter((pl.col("count") == ranks) & (pl.col("ranks") == ranks))
    if kind in SAME_SIZE:
        good = good.filter(pl.col("sizes") == 1)
    whole = keyed.join(good.select("key"), on="key", how="semi")
    if whole.height == keyed.height:
        return whole
    even = per_step.filter(pl.col("len")).select("at_step")
    return whole.join(even, on="at_step", how="semi")


def _number(found: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not found:
        return pl.DataFrame(schema=dict.fromkeys(MEMBER_COLUMNS, pl.Int64))
    table = pl.concat(found)
    first = table.group_by("process_group", "collective", "key").agg(pl.col("start_ns").min().alias("first_ns"))
    first = first.sort("first_ns", "process_group", "collective", "key").with_row_index("instance").drop("first_ns")
    return table.join(first, on=["process_group", "collective", "key"]).sort("instance", "rank").select(MEMBER_COLUMNS)


def match_messages(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Each send with its receive: by peers and order where peers are named, else between neighboring stages."""
    if not table.height:
        return _NO_MESSAGES, 0
    sends = table.filter(pl.col("collective") == "send")
    receives = table.filter(pl.col("collective") == "recv")
    named = table["peer"].null_count() == 0
    if not named and table["stage"].null_count():
        return _NO_MESSAGES, table.height
    if not named:
        sends, receives = _neighbors(sends, receives)
    keys = ["at_step", "phase", "from", "to"]
    sends = sends.with_columns(pl.col("rank").alias("from"), pl.col("peer").alias("to"))
    receives = receives.with_columns(pl.col("peer").alias("from"), pl.col("rank").alias("to"))
    order = pl.int_range(pl.len()).over(keys).alias("order")
    mine = ["span", "start_ns", "end_ns", "micro_batch"]
    left = (
        sends.sort("start_ns").with_columns(order).select(*keys, "order", *(pl.col(c).alias(f"send_{c}") for c in mine))
    )
    right = receives.sort("start_ns").with_columns(order)
    right = right.select(*keys, "order", *(pl.col(c).alias(f"recv_{c}") for c in mine))
    counts = ["at_step", "phase", "from", "to"]
    joined = left.join(right, on=[*keys, "order"], nulls_equal=True)
    # Where counts differ, order tells nothing.
    uneven = (
        left.group_by(counts)
        .len()
        .join(right.group_by(counts).len(), on=counts, how="full", nulls_equal=True, coalesce=True)
    )
    uneven = uneven.filter(pl.col("len").ne_missing(pl.col("len_right")))
    joined = joined.join(uneven, on=counts, how="anti", nulls_equal=True)
    return joined.rename({"from": "from_rank", "to": "to_rank", "at_step": "step"}), table.height - 2 * joined.height


_NO_MESSAGES = pl.DataFrame(
    schema={
        "step": pl.Int32, "phase": pl.String, "from_rank": pl.Int32, "to_rank": pl.Int32, "order": pl.Int64,
        "send_span": pl.UInt32, "send_start_ns": pl.Int64, "send_end_ns": pl.Int64, "send_micro_batch": pl.Int32,
        "recv_span": pl.UInt32, "recv_start_ns": pl.Int64, "recv_end_ns": pl.Int64, "recv_micro_batch": pl.Int32,
    }
)  # fmt: skip


def _neighbors(sends: pl.DataFrame, receives: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Forward goes one stage up, backward one down; with several ranks a stage, to the one at the same place in it."""
    both = pl.concat([sends, receives])
    places = both.select("rank", "stage").unique().sort("rank")
    places = places.with_columns(pl.int_range(pl.len()).over("stage").alias("place"))
    up = pl.when(pl.col("phase") == "backward").then(-1).otherwise(1)

    def with_peer(part: pl.DataFrame, sign: int) -> pl.DataFrame:
        wanted = part.drop("peer").join(places.select("rank", "place"), on="rank", maintain_order="left")
        wanted = wanted.with_columns((pl.col("stage") + sign * up).cast(pl.Int32).alias("other"))
        others = places.select(pl.col("rank").alias("peer"), pl.col("stage").alias("other"), "place")
        return wanted.join(others, on=["other", "place"], how="left", maintain_order="left")

    return with_peer(sends, 1), with_peer(receives, -1)
