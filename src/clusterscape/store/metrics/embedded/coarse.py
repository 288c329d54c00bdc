"""Coarse values: mean, min, max, last and count of each step, as columns ``metric#mean`` and so on of a block.

Owns their layout and computation; ``compaction`` decides when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.store.metrics.embedded.blocks import EMPTY, Block, Keys, keys_of_rows
from clusterscape.store.metrics.kernels import Aggregates, aggregate_aggregates, aggregate_samples, group_steps

AGGREGATES = ("mean", "min", "max", "last", "count")


def coarse_columns(metric: str) -> tuple[str, ...]:
    """The columns that hold ``metric``."""
    return tuple(f"{metric}#{aggregate}" for aggregate in AGGREGATES)


def coarse_metrics(columns: Sequence[str]) -> list[str]:
    """The metrics that coarse columns belong to."""
    return list(dict.fromkeys(column.rpartition("#")[0] for column in columns))


def aggregates_of(columns: Mapping[str, Float64s], metric: str, rows: int) -> Aggregates:
    """The aggregates of ``metric`` in coarse columns; count 0 where there is none."""
    none = np.full(rows, np.nan)
    mean, low, high, last, count = (columns.get(column, none) for column in coarse_columns(metric))
    return Aggregates(mean, low, high, last, np.nan_to_num(count))


def downsample(block: Block, step_ms: int) -> Block:
    """The coarse values of a block of samples, one row per (unit, step) that has any."""
    if not len(block):
        return EMPTY
    steps = group_steps(block.keys.time_ms, block.keys.offsets, step_ms)
    columns: dict[str, Float64s] = {}
    for metric, value in block.columns.items():
        columns |= _columns(metric, aggregate_samples(value, steps))
    return Block(Keys(block.keys.units, steps.offsets, steps.time_ms), columns)


def add_late(old: Block, new: Block, step_ms: int, rank: Int64s) -> Block:
    """The coarse values of both; ``new`` is of samples that are not in ``old``."""
    if not len(old) or not len(new):
        return new if len(new) else old
    unit = np.concatenate([np.repeat(block.keys.units, block.keys.lengths) for block in (old, new)])
    time_ms = np.concatenate([old.keys.time_ms, new.keys.time_ms])
    order = np.lexsort((time_ms, rank[unit]))  # stable: of one step, the new values come last
    keys = keys_of_rows(unit[order], time_ms[order])
    steps = group_steps(keys.time_ms, keys.offsets, step_ms)
    columns: dict[str, Float64s] = {}
    for metric in coarse_metrics([*old.columns, *new.columns]):
        parts = [aggregates_of(block.columns, metric, len(block)) for block in (old, new)]
        both = Aggregates(*(np.concatenate(pair)[order] for pair in zip(*map(astuple, parts), strict=True)))
        columns |= _columns(metric, aggregate_aggregates(both, steps))
    return Block(Keys(keys.units, steps.offsets, steps.time_ms), columns)


def _columns(metric: str, aggregates: Aggregates) -> dict[str, Float64s]:
    count = np.where(aggregates.count > 0, aggregates.count, np.nan)
    values = (aggregates.mean, aggregates.min, aggregates.max, aggregates.last, count)
    return dict(zip(coarse_columns(metric), values, strict=True))
