"""Matches the same collective across ranks and every send with its receive, and measures for every matched collective which rank
arrived last, how long the others waited and how long the transfer took. Ambiguous matches are dropped and reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.intervals import join_times
from clusterscape.model.spans import RankFacts, SpanClass

SYNCHRONOUS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Collectives in which no member ends before the last one has arrived."""
SAME_SIZE = ("all_reduce", "barrier", "broadcast")
"""Collectives in which every member has the same number of bytes."""
POINT_TO_POINT = ("send", "recv", "send_recv")

MEMBER_COLUMNS = (
    "instance", "rank", "process_group", "collective", "step", "name", "start_ns", "arrive_ns", "end_ns", "bytes", "span",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Matches:
    """``members``: one row per rank and collective (``MEMBER_COLUMNS``; ``span`` is the row of the span table).

    ``messages``: one row per send with its receive; ``unmatched``: number of communication spans in neither.
    """

    members: pl.DataFrame
    messages: pl.DataFrame
    instances: int
    unmatched: int
    notes: tuple[str, ...]


def match_collectives(spans: pl.DataFrame) -> Matches:
    """Match by (process group, collective, sequence number); else by order within the step; else by order within the trace."""
    numbered = spans.with_row_index("span").filter(
        (pl.col("span_class") == SpanClass.COMMUNICATION.value) & pl.col("collective").is_not_null()
    )
    table = numbered.with_columns(
        pl.col("process_group").cast(pl.String).fill_null("world"),
        pl.col("collective").cast(pl.String),
        pl.max_horizontal("start_ns", pl.col("ready_ns").fill_null(pl.col("start_ns"))).alias("arrive_ns"),
        pl.col("step").fill_null(-1).alias("at_step"),
    )
    matched_parts, notes, unmatched = [], [], 0
    collectives = table.filter(~pl.col("collective").is_in(POINT_TO_POINT))
    for (group, kind), part in sorted(
        collectives.group_by("process_group", "collective"), key=lambda item: str(item[0])
    ):
        ranks = part["rank"].n_unique()
        if ranks < 2:  # the other members are not in the trace
            continue
        matched, problem = _match(part, ranks, str(kind))
        matched_parts.append(matched)
        unmatched += part.height - matched.height
        if problem:
            notes.append(f"{kind} of process group {group}: {problem}.")
    members = _number_instances(matched_parts)
    messages, unpaired = match_messages(table.filter(pl.col("collective").is_in(("send", "recv"))))
    if unpaired:
        notes.append(f"{unpaired} sends or receives have no counterpart in the trace.")
    instances = members["instance"].n_unique() if members.height else 0
    return Matches(members, messages, instances, unmatched + unpaired, tuple(notes))


def _match(part: pl.DataFrame, ranks: int, kind: str) -> tuple[pl.DataFrame, str | None]:
    """Rows of collectives in which all ranks took part, with a ``key``; and a description of what does not match."""
    attempts: list[tuple[Sequence[str], bool]] = [(("at_step", "sequence"), False), (("at_step",), True), ((), True)]
    if kind in SAME_SIZE and part["bytes"].null_count() == 0:
        attempts.insert(2, (("at_step", "bytes"), True))
    best: pl.DataFrame | None = None
    for keys, by_order in attempts:
        if "sequence" in keys and part["sequence"].null_count():
            continue
        keyed = _add_key(part, keys, by_order)
        whole = _select_complete(keyed, ranks, kind)
        if whole.height == part.height:
            return whole, None
        if keys and (best is None or whole.height > best.height):
            best = whole
    assert best is not None
    dropped = part.height - best.height
    return best, f"{dropped} of {part.height} do not match on all {ranks} ranks and are ignored"


def _add_key(part: pl.DataFrame, keys: Sequence[str], by_order: bool) -> pl.DataFrame:
    fields = [pl.col(key).cast(pl.String) for key in keys]
    if by_order:
        part = part.sort("rank", "start_ns")
        fields.append(pl.int_range(pl.len()).over(["rank", *keys]).cast(pl.String))
    return part.with_columns(pl.concat_str(fields, separator="/").alias("key"))


def _select_complete(keyed: pl.DataFrame, ranks: int, kind: str) -> pl.DataFrame:
    """Only collectives with every rank exactly once, in steps where all ranks have equally many; of equal size if required."""
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


def _number_instances(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not parts:
        return pl.DataFrame(schema=dict.fromkeys(MEMBER_COLUMNS, pl.Int64))
    table = pl.concat(parts)
    first = table.group_by("process_group", "collective", "key").agg(pl.col("start_ns").min().alias("first_ns"))
    first = first.sort("first_ns", "process_group", "collective", "key").with_row_index("instance").drop("first_ns")
    return table.join(first, on=["process_group", "collective", "key"]).sort("instance", "rank").select(MEMBER_COLUMNS)


def match_messages(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Match each send with its receive: by peer and order if peers are recorded, else between neighboring stages."""
    if not table.height:
        return _NO_MESSAGES, 0
    sends = table.filter(pl.col("collective") == "send")
    receives = table.filter(pl.col("collective") == "recv")
    has_peers = table["peer"].null_count() == 0
    if not has_peers and table["stage"].null_count():
        return _NO_MESSAGES, table.height
    if not has_peers:
        sends, receives = _guess_peers(sends, receives)
    keys = ["at_step", "phase", "from", "to"]
    sends = sends.with_columns(pl.col("rank").alias("from"), pl.col("peer").alias("to"))
    receives = receives.with_columns(pl.col("peer").alias("from"), pl.col("rank").alias("to"))
    order = pl.int_range(pl.len()).over(keys).alias("order")
    columns = ["span", "start_ns", "end_ns", "micro_batch"]
    left = (
        sends.sort("start_ns")
        .with_columns(order)
        .select(*keys, "order", *(pl.col(c).alias(f"send_{c}") for c in columns))
    )
    right = receives.sort("start_ns").with_columns(order)
    right = right.select(*keys, "order", *(pl.col(c).alias(f"recv_{c}") for c in columns))
    counts = ["at_step", "phase", "from", "to"]
    joined = left.join(right, on=[*keys, "order"], nulls_equal=True)
    # Where the numbers of sends and receives differ, order proves nothing.
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


def _guess_peers(sends: pl.DataFrame, receives: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Forward goes to the next stage, backward to the previous one; to the rank at the same position within the stage."""
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


def add_counterparts(spans: pl.DataFrame, parts: pl.DataFrame, matches: Matches) -> pl.DataFrame:
    """The spans in the same order, with ``drawn_ns``, ``wait_ns``, ``matched`` and ``partner`` (see
    ``relations.RELATION_SCHEMA``).

    ``parts`` as ``breakdown.communication_parts`` returns them.
    """
    numbered = spans if "span" in spans.columns else spans.with_row_index("span")
    return _add_matches(_add_waits(numbered, parts), matches)


def _add_waits(spans: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    wait = (pl.min_horizontal("wait_end_ns", "end_ns") - pl.col("arrive_ns")).clip(lower_bound=0)
    waits = parts.select(
        "span",
        pl.col("arrive_ns").alias("drawn_ns"),
        pl.when(pl.col("wait_end_ns").is_not_null()).then(wait).alias("wait_ns"),
    )
    joined = spans.join(waits, on="span", how="left", maintain_order="left")
    # A collective that ends before its input is ready keeps its own start.
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


BOOTSTRAP_DRAWS = 2000
MIN_STEPS = 3  # for a confidence interval


@dataclass(frozen=True, slots=True)
class Slack:
    """Time per step that others wait for a rank, with its 95 % interval (None with too few steps)."""

    rank: int
    last_times: int
    slack_ns: float
    low_ns: float | None
    high_ns: float | None


def measure_collectives(matches: Matches) -> pl.DataFrame:
    """One row per collective.

    arrival_ns: arrival of the last member; last_rank: null if several arrive last together; gap_ns: time between the last and the
    second last arrival; wait_ns: the longest wait; transfer_ns: from the last arrival to the median end, at least 0.
    """
    members = matches.members
    if not members.height:
        return pl.DataFrame(schema=_SCHEMA)
    order = pl.col("arrive_ns").sort()
    table = members.group_by("instance", maintain_order=True).agg(
        pl.col("process_group", "collective", "step").first(),
        pl.len().alias("ranks"),
        pl.col("bytes").max(),
        pl.col("start_ns").min(),
        pl.col("arrive_ns").max().alias("arrival_ns"),
        pl.col("rank").sort_by("arrive_ns").last().alias("last_rank"),
        (order.last() - order.get(-2)).alias("gap_ns"),
        (pl.col("arrive_ns").max() - pl.col("arrive_ns").min()).alias("wait_ns"),
        (pl.col("end_ns") - pl.col("arrive_ns").max()).median().alias("transfer_ns"),
        pl.col("end_ns").max(),
    )
    return table.with_columns(
        pl.when(pl.col("gap_ns") > 0).then(pl.col("last_rank")).alias("last_rank"),
        pl.col("transfer_ns").clip(lower_bound=0).round().cast(pl.Int64),
    ).select(list(_SCHEMA))


_SCHEMA: dict[str, pl.DataType] = {
    "instance": pl.UInt32(), "process_group": pl.String(), "collective": pl.String(), "step": pl.Int32(), "ranks": pl.UInt32(),
    "bytes": pl.Int64(), "start_ns": pl.Int64(), "arrival_ns": pl.Int64(), "end_ns": pl.Int64(), "last_rank": pl.Int32(),
    "gap_ns": pl.Int64(), "wait_ns": pl.Int64(), "transfer_ns": pl.Int64(),
}  # fmt: skip


def within_stages(collectives: pl.DataFrame, matches: Matches, ranks: Sequence[RankFacts]) -> pl.DataFrame:
    """Collectives within one pipeline stage: stages wait for one another by design, ranks of one stage should not."""
    if not collectives.height:
        return collectives
    stages = {facts.rank: facts.stage for facts in ranks}
    stage = pl.col("rank").replace_strict(stages, default=None, return_dtype=pl.Int32)
    is_one = ((stage.n_unique() == 1) & (stage.null_count() == 0)).alias("is_one")
    inner = matches.members.group_by("instance").agg(is_one).filter(pl.col("is_one"))
    return collectives.join(inner, on="instance", how="semi")


def measure_slack(collectives: pl.DataFrame, steps: int, generator: np.random.Generator) -> list[Slack]:
    """Slack of each rank that arrived last, largest first. Time in which it delays several collectives at once counts once."""
    slacks = []
    for (rank,), mine in collectives.drop_nulls(["last_rank", "step"]).group_by("last_rank"):
        per_step = np.zeros(max(1, steps, mine["step"].n_unique()))
        for place, (_, part) in enumerate(mine.group_by("step")):
            arrival = part["arrival_ns"].to_numpy()
            per_step[place] = join_times(arrival - part["gap_ns"].to_numpy(), arrival).length_ns
        low, high = _interval(per_step, generator)
        slacks.append(Slack(int(str(rank)), mine.height, float(per_step.mean()), low, high))
    return sorted(slacks, key=lambda slack: (-slack.slack_ns, slack.rank))


def _interval(values: NDArray[np.float64], generator: np.random.Generator) -> tuple[float | None, float | None]:
    if values.size < MIN_STEPS:
        return None, None
    means = generator.choice(values, (BOOTSTRAP_DRAWS, values.size)).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
