"""Judges lives by rules, all rows at once: three-valued, each distinct statistic asked for once.

A condition is unknown where its metric has no value or fewer samples than the scope wants over the time it looks at. Unknown
and false is false; unknown or true is true; a rule that stays unknown has not judged yet. Of hardware, unknown or false is false:
what a GPU does not measure cannot break a rule, and must not keep open what another condition began.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.rules.facts import Bools, LifeFacts, ScopeFilter
from clusterscape.analyze.rules.truths import FALSE, OUT_OF_SCOPE, TRUE, UNKNOWN, Truths, compare
from clusterscape.analyze.rules.verdicts import FetchedColumns, Verdicts
from clusterscape.analyze.stats.contract import EQUAL_WITHIN, StatisticColumns
from clusterscape.model.rules import (
    Across,
    Basis,
    Condition,
    Expression,
    Junction,
    Quantifier,
    Rule,
    Scope,
)
from clusterscape.model.samples import Float64s


def evaluate(rules: Sequence[Rule], columns: StatisticColumns, facts: LifeFacts) -> Verdicts:
    """The verdict of every rule on every row. Rules that are switched off are judged too: the caller chooses."""
    if columns.row_count != facts.row_count:
        raise ValueError(f"{columns.row_count} rows of statistics for {facts.row_count} lives")
    judge = _Judge(FetchedColumns(columns), facts)
    states = np.empty((len(rules), facts.row_count), dtype=np.uint8)
    for place, rule in enumerate(rules):
        states[place] = judge.judge(rule)
    return Verdicts(rules=tuple(rules), states=states, facts=facts, columns=judge.columns, read=judge.read)


class _Judge:
    def __init__(self, columns: FetchedColumns, facts: LifeFacts) -> None:
        self.columns = columns
        self._facts = facts
        self._filter = ScopeFilter(facts)
        self._truths: dict[tuple[Condition, int], Truths] = {}
        self._read: dict[tuple[object, ...], Float64s] = {}
        self._old_enough: dict[int, Bools] = {}
        self._workload_count = len(facts.workloads)
        self._order: NDArray[np.intp] | None = None

    def judge(self, rule: Rule) -> Truths:
        scope = rule.scope
        if scope.subject is not self._facts.subject:
            return np.full(self._facts.row_count, OUT_OF_SCOPE, np.uint8)
        truths = self._express(rule.expression, scope.min_samples)
        too_young = self._too_young(scope.min_age_ms)
        truths = np.where(too_young, UNKNOWN, truths)
        in_scope = self._filter.rows(scope)
        if scope.quantifier is not Quantifier.EACH:
            truths = self._blame_workloads(truths, scope)
        return truths if in_scope is None else np.where(in_scope, truths, OUT_OF_SCOPE)

    def _too_young(self, min_age_ms: int) -> Bools:
        if min_age_ms not in self._old_enough:
            self._old_enough[min_age_ms] = self._facts.age_ms < min_age_ms
        return self._old_enough[min_age_ms]

    def _express(self, expression: Expression, min_samples: int) -> Truths:
        if isinstance(expression, Condition):
            return self._test(expression, min_samples)
        parts = [self._express(term, min_samples) for term in expression.terms]
        # FALSE < UNKNOWN < TRUE: the weakest decides an `and`, the strongest an `or`.
        merge = np.minimum if expression.junction is Junction.AND else np.maximum
        joined = merge(parts[0], parts[1])
        for part in parts[2:]:
            joined = merge(joined, part)
        if expression.junction is Junction.OR and self._facts.subject.is_hardware:
            is_denied = np.logical_or.reduce([part == FALSE for part in parts])
            joined = np.where((joined == UNKNOWN) & is_denied, FALSE, joined)
        return joined

    def _test(self, condition: Condition, min_samples: int) -> Truths:
        key = (condition, min_samples)
        if key not in self._truths:
            values = self.read(condition, min_samples)
            bound = self.columns.bound(condition)
            truths = compare(values, condition.operator, bound) * TRUE
            truths[np.isnan(values + bound)] = UNKNOWN
            self._truths[key] = truths
        return self._truths[key]

    def read(self, condition: Condition, min_samples: int) -> Float64s:
        """What a condition compares, per row; NaN where it cannot be told or rests on too few samples."""
        is_of_limit = condition.across is not None and condition.value.basis is Basis.LIMIT
        key = (condition.metric, condition.statistic, condition.window_ms, condition.across, is_of_limit, min_samples)
        if key not in self._read:
            values = self.columns.column(condition.metric, condition.statistic, condition.window_ms)
            samples = self.columns.samples(condition.metric, condition.window_ms)
            values = np.where(samples < min_samples, np.nan, values)
            if condition.across is not None:
                values = self._across(values, condition)
            self._read[key] = values
        return self._read[key]

    def _across(self, values: Float64s, condition: Condition) -> Float64s:
        """One value per workload, on each of its rows; of the units whose value is known."""
        if condition.value.basis is Basis.LIMIT:
            # GPUs of one workload may differ in their limit: ratios are compared, not watts.
            values = values / self.columns.limits(condition.metric)
        known = ~np.isnan(values)
        workload = np.asarray(self._facts.workload)
        count = np.bincount(workload[known], minlength=self._workload_count)
        if condition.across is Across.AVERAGE:
            total = np.bincount(workload[known], weights=values[known], minlength=self._workload_count)
            with np.errstate(invalid="ignore"):
                return np.asarray((total / count)[workload])
        least = self._extreme(values, known, is_most=False)
        most = self._extreme(values, known, is_most=True)
        by_kind = {Across.LEAST: least, Across.MOST: most, Across.SPREAD: most - least}
        assert condition.across is not None
        return np.asarray(np.where(count > 0, by_kind[condition.across], np.nan)[workload])

    def _extreme(self, values: Float64s, known: Bools, *, is_most: bool) -> Float64s:
        start = 0.0 if not self._workload_count else (-np.inf if is_most else np.inf)
        found = np.full(self._workload_count, start)
        (np.maximum if is_most else np.minimum).at(found, np.asarray(self._facts.workload)[known], values[known])
        return np.where(np.isfinite(found), found, 0.0)

    def _blame_workloads(self, truths: Truths, scope: Scope) -> Truths:
        workload = np.asarray(self._facts.workload)
        rows = np.bincount(workload, minlength=self._workload_count)
        met = np.bincount(workload[truths == TRUE], minlength=self._workload_count)
        open_ = np.bincount(workload[truths == UNKNOWN], minlength=self._workload_count)
        share = scope.share if scope.share is not None else 1.0
        # How many must meet the conditions; a share of 50 % of 3 GPUs is 2. 1e-9: 0.29 × 100 is not 29 in binary.
        needed = np.ones_like(rows) if scope.quantifier is Quantifier.ANY else np.ceil(rows * share - EQUAL_WITHIN)
        blamed = np.where(met >= needed, TRUE, np.where(met + open_ < needed, FALSE, UNKNOWN)).astype(np.uint8)
        return np.asarray(blamed[workload])
