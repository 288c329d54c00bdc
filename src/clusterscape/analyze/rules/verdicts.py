"""What rules said about lives, and why: the state of every rule on every row, and the readings behind one of them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.facts import Bools, LifeFacts
from clusterscape.analyze.rules.quantities import write_duration
from clusterscape.analyze.rules.truths import FALSE, OUT_OF_SCOPE, TRUE, UNKNOWN, Truths, compare
from clusterscape.analyze.rules.vocabulary import short_name
from clusterscape.analyze.rules.writing import format_condition, format_subject
from clusterscape.analyze.stats.contract import StatisticColumns
from clusterscape.model.rules import Basis, Condition, Rule, Statistic
from clusterscape.model.samples import Float64s, Int64s


class FetchedColumns:
    """Statistics asked for at most once each."""

    def __init__(self, source: StatisticColumns) -> None:
        self._source = source
        self._columns: dict[tuple[str, Statistic, int | None], Float64s] = {}
        self._samples: dict[tuple[str, int | None], Int64s] = {}
        self._limits: dict[str, Float64s] = {}

    def column(self, metric: str, statistic: Statistic, window_ms: int | None) -> Float64s:
        """One value per row; NaN where there is none."""
        key = (metric, statistic, window_ms)
        if key not in self._columns:
            self._columns[key] = self._source.column(metric, statistic, window_ms=window_ms)
        return self._columns[key]

    def samples(self, metric: str, window_ms: int | None) -> Int64s:
        """Samples behind a column."""
        key = (metric, window_ms)
        if key not in self._samples:
            self._samples[key] = self._source.samples(metric, window_ms=window_ms)
        return self._samples[key]

    def limits(self, metric: str) -> Float64s:
        """Each row's own limit of the metric."""
        if metric not in self._limits:
            self._limits[metric] = self._source.limits(metric)
        return self._limits[metric]

    def bound(self, condition: Condition) -> Float64s:
        """What statistics are compared with, in canonical units: one for each row, or one for all.

        Across GPUs a ratio of the limit stays one.
        """
        number = condition.value.number
        if condition.value.basis is Basis.LIMIT and condition.across is None:
            return self.limits(condition.metric) * number
        return np.asarray(number)


@dataclass(frozen=True, slots=True)
class Reading:
    """One condition on one row, in canonical units. None: not known."""

    condition: Condition
    text: str
    subject: str
    value: float | None
    bound: float | None
    samples: int
    is_met: bool | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a rule said what it said about a row."""

    rule: Rule
    state: str  # "met", "not met", "not judged" or "out of scope"
    why: str  # in words, where it was not judged or is out of scope
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
        """Rules × rows."""
        return np.asarray(self.states == TRUE)

    @property
    def is_unjudged(self) -> Bools:
        """Rules × rows: too young, too few samples, or a metric is missing."""
        return np.asarray(self.states == UNKNOWN)

    def values(self, rule: int, row: int) -> dict[str, float]:
        """The statistics behind a verdict by the text of their condition; unknown ones are left out."""
        readings = (self._read(condition, rule, row) for condition in self._conditions(rule))
        return {reading.text: reading.value for reading in readings if reading.value is not None}

    def explain(self, rule: int, row: int) -> Explanation:
        """Every condition's statistic, bound and truth."""
        readings = tuple(self._read(condition, rule, row) for condition in self._conditions(rule))
        state = int(self.states[rule, row])
        return Explanation(self.rules[rule], _STATES[state], self._why(rule, row, readings), readings)

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
            return "the rule does not judge this workload"
        if state != UNKNOWN:
            return ""
        if self.facts.age_ms[row] < scope.min_age_ms:
            return f"younger than {write_duration(scope.min_age_ms)}"
        missing = [reading for reading in readings if reading.is_met is None]
        if not missing:
            return "other GPUs of the workload are not judged yet"
        return "; ".join(dict.fromkeys(_describe_missing(one, scope.min_samples) for one in missing))


def _describe_missing(reading: Reading, min_samples: int) -> str:
    name = short_name(reading.condition.metric)
    if reading.samples == 0:
        return f"{name} is not measured"
    if reading.samples < min_samples:
        return f"{reading.subject} has {reading.samples} of {min_samples} samples"
    return f"the GPU's limit of {name} is not known"
