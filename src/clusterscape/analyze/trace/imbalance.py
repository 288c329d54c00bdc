"""Load imbalance λ = max/mean − 1 of compute: over peers, over pipeline stages, over the micro-batches of a rank."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class LoadImbalance:
    """Means over steps; None where there is nothing to compare.

    ranks: device time of ranks of the same stage (of all, without stages), the worst stage's; stages: passes of a step;
    micro_batches: passes of one rank, step and phase, mean over these.
    """

    ranks: float | None
    stages: float | None
    micro_batches: float | None


def measure_imbalance(breakdown: pl.DataFrame, passes: pl.DataFrame, stages: dict[int, int | None]) -> LoadImbalance:
    """λ of the three, from the breakdown of ranks and the passes of a pipeline."""
    spread = pl.col("compute").max() / pl.col("compute").mean() - 1
    ranks = breakdown.with_columns(
        pl.col("rank").replace_strict(stages, default=None, return_dtype=pl.Int32).alias("stage"),
        pl.col("compute_ns").alias("compute"),
    )
    peers = ranks.group_by("step", "stage").agg(spread.alias("beyond"), pl.len()).filter(pl.col("len") > 1)
    worst = peers.group_by("stage").agg(pl.col("beyond").mean())["beyond"].drop_nans()
    length = passes.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("compute"))
    by_stage = length.group_by("step", "stage").agg(pl.col("compute").sum())
    over_stages = by_stage.group_by("step").agg(spread.alias("beyond"), pl.len()).filter(pl.col("len") > 1)
    keys = ("step", "rank", "phase", "chunk")
    over_batches = length.group_by(keys).agg(spread.alias("beyond"), pl.len()).filter(pl.col("len") > 1)
    return LoadImbalance(
        float(worst.to_numpy().max()) if worst.len() else None,
        float(over_stages["beyond"].to_numpy().mean()) if over_stages.height else None,
        float(over_batches["beyond"].to_numpy().mean()) if over_batches.height else None,
    )
