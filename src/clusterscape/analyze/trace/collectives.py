"""Every matched collective: who came last, how long the others waited, how long the transfer took; and who makes others wait."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.intervals import join_times
from clusterscape.analyze.trace.match import Matches
from clusterscape.model.spans import RankFacts

BOOTSTRAP_DRAWS = 2000
MIN_STEPS = 3  # fewer steps say nothing about chance


@dataclass(frozen=True, slots=True)
class Slack:
    """Time a rank made others wait, per step, with its 95 % interval; low and high are None with too few steps."""

    rank: int
    last_times: int
    slack_ns: float
    low_ns: float | None
    high_ns: float | None


def measure_collectives(matches: Matches) -> pl.DataFrame:
    """One row per collective.

    arrival_ns is the last member's; last_rank is null where several came last together; gap_ns how much later the last came
    than the second last; wait_ns the longest wait; transfer_ns from the arrival to the median end, never negative.
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
    """Those whose members are all of one pipeline stage: stages wait for one another by design, peers of a stage do not."""
    if not collectives.height:
        return collectives
    stages = {facts.rank: facts.stage for facts in ranks}
    stage = pl.col("rank").replace_strict(stages, default=None, return_dtype=pl.Int32)
    is_one = ((stage.n_unique() == 1) & (stage.null_count() == 0)).alias("is_one")
    inner = matches.members.group_by("instance").agg(is_one).filter(pl.col("is_one"))
    return collectives.join(inner, on="instance", how="semi")


def measure_slack(collectives: pl.DataFrame, steps: int, generator: np.random.Generator) -> list[Slack]:
    """Slack of each rank that was last, largest first. Time in which it held up several collectives at once counts once."""
    found = []
    for (rank,), mine in collectives.drop_nulls("last_rank").group_by("last_rank"):
        per_step = np.zeros(max(1, steps))
        for place, (_, part) in enumerate(mine.group_by("step")):
            arrival = part["arrival_ns"].to_numpy()
            per_step[place] = join_times(arrival - part["gap_ns"].to_numpy(), arrival).length_ns
        low, high = _interval(per_step, generator)
        found.append(Slack(int(str(rank)), mine.height, float(per_step.mean()), low, high))
    return sorted(found, key=lambda slack: (-slack.slack_ns, slack.rank))


def _interval(values: NDArray[np.float64], generator: np.random.Generator) -> tuple[float | None, float | None]:
    if values.size < MIN_STEPS:
        return None, None
    means = generator.choice(values, (BOOTSTRAP_DRAWS, values.size)).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
