"""What a job used over its life, in few points: of itself, of its GPUs, and of its whole nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from clusterscape.model import METRICS, MetricKind, MetricSubject, MetricUnit, UnitId, UnixMs
from clusterscape.model.arrays import Float64s
from clusterscape.query.context import QueryContext
from clusterscape.query.jobs.answers import JobCurve
from clusterscape.query.jobs.usage import RSS, SHARED, GpuHold, JobWindow
from clusterscape.query.series import NICE_STEPS_S

POINTS = 60
MAX_NODES = 256
"""Of a larger job, only so many nodes are read for the curves of whole nodes; they are sums, so those are left out."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """A curve that adds the values of several metrics over several ids; counters as their increase per second."""

    name: str
    label: str
    unit: MetricUnit
    subject: MetricSubject
    metrics: tuple[str, ...]
    is_mean: bool = False


_JOB = (
    _Sum("cpu_cores", "CPU cores busy", MetricUnit.COUNT, MetricSubject.JOB, ("job_cpu_seconds",)),
    _Sum("cpu_memory", "CPU memory", MetricUnit.BYTES, MetricSubject.JOB, (RSS, SHARED)),
)
_GPU = (
    _Sum("gpu_util", "GPU utilization", MetricUnit.RATIO, MetricSubject.JOB, ("gpu_util_ratio",), is_mean=True),
    _Sum("gpu_memory", "GPU memory", MetricUnit.BYTES, MetricSubject.JOB, ("memory_used_bytes",)),
)
_NODE = tuple(
    _Sum(name, label, MetricUnit.BYTES_PER_SECOND, MetricSubject.NODE, metrics)
    for name, label, metrics in (
        ("network", "Network", ("node_network_received_bytes", "node_network_sent_bytes")),
        ("infiniband", "InfiniBand", ("node_infiniband_received_bytes", "node_infiniband_sent_bytes")),
        ("local_disk", "Local disks", ("node_disk_read_bytes", "node_disk_written_bytes")),
        ("gpfs", "GPFS", ("node_gpfs_read_bytes", "node_gpfs_written_bytes")),
    )
)


def read_curves(
    context: QueryContext, window: JobWindow, held: Sequence[GpuHold], most: Mapping[str, float | None]
) -> list[JobCurve]:
    """The curves that have samples. ``most``: what each may be at most, by its name."""
    step_ms = _step_ms(window)
    nodes = [UnitId(node) for node in window.nodes] if len(window.nodes) <= MAX_NODES else []
    kinds = (
        (_JOB, list(window.job_units)),
        (_GPU, sorted({unit.unit for unit in held})),
        (_NODE, nodes),
    )
    curves = []
    for sums, units in kinds:
        names = [metric for wanted in sums for metric in wanted.metrics]
        table = context.metrics.series(
            names, units, start_ms=window.start, end_ms=UnixMs(window.end + 1), step_ms=step_ms
        )
        for wanted in sums:
            values = _add_up(table, wanted, window, step_ms)
            if np.isfinite(values).any():
                curves.append(
                    JobCurve(
                        name=wanted.name,
                        label=wanted.label,
                        unit=wanted.unit,
                        subject=wanted.subject,
                        start=window.start // step_ms * step_ms,
                        step_ms=step_ms,
                        values=[None if np.isnan(value) else float(value) for value in values],
                        most=most.get(wanted.name),
                    )
                )
    return curves


def _step_ms(window: JobWindow) -> int:
    span_ms = window.end + 1 - window.start
    return next((step for step in NICE_STEPS_S if step * POINTS * 1000 >= span_ms), NICE_STEPS_S[-1]) * 1000


def read_peak_cores(context: QueryContext, window: JobWindow) -> float | None:
    """The most cores that were busy during one step of the curve; None if nothing was sampled."""
    cores, step_ms = _JOB[0], _step_ms(window)
    table = context.metrics.series(
        cores.metrics, list(window.job_units), start_ms=window.start, end_ms=UnixMs(window.end + 1), step_ms=step_ms
    )
    values = _add_up(table, cores, window, step_ms)
    return float(np.nanmax(values)) if np.isfinite(values).any() else None


def _add_up(table: pl.DataFrame, wanted: _Sum, window: JobWindow, step_ms: int) -> Float64s:
    """Sums over ids and metrics by step; NaN where nothing was sampled."""
    first = window.start // step_ms
    steps = window.end // step_ms - first + 1
    total, count = np.zeros(steps), np.zeros(steps)
    for (metric, _unit), rows in table.filter(pl.col("metric").is_in(wanted.metrics)).group_by("metric", "unit"):
        values = np.full(steps, np.nan)
        values[rows["time_ms"].to_numpy() // step_ms - first] = rows["value"].to_numpy()
        if METRICS[str(metric)].kind is MetricKind.COUNTER:
            starts_at_zero = METRICS[str(metric)].subject is MetricSubject.JOB
            values = _rates(values, step_ms, window, first, starts_at_zero=starts_at_zero)
        has_value = np.isfinite(values)
        total[has_value] += values[has_value]
        count += has_value
    total[count == 0] = np.nan
    return total / np.maximum(count, 1) if wanted.is_mean else total


def _rates(values: Float64s, step_ms: int, window: JobWindow, first: int, *, starts_at_zero: bool) -> Float64s:
    """The increase per second since the last step with a value; a decrease is a restart of the counter."""
    rates = np.full(len(values), np.nan)
    sampled_steps = np.flatnonzero(np.isfinite(values)).tolist()
    # A counter's value of a step is its last one, from shortly before the end of the step, or of the job.
    ends_s = np.minimum((first + 1 + np.arange(len(values))) * step_ms, window.end) / 1000
    if sampled_steps and starts_at_zero:
        rates[sampled_steps[0]] = values[sampled_steps[0]] / max(1.0, ends_s[sampled_steps[0]] - window.start / 1000)
    for before, now in pairwise(sampled_steps):
        increase = values[now] - values[before]
        rates[now] = (increase if increase >= 0 else values[now]) / max(1.0, ends_s[now] - ends_s[before])
    return rates
