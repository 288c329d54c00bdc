"""Batches of samples as tables with names instead of codes, and back."""

import polars as pl

from clusterscape.model import Names, SampleBatch


def frame_of(batch: SampleBatch) -> pl.DataFrame:
    """``unit``, ``metric`` (String), ``time_ms`` (Int64), ``value`` (Float64), in the batch's order."""
    units = pl.Series("unit", batch.units.values, dtype=pl.String).gather(batch.unit)
    metrics = pl.Series("metric", batch.metrics.values, dtype=pl.String).gather(batch.metric)
    return pl.DataFrame([units, metrics, pl.Series("time_ms", batch.time_ms), pl.Series("value", batch.value)])


def batch_of(frame: pl.DataFrame) -> SampleBatch:
    """The samples of such a table."""
    units, metrics = (frame[name].unique(maintain_order=True).to_list() for name in ("unit", "metric"))
    return SampleBatch(
        Names(units),
        Names(metrics),
        frame["unit"].cast(pl.Enum(units)).to_physical().cast(pl.Int32).to_numpy(),
        frame["metric"].cast(pl.Enum(metrics)).to_physical().cast(pl.Int32).to_numpy(),
        frame["time_ms"].to_numpy(),
        frame["value"].to_numpy(),
    )
