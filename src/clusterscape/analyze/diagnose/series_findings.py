"""Findings about all GPUs of a run over time: periodic dips, stalls, memory growth, throttling, busy links, an idle end."""

from collections.abc import Iterator

import numpy as np

from clusterscape.analyze.diagnose.run_data import RunData, ThumbRule, compute_block_error, count_gpus, format_seconds
from clusterscape.analyze.diagnose.signals import Dips, Growth, find_change_point, find_dips, fit_growth, sum_increases
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.findings import Finding, FindingKind, SizeEstimate, SizeUnit
from clusterscape.model.quantities import format_hours
from clusterscape.model.rules import Severity

DIP_METRICS = ("gpu_util_ratio", "sm_active_ratio", "power_watts")
LINKS = {"NVLink": "nvlink", "PCIe": "pcie"}
MAX_FITTED_GPUS = 16
GIBIBYTE = 2.0**30


def find_periodic_dips(run: RunData, rule: ThumbRule) -> Iterator[Finding]:
    """All GPUs pause together at regular intervals."""
    for metric in DIP_METRICS:
        series = run.median_series(metric)
        dips = None if series is None else find_dips(
            run.times_s, series, min_depth=rule["min_depth"], min_dips=int(rule["min_dips"]),
            max_irregularity=rule["max_irregularity"],
        )  # fmt: skip
        if dips is not None and series is not None:
            yield _describe_dips(run, rule, metric, dips)
            return


def _describe_dips(run: RunData, rule: ThumbRule, metric: str, dips: Dips) -> Finding:
    values = run.samples.metrics[metric]
    lost_hours = dips.share * float(run.held_hours(values).sum())
    is_long = dips.period_s >= rule["checkpoint_period_s"]
    cause = "checkpoints or validation" if is_long else "data loading"
    low_s, high_s = dips.period_s - dips.period_error_s, dips.period_s + dips.period_error_s
    every = f"every {format_seconds(dips.period_s)} (± {format_seconds(dips.period_error_s)})"
    return Finding(
        kind=FindingKind.PERIODIC_DIPS,
        severity=Severity.WARNING if dips.share >= 0.1 else Severity.INFO,
        title=f"All GPUs dip together {every} by {dips.depth / dips.usual:.0%}: {cause}; {format_hours(lost_hours)} GPU-hours.",
        reason=rule.reason,
        size=lost_hours,
        size_unit=SizeUnit.GPU_HOURS,
        units=run.units,
        start_at=run.start_at,
        end_at=run.end_at,
        metrics=(metric,),
        numbers={
            "period_s": SizeEstimate(dips.period_s, low_s, high_s, "seconds"),
            "depth": SizeEstimate(dips.depth / dips.usual, dips.depth_low / dips.usual, dips.depth_high / dips.usual, "ratio"),
            "dips": SizeEstimate(float(dips.starts.size), None, None, "count"),
        },
    )  # fmt: skip


def find_stall(run: RunData, rule: ThumbRule) -> Iterator[Finding]:
    """Utilization stays high while power (or tensor activity, if power is missing) falls and stays low."""
    util = run.median_series("gpu_util_ratio")
    bound, metric = "max_power_ratio", "power_watts"
    series = run.median_series(metric)
    if series is None:
        bound, metric = "max_tensor_ratio", "tensor_active_ratio"
        series = run.median_series(metric)
    change = None if series is None else find_change_point(series)
    if util is None or change is None or change.after > rule[bound] * change.before:
        return
    lasted_s = run.span_s - float(run.times_s[change.row]) + run.step_s
    after = util[change.row :]
    if (
        lasted_s < rule["min_s"]
        or not np.nanmedian(after) >= rule["min_util"]
        or np.nanmean(after >= rule["min_util"]) < 0.9
    ):
        return
    values = run.samples.metrics[metric]
    gpus = int(np.isfinite(values[change.row :]).any(axis=0).sum())
    error_s = (run.samples.times_ms[change.high] - run.samples.times_ms[change.low]) / 2000.0
    hours = gpus * lasted_s / 3600.0
    start = SizeEstimate(float(run.at(change.row)), float(run.at(change.low)), float(run.at(change.high)), "unix_ms")
    yield Finding(
        kind=FindingKind.STALL,
        severity=Severity.CRITICAL,
        title=f"Stalled for {format_seconds(lasted_s)} (start ± {format_seconds(max(error_s, run.step_s))}) on "
        f"{count_gpus(gpus, len(run.units))}: busy, but at {change.after / change.before:.0%} of the power or activity before; "
        f"{format_hours(hours)} GPU-hours.",
        reason=rule.reason,
        size=hours,
        size_unit=SizeUnit.GPU_HOURS,
        units=run.units,
        start_at=run.at(change.row),
        end_at=run.end_at,
        metrics=("gpu_util_ratio", metric),
        numbers={"start": start, "left": SizeEstimate(change.after / change.before, None, None, "ratio")},
    )


def find_memory_growth(run: RunData, rule: ThumbRule) -> Iterator[Finding]:
    """Memory grows steadily; predicts when it will be full."""
    used = run.find("memory_used_bytes")
    limit = _find_memory_limit(run)
    if used is None or limit is None or len(used) < 10:
        return
    settled = len(used) // 10  # after loading
    growth_bytes = np.nan_to_num(_column_means(used[-settled:]) - _column_means(used[settled : 2 * settled]))
    fitted: list[tuple[float, int, Growth]] = []
    for column in np.argsort(-growth_bytes, kind="stable")[:MAX_FITTED_GPUS]:
        # Cheap test first: the means of both ends show most of a steady growth, so the expensive fit can be skipped.
        if growth_bytes[column] < 0.5 * rule["min_growth_ratio"] * limit:
            break
        growth = fit_growth(run.times_s[settled:], used[settled:, column])
        if growth is None or growth.low_per_s <= 0 or growth.trend < rule["min_trend"]:
            continue
        if growth.per_s * run.span_s >= rule["min_growth_ratio"] * limit:
            fitted.append(((limit - growth.last) / growth.per_s, int(column), growth))
    if not fitted:
        return
    left_s, column, growth = min(fitted, key=lambda entry: entry[:2])
    if left_s > rule["horizon_s"]:
        return
    soonest, latest = (limit - growth.last) / growth.high_per_s, (limit - growth.last) / growth.low_per_s
    when = (
        f"full in {format_seconds(left_s)} ({format_seconds(soonest)} – {format_seconds(latest)})"
        if left_s > 0
        else "full"
    )
    per_hour = growth.per_s * 3600.0 / GIBIBYTE
    yield Finding(
        kind=FindingKind.MEMORY_GROWTH,
        severity=Severity.CRITICAL if left_s < 3600 else Severity.WARNING,
        title=f"Memory of {run.units[column]} grows by {per_hour:.2g} GiB/h: {when}.",
        reason=rule.reason,
        size=max(left_s, 0.0),
        size_unit=SizeUnit.SECONDS,
        units=run.pick([entry[1] for entry in sorted(fitted)]),
        start_at=run.start_at,
        end_at=run.end_at,
        metrics=("memory_used_bytes",),
        numbers={
            "growth": SizeEstimate(growth.per_s, growth.low_per_s, growth.high_per_s, "bytes_per_second"),
            "time_to_full_s": SizeEstimate(left_s, soonest, latest, "seconds"),
        },
    )


def _find_memory_limit(run: RunData) -> float | None:
    if run.limits.memory_bytes is not None:
        return run.limits.memory_bytes
    total = run.find("memory_total_bytes")
    if total is not None:
        return float(np.nanmedian(total))
    used, free = run.find("memory_used_bytes"), run.find("memory_free_bytes")
    return None if used is None or free is None else float(np.nanmedian(used + free))


def _column_means(rows: Float64s) -> Float64s:
    is_known = np.isfinite(rows)
    counts = is_known.sum(axis=0)
    sums: Float64s = np.where(is_known, rows, 0.0).sum(axis=0)
    means: Float64s = np.divide(sums, counts, out=np.full(rows.shape[1], np.nan), where=counts > 0)
    return means


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]


def find_throttling(run: RunData, rule: ThumbRule) -> Iterator[Finding]:
    """Counters of throttled time increased."""
    for metric in sorted(name for name in run.samples.metrics if name.endswith("_throttle_seconds")):
        counter = run.find(metric)
        if counter is None or run.span_s <= 0:
            continue
        throttled_s = np.minimum(sum_increases(counter), run.span_s)
        columns = np.flatnonzero(throttled_s >= rule["min_share"] * run.span_s)
        if columns.size == 0:
            continue
        worst = float(throttled_s.max() / run.span_s)
        hours = float(throttled_s[columns].sum()) / 3600.0
        cause = metric.removesuffix("_throttle_seconds").replace("_", " ")
        error = run.step_s / run.span_s
        yield Finding(
            kind=FindingKind.THROTTLING,
            severity=Severity.WARNING if cause in ("thermal", "reliability", "board limit") else Severity.INFO,
            title=f"{_capitalize(count_gpus(columns.size, len(run.units)))} throttled ({cause}) up to {worst:.0%} of the time: "
            f"{format_hours(hours)} GPU-hours at lower clocks.",
            reason=rule.reason,
            size=hours,
            size_unit=SizeUnit.GPU_HOURS,
            units=run.pick(columns[np.argsort(-throttled_s[columns], kind="stable")]),
            start_at=run.start_at,
            end_at=run.end_at,
            metrics=(metric,),
            numbers={"worst_share": SizeEstimate(worst, max(worst - error, 0.0), min(worst + error, 1.0), "ratio")},
        )


def find_busy_links(run: RunData, rule: ThumbRule) -> Iterator[Finding]:
    """Links are busy while the SMs (streaming multiprocessors) are not."""
    sm = run.find("sm_active_ratio")
    if sm is None:
        return
    for label, name in LINKS.items():
        sent, received = run.find(f"{name}_tx_bytes_per_second"), run.find(f"{name}_rx_bytes_per_second")
        directions = [values for values in (sent, received) if values is not None]
        if not directions:
            continue
        traffic = np.fmax(directions[0], directions[-1])
        limit = getattr(run.limits, f"{name}_bytes_per_second")
        bound = rule[f"{name}_bytes_per_second"] if limit is None else 0.3 * limit
        is_known = np.isfinite(traffic) & np.isfinite(sm)
        is_bound = np.where(is_known, (traffic >= bound) & (sm <= rule["max_sm"]), np.nan)
        columns, share, series = _share_bound(is_bound, rule["min_share"])
        if columns.size == 0:
            continue
        error = compute_block_error(series)
        hours = share * float(run.held_hours(sm)[columns].sum())
        verb = "waits" if columns.size == 1 else "wait"
        yield Finding(
            kind=FindingKind.COMMUNICATION_BOUND,
            severity=Severity.WARNING,
            title=f"{_capitalize(count_gpus(columns.size, len(run.units)))} {verb} for {label} {share:.0%} of the time "
            f"(± {error:.0%}): {format_hours(hours)} GPU-hours.",
            reason=rule.reason,
            size=hours,
            size_unit=SizeUnit.GPU_HOURS,
            units=run.pick(columns),
            start_at=run.start_at,
            end_at=run.end_at,
            metrics=("sm_active_ratio", f"{name}_tx_bytes_per_second"),
            numbers={"share": SizeEstimate(share, max(share - error, 0.0), min(share + error, 1.0), "ratio")},
        )


def _share_bound(is_bound: Float64s, min_share: float) -> tuple[Int64s, float, Float64s]:
    """GPUs that are bound for at least ``min_share`` of the time, their mean share, and the share over time."""
    shares = np.nan_to_num(_column_means(is_bound))
    columns = np.flatnonzero(shares >= min_share)
    if columns.size == 0:
        return columns, 0.0, np.empty(0)
    return columns, float(shares[columns].mean()), _column_means(np.ascontiguousarray(is_bound[:, columns].T))


def find_idle_tail(run: RunData, rule: ThumbRule) -> Iterator[Finding]:
    """GPUs that are still allocated but no longer used."""
    util = run.find("gpu_util_ratio")
    if util is None:
        return
    is_known = np.isfinite(util)
    is_busy = is_known & (util > rule["max_util"])
    rows = np.arange(len(util))[:, None]
    last_known = np.where(is_known, rows, -1).max(axis=0)
    last_busy = np.where(is_busy, rows, -1).max(axis=0)
    first_known = is_known.argmax(axis=0)
    from_row = np.where(last_busy >= 0, last_busy, first_known)
    tail_s = np.where(last_known >= 0, run.times_s[np.maximum(last_known, 0)] - run.times_s[from_row], 0.0)
    columns = np.flatnonzero(tail_s >= rule["min_s"])
    if columns.size == 0:
        return
    hours = float(tail_s[columns].sum()) / 3600.0
    error_h = columns.size * run.step_s / 3600.0
    usual_s = float(np.median(tail_s[columns]))
    never = bool((last_busy[columns] < 0).all())
    activity = "did no work" if never else f"did no work for the last {format_seconds(usual_s)}"
    yield Finding(
        kind=FindingKind.IDLE_TAIL,
        severity=Severity.WARNING,
        title=f"{_capitalize(count_gpus(columns.size, len(run.units)))} {activity}: "
        f"{format_hours(hours)} GPU-hours (± {error_h:.1g}).",
        reason=rule.reason,
        size=hours,
        size_unit=SizeUnit.GPU_HOURS,
        units=run.pick(columns),
        start_at=run.at(int(from_row[columns].min())),
        end_at=run.at(int(last_known[columns].max())),
        metrics=("gpu_util_ratio",),
        numbers={"idle_s": SizeEstimate(usual_s, usual_s - run.step_s, usual_s + run.step_s, "seconds")},
    )
