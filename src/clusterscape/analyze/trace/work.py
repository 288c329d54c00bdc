"""The amount of work of every rank and step, from the FLOPs of recorded shapes.

Operators that one rank runs in addition to its peers are not more work of the same kind: they are left out and reported. Which of
its calls those are follows from their sizes: the ones that its peers do not have.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from clusterscape.analyze.trace.attribution import Attribution
from clusterscape.analyze.trace.causes import Work
from clusterscape.model.arrays import Int64s


def measure_work(spans: pl.DataFrame, attribution: Attribution, groups: Sequence[Int64s]) -> Work:
    """FLOPs of every rank and step without additional operators, and how many calls those are. ``groups``: rows of peers."""
    shape = (len(attribution.ranks), len(attribution.steps))
    flops, extra_calls = np.full(shape, np.nan), np.zeros(shape)
    rows = {rank: at for at, rank in enumerate(attribution.ranks)}
    columns = {step: at for at, step in enumerate(attribution.steps)}
    counted = spans.filter(pl.col("flops").is_not_null() & pl.col("step").is_in(list(columns)))
    counts = counted.group_by("rank", "step", "flops").len("calls").with_columns(pl.col("calls").cast(pl.Int64))
    for rank, step, total in counts.group_by("rank", "step").agg((pl.col("flops") * pl.col("calls")).sum()).iter_rows():
        if rank in rows:
            flops[rows[rank], columns[step]] = total
    for group in groups:
        if group.size < 2:
            continue
        ranks = [attribution.ranks[int(at)] for at in group]
        for rank, step, calls, extra_flops in _find_extra(counts.filter(pl.col("rank").is_in(ranks)), len(ranks)):
            at = rows[rank], columns[step]
            extra_calls[at] += calls
            flops[at] -= extra_flops
    return Work(flops, extra_calls)


def _find_extra(counts: pl.DataFrame, ranks: int) -> list[tuple[int, int, int, float]]:
    """Rank, step, and the calls and FLOPs that the rank has beyond its peers. Names do not count: kernels of equal work have
    different ones on ranks with another precision, or other shapes.
    """
    extra = pl.col("calls") - pl.col("usual_calls")
    by_step = _add_usual(counts.group_by("rank", "step").agg(pl.col("calls").sum()), ["step"], ranks)
    more = by_step.filter(extra > 0).select("rank", "step", extra.alias("extra_calls"))
    if not more.height:
        return []
    by_size = _add_usual(counts, ["step", "flops"], ranks)
    by_size = by_size.with_columns(extra.clip(lower_bound=0).alias("extra_of_size"))
    mine = by_size.join(more, on=["rank", "step"]).sort(
        "rank", "step", "extra_of_size", "flops", descending=[False, False, True, True]
    )
    before = pl.col("extra_of_size").cum_sum().over("rank", "step") - pl.col("extra_of_size")
    left_out = pl.min_horizontal("extra_of_size", (pl.col("extra_calls") - before).clip(lower_bound=0))
    sums = (
        mine.with_columns(left_out.alias("calls_of_size"))
        .group_by("rank", "step")
        .agg(pl.col("calls_of_size").sum(), (pl.col("calls_of_size") * pl.col("flops")).sum().alias("extra_flops"))
    )
    return list(sums.iter_rows())


def _add_usual(counts: pl.DataFrame, keys: list[str], ranks: int) -> pl.DataFrame:
    """With the usual calls: the lower median over ranks, 0 for those without, since one that runs more is the odd one."""
    place = (ranks - 1) // 2
    # Ranks without any come first: of ``ranks`` sorted values, the one at ``place`` is known once those are counted.
    usual = counts.group_by(keys).agg(
        pl.when(pl.len() >= ranks - place)
        .then(
            pl.col("calls")
            .sort()
            .get((place - (ranks - pl.len().cast(pl.Int64))).clip(lower_bound=0), null_on_oob=True)
        )
        .otherwise(0)
        .alias("usual_calls")
    )
    return counts.join(usual, on=keys, how="left").with_columns(pl.col("usual_calls").cast(pl.Int64).fill_null(0))
