"""Evaluates rules on recorded lives as if they were live: step by step, using only the samples so far.

Importing this imports numba; import it lazily where startup time matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clusterscape.analyze.rules.evaluation import evaluate
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.stats.exact import ExactColumns
from clusterscape.model.arrays import Int64s
from clusterscape.model.ids import UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Condition, Expression, Joined, Quantity, Rule
from clusterscape.model.statistics import STATISTICS, MeasuredThing


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRow:
    """The verdicts of one rule on one life. ``values``: of the last violation, else of the last evaluation."""

    rule: Rule
    workload: WorkloadId
    unit: UnitId
    evaluations: int
    judged: int
    broken: int
    first_at: UnixMs | None
    last_at: UnixMs | None
    values: dict[str, float] = field(default_factory=dict)
    why_unjudged: str = ""


def replay(
    rules: Sequence[Rule], columns: ExactColumns, facts: LifeFacts, from_at: Int64s, until_at: Int64s, *, step_ms: int
) -> list[ReplayedRow]:
    """Evaluate every ``step_ms`` from the first start to the last end, and at the end of each life.

    ``columns`` have the samples of whole lives, one row each; ``facts.age_ms`` is ignored.
    """
    counts = _ReplayCounts(len(rules), facts.row_count)
    for now in _moments(from_at, until_at, step_ms):
        is_running = (from_at < now) & (now <= until_at)
        at = np.minimum(now, until_at)
        verdicts = evaluate(rules, columns.at(at), replace(facts, age_ms=np.maximum(at - from_at, 0)))
        counts.evaluations += is_running
        counts.judged += is_running & ~verdicts.is_unjudged
        is_broken = is_running & verdicts.is_broken
        counts.broken += is_broken
        counts.first_at[is_broken & (counts.first_at < 0)] = now
        counts.last_at[is_broken] = now
        for rule, row in zip(*np.nonzero(is_broken | (is_running & (counts.broken == 0))), strict=True):
            counts.values[rule, row] = verdicts.values(rule, row)
            counts.why[rule, row] = verdicts.explain(rule, row).why
    return list(counts.rows(rules, facts))


def _moments(from_at: Int64s, until_at: Int64s, step_ms: int) -> list[int]:
    if not len(from_at):
        return []
    start, end = int(from_at.min()), int(until_at.max())
    return sorted({*range(start + step_ms, end + 1, step_ms), *map(int, until_at)})


class _ReplayCounts:
    def __init__(self, rules: int, rows: int) -> None:
        self.evaluations = np.zeros(rows, dtype=np.int64)
        self.judged = np.zeros((rules, rows), dtype=np.int64)
        self.broken = np.zeros((rules, rows), dtype=np.int64)
        self.first_at = np.full((rules, rows), -1, dtype=np.int64)
        self.last_at = np.full((rules, rows), -1, dtype=np.int64)
        self.values: dict[tuple[int, int], dict[str, float]] = {}
        self.why: dict[tuple[int, int], str] = {}

    def rows(self, rules: Sequence[Rule], facts: LifeFacts) -> list[ReplayedRow]:
        return [
            ReplayedRow(
                rule=rule,
                workload=facts.workloads[int(facts.workload[row])],
                unit=facts.units[row],
                evaluations=int(self.evaluations[row]),
                judged=int(self.judged[place, row]),
                broken=int(self.broken[place, row]),
                first_at=UnixMs(int(self.first_at[place, row])) if self.broken[place, row] else None,
                last_at=UnixMs(int(self.last_at[place, row])) if self.broken[place, row] else None,
                values=self.values.get((place, row), {}),
                why_unjudged="" if self.judged[place, row] else self.why.get((place, row), "it never ran"),
            )
            for place, rule in enumerate(rules)
            for row in range(facts.row_count)
        ]


def scale_times(rule: Rule, factor: float) -> Rule:
    """The rule for a recording that runs ``factor`` times as fast as real time: all its times are divided by ``factor``."""
    scope = replace(rule.scope, min_age_ms=round(rule.scope.min_age_ms / factor))
    return replace(rule, expression=_scale_expression(rule.expression, factor), scope=scope)


def _scale_expression(expression: Expression, factor: float) -> Expression:
    if isinstance(expression, Joined):
        return replace(expression, terms=tuple(_scale_expression(term, factor) for term in expression.terms))
    # Runs are shorter by the factor, slopes per hour steeper.
    scales = {MeasuredThing.DURATION: 1 / factor, MeasuredThing.RATE: factor}
    scale = scales.get(STATISTICS[expression.statistic.kind].measures, 1.0)
    window_ms = None if expression.window_ms is None else max(1, round(expression.window_ms / factor))
    value = Quantity(expression.value.number * scale, expression.value.basis)
    return Condition(
        metric=expression.metric,
        statistic=expression.statistic,
        operator=expression.operator,
        value=value,
        window_ms=window_ms,
        across=expression.across,
    )
