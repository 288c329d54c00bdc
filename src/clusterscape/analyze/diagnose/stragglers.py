"""The GPU of a synchronous training for which the others wait, from telemetry alone: which one, what kind of delay, since when.

All GPUs do the same work in each step, and those that are done early wait in a collective, which keeps them busy without much
work. So a GPU that its host holds up is less busy than the others, one with a lower clock shows it, and one that works longer
has more activity and power. Traces tell the cause (``analyze/trace``); telemetry is there when nobody recorded one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.diagnose.features import row_medians
from clusterscape.analyze.diagnose.run_data import RunData, ThumbRule, count_gpus
from clusterscape.analyze.diagnose.signals import find_change_point, sum_increases
from clusterscape.analyze.trace.causes import measure_chance
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.findings import Finding, FindingKind, SizeEstimate, SizeUnit
from clusterscape.model.metrics import METRICS
from clusterscape.model.quantities import format_hours
from clusterscape.model.rules import Severity

MAX_BLOCKS, MIN_BLOCKS = 32, 6
MIN_KNOWN_SHARE = 0.5
ALIKE_SHARE = 0.5
"""If another GPU has more than this share of the excess, it is not one GPU: several are slow, such as those of a node."""


@dataclass(frozen=True, slots=True)
class _Sign:
    """``kind`` of delay that a metric shows where a GPU is above (+1) or below (-1) its peers; ``threshold``: of the rule."""

    kind: str
    metric: str
    sign: float
    threshold: str


SIGNS = (
    _Sign("clock", "sm_clock_hertz", -1.0, "min_clock_difference"),
    _Sign("host", "gpu_util_ratio", -1.0, "min_activity_difference"),
    _Sign("host", "graphics_active_ratio", -1.0, "min_activity_difference"),
    _Sign("work", "tensor_active_ratio", 1.0, "min_activity_difference"),
    _Sign("work", "sm_active_ratio", 1.0, "min_activity_difference"),
    _Sign("work", "power_watts", 1.0, "min_power_difference"),
)
"""In the order in which they explain a delay: a lower clock also makes a GPU work longer, and one that waits for its host less
busy than its peers makes them no busier.
"""
HOST_LINKS = ("pcie_tx_bytes_per_second", "pcie_rx_bytes_per_second")


@dataclass(frozen=True, slots=True)
class Straggler:
    """``excess``: of its metric relative to the usual level, while it lasts; ``row``: of the first sample that shows it."""

    column: int
    sign: _Sign
    excess: float
    chance: float
    row: int
    own: float
    usual: float


def find_straggler(run: RunData, rule: ThumbRule, groups: Sequence[Int64s]) -> Straggler | None:
    """The GPU that delays its peers the most, by the first kind of sign that is beyond chance. ``groups``: columns of peers."""
    if not _is_busy(run, rule):
        return None
    for sign in SIGNS:
        values = run.find(sign.metric)
        if values is None:
            continue
        candidates = [judged for columns in groups if (judged := _judge(values, columns, sign, rule)) is not None]
        if candidates:
            return max(candidates, key=lambda straggler: straggler.excess)
    return None


def _is_busy(run: RunData, rule: ThumbRule) -> bool:
    """Whether the run computes most of the time: GPUs of an idle run do not wait for one another."""
    util = run.median_series("gpu_util_ratio")
    return util is None or bool(np.nanmean(util) >= rule["min_util"])


def _judge(values: Float64s, columns: Int64s, sign: _Sign, rule: ThumbRule) -> Straggler | None:
    own = values[:, columns]
    columns = columns[np.isfinite(own).mean(axis=0) >= MIN_KNOWN_SHARE]
    if columns.size < 2:
        return None
    own = values[:, columns]
    level = float(np.nanmedian(own))
    if not level > 0:
        return None
    scale = 1.0 if sign.metric.endswith("_ratio") else level
    excess = np.stack(
        [sign.sign * (own[:, at] - row_medians(np.delete(own, at, axis=1))) for at in range(columns.size)]
    )
    blocks = _average(excess / scale)
    if blocks.shape[1] < MIN_BLOCKS:
        return None
    means = blocks.mean(axis=1)
    at = int(np.argmax(means))
    others = np.delete(means, at)
    if float(others.max()) > ALIKE_SHARE * float(means[at]):
        return None
    # GPUs of one model differ a little, and always in the same way.
    spread = 1.4826 * float(np.median(np.abs(others - np.median(others)))) if others.size > 2 else 0.0
    floor = max(rule[sign.threshold], rule["spreads"] * spread)
    row = _find_onset(excess[at] / scale, floor)
    lasting = excess[at, row:] / scale
    if float(np.nanmean(lasting)) < floor:
        return None
    chance = measure_chance(_average(excess[:, row:] / scale), at, np.random.default_rng(0), floor)
    if chance is None or chance > rule["significance"]:
        return None
    return Straggler(
        column=int(columns[at]),
        sign=sign,
        excess=float(np.nanmean(lasting)),
        chance=chance,
        row=row,
        own=float(np.nanmean(own[row:, at])),
        usual=float(np.nanmean(row_medians(np.delete(own[row:], at, axis=1)))),
    )


def _average(series: Float64s) -> Float64s:
    """Means of up to ``MAX_BLOCKS`` pieces of time: (GPU × block), 0 where nothing is known."""
    count = min(MAX_BLOCKS, series.shape[1])
    is_known = np.isfinite(series)
    bounds = np.linspace(0, series.shape[1], count + 1).astype(np.int64)[:-1]
    sums = np.add.reduceat(np.where(is_known, series, 0.0), bounds, axis=1)
    means: Float64s = sums / np.maximum(1, np.add.reduceat(is_known, bounds, axis=1, dtype=np.int64))
    return means


def _find_onset(excess: Float64s, floor: float) -> int:
    """The row since which the excess lasts; 0 if it did from the beginning."""
    change = find_change_point(excess, min_rows=MIN_BLOCKS)
    if change is None or change.after < floor or change.before > 0.5 * change.after:
        return 0
    return change.row


def find_stragglers(run: RunData, rule: ThumbRule, groups: Sequence[Int64s]) -> Iterator[Finding]:
    """The finding about the GPU for which the others wait."""
    straggler = find_straggler(run, rule, groups)
    if straggler is None:
        return
    metric = straggler.sign.metric
    lost = 1.0 - straggler.own / straggler.usual if straggler.sign.sign < 0 else 1.0 - straggler.usual / straggler.own
    start_at = run.at(straggler.row)
    hours = len(run.units) * (run.end_at - start_at) / 3_600_000.0 * lost
    waiting = count_gpus(len(run.units) - 1, len(run.units))
    numbers = {
        "difference": SizeEstimate(straggler.own - straggler.usual, None, None, METRICS[metric].unit.value),
        "chance": SizeEstimate(straggler.chance, None, None, "probability"),
    }
    yield Finding(
        kind=FindingKind.STRAGGLER,
        severity=Severity.WARNING,
        title=(
            f"{run.units[straggler.column]} {_describe(run, straggler)}: {waiting} wait for it, "
            f"up to {format_hours(hours)} GPU-hours."
        ),
        reason=rule.reason,
        size=hours,
        size_unit=SizeUnit.GPU_HOURS,
        units=run.pick([straggler.column]),
        start_at=start_at,
        end_at=run.end_at,
        metrics=(metric,),
        numbers=numbers,
    )


def _describe(run: RunData, straggler: Straggler) -> str:
    own, usual = straggler.own, straggler.usual
    if straggler.sign.kind == "clock":
        limit = _find_limit(run, straggler)
        return f"runs at {own / 1e6:,.0f} MHz, the others at {usual / 1e6:,.0f} MHz{limit}"
    if straggler.sign.kind == "host":
        link = " and copies more" if _copies_more(run, straggler) else ""
        return f"is held up by its host{link} (busy {own:.0%} of the time, the others {usual:.0%})"
    label = METRICS[straggler.sign.metric].label
    if straggler.sign.metric == "power_watts":
        return f"works longer than the others ({label} {own:,.0f} W, the others {usual:,.0f} W)"
    return f"works longer than the others ({label} {own:.0%}, the others {usual:.0%})"


def _find_limit(run: RunData, straggler: Straggler) -> str:
    """What lowers the clock, where the GPU is the hottest or has throttled the most."""
    events = run.find("clock_events_count")
    temperature = run.find("gpu_temperature_celsius")
    if temperature is not None:
        means = np.nanmean(temperature[straggler.row :], axis=0)
        if means[straggler.column] - float(np.nanmedian(means)) > 8.0:
            return f" (it is the hottest, {means[straggler.column]:.0f} °C)"
    if events is not None:
        increases = sum_increases(events[straggler.row :])
        if increases[straggler.column] > 2.0 * float(np.median(increases)):
            return " (it was throttled)"
    return ""


def _copies_more(run: RunData, straggler: Straggler) -> bool:
    for metric in HOST_LINKS:
        values = run.find(metric)
        if values is not None:
            means = np.nanmean(values[straggler.row :], axis=0)
            if means[straggler.column] > 2.0 * float(np.median(np.delete(means, straggler.column))):
                return True
    return False
