"""Price lists with a history: every list holds until the next one begins."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from clusterscape.model.durations import HOUR_S

JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices from ``since_ms`` on: per GPU-hour (``gpu_models``: of models with another price), CPU-hour and kWh."""

    since_ms: int
    gpu_hour: float = 0.0
    gpu_models: Mapping[str, float] = field(default_factory=dict)
    cpu_hour: float = 0.0
    energy_kwh: float = 0.0


def cut_at_prices(edges: Sequence[int], prices: Sequence[PriceList]) -> tuple[list[int], list[int]]:
    """``edges`` with the changes of prices between them, and the period (between two of ``edges``) of every piece."""
    changes = {price.since_ms for price in prices if edges[0] < price.since_ms < edges[-1]}
    cut = sorted({*edges, *changes})
    return cut, [bisect_right(edges, at) - 1 for at in cut[:-1]]


def add_money(cube: pl.DataFrame, edges: Sequence[int], prices: Sequence[PriceList]) -> pl.DataFrame:
    """``cube`` (``sums.sum_executions``) with a column ``money``; usage before the first list costs nothing.

    The edges of the cube must contain all changes of prices (``cut_at_prices``).
    """
    ordered = sorted(prices, key=lambda price: price.since_ms)
    starts = [price.since_ms for price in ordered]
    places = [bisect_right(starts, at) - 1 for at in edges[:-1]]
    lists = [PriceList(since_ms=0) if place < 0 else ordered[place] for place in places]
    rates = pl.DataFrame(
        {
            "span": range(len(lists)),
            "gpu_rate": [price.gpu_hour for price in lists],
            "cpu_rate": [price.cpu_hour for price in lists],
            "energy_rate": [price.energy_kwh for price in lists],
        },
        schema={"span": pl.Int64, "gpu_rate": pl.Float64, "cpu_rate": pl.Float64, "energy_rate": pl.Float64},
    )
    by_model = pl.DataFrame(
        [(span, model, rate) for span, price in enumerate(lists) for model, rate in price.gpu_models.items()],
        schema={"span": pl.Int64, "gpu_model": pl.String, "model_rate": pl.Float64},
        orient="row",
    )
    gpu = pl.col("gpu_s") / HOUR_S * pl.coalesce("model_rate", "gpu_rate")
    cpu = pl.col("cpu_s") / HOUR_S * pl.col("cpu_rate")
    energy = pl.col("energy_joules") / JOULES_PER_KWH * pl.col("energy_rate")
    joined = cube.join(rates, on="span", how="left", maintain_order="left").join(
        by_model, on=["span", "gpu_model"], how="left", maintain_order="left"
    )
    return joined.with_columns(money=gpu + cpu + energy).drop("gpu_rate", "cpu_rate", "energy_rate", "model_rate")
