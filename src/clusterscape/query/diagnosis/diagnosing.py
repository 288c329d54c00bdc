"""Runs the analysis of one window, and converts its results to the shapes of the answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from clusterscape.analyze.diagnose import (
    Clustering,
    Diagnosis,
    Explanation,
    Limits,
    OddGpu,
    Options,
    RunData,
    diagnose,
    find_findings,
    order_samples,
    rank_findings,
)
from clusterscape.analyze.diagnose.diagnosis import By
from clusterscape.analyze.diagnose.findings import FEATURE_PHRASES
from clusterscape.analyze.diagnose.run_data import format_seconds
from clusterscape.model import METRICS, UnitId
from clusterscape.model.findings import Finding, FindingKind, SizeEstimate
from clusterscape.query.diagnosis.answers import (
    ClusterExplanation,
    DiagnosedUnit,
    FindingAnswer,
    FindingNumber,
    GpuCluster,
    OddUnit,
    UnitRule,
)
from clusterscape.query.diagnosis.holding import WorkloadHolding
from clusterscape.query.diagnosis.loading import Samples

Attributes = Mapping[str, Sequence[str | int | None]]

FINDING_METRICS = (
    "gpu_util_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "power_watts",
    "memory_used_bytes",
    "memory_free_bytes",
    "memory_total_bytes",
    "sm_clock_hertz",
    "pcie_tx_bytes_per_second",
    "pcie_rx_bytes_per_second",
    "nvlink_tx_bytes_per_second",
    "nvlink_rx_bytes_per_second",
    *(name for name in METRICS if name.endswith("_throttle_seconds")),
)
"""Metrics that findings are based on, in addition to the metric that GPUs are compared by."""


@dataclass(frozen=True, slots=True)
class AnalyzedWindow:
    """The results of the analysis of a window."""

    diagnosis: Diagnosis
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def analyze_window(
    holding: WorkloadHolding,
    metric: str | None,
    fine: Samples,
    companions: Samples,
    attributes: Attributes,
    memory_bytes: float | None,
    options: Options,
) -> AnalyzedWindow:
    """Compares GPUs by the ``fine`` samples of one metric; findings are based on it and on all ``companions``.

    ``metric`` None: no metric has samples.
    """
    limits = Limits(memory_bytes=memory_bytes)
    values = {} if metric is None else {metric: fine.values[metric]}
    times = fine.times_ms
    if not values:
        values, times = {}, np.empty(0, np.int64)
    diagnosis = diagnose(times, values, holding.names, attributes=attributes, limits=limits, options=options)
    coarse = RunData(
        order_samples(companions.times_ms, companions.values), tuple(holding.names), dict(attributes), limits
    )
    kinds = {finding.kind for finding in diagnosis.findings}
    companion_findings = find_findings(
        coarse, diagnosis.peers.clustering, diagnosis.peers.explanations, diagnosis.odd, metric or ""
    )
    findings = rank_findings(
        [*diagnosis.findings, *(finding for finding in companion_findings if finding.kind not in kinds)]
    )
    notes = list(diagnosis.notes)
    if fine.step_ms is not None and metric is not None:
        notes.append(
            f"There are too many samples to compare all: values are means over {format_seconds(fine.step_ms / 1000)}."
        )
    return AnalyzedWindow(diagnosis, findings, tuple(notes))


def warm_up() -> None:
    """Runs a diagnosis and its charts on small synthetic samples that use every part of the code."""
    from clusterscape.analyze.diagnose import compute_density, compute_mahalanobis, downsample

    rng = np.random.default_rng(0)
    times = np.arange(64) * 15_000
    values = rng.normal(0.8, 0.03, (64, 16))
    values[:, :4] -= 0.4
    units = [UnitId(f"n{index // 8}:{index % 8}") for index in range(16)]
    methods: tuple[By, ...] = ("histogram", "euclidean")
    for by in methods:
        diagnose(
            times,
            {"gpu_util_ratio": values, "power_watts": 700 * values},
            units,
            attributes={"local rank": [index % 8 for index in range(16)]},
            options=Options(by=by),
        )
    downsample(times, values, pixels=8)
    points = values.reshape(-1)
    compute_mahalanobis(points, points**2, robust=True)
    compute_density(points, points**2)


MAX_HEIGHTS = 64


def describe_clusters(analyzed: AnalyzedWindow) -> list[GpuCluster]:
    """Clusters with their explanations."""
    diagnosis = analyzed.diagnosis
    clusters = []
    for label in range(diagnosis.clustering.count):
        members = diagnosis.run.pick(diagnosis.clustering.members(label))
        clusters.append(
            GpuCluster(
                label=label,
                size=len(members),
                units=[str(unit) for unit in members],
                explanation=_explain(diagnosis.explanations[label]),
            )
        )
    return clusters


def _explain(explanation: Explanation | None) -> ClusterExplanation | None:
    if explanation is None:
        return None
    return ClusterExplanation(
        sentence=explanation.sentence,
        attribute=explanation.attribute,
        values=[str(value) for value in explanation.values],
        gain=explanation.information,
        p_value=explanation.p_value,
        precision=explanation.precision,
        recall=explanation.recall,
    )


def _find_labels(analyzed: AnalyzedWindow) -> dict[str, int]:
    """The cluster of each unit that is in one."""
    clustering = analyzed.diagnosis.clustering
    units = analyzed.diagnosis.run.pick(clustering.compared)
    return {str(unit): int(label) for unit, label in zip(units, clustering.labels, strict=True)}


def order_leaves(clustering: Clustering) -> list[int]:
    """Column indices in the order of the dendrogram."""
    if len(clustering.tree) == 0:
        return [int(column) for column in clustering.compared]
    return [int(clustering.compared[leaf]) for leaf in leaves_list(clustering.tree)]


def heights_for_counts(clustering: Clustering) -> list[float]:
    """The cut heights for 1, 2, … clusters: half-way between two merges, and above the last merge for one cluster."""
    if len(clustering.tree) == 0:
        return []
    merges = np.concatenate([[0.0], clustering.tree[:, 2]])
    limit = min(merges.size, MAX_HEIGHTS)
    upper = [float(merges[-1]) * 1.1, *(float(merges[1 - count]) for count in range(2, limit + 1))]
    return [(float(merges[-count]) + above) / 2.0 for count, above in enumerate(upper, start=1)]


def describe_odd(analyzed: AnalyzedWindow) -> list[OddUnit]:
    """Outlier GPUs, furthest first; the sentence is that of the finding if there is one."""
    diagnosis = analyzed.diagnosis
    titles = {finding.units[0]: finding.title for finding in analyzed.findings if finding.kind is FindingKind.ODD_GPU}
    return [
        OddUnit(
            unit=str(unit),
            distance=gpu.distance,
            p_value=gpu.p_value,
            kinds=[name for name, _ in gpu.features],
            sentence=titles.get(unit) or _describe_outlier(str(unit), gpu, diagnosis.metric or ""),
        )
        for gpu, unit in zip(
            diagnosis.odd.odd, diagnosis.run.pick([gpu.column for gpu in diagnosis.odd.odd]), strict=True
        )
    ]


def _describe_outlier(unit: str, gpu: OddGpu, metric: str) -> str:
    feature, distance = gpu.features[0]
    label = METRICS[metric].label if metric in METRICS else metric
    saying = FEATURE_PHRASES[feature][0 if distance > 0 else 1]
    return f"{unit}: {label} {saying} ({gpu.distance:.0f} spreads, p = {gpu.p_value:.1g})."


def describe_finding(finding: Finding) -> FindingAnswer:
    """A finding as an answer; NaN and infinity become null."""
    return FindingAnswer(
        kind=finding.kind,
        severity=finding.severity,
        title=finding.title,
        reason=finding.reason,
        size=_number(finding.size),
        size_unit=finding.size_unit,
        units=[str(unit) for unit in finding.units],
        start_at=finding.start_at,
        end_at=finding.end_at,
        metrics=list(finding.metrics),
        numbers={name: _describe_estimate(estimate) for name, estimate in finding.numbers.items()},
    )


def _describe_estimate(estimate: SizeEstimate) -> FindingNumber:
    return FindingNumber(
        value=_number(estimate.value), low=_number(estimate.low), high=_number(estimate.high), unit=estimate.unit
    )


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def describe_units(
    holding: WorkloadHolding, analyzed: AnalyzedWindow, rules: dict[str, list[UnitRule]]
) -> list[DiagnosedUnit]:
    """Every unit with its node, ranks, cluster and rules."""
    labels = _find_labels(analyzed)
    ranked = analyzed.diagnosis.odd.ranked
    odd_ranks = {str(unit): rank for rank, unit in enumerate(analyzed.diagnosis.run.pick(ranked), start=1)}
    return [
        DiagnosedUnit(
            unit=held.unit,
            node=held.node,
            index=held.index,
            global_rank=held.global_rank,
            local_rank=held.local_rank,
            cluster=labels.get(held.unit),
            odd_rank=odd_ranks.get(held.unit),
            rules=rules.get(held.unit, []),
            held_from=held.spans[0][0],
            held_to=None if held.is_open else held.spans[-1][1],
        )
        for held in holding.units
    ]
