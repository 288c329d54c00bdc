"""Lines over time for a picture so many pixels wide: every extreme is kept, and a null breaks the line where there was a gap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.diagnose import downsample
from clusterscape.query.diagnosis.holding import Holding
from clusterscape.query.diagnosis.loading import Floats, Ints, Samples

MOST_LINES = 64
"""More units than these are shown as their median and the range of most of them."""

SUMMARY = {"median": 0.5, "p5": 0.05, "p95": 0.95}


@dataclass(frozen=True, slots=True)
class Band:
    """What some units (``columns``) are together, drawn as a line for each of ``levels`` (of SUMMARY), named with ``prefix``."""

    columns: Sequence[int]
    levels: Sequence[str]
    prefix: str = ""


def draw_lines(
    samples: Samples,
    metrics: Sequence[str],
    holding: Holding,
    columns: Sequence[int],
    bands: Sequence[Band],
    *,
    pixels: int,
) -> pl.DataFrame:
    """``metric``, ``unit``, ``time_ms``, ``value``, by metric and line: the units at ``columns``, then the ``bands``."""
    frames = [_schema()]
    for metric in metrics:
        times, values = _extremes(samples, metric, columns)
        frames.append(_frame(metric, [holding.names[i] for i in columns], times, values, pixels))
        for band in bands:
            members = samples.values[metric][:, band.columns]
            levels = _quantiles(members, [SUMMARY[name] for name in band.levels])
            names = [f"{band.prefix}{name}" for name in band.levels]
            frames.append(_frame(metric, names, samples.times_ms, levels, pixels))
    return pl.concat(frames)


def _extremes(samples: Samples, metric: str, columns: Sequence[int]) -> tuple[Ints, Floats]:
    """Two rows a step, its least and its largest value; raw samples as they are."""
    if samples.step_ms is None:
        return samples.times_ms, samples.values[metric][:, columns]
    low, high = samples.low[metric][:, columns], samples.high[metric][:, columns]
    quarter = samples.step_ms // 4
    times = np.stack([samples.times_ms + quarter, samples.times_ms + 3 * quarter], axis=1).reshape(-1)
    return times, np.stack([low, high], axis=1).reshape(times.size, low.shape[1])


def _quantiles(values: Floats, shares: Sequence[float]) -> Floats:
    """(time × shares) over the units that have a value then; NaN where none has."""
    out = np.full((len(values), len(shares)), np.nan)
    ordered = np.sort(values, axis=1)  # NaN last
    counts = np.isfinite(ordered).sum(axis=1)
    rows = np.flatnonzero(counts)
    for place, share in enumerate(shares):
        position = share * (counts[rows] - 1)
        below = np.floor(position).astype(np.int64)
        above = np.minimum(below + 1, counts[rows] - 1)
        part = position - below
        out[rows, place] = ordered[rows, below] * (1.0 - part) + ordered[rows, above] * part
    return out


def _schema() -> pl.DataFrame:
    return pl.DataFrame(schema={"metric": pl.String, "unit": pl.String, "time_ms": pl.Float64, "value": pl.Float32})


def _frame(metric: str, names: Sequence[str], times: Ints, values: Floats, pixels: int) -> pl.DataFrame:
    lines = downsample(times, values, pixels=pixels)
    unit = np.repeat(np.arange(len(names)), np.diff(lines.offsets))
    return pl.DataFrame(
        [
            pl.repeat(metric, len(unit), dtype=pl.String, eager=True).alias("metric"),
            pl.Series("unit", names, dtype=pl.String).gather(unit),
            pl.Series("time_ms", lines.times_ms.astype(np.float64)),
            pl.Series("value", lines.values.astype(np.float32), nan_to_null=True),
        ]
    )
