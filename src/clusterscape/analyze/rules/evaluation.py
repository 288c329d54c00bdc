"""Evaluates rules on lives, all rows at once, in three-valued logic; each distinct statistic is computed once. Explains the
verdict of every row.

A condition is unknown if its metric has no value, or fewer samples over its time than the scope requires. Unknown and false is
false; unknown or true is true; if the rule stays unknown, the row is not judged yet. For hardware, unknown or false is false: a
metric that a GPU does not measure cannot break a rule, and must not keep a violation open that another condition started.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.facts import FALSE, OUT_OF_SCOPE, TRUE, UNKNOWN, LifeFacts, ScopeFilter, Truths, compare
from clusterscape.analyze.rules.vocabulary import short_name, write_duration
from clusterscape.analyze.rules.writing import format_condition, format_subject
from clusterscape.analyze.stats.contract import EQUAL_WITHIN, StatisticColumns
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.model.rules import (
    Across,
    Basis,
    Condition,
    Expression,
    Junction,
    Quantifier,
    Rule,
    RuleScope,
    Statistic,
)


class FetchedColumns:
    """A cache: each statistic is computed at most once."""

    def __init__(self, source: StatisticColumns) -> None:
        self._source = source
        self._columns: dict[tuple[str, Statistic, int | None], Float64s] = {}
        self._samples: dict[tuple[str, int | None], Int64s] = {}
        self._limits: dict[str, Float64s] = {}

    def column(self, metric: str, statistic: Statistic, window_ms: int | None) -> Float64s:
        """One value per row; NaN if missing."""
        key = (metric, statistic, window_ms)
        if key not in self._columns:
            self._columns[key] = self._source.column(metric, statistic, window_ms=window_ms)
        return self._columns[key]

    def samples(self, metric: str, window_ms: int | None) -> Int64s:
        """Number of samples of each row of a column."""
        key = (metric, window_ms)
        if key not in self._samples:
            self._samples[key] = self._source.samples(metric, window_ms=window_ms)
        return self._samples[key]

    def limits(self, metric: str) -> Float64s:
        """The limit of the metric on each row's GPU."""
        if metric not in self._limits:
            self._limits[metric] = self._source.limits(metric)
        return self._limits[metric]

    def bound(self, condition: Condition) -> Float64s:
        """The bound of a condition in canonical units: one per row, or one for all rows.

        Conditions across GPUs compare ratios of the limit, so their bound stays a ratio.
        """
        number = condition.value.number
        if condition.value.basis is Basis.LIMIT and condition.across is None:
            return self.limits(condition.metric) * number
        return np.asarray(number)


@dataclass(frozen=True, slots=True)
class Reading:
    """One condition on one row, in canonical units. None: unknown."""

    condition: Condition
    text: str
    subject: str
    value: float | None
    bound: float | None
    samples: int
    is_met: bool | None


@dataclass(frozen=True, slots=True)
class RuleExplanation:
    """The verdict of a rule on a row, with its reasons."""

    rule: Rule
    state: str  # "met", "not met", "not judged" or "out of scope"
    why: str  # in words, if it was not judged or is out of scope
    readings: tuple[Reading, ...]


_STATES = {int(TRUE): "met", int(FALSE): "not met", int(UNKNOWN): "not judged", int(OUT_OF_SCOPE): "out of scope"}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """``states[rule, row]`` is TRUE (broken), FALSE, UNKNOWN (not judged yet) or OUT_OF_SCOPE."""

    rules: tuple[Rule, ...]
    states: Truths
    facts: LifeFacts
    columns: FetchedColumns = field(repr=False)
    read: Callable[[Condition, int], Float64s] = field(repr=False)

    @property
    def is_broken(self) -> Bools:
        """Whether a rule is broken: rules × rows."""
        return np.asarray(self.states == TRUE)

    @property
    def is_unjudged(self) -> Bools:
        """Whether a row is not judged yet (too young, too few samples, or a missing metric): rules × rows."""
        return np.asarray(self.states == UNKNOWN)

    def values(self, rule: int, row: int) -> dict[str, float]:
        """The statistics behind a verdict, by the text of their condition; without unknown ones."""
        readings = (self._read(condition, rule, row) for condition in self._conditions(rule))
        return {reading.text: reading.value for reading in readings if reading.value is not None}

    def explain(self, rule: int, row: int) -> RuleExplanation:
        """The verdict with the statistic, bound and truth of every condition."""
        readings = tuple(self._read(condition, rule, row) for condition in self._conditions(rule))
        state = int(self.states[rule, row])
        return RuleExplanation(self.rules[rule], _STATES[state], self._why(rule, row, readings), readings)

    def _conditions(self, rule: int) -> tuple[Condition, ...]:
        return tuple(dict.fromkeys(iter_conditions(self.rules[rule].expression)))

    def _read(self, condition: Condition, rule: int, row: int) -> Reading:
        values = self.read(condition, self.rules[rule].scope.min_samples)[row : row + 1]
        bound = np.atleast_1d(self.columns.bound(condition))
        bound = bound[row : row + 1] if len(bound) > 1 else bound
        is_known = not (np.isnan(values[0]) or np.isnan(bound[0]))
        return Reading(
            condition=condition,
            text=format_condition(condition),
            subject=format_subject(condition),
            value=None if np.isnan(values[0]) else float(values[0]),
            bound=None if np.isnan(bound[0]) else float(bound[0]),
            samples=int(self.columns.samples(condition.metric, condition.window_ms)[row]),
            is_met=bool(compare(values, condition.operator, bound)[0]) if is_known else None,
        )

    def _why(self, rule: int, row: int, readings: tuple[Reading, ...]) -> str:
        state, scope = self.states[rule, row], self.rules[rule].scope
        if state == OUT_OF_SCOPE:
            return "the rule does not apply to this workload"
        if state != UNKNOWN:
            return ""
        if self.facts.age_ms[row] < scope.min_age_ms:
            return f"younger than {write_duration(scope.min_age_ms)}"
        missing = [reading for reading in readings if reading.is_met is None]
        if not missing:
            return "other GPUs of the workload are not judged yet"
        return "; ".join(dict.fromkeys(_describe_missing(reading, scope.min_samples) for reading in missing))


def _describe_missing(reading: Reading, min_samples: int) -> str:
    name = short_name(reading.condition.metric)
    if reading.samples == 0:
        return f"{name} is not measured"
    if reading.samples < min_samples:
        return f"{reading.subject} has {reading.samples} of {min_samples} samples"
    return f"the GPU's limit of {name} is unknown"


def evaluate(rules: Sequence[Rule], columns: StatisticColumns, facts: LifeFacts) -> Verdicts:
    """The verdict of every rule on every row. Disabled rules are evaluated too: the caller selects rules."""
    if columns.row_count != facts.row_count:
        raise ValueError(f"{columns.row_count} rows of statistics, but {facts.row_count} lives")
    evaluator = _Evaluator(FetchedColumns(columns), facts)
    states = np.empty((len(rules), facts.row_count), dtype=np.uint8)
    for place, rule in enumerate(rules):
        states[place] = evaluator.evaluate(rule)
    return Verdicts(rules=tuple(rules), states=states, facts=facts, columns=evaluator.columns, read=evaluator.read)


class _Evaluator:
    def __init__(self, columns: FetchedColumns, facts: LifeFacts) -> None:
        self.columns = columns
        self._facts = facts
        self._filter = ScopeFilter(facts)
        self._truths: dict[tuple[Condition, int], Truths] = {}
        self._read: dict[tuple[object, ...], Float64s] = {}
        self._is_too_young: dict[int, Bools] = {}
        self._workload_count = len(facts.workloads)
        self._order: NDArray[np.intp] | None = None

    def evaluate(self, rule: Rule) -> Truths:
        scope = rule.scope
        if scope.subject is not self._facts.subject:
            return np.full(self._facts.row_count, OUT_OF_SCOPE, np.uint8)
        truths = self._evaluate_expression(rule.expression, scope.min_samples)
        too_young = self._too_young(scope.min_age_ms)
        truths = np.where(too_young, UNKNOWN, truths)
        in_scope = self._filter.rows(scope)
        if scope.quantifier is not Quantifier.EACH:
            truths = self._evaluate_workloads(truths, scope)
        return truths if in_scope is None else np.where(in_scope, truths, OUT_OF_SCOPE)

    def _too_young(self, min_age_ms: int) -> Bools:
        if min_age_ms not in self._is_too_young:
            self._is_too_young[min_age_ms] = self._facts.age_ms < min_age_ms
        return self._is_too_young[min_age_ms]

    def _evaluate_expression(self, expression: Expression, min_samples: int) -> Truths:
        if isinstance(expression, Condition):
            return self._evaluate_condition(expression, min_samples)
        parts = [self._evaluate_expression(term, min_samples) for term in expression.terms]
        # FALSE < UNKNOWN < TRUE: the minimum is the `and`, the maximum the `or`.
        merge = np.minimum if expression.junction is Junction.AND else np.maximum
        joined = merge(parts[0], parts[1])
        for part in parts[2:]:
            joined = merge(joined, part)
        if expression.junction is Junction.OR and self._facts.subject.is_lifeless:
            is_denied = np.logical_or.reduce([part == FALSE for part in parts])
            joined = np.where((joined == UNKNOWN) & is_denied, FALSE, joined)
        return joined

    def _evaluate_condition(self, condition: Condition, min_samples: int) -> Truths:
        key = (condition, min_samples)
        if key not in self._truths:
            values = self.read(condition, min_samples)
            bound = self.columns.bound(condition)
            truths = compare(values, condition.operator, bound) * TRUE
            truths[np.isnan(values + bound)] = UNKNOWN
            self._truths[key] = truths
        return self._truths[key]

    def read(self, condition: Condition, min_samples: int) -> Float64s:
        """The compared statistic per row; NaN if it is unknown or has too few samples."""
        is_of_limit = condition.across is not None and condition.value.basis is Basis.LIMIT
        key = (condition.metric, condition.statistic, condition.window_ms, condition.across, is_of_limit, min_samples)
        if key not in self._read:
            values = self.columns.column(condition.metric, condition.statistic, condition.window_ms)
            samples = self.columns.samples(condition.metric, condition.window_ms)
            values = np.where(samples < min_samples, np.nan, values)
            if condition.across is not None:
                values = self._aggregate_across(values, condition)
            self._read[key] = values
        return self._read[key]

    def _aggregate_across(self, values: Float64s, condition: Condition) -> Float64s:
        """One value per workload, repeated on each of its rows; units without a value are ignored."""
        if condition.value.basis is Basis.LIMIT:
            # GPUs of one workload may have different limits: compare ratios, not watts.
            values = values / self.columns.limits(condition.metric)
        is_known = ~np.isnan(values)
        workload = np.asarray(self._facts.workload)
        count = np.bincount(workload[is_known], minlength=self._workload_count)
        if condition.across is Across.AVERAGE:
            total = np.bincount(workload[is_known], weights=values[is_known], minlength=self._workload_count)
            with np.errstate(invalid="ignore"):
                return np.asarray((total / count)[workload])
        least = self._find_extremes(values, is_known, is_most=False)
        most = self._find_extremes(values, is_known, is_most=True)
        by_kind = {Across.LEAST: least, Across.MOST: most, Across.SPREAD: most - least}
        assert condition.across is not None
        return np.asarray(np.where(count > 0, by_kind[condition.across], np.nan)[workload])

    def _find_extremes(self, values: Float64s, is_known: Bools, *, is_most: bool) -> Float64s:
        start = 0.0 if not self._workload_count else (-np.inf if is_most else np.inf)
        extremes = np.full(self._workload_count, start)
        (np.maximum if is_most else np.minimum).at(
            extremes, np.asarray(self._facts.workload)[is_known], values[is_known]
        )
        return np.where(np.isfinite(extremes), extremes, 0.0)

    def _evaluate_workloads(self, truths: Truths, scope: RuleScope) -> Truths:
        workload = np.asarray(self._facts.workload)
        rows = np.bincount(workload, minlength=self._workload_count)
        met = np.bincount(workload[truths == TRUE], minlength=self._workload_count)
        unknown = np.bincount(workload[truths == UNKNOWN], minlength=self._workload_count)
        share = scope.share if scope.share is not None else 1.0
        # Number of GPUs that must meet the conditions; 50 % of 3 GPUs is 2. 1e-9, because 0.29 × 100 is not exactly 29.
        needed = np.ones_like(rows) if scope.quantifier is Quantifier.ANY else np.ceil(rows * share - EQUAL_WITHIN)
        states = np.where(met >= needed, TRUE, np.where(met + unknown < needed, FALSE, UNKNOWN)).astype(np.uint8)
        return np.asarray(states[workload])
