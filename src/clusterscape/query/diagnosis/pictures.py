"""What is drawn of a run, as tables: histograms of every GPU, and two metrics against each other."""

import json
import math

import numpy as np
import polars as pl

from clusterscape.analyze.diagnose import compute_density, compute_histograms, compute_mahalanobis
from clusterscape.model import METRICS, MetricUnit
from clusterscape.query.diagnosis.answers import Picture
from clusterscape.query.diagnosis.holding import Holding
from clusterscape.query.diagnosis.loading import Floats, Ints, Samples

DENSITY_BINS = 64
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
) -> Picture:
    """``unit``, ``time_ms``, ``x``, ``y``, ``distance``, ``is_outlier``: all outliers, and of the rest an even sample.

    ``X-Density``: counts of all points on a grid; ``X-Counts``: how many there are; ``X-Note``: what was special, or null.
    """
    row, column = np.nonzero(np.isfinite(values_x) & np.isfinite(values_y))
    x, y = values_x[row, column], values_y[row, column]
    judged = compute_mahalanobis(x, y, significance=significance, robust=robust)
    kept, notes = _choose(judged.is_outside, most)
    table = pl.DataFrame(
        {
            "unit": pl.Series("unit", holding.names, dtype=pl.String).gather(column[kept]),
            "time_ms": times_ms[row[kept]].astype(np.float64),
            "x": x[kept].astype(np.float32),
            "y": y[kept].astype(np.float32),
            "distance": pl.Series(np.sqrt(judged.squared[kept]).astype(np.float32), nan_to_null=True),
            "is_outlier": judged.is_outside[kept],
        }
    )
    counts = {"points": int(x.size), "outliers": int(judged.is_outside.sum())}
    notes = [*judged.notes, *notes]
    return Picture(
        table,
        {
            "X-Density": _json(_density(x, y)),
            "X-Counts": _json(counts),
            "X-Note": _json(" ".join(notes) or None),
            "X-Cutoff": _json(math.sqrt(judged.cutoff) if math.isfinite(judged.cutoff) else None),
        },
    )


def _choose(is_outside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], most: int) -> tuple[Ints, list[str]]:
    """Rows to send, in order."""
    outside, inside = np.flatnonzero(is_outside), np.flatnonzero(~is_outside)
    notes = []
    if outside.size > MOST_OUTLIERS:
        notes.append(f"Of {outside.size:,} outliers, {MOST_OUTLIERS:,} are shown.")
        outside = _evenly(outside, MOST_OUTLIERS)
    return np.sort(np.concatenate([outside, _evenly(inside, most)])), notes


def _evenly(rows: Ints, most: int) -> Ints:
    return rows if rows.size <= most else rows[np.linspace(0, rows.size - 1, most).astype(np.int64)]


def _density(x: Floats, y: Floats) -> dict[str, list[float] | list[list[int]]] | None:
    if x.size == 0:
        return None
    density = compute_density(x, y, x_bins=DENSITY_BINS, y_bins=DENSITY_BINS)
    return {
        "x": [float(density.x_edges[0]), float(density.x_edges[-1])],
        "y": [float(density.y_edges[0]), float(density.y_edges[-1])],
        "counts": density.counts.tolist(),
    }


def _json(value: object) -> str:
    """In ASCII, as a header must be."""
    return json.dumps(value, separators=(",", ":"))
