"""Sums over executions by time, user, project, partition, GPU model, QOS, job size and end state.

Executions come in tables of bounded size (``RecordReader.iter_executions``) and are summed as columns, so memory grows with
the number of distinct groups, not of jobs.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model.arrays import Int64s

GROUPS = ("user", "project", "partition", "gpu_model", "qos", "job_size", "end_state")
"""What sums can be grouped by."""

JOB_SIZES = ("0", "1", "2-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129-256", "257-512", "513+")
"""Classes of jobs by their number of GPUs."""
_SIZE_LIMITS = (0, 1, 4, 8, 16, 32, 64, 128, 256, 512)

TIMES = ("gpu_s", "cpu_s", "suspended_gpu_s")
MEASURED = ("used_gpu_s", "stalled_gpu_s", "execution_idle_gpu_s", "idle_gpu_s", "energy_joules")
COUNTS = ("jobs", "new_jobs", "submitted", "started", "ended", "wait_s")
SUMS = (*TIMES, *MEASURED, *COUNTS)

MEASURED_SCHEMA = {"id": pl.String, "span": pl.Int64, **dict.fromkeys(MEASURED, pl.Float64)}
"""The columns of what is measured of workloads, by span (``measured.py``)."""


def sum_executions(
    tables: Iterable[pl.DataFrame],
    *,
    edges: Sequence[int],
    now_ms: int,
    periods: Sequence[int] | None = None,
    models: Mapping[str, str] | None = None,
    measured: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Sums by ``span`` (the interval of ``edges``) and all GROUPS: columns SUMS and ``waits``, a list of seconds.

    Parameters
    ----------
    edges
        Unix ms, ascending.
    periods
        The period that each span belongs to; ``jobs`` counts a job once in each period, ``new_jobs`` in the first one only.
    models
        GPU models by node, for jobs that requested none.
    measured
        MEASURED_SCHEMA; divided among the executions of a workload by their time in the span.

    Notes
    -----
    Suspended seconds are taken off evenly over an execution, because accounting does not say when they were. Waiting ends with
    the start, and counts in the span of that start; it begins when the job became eligible, or else was submitted.
    """
    spans = np.asarray(edges, np.int64)
    period_of = np.arange(len(spans) - 1) if periods is None else np.asarray(periods, np.int64)
    parts = [_sum_table(table, spans, period_of, now_ms, models or {}, measured) for table in tables]
    joined = pl.concat(parts) if parts else _empty()
    return joined.group_by("span", *GROUPS, maintain_order=True).agg(
        *(pl.col(name).sum() for name in SUMS), pl.col("waits").explode().drop_nulls()
    )


def _empty() -> pl.DataFrame:
    schema = {"span": pl.Int64(), **dict.fromkeys(GROUPS, pl.String()), **dict.fromkeys(SUMS, pl.Float64())}
    return pl.DataFrame(schema={**schema, "waits": pl.List(pl.Float32)})


def _sum_table(
    table: pl.DataFrame,
    edges: Int64s,
    period_of: Int64s,
    now_ms: int,
    models: Mapping[str, str],
    measured: pl.DataFrame | None,
) -> pl.DataFrame:
    table = name_groups(table, models)
    keys = table.select(GROUPS).unique(maintain_order=True).with_row_index("key")
    key = table.select(GROUPS).join(keys, on=GROUPS, how="left", nulls_equal=True, maintain_order="left")["key"]
    group = key.to_numpy().astype(np.int64)
    start, stop = _integers(table["started_at"]), _stop_times(table, now_ms)
    row, span, overlap = split_by_edges(start, stop, edges)
    span_count = len(edges) - 1

    length = np.maximum(stop - start, 1)[row]
    suspended = np.minimum(_suspended_ms(table, now_ms), np.maximum(stop - start, 0))[row] * (overlap / length)
    seconds = (overlap - suspended) / 1000
    gpus, cpus = _integers(table["gpus"], 0)[row], _integers(table["cpus"], 0)[row]
    values = {"gpu_s": seconds * gpus, "cpu_s": seconds * cpus, "suspended_gpu_s": suspended / 1000 * gpus}
    values |= _count_jobs(table["id"], row, period_of[span])
    if measured is not None and measured.height:
        values |= _share_measured(table["id"], row, span, overlap, measured)
    cells = [(group[row] * span_count + span, values)]

    wait = _wait_s(table)
    for times, where, name in (
        (table["submitted_at"], table["is_first"], "submitted"),
        (table["started_at"], table["started_at"].is_not_null(), "started"),
        (table["ended_at"], table["is_last"] & ~table["is_active"] & table["started_at"].is_not_null(), "ended"),
    ):
        at = _integers(times)
        counts = where.to_numpy() & (at >= edges[0]) & (at < edges[-1])
        chosen = np.flatnonzero(counts)
        cell = group[chosen] * span_count + np.searchsorted(edges, at[chosen], side="right") - 1
        events = {name: np.ones(len(chosen))}
        if name == "started":
            events["wait_s"] = wait[chosen]
            waits = pl.DataFrame({"cell": cell, "waits": wait[chosen].astype(np.float32)})
        cells.append((cell, events))
    return (
        _add_up(cells, keys, span_count)
        .join(waits.group_by("cell").agg("waits"), on="cell", how="left")
        .drop("cell")
        .select("span", *GROUPS, *SUMS, "waits")
    )


def name_groups(table: pl.DataFrame, models: Mapping[str, str]) -> pl.DataFrame:
    """``table`` with its GPU model and job size; both are null or "0" for jobs without GPUs."""
    model = pl.coalesce(
        pl.col("resource_type").str.replace(r"-\d+$", ""),
        pl.col("first_node").replace_strict(dict(models), default=None, return_dtype=pl.String),
    )
    place = np.searchsorted(_SIZE_LIMITS, _integers(table["gpus"], 0), side="left")
    size = pl.Series(JOB_SIZES, dtype=pl.String).gather(place)
    return table.with_columns(gpu_model=pl.when(pl.col("gpus") > 0).then(model), job_size=size)


def split_by_edges(start: Int64s, stop: Int64s, edges: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Intervals [start, stop) cut at ``edges``: the row, the span and the length of every piece; missing starts are negative.

    An interval without length has one piece of length 0.
    """
    last_span = len(edges) - 2
    first = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, last_span)
    last = np.clip(np.searchsorted(edges, stop, side="left") - 1, first, last_span)
    is_inside = (start >= 0) & (start < edges[-1]) & ((stop > edges[0]) | (start >= edges[0]))
    count = np.where(is_inside, last - first + 1, 0)
    row = np.repeat(np.arange(len(start)), count)
    begin = np.cumsum(count) - count
    span = first[row] + np.arange(len(row)) - begin[row]
    overlap = np.minimum(stop[row], edges[span + 1]) - np.maximum(start[row], edges[span])
    return row, span, np.maximum(overlap, 0)


def _integers(column: pl.Series, missing: int = -1) -> Int64s:
    return column.fill_null(missing).to_numpy().astype(np.int64)


def _stop_times(table: pl.DataFrame, now_ms: int) -> Int64s:
    stop = table.select(pl.coalesce(pl.when(~pl.col("is_active")).then("ended_at"), pl.lit(now_ms))).to_series()
    return np.maximum(_integers(stop), _integers(table["started_at"]))


def _suspended_ms(table: pl.DataFrame, now_ms: int) -> NDArray[np.float64]:
    current = pl.when(pl.col("is_active") & pl.col("suspended_at").is_not_null()).then(now_ms - pl.col("suspended_at"))
    expression = pl.col("suspended_s") * 1000 + current.fill_null(0).clip(0)
    return table.select(expression.cast(pl.Float64)).to_series().to_numpy()


def _wait_s(table: pl.DataFrame) -> NDArray[np.float64]:
    since = pl.max_horizontal("submitted_at", "eligible_at")
    wait = ((pl.col("started_at") - since) / 1000).clip(0).fill_null(0.0)
    return table.select(wait).to_series().to_numpy()


def _count_jobs(ids: pl.Series, row: Int64s, period: Int64s) -> dict[str, NDArray[np.float64]]:
    pairs = pl.DataFrame({"id": ids.gather(row), "period": period})
    is_first = pairs.select(pl.struct("id", "period").is_first_distinct()).to_series().to_numpy()
    order = np.lexsort((period, row))
    is_new = np.zeros(len(row))
    sorted_ids = pairs["id"].gather(order)
    is_new[order] = sorted_ids.is_first_distinct().to_numpy()
    return {"jobs": is_first.astype(np.float64), "new_jobs": is_new}


def _share_measured(
    ids: pl.Series, row: Int64s, span: Int64s, overlap: Int64s, measured: pl.DataFrame
) -> dict[str, NDArray[np.float64]]:
    """What was measured of a workload in a span, divided among its pieces by their length."""
    pieces = pl.DataFrame({"id": ids.gather(row), "span": span, "overlap": overlap.astype(np.float64)})
    joined = pieces.with_columns(share=pl.col("overlap") / pl.col("overlap").sum().over("id", "span")).join(
        measured, on=["id", "span"], how="left", maintain_order="left"
    )
    shares = joined.select((pl.col(name) * pl.col("share")).fill_nan(0.0).fill_null(0.0) for name in MEASURED)
    return {name: shares[name].to_numpy() for name in MEASURED}


def _add_up(
    cells: Sequence[tuple[Int64s, Mapping[str, NDArray[np.float64]]]], keys: pl.DataFrame, span_count: int
) -> pl.DataFrame:
    every, place = np.unique(np.concatenate([cell for cell, _ in cells]), return_inverse=True)
    totals = {name: np.zeros(len(every)) for name in SUMS}
    begin = 0
    for cell, values in cells:
        where = place[begin : begin + len(cell)]
        begin += len(cell)
        for name, weights in values.items():
            totals[name] += np.bincount(where, weights=weights, minlength=len(every))
    table = pl.DataFrame({"cell": every, "span": every % span_count, "key": (every // span_count).astype(np.uint32)})
    return table.with_columns(pl.Series(name, total) for name, total in totals.items()).join(keys, on="key")


def group_sums(cube: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The sums of ``sum_executions`` (with ``money`` if it is there) over all columns but ``by``, largest first.

    Adds ``users`` (active ones), ``mean_wait_s`` and ``median_wait_s`` (null if nothing started).
    """
    sums = [name for name in (*SUMS, "money") if name in cube.columns]
    is_active = (pl.col("gpu_s") > 0) | (pl.col("cpu_s") > 0) | (pl.col("jobs") > 0)
    started = pl.col("started")
    columns = [
        *(pl.col(name).sum() for name in sums),
        pl.col("user").filter(is_active).n_unique().cast(pl.Int64).alias("users"),
        pl.col("waits").explode().drop_nulls().median().alias("median_wait_s"),
    ]
    table = cube.group_by(by, maintain_order=True).agg(columns) if by else cube.select(columns)
    mean = pl.when(started > 0).then(pl.col("wait_s") / started)
    return table.with_columns(mean_wait_s=mean).sort("gpu_s", "cpu_s", *by, descending=[True, True, *[False] * len(by)])
