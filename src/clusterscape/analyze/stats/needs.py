"""What rules need to be kept of each life, read from their conditions."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from clusterscape.model.rules import Condition, Quantity
from clusterscape.model.statistics import STATISTICS


@dataclass(frozen=True, slots=True)
class Threshold:
    """A side of a threshold on which samples and runs are counted over the whole life."""

    metric: str
    is_above: bool
    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Needs:
    """Metrics to keep statistics of, and thresholds to count exactly."""

    metrics: frozenset[str] = frozenset()
    thresholds: frozenset[Threshold] = field(default_factory=frozenset)

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(self.metrics | other.metrics, self.thresholds | other.thresholds)

    def __le__(self, other: "Needs") -> bool:
        return self.metrics <= other.metrics and self.thresholds <= other.thresholds


def needs_of(conditions: Iterable[Condition]) -> Needs:
    """What judging ``conditions`` takes. A window needs no threshold: its samples are at hand."""
    metrics, thresholds = set(), set()
    for condition in conditions:
        metrics.add(condition.metric)
        statistic = condition.statistic
        is_above = STATISTICS[statistic.kind].is_above
        if is_above is not None and statistic.threshold is not None and condition.window_ms is None:
            thresholds.add(Threshold(condition.metric, is_above, statistic.threshold))
    return Needs(frozenset(metrics), frozenset(thresholds))
