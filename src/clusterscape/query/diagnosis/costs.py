"""What a workload cost within a window: GPU-hours held in vain and energy."""

import numpy as np
import polars as pl

from clusterscape.analyze.diagnose.signals import sum_increases
from clusterscape.model import UnixMs
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.answers import EnergySource
from clusterscape.query.diagnosis.holding import Holding
from clusterscape.query.diagnosis.loading import Floats, RunLoader, Samples
from clusterscape.query.timeline import find_steps, find_units
from clusterscape.query.waste import HOUR_MS, STEP_MS, share_out

COUNTER, POWER, UTILIZATION = "energy_joules", "power_watts", "gpu_util_ratio"


def compute_wasted_hours(context: QueryContext, holding: Holding, loader: RunLoader) -> float | None:
    """GPU-hours of the window that were held and not used, as ``query/waste.py`` defines it; None where nothing is measured.

    Judged in whole steps of ten minutes; a unit shared with others is split evenly.
    """
    if holding.window is None:
        return None
    start, end = (-(-edge // STEP_MS) * STEP_MS for edge in holding.window)
    if start >= end:
        return None
    units = pl.Series("unit", holding.names, dtype=pl.String)
    held = _holders(context, holding, units, start, end)
    # A step belongs to whoever holds the unit in its middle.
    middles = np.arange(start, end, STEP_MS, dtype=np.int64) + STEP_MS // 2
    row = find_units(units, held["unit"])
    begin, stop = find_steps(middles, held["from_at"]), find_steps(middles, held["to_at"])
    is_counted = begin < stop
    values = _utilization(loader, holding, start, end)
    _, _, shares = share_out(row[is_counted], begin[is_counted], stop[is_counted], values)
    own = shares[held["is_own"].to_numpy()[is_counted]]
    return float(own[:, 2].sum()) * STEP_MS / HOUR_MS if own[:, 1].sum() > 0 else None


def _holders(context: QueryContext, holding: Holding, units: pl.Series, start: int, end: int) -> pl.DataFrame:
    """The workload's own spans, and those of others on the same units."""
    own = pl.DataFrame(
        [(each.unit, begin, stop, True) for each in holding.units for begin, stop in each.clip(start, end)],
        schema={"unit": pl.String, "from_at": pl.Int64, "to_at": pl.Int64, "is_own": pl.Boolean},
        orient="row",
    )
    everyone = context.records.allocation_spans(start_ms=UnixMs(start), end_ms=UnixMs(end))
    others = (
        everyone.filter(pl.col("unit").is_in(units.to_list()) & (pl.col("workload") != holding.workload.id))
        .with_columns(pl.col("to_at").fill_null(end), is_own=pl.lit(False))
        .select(own.columns)
    )
    return pl.concat([own, others])


def _utilization(loader: RunLoader, holding: Holding, start: int, end: int) -> Floats:
    """Units × steps; NaN where there is no sample."""
    samples = loader.load_steps(holding, [UTILIZATION], STEP_MS, with_range=True)
    values = np.full((len(holding.units), (end - start) // STEP_MS), np.nan)
    step = (samples.times_ms - start) // STEP_MS
    is_inside = (step >= 0) & (step < values.shape[1])
    values[:, step[is_inside]] = samples.values[UTILIZATION][is_inside].T
    return values


def compute_energy(holding: Holding, samples: Samples) -> tuple[float | None, EnergySource | None]:
    """Joules of the window: what the counters grew by, or mean power times the time held; and which of the two."""
    counter = samples.values.get(COUNTER)
    if counter is not None and len(counter) > 1 and np.isfinite(counter).any(axis=0).all():
        return float(sum_increases(counter).sum()), EnergySource.COUNTER
    power = samples.values.get(POWER)
    if power is None or not np.isfinite(power).any():
        return None, None
    is_known = np.isfinite(power)
    counts = is_known.sum(axis=0)
    means = np.divide(np.where(is_known, power, 0.0).sum(axis=0), counts, out=np.zeros(counts.size), where=counts > 0)
    held_s = np.array([holding.held_ms(spans) / 1000 for spans in holding.spans()])
    return float((means * held_s).sum()), EnergySource.POWER
