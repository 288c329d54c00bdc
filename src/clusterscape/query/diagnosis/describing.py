"""A judged window put into the shapes of the answer."""

import math

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from clusterscape.analyze.diagnose import Clustering, Explanation, OddGpu
from clusterscape.analyze.diagnose.group_findings import SAYINGS
from clusterscape.model import METRICS
from clusterscape.model.findings import Estimate, Finding, FindingKind
from clusterscape.query.diagnosis.answers import (
    ClusterExplanation,
    DiagnosedUnit,
    FindingAnswer,
    FindingNumber,
    GpuCluster,
    OddUnit,
    UnitRule,
)
from clusterscape.query.diagnosis.diagnosing import Judged
from clusterscape.query.diagnosis.holding import Holding

MOST_HEIGHTS = 64


def describe_clusters(judged: Judged) -> list[GpuCluster]:
    """Clusters with what their GPUs share."""
    found = judged.diagnosis
    clusters = []
    for label in range(found.clustering.count):
        members = found.run.pick(found.clustering.members(label))
        clusters.append(
            GpuCluster(
                label=label,
                size=len(members),
                units=[str(unit) for unit in members],
                explanation=_explain(found.explanations[label]),
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


def _find_labels(judged: Judged) -> dict[str, int]:
    """The cluster of each unit that is in one."""
    clustering = judged.diagnosis.clustering
    units = judged.diagnosis.run.pick(clustering.compared)
    return {str(unit): int(label) for unit, label in zip(units, clustering.labels, strict=True)}


def order_leaves(clustering: Clustering) -> list[int]:
    """Columns in the order of the dendrogram."""
    if len(clustering.tree) == 0:
        return [int(column) for column in clustering.compared]
    return [int(clustering.compared[leaf]) for leaf in leaves_list(clustering.tree)]


def heights_for_counts(clustering: Clustering) -> list[float]:
    """Where to cut for 1, 2, … clusters: half-way between two merges; above the last for one."""
    if len(clustering.tree) == 0:
        return []
    merges = np.concatenate([[0.0], clustering.tree[:, 2]])
    most = min(merges.size, MOST_HEIGHTS)
    upper = [float(merges[-1]) * 1.1, *(float(merges[1 - count]) for count in range(2, most + 1))]
    return [(float(merges[-count]) + above) / 2.0 for count, above in enumerate(upper, start=1)]


def describe_odd(judged: Judged) -> list[OddUnit]:
    """Odd GPUs, oddest first; the sentence is the finding's where there is one."""
    found = judged.diagnosis
    said = {finding.units[0]: finding.title for finding in judged.findings if finding.kind is FindingKind.ODD_GPU}
    return [
        OddUnit(
            unit=str(unit),
            distance=gpu.distance,
            p_value=gpu.p_value,
            kinds=[name for name, _ in gpu.features],
            sentence=said.get(unit) or _say(str(unit), gpu, found.metric or ""),
        )
        for gpu, unit in zip(found.odd.odd, found.run.pick([gpu.column for gpu in found.odd.odd]), strict=True)
    ]


def _say(unit: str, gpu: OddGpu, metric: str) -> str:
    feature, distance = gpu.features[0]
    label = METRICS[metric].label if metric in METRICS else metric
    saying = SAYINGS[feature][0 if distance > 0 else 1]
    return f"{unit}: {label} {saying} ({gpu.distance:.0f} spreads, p = {gpu.p_value:.1g})."


def describe_finding(finding: Finding) -> FindingAnswer:
    """As the wire has it: what is not a number is null."""
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


def _describe_estimate(estimate: Estimate) -> FindingNumber:
    return FindingNumber(
        value=_number(estimate.value), low=_number(estimate.low), high=_number(estimate.high), unit=estimate.unit
    )


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def describe_units(holding: Holding, judged: Judged, rules: dict[str, list[UnitRule]]) -> list[DiagnosedUnit]:
    """Every unit with its place, ranks, cluster and rules."""
    labels = _find_labels(judged)
    ranked = judged.diagnosis.odd.ranked
    odd_ranks = {str(unit): place for place, unit in enumerate(judged.diagnosis.run.pick(ranked), start=1)}
    return [
        DiagnosedUnit(
            unit=each.unit,
            node=each.node,
            index=each.index,
            global_rank=each.global_rank,
            local_rank=each.local_rank,
            cluster=labels.get(each.unit),
            odd_rank=odd_ranks.get(each.unit),
            rules=rules.get(each.unit, []),
            held_from=each.spans[0][0],
            held_to=None if each.is_open else each.spans[-1][1],
        )
        for each in holding.units
    ]
