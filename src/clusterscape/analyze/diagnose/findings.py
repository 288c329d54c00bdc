"""All findings of a run, ranked: by severity, then by how many GPU-hours they concern."""

from collections.abc import Sequence

from clusterscape.analyze.diagnose.clustering import Clustering
from clusterscape.analyze.diagnose.course_findings import (
    find_busy_links,
    find_idle_tail,
    find_memory_growth,
    find_periodic_dips,
    find_stall,
    find_throttling,
)
from clusterscape.analyze.diagnose.explain import Explanation
from clusterscape.analyze.diagnose.group_findings import describe_odd_gpus, find_imbalance, find_slow_node
from clusterscape.analyze.diagnose.outliers import OddGpus
from clusterscape.analyze.diagnose.run_data import RunData
from clusterscape.analyze.diagnose.thumb_rules import read_thumb_rules
from clusterscape.model.findings import Finding, FindingKind, SizeUnit
from clusterscape.model.rules import Severity

COURSE_FINDERS = {
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
) -> tuple[Finding, ...]:
    """Everything worth saying about the run, most important first; nothing where nothing is."""
    if run.samples.times_ms.size < 2:
        return ()
    rules = read_thumb_rules()
    found = [finding for kind, find in COURSE_FINDERS.items() for finding in find(run, rules[kind])]
    found += find_imbalance(run, rules[FindingKind.IMBALANCE], clustering, explanations, metric)
    found += find_slow_node(run, rules[FindingKind.SLOW_NODE])
    if metric in run.samples.metrics:
        found += describe_odd_gpus(run, rules[FindingKind.ODD_GPU], odd, metric)
    return rank_findings(found)


def rank_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Most severe first; among equals the largest, and what will happen before what was lost."""
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
