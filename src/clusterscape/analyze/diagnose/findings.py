"""All findings of a run, ranked by severity, then by GPU-hours. This module finds GPUs that differ from the others (imbalance
between clusters, a slow node, single odd GPUs); ``series_findings`` finds patterns of all GPUs over time.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from clusterscape.analyze.diagnose.clustering import Clustering
from clusterscape.analyze.diagnose.explain import Explanation
from clusterscape.analyze.diagnose.features import find_lag, row_medians
from clusterscape.analyze.diagnose.outliers import OddGpu, OddGpus, compute_log_tail
from clusterscape.analyze.diagnose.run_data import (
    RunData,
    ThumbRule,
    compute_block_error,
    format_seconds,
    read_thumb_rules,
)
from clusterscape.analyze.diagnose.series_findings import (
    find_busy_links,
    find_idle_tail,
    find_memory_growth,
    find_periodic_dips,
    find_stall,
    find_throttling,
)
from clusterscape.analyze.diagnose.stragglers import find_stragglers
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.findings import Finding, FindingKind, SizeEstimate, SizeUnit
from clusterscape.model.metrics import METRICS
from clusterscape.model.quantities import format_hours
from clusterscape.model.rules import Severity

NODE_METRICS = ("sm_clock_hertz", "power_watts", "tensor_active_ratio", "gpu_util_ratio")
MAX_ODD = 5
FEATURE_PHRASES = {
    "level": ("is always above the others", "is always below the others"),
    "drift": ("drifts upwards", "drifts downwards"),
    "step": ("rose relative to the others and stayed there", "fell relative to the others and stayed there"),
    "late": ("rises at the end", "falls off at the end"),
    "unrest": ("varies more than the others", "varies less than the others"),
    "peaks": ("has peaks that the others do not have", "lacks the peaks of the others"),
    "dips": ("has dips that the others do not have", "lacks the dips of the others"),
    "lag": ("is behind the others", "is ahead of the others"),
    "shape": ("has a different distribution than the others", "has a different distribution than the others"),
    "silence": ("is often missing", "is missing less often than on the others"),
}


def find_imbalance(
    run: RunData, rule: ThumbRule, clustering: Clustering, explanations: Sequence[Explanation | None], metric: str
) -> Iterator[Finding]:
    """Clusters with different mean utilization."""
    util = run.find("gpu_util_ratio")
    if util is None or clustering.count < 2:
        return
    groups = [clustering.members(label) for label in range(clustering.count)]
    series_of_groups = [row_medians(util[:, columns]) for columns in groups if columns.size >= rule["min_gpus"]]
    groups = [columns for columns in groups if columns.size >= rule["min_gpus"]]
    means = np.array(
        [
            float(np.nanmean(group_series)) if np.isfinite(group_series).any() else np.nan
            for group_series in series_of_groups
        ]
    )
    if np.isfinite(means).sum() < 2:
        return
    busiest, idlest = int(np.nanargmax(means)), int(np.nanargmin(means))
    difference = float(means[busiest] - means[idlest])
    error = compute_block_error(series_of_groups[busiest] - series_of_groups[idlest])
    if difference < rule["min_difference"] or difference < error:
        return
    per_gpu = np.array(
        [float(np.nanmean(util[:, c])) if np.isfinite(util[:, c]).any() else np.nan for c in range(util.shape[1])]
    )
    lost_hours = float(np.nansum(np.maximum(means[busiest] - per_gpu, 0.0) * run.held_hours(util)))
    smaller = min((busiest, idlest), key=lambda place: (groups[place].size, place))
    explanation = next((e for e in explanations[1:] if e is not None), None)
    yield Finding(
        kind=FindingKind.IMBALANCE,
        severity=Severity.WARNING,
        title=f"{groups[busiest].size} GPUs are busy {means[busiest]:.0%} of the time, "
        f"{groups[idlest].size} others {means[idlest]:.0%}: {format_hours(lost_hours)} GPU-hours of waiting."
        + (f" {explanation.sentence}" if explanation else ""),
        reason=rule.reason,
        size=lost_hours,
        size_unit=SizeUnit.GPU_HOURS,
        units=run.pick(groups[smaller]),
        start_at=run.start_at,
        end_at=run.end_at,
        metrics=tuple(dict.fromkeys(("gpu_util_ratio", metric))),
        numbers={"difference": SizeEstimate(difference, difference - error, difference + error, "ratio")},
    )


def find_slow_node(run: RunData, rule: ThumbRule) -> Iterator[Finding]:
    """A node whose GPUs are all below those of the other nodes."""
    nodes = run.attributes.get("node")
    if nodes is None:
        return
    names = sorted({str(node) for node in nodes if node is not None})
    if len(names) < rule["min_nodes"]:
        return
    columns = [np.flatnonzero([str(node) == name for node in nodes]) for name in names]
    for metric in NODE_METRICS:
        values = run.find(metric)
        slowest = None if values is None else _slowest(values, columns, rule)
        if slowest is not None:
            yield _describe_node(run, rule, metric, names[slowest[0]], columns[slowest[0]], slowest[1], slowest[2])
            return


def _slowest(values: Float64s, columns: Sequence[Int64s], rule: ThumbRule) -> tuple[int, float, float] | None:
    """(index, relative difference, its error) of the node that is significantly below all others."""
    levels = row_medians(np.ascontiguousarray(values.T))
    nodes = np.array([np.nanmedian(levels[c]) if np.isfinite(levels[c]).any() else np.nan for c in columns])
    if np.isfinite(nodes).sum() < rule["min_nodes"]:
        return None
    center = float(np.nanmedian(nodes))
    spread = max(1.4826 * float(np.nanmedian(np.abs(nodes - center))), 0.002 * abs(center), 1e-300)
    distance = np.nan_to_num((nodes - center) / spread)
    worst = int(distance.argmin())
    log_p = compute_log_tail(np.abs(distance), distance.size)[worst] + math.log(nodes.size * len(NODE_METRICS))
    others = np.concatenate([c for place, c in enumerate(columns) if place != worst])
    is_whole = np.nanmax(levels[columns[worst]]) < np.nanmedian(levels[others])
    relative = (nodes[worst] - center) / abs(center) if center else 0.0
    if log_p > math.log(rule["significance"]) or not is_whole or -relative < rule["min_difference"]:
        return None
    return worst, float(relative), float(1.96 * spread / abs(center))


def _describe_node(
    run: RunData, rule: ThumbRule, metric: str, node: str, columns: Int64s, relative: float, error: float
) -> Finding:
    hours = float(run.held_hours(run.samples.metrics[metric]).sum())
    label = METRICS[metric].label if metric in METRICS else metric
    return Finding(
        kind=FindingKind.SLOW_NODE,
        severity=Severity.WARNING,
        title=f"{label} of all {columns.size} GPUs of node {node} is {-relative:.0%} (± {error:.0%}) below the other nodes.",
        reason=rule.reason,
        size=-relative * hours,
        size_unit=SizeUnit.GPU_HOURS,
        units=run.pick(columns),
        start_at=run.start_at,
        end_at=run.end_at,
        metrics=(metric,),
        numbers={"difference": SizeEstimate(relative, relative - error, relative + error, "ratio")},
    )


def describe_odd_gpus(run: RunData, rule: ThumbRule, odd: OddGpus, metric: str) -> Iterator[Finding]:
    """One finding for each of the first few odd GPUs."""
    values = run.samples.metrics[metric]
    hours = run.held_hours(values)
    for gpu in odd.odd[:MAX_ODD]:
        yield Finding(
            kind=FindingKind.ODD_GPU,
            severity=Severity.WARNING,
            title=_odd_title(run, gpu, odd, values, metric),
            reason=rule.reason,
            size=float(hours[gpu.column]),
            size_unit=SizeUnit.GPU_HOURS,
            units=run.pick([gpu.column]),
            start_at=run.start_at,
            end_at=run.end_at,
            metrics=(metric,),
            numbers={
                "distance": SizeEstimate(gpu.distance, None, None, "spreads"),
                "p_value": SizeEstimate(gpu.p_value, None, None, "probability"),
            },
        )


def _odd_title(run: RunData, gpu: OddGpu, odd: OddGpus, values: Float64s, metric: str) -> str:
    feature, distance = gpu.features[0]
    phrase = FEATURE_PHRASES[feature][0 if distance > 0 else 1]
    label = METRICS[metric].label if metric in METRICS else metric
    others = odd.ranked[odd.ranked != gpu.column]
    if feature == "lag":
        lag_s = abs(find_lag(values, gpu.column, others, max_lag=40)) * run.step_s
        phrase += f" by {format_seconds(lag_s)} (± {format_seconds(run.step_s)})" if lag_s else ""
    if feature == "level":
        level = float(np.nanmedian(values[:, gpu.column]))
        usual = float(np.nanmedian(row_medians(values[:, others])))
        phrase += f": {abs(level / usual - 1.0):.0%}" if usual else ""
    return f"{run.units[gpu.column]}: {label} {phrase} ({gpu.distance:.0f} spreads, p = {gpu.p_value:.1g})."


SERIES_FINDERS = {
    FindingKind.STALL: find_stall,
    FindingKind.MEMORY_GROWTH: find_memory_growth,
    FindingKind.IDLE_TAIL: find_idle_tail,
    FindingKind.COMMUNICATION_BOUND: find_busy_links,
    FindingKind.PERIODIC_DIPS: find_periodic_dips,
    FindingKind.THROTTLING: find_throttling,
}
SEVERITIES = list(Severity)


def find_findings(
    run: RunData,
    clustering: Clustering,
    explanations: Sequence[Explanation | None],
    odd: OddGpus,
    metric: str,
    groups: Sequence[Int64s] = (),
) -> tuple[Finding, ...]:
    """All findings about the run, most important first; may be empty. ``groups``: columns of peers."""
    if run.samples.times_ms.size < 2:
        return ()
    rules = read_thumb_rules()
    findings = [finding for kind, find in SERIES_FINDERS.items() for finding in find(run, rules[kind])]
    findings += find_imbalance(run, rules[FindingKind.IMBALANCE], clustering, explanations, metric)
    findings += find_slow_node(run, rules[FindingKind.SLOW_NODE])
    findings += find_stragglers(run, rules[FindingKind.STRAGGLER], groups)
    if metric in run.samples.metrics:
        findings += describe_odd_gpus(run, rules[FindingKind.ODD_GPU], odd, metric)
    return rank_findings(findings)


def rank_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Most severe first; among equals predictions (in seconds) before losses (in GPU-hours), then the largest."""
    return tuple(
        sorted(
            findings,
            key=lambda finding: (
                -SEVERITIES.index(finding.severity),
                finding.size_unit is not SizeUnit.SECONDS,
                -finding.size if finding.size_unit is not SizeUnit.SECONDS else finding.size,
            ),
        )
    )
