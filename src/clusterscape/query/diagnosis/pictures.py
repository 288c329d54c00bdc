"""The charts of a workload as tables: histograms of every GPU, scatter plots of two metrics, and lines for a given width."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.diagnose import compute_density, compute_histograms, compute_mahalanobis, downsample
from clusterscape.model import METRICS, MetricUnit
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.query.diagnosis.answers import Picture, ScatterPicture
from clusterscape.query.diagnosis.holding import WorkloadHolding
from clusterscape.query.diagnosis.loading import Samples

MAX_LINES = 64
"""More units than this are shown as their median, 5th and 95th percentile."""

SUMMARY = {"median": 0.5, "p5": 0.05, "p95": 0.95}


@dataclass(frozen=True, slots=True)
class LineBand:
    """Quantiles over some units (``columns``): a line for each of ``levels`` (keys of SUMMARY), named with ``prefix``."""

    columns: Sequence[int]
    levels: Sequence[str]
    prefix: str = ""


def draw_lines(
    samples: Samples,
    metrics: Sequence[str],
    holding: WorkloadHolding,
    columns: Sequence[int],
    bands: Sequence[LineBand],
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


def _extremes(samples: Samples, metric: str, columns: Sequence[int]) -> tuple[Int64s, Float64s]:
    """Two rows per step, its smallest and its largest value; raw samples are unchanged."""
    if samples.step_ms is None:
        return samples.times_ms, samples.values[metric][:, columns]
    low, high = samples.low[metric][:, columns], samples.high[metric][:, columns]
    quarter = samples.step_ms // 4
    times = np.stack([samples.times_ms + quarter, samples.times_ms + 3 * quarter], axis=1).reshape(-1)
    return times, np.stack([low, high], axis=1).reshape(times.size, low.shape[1])


def _quantiles(values: Float64s, shares: Sequence[float]) -> Float64s:
    """(time × shares) over the units that have a value at that time; NaN if none has."""
    out = np.full((len(values), len(shares)), np.nan)
    ordered = np.sort(values, axis=1)  # NaN last
    counts = np.isfinite(ordered).sum(axis=1)
    rows = np.flatnonzero(counts)
    for index, share in enumerate(shares):
        position = share * (counts[rows] - 1)
        below = np.floor(position).astype(np.int64)
        above = np.minimum(below + 1, counts[rows] - 1)
        part = position - below
        out[rows, index] = ordered[rows, below] * (1.0 - part) + ordered[rows, above] * part
    return out


def _schema() -> pl.DataFrame:
    return pl.DataFrame(schema={"metric": pl.String, "unit": pl.String, "time_ms": pl.Float64, "value": pl.Float32})


def _frame(metric: str, names: Sequence[str], times: Int64s, values: Float64s, pixels: int) -> pl.DataFrame:
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


DENSITY_BINS = 96
RATIO_SLACK = 1.02
"""A sampled ratio may be slightly over 1; it counts in the last bin."""

MAX_OUTLIERS = 200_000
"""More outliers than this are sampled evenly, like the other points, and a note says so."""


def draw_histograms(samples: Samples, metric: str, holding: WorkloadHolding, bins: int) -> Picture:
    """``unit`` and counts ``b0`` …, over shared bins; a unit without samples has zeros. ``X-Domain``: [low, high] or null."""
    values = samples.values[metric]
    has_any = bool(np.isfinite(values).any())
    counts = np.zeros((len(holding.units), bins), np.uint32)
    domain = None
    if has_any:
        histograms = compute_histograms(values, bins=bins, domain=_domain_of(metric, values))
        counts = histograms.counts.astype(np.uint32)
        domain = [float(histograms.edges[0]), float(histograms.edges[-1])]
    columns = [pl.Series(f"b{i}", counts[:, i]) for i in range(bins)]
    table = pl.DataFrame([pl.Series("unit", holding.names, dtype=pl.String), *columns])
    return Picture(table, {"X-Domain": _json(domain), "X-Step": _json(samples.step_ms)})


def _domain_of(metric: str, values: Float64s) -> tuple[float, float] | None:
    """The domain [0, 1] for ratios; None, the range of the values, for all other metrics."""
    is_ratio = metric in METRICS and METRICS[metric].unit is MetricUnit.RATIO
    return (0.0, 1.0) if is_ratio and float(np.nanmax(values)) <= RATIO_SLACK else None


def draw_scatter(
    times_ms: Int64s,
    values_x: Float64s,
    values_y: Float64s,
    holding: WorkloadHolding,
    *,
    peers: Sequence[Int64s],
    robust: bool,
    significance: float,
    most: int,
) -> ScatterPicture:
    """``unit``, ``time_ms``, ``x``, ``y``, ``distance``, ``is_outlier``: all outliers, and an even sample of the other points.

    Each point is judged by the cloud of its own group of ``peers`` (columns): GPUs that do different work have different clouds.
    ``density``: the counts of all points on a grid, row by row from the lowest y; ``X-Density``: the range of the grid.
    ``X-Counts``: the number of points; ``X-Note``: a remark, or null.
    """
    x, y = np.ascontiguousarray(values_x).reshape(-1), np.ascontiguousarray(values_y).reshape(-1)
    distances = _measure_within(values_x, values_y, peers, robust=robust, significance=significance)
    is_finite = np.isfinite(x) & np.isfinite(y)
    kept, notes = _choose(distances.is_outside, is_finite, most)
    row, column = np.divmod(kept, max(values_x.shape[1], 1))
    table = pl.DataFrame(
        {
            "unit": pl.Series("unit", holding.names, dtype=pl.String).gather(column),
            "time_ms": times_ms[row].astype(np.float64),
            "x": x[kept].astype(np.float32),
            "y": y[kept].astype(np.float32),
            "distance": pl.Series(np.sqrt(distances.squared[kept]).astype(np.float32), nan_to_null=True),
            "is_outlier": distances.is_outside[kept],
        }
    )
    counts = {"points": int(is_finite.sum()), "outliers": int(distances.is_outside.sum())}
    density, covered = _density(x, y, has_any=bool(counts["points"]))
    headers = {
        "X-Density": _json(covered),
        "X-Counts": _json(counts),
        "X-Note": _json(" ".join([*distances.notes, *notes]) or None),
        "X-Cutoff": _json(math.sqrt(distances.cutoff) if math.isfinite(distances.cutoff) else None),
    }
    return ScatterPicture(table, headers, density)


@dataclass(frozen=True, slots=True)
class _CloudDistances:
    """Squared distances (points,) from the cloud of each point's group; the cut-off of the largest group."""

    squared: Float64s
    is_outside: Bools
    cutoff: float
    notes: tuple[str, ...]


def _measure_within(
    values_x: Float64s, values_y: Float64s, peers: Sequence[Int64s], *, robust: bool, significance: float
) -> _CloudDistances:
    """The distance of each point from the cloud of its group. Groups without points are skipped."""
    squared = np.full(values_x.shape, np.nan)
    is_outside = np.zeros(values_x.shape, np.bool_)
    cutoff = math.inf
    sizes: list[int] = []
    notes: list[str] = []
    for columns in peers:
        x, y = values_x[:, columns], values_y[:, columns]
        has_points = (np.isfinite(x) & np.isfinite(y)).any(axis=0)
        if not has_points.any() and columns is not peers[0]:
            continue
        part = compute_mahalanobis(x.reshape(-1), y.reshape(-1), significance=significance, robust=robust)
        squared[:, columns] = part.squared.reshape(x.shape)
        is_outside[:, columns] = part.is_outside.reshape(x.shape)
        cutoff = part.cutoff if not sizes else cutoff
        sizes.append(int(has_points.sum()))
        notes += [note for note in part.notes if note not in notes]
    if len(sizes) > 1:
        notes.insert(0, f"GPUs of {len(sizes)} groups ({', '.join(map(str, sizes))}) are judged within their group.")
    return _CloudDistances(squared.reshape(-1), is_outside.reshape(-1), cutoff, tuple(notes))


def _choose(is_outside: Bools, is_finite: Bools, most: int) -> tuple[Int64s, list[str]]:
    """The indices of the points to send, in order, and notes."""
    outside, inside = np.flatnonzero(is_outside), np.flatnonzero(is_finite & ~is_outside)
    notes = []
    if outside.size > MAX_OUTLIERS:
        notes.append(f"Of {outside.size:,} outliers, {MAX_OUTLIERS:,} are shown.")
        outside = _evenly(outside, MAX_OUTLIERS)
    return np.sort(np.concatenate([outside, _evenly(inside, most)])), notes


def _evenly(rows: Int64s, most: int) -> Int64s:
    return rows if rows.size <= most else rows[np.linspace(0, rows.size - 1, most).astype(np.int64)]


def _density(x: Float64s, y: Float64s, *, has_any: bool) -> tuple[pl.DataFrame, dict[str, object] | None]:
    """``count`` of each cell, and the range of the grid."""
    if not has_any:
        return pl.DataFrame(schema={"count": pl.UInt32}), None
    density = compute_density(x, y, x_bins=DENSITY_BINS, y_bins=DENSITY_BINS)
    covered: dict[str, object] = {
        "x": [float(density.x_edges[0]), float(density.x_edges[-1])],
        "y": [float(density.y_edges[0]), float(density.y_edges[-1])],
        "columns": DENSITY_BINS,
    }
    return pl.DataFrame({"count": density.counts.reshape(-1).astype(np.uint32)}), covered


def _json(value: object) -> str:
    """ASCII JSON, for a header."""
    return json.dumps(value, separators=(",", ":"))
