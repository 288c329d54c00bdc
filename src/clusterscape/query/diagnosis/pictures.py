"""What is drawn of a run, as tables: histograms of every GPU, and two metrics against each other."""

import json
import math

import numpy as np
import polars as pl

from clusterscape.analyze.diagnose import compute_density, compute_histograms, compute_mahalanobis
from clusterscape.model import METRICS, MetricUnit
from clusterscape.query.diagnosis.answers import Picture, ScatterPicture
from clusterscape.query.diagnosis.holding import Holding
from clusterscape.query.diagnosis.loading import Flags, Floats, Ints, Samples

DENSITY_BINS = 96
RATIO_SLACK = 1.02
"""A sampled percentage may read slightly over 100; it counts in the last bin."""

MOST_OUTLIERS = 200_000
"""More would not be looked at one by one; they are then sampled as evenly as the others, and it is said."""


def draw_histograms(samples: Samples, metric: str, holding: Holding, bins: int) -> Picture:
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


def _domain_of(metric: str, values: Floats) -> tuple[float, float] | None:
    """Ratios are shown from 0 to 1, all else from its least to its largest value."""
    is_ratio = metric in METRICS and METRICS[metric].unit is MetricUnit.RATIO
    return (0.0, 1.0) if is_ratio and float(np.nanmax(values)) <= RATIO_SLACK else None


def draw_scatter(
    times_ms: Ints,
    values_x: Floats,
    values_y: Floats,
    holding: Holding,
    *,
    robust: bool,
    significance: float,
    most: int,
) -> ScatterPicture:
    """``unit``, ``time_ms``, ``x``, ``y``, ``distance``, ``is_outlier``: all outliers, and of the rest an even sample.

    ``density``: the counts of all points on a grid, row by row from the lowest y; ``X-Density`` says what it covers.
    ``X-Counts``: how many points there are; ``X-Note``: what was special, or null.
    """
    x, y = np.ascontiguousarray(values_x).reshape(-1), np.ascontiguousarray(values_y).reshape(-1)
    judged = compute_mahalanobis(x, y, significance=significance, robust=robust)
    is_known = np.isfinite(x) & np.isfinite(y)
    kept, notes = _choose(judged.is_outside, is_known, most)
    row, column = np.divmod(kept, max(values_x.shape[1], 1))
    table = pl.DataFrame(
        {
            "unit": pl.Series("unit", holding.names, dtype=pl.String).gather(column),
            "time_ms": times_ms[row].astype(np.float64),
            "x": x[kept].astype(np.float32),
            "y": y[kept].astype(np.float32),
            "distance": pl.Series(np.sqrt(judged.squared[kept]).astype(np.float32), nan_to_null=True),
            "is_outlier": judged.is_outside[kept],
        }
    )
    counts = {"points": int(is_known.sum()), "outliers": int(judged.is_outside.sum())}
    density, covered = _density(x, y, has_any=bool(counts["points"]))
    headers = {
        "X-Density": _json(covered),
        "X-Counts": _json(counts),
        "X-Note": _json(" ".join([*judged.notes, *notes]) or None),
        "X-Cutoff": _json(math.sqrt(judged.cutoff) if math.isfinite(judged.cutoff) else None),
    }
    return ScatterPicture(table, headers, density)


def _choose(is_outside: Flags, is_known: Flags, most: int) -> tuple[Ints, list[str]]:
    """Points to send, in order."""
    outside, inside = np.flatnonzero(is_outside), np.flatnonzero(is_known & ~is_outside)
    notes = []
    if outside.size > MOST_OUTLIERS:
        notes.append(f"Of {outside.size:,} outliers, {MOST_OUTLIERS:,} are shown.")
        outside = _evenly(outside, MOST_OUTLIERS)
    return np.sort(np.concatenate([outside, _evenly(inside, most)])), notes


def _evenly(rows: Ints, most: int) -> Ints:
    return rows if rows.size <= most else rows[np.linspace(0, rows.size - 1, most).astype(np.int64)]


def _density(x: Floats, y: Floats, *, has_any: bool) -> tuple[pl.DataFrame, dict[str, object] | None]:
    """``count`` of each cell, and what the cells cover."""
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
    """In ASCII, as a header must be."""
    return json.dumps(value, separators=(",", ":"))
