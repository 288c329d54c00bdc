"""Rules as canonical text, which ``reading`` parses to the same rule, and explanations of rules and values as sentences."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.vocabulary import format_decimal, short_name, write_duration, write_quantity
from clusterscape.model.metrics import METRICS, MetricUnit
from clusterscape.model.rules import (
    Across,
    Basis,
    Condition,
    Expression,
    Junction,
    Operator,
    Quantifier,
    Quantity,
    Rule,
    RuleScope,
    Statistic,
    StatisticKind,
    Subject,
    standard_scope,
)
from clusterscape.model.statistics import RUNS, SHARES, STATISTICS, Argument, MeasuredThing

BARE_NAME = re.compile(r"[\w.*?\[\]!@:/+-]+")
"""A name that needs no quotes, unless it is one of the ``CLAUSE_WORDS``."""

CLAUSE_WORDS = frozenset({"for", "after", "with", "on", "and", "or", "over"})
SUBJECT_WORDS = {
    Subject.GPUS: "every GPU",
    Subject.NODES: "every node",
    Subject.SOURCES: "every source",
    Subject.USERS: "every user",
    Subject.PROJECTS: "every project",
}


def format_rule(rule: Rule) -> str:
    """The rule's conditions and scope; name, severity and other fields are not part of the text."""
    return format_text(rule.expression, rule.scope)


def format_text(expression: Expression, scope: RuleScope) -> str:
    """Conditions, then the clauses that differ from the default scope."""
    return " ".join([format_expression(expression), *_clauses(scope)])


def format_expression(expression: Expression) -> str:
    """Conditions joined; an ``or`` inside an ``and`` gets parentheses."""
    if isinstance(expression, Condition):
        return format_condition(expression)
    parts = []
    for term in expression.terms:
        text = format_expression(term)
        is_looser = not isinstance(term, Condition) and expression.junction is Junction.AND
        parts.append(f"({text})" if is_looser else text)
    return f" {expression.junction.value} ".join(parts)


def format_condition(condition: Condition) -> str:
    """``gpu_util p95 over last 30m < 5%``."""
    return f"{format_subject(condition)} {condition.operator.value} {_format_value(condition)}"


def format_subject(condition: Condition) -> str:
    """What is compared: ``spread of gpu_util mean``, ``share of power below 30% over last 1h``."""
    across = f"{condition.across.value} of " if condition.across else ""
    window = f" over last {write_duration(condition.window_ms)}" if condition.window_ms is not None else ""
    return f"{across}{_format_statistic(condition.metric, condition.statistic)}{window}"


def _format_statistic(metric: str, statistic: Statistic) -> str:
    name = short_name(metric)
    entry = STATISTICS[statistic.kind]
    if entry.argument is Argument.THRESHOLD:
        assert statistic.threshold is not None
        verb = "share of" if entry.measures is MeasuredThing.SHARE else "longest"
        side = statistic.kind.value.removeprefix("longest_")
        return f"{verb} {name} {side} {''.join(write_quantity(statistic.threshold, METRICS[metric], None))}"
    return f"{name} {statistic_word(statistic)}"


def statistic_word(statistic: Statistic) -> str:
    """``p95``, ``mean``, ``slope``: the word after the metric."""
    if statistic.kind is StatisticKind.PERCENTILE:
        assert statistic.percentile is not None
        return f"p{format_number(statistic.percentile)}"
    return statistic.kind.value


def _format_value(condition: Condition) -> str:
    text = format_value(condition.value, condition.metric, condition.statistic.kind)
    return f"{text}/h" if STATISTICS[condition.statistic.kind].measures is MeasuredThing.RATE else text


def format_value(value: Quantity, metric: str, kind: StatisticKind) -> str:
    """A value of a statistic with its unit, without the ``/h`` of rates."""
    return "".join(write_quantity(value, METRICS[metric], kind))


def format_number(number: float) -> str:
    """``95``, ``99.9``: the shortest digits that round-trip."""
    return format_decimal(Decimal(repr(number)))


def format_name(name: str) -> str:
    """The name as it is if it can be parsed, else in quotes with JSON escapes."""
    is_bare = BARE_NAME.fullmatch(name) and name.lower() not in CLAUSE_WORDS
    return name if is_bare else json.dumps(name, ensure_ascii=False)


def _clauses(scope: RuleScope) -> list[str]:
    filters = (
        ("user", scope.users),
        ("project", scope.projects),
        ("partition", scope.partitions),
        ("machine type", scope.machine_types),
        ("name", scope.names),
    )
    standard = standard_scope(scope.subject)
    clauses = [f"for {SUBJECT_WORDS[scope.subject]}"] if scope.subject in SUBJECT_WORDS else []
    clauses += [f"for {word} {', '.join(map(format_name, names))}" for word, names in filters if names]
    if scope.quantifier is Quantifier.SHARE:
        assert scope.share is not None
        clauses.append(f"on {format_decimal(Decimal(repr(scope.share)) * 100)}% of GPUs")
    elif scope.quantifier is not Quantifier.EACH:
        clauses.append("on any GPU" if scope.quantifier is Quantifier.ANY else "on all GPUs")
    if scope.min_gpus != standard.min_gpus:
        clauses.append(f"with at least {scope.min_gpus} GPU{'' if scope.min_gpus == 1 else 's'}")
    if scope.min_samples != standard.min_samples:
        clauses.append(f"with {scope.min_samples} sample{'' if scope.min_samples == 1 else 's'}")
    if scope.min_age_ms != standard.min_age_ms:
        clauses.append(f"after {write_duration(scope.min_age_ms)}")
    return clauses


_OPERATORS = {
    Operator.LESS: "less than",
    Operator.AT_MOST: "at most",
    Operator.MORE: "more than",
    Operator.AT_LEAST: "at least",
    Operator.EQUAL: "equal to",
    Operator.UNEQUAL: "other than",
}
_ACROSS = {
    Across.SPREAD: "the spread between the workload's GPUs of",
    Across.LEAST: "the minimum over the workload's GPUs of",
    Across.MOST: "the maximum over the workload's GPUs of",
    Across.AVERAGE: "the average over the workload's GPUs of",
}


def explain_in_words(rule: Rule) -> list[str]:
    """One sentence for each condition, then one about the scope."""
    conditions = dict.fromkeys(iter_conditions(rule.expression))
    return [*map(_describe_condition, conditions), _describe_scope(rule.scope)]


def _describe_condition(condition: Condition) -> str:
    metric, kind = METRICS[condition.metric], condition.statistic.kind
    label = STATISTICS[kind].label
    if condition.statistic.percentile is not None:
        label = f"{condition.statistic.percentile:g}th percentile"
    if condition.statistic.threshold is not None:
        threshold = format_value(condition.statistic.threshold, condition.metric, StatisticKind.NOW)
        label = f"{label} {threshold}{_of_limit(condition.statistic.threshold)}"
    across = f"{_ACROSS[condition.across]} " if condition.across else ""
    time = "the whole life" if condition.window_ms is None else f"the last {write_duration(condition.window_ms)}"
    over = "" if kind is StatisticKind.NOW and condition.window_ms is None else f", over {time}"
    value = format_value(condition.value, condition.metric, kind) + _of_limit(condition.value)
    subject = f"{across}{metric.label}, {label}{over}"
    return f"{format_condition(condition)}: {subject}, is {_OPERATORS[condition.operator]} {value}."


def _of_limit(quantity: Quantity) -> str:
    return " of the GPU's limit" if quantity.basis is Basis.LIMIT else ""


def _describe_scope(scope: RuleScope) -> str:
    if scope.subject.is_lifeless:
        return _describe_hardware(scope)
    reported = {
        Quantifier.EACH: "each GPU separately",
        Quantifier.ANY: "the whole workload if any of its GPUs meets this",
        Quantifier.ALL: "the whole workload if all of its GPUs meet this",
        Quantifier.SHARE: f"the whole workload if {(scope.share or 0) * 100:g}% of its GPUs meet this",
    }[scope.quantifier]
    filters = (
        ("users", scope.users),
        ("projects", scope.projects),
        ("partitions", scope.partitions),
        ("machine types", scope.machine_types),
        ("names", scope.names),
    )
    workloads = "; ".join(f"{word} {', '.join(names)}" for word, names in filters if names) or "every workload"
    size = f", of {scope.min_gpus} GPUs or more" if scope.min_gpus > 1 else ""
    age = write_duration(scope.min_age_ms)
    return f"Applies to {workloads}{size}, after {age} and from {scope.min_samples} samples on; reports {reported}."


def _describe_hardware(scope: RuleScope) -> str:
    filters = (
        ("users", scope.users),
        ("projects", scope.projects),
        ("partitions", scope.partitions),
        ("machine types", scope.machine_types),
        ("names", scope.names),
    )
    which = "; ".join(f"{word} {', '.join(names)}" for word, names in filters if names)
    share = f"{(scope.share or 0) * 100:g}% of its"
    reported = {
        Quantifier.EACH: "",
        Quantifier.ANY: "; reports the node if any of its GPUs meets this",
        Quantifier.ALL: "; reports the node if all of its GPUs meet this",
        Quantifier.SHARE: f"; reports the node if {share} GPUs meet this",
    }[scope.quantifier]
    samples = "" if scope.min_samples == 1 else f", from {scope.min_samples} samples on"
    subjects = {
        Subject.GPUS: "every GPU, allocated or not",
        Subject.NODES: "every node",
        Subject.SOURCES: "every source",
        Subject.USERS: "every user, by the jobs that ended",
        Subject.PROJECTS: "every project, by the jobs that ended",
    }
    return f"Applies to {subjects[scope.subject]}{f', of {which}' if which else ''}{samples}{reported}."


def format_values(rule: Rule, values: Mapping[str, float]) -> str:
    """``gpu_util p95 100%, power p50 121.5W``: the statistics behind a verdict, in short form."""
    parts = []
    for condition in dict.fromkeys(iter_conditions(rule.expression)):
        value = values.get(format_condition(condition))
        if value is not None:
            parts.append(f"{format_subject(condition)} {format_reading(value, condition)}")
    return ", ".join(parts)


def format_reading(value: float, condition: Condition) -> str:
    """``121.5W``: the statistic of a condition with its unit, to four digits."""
    unit, kind = METRICS[condition.metric].unit, condition.statistic.kind
    if kind in RUNS:
        return write_duration(round(value) * 1000)
    is_ratio = kind in SHARES or unit is MetricUnit.RATIO or (condition.across and condition.value.basis is Basis.LIMIT)
    if is_ratio:
        return f"{value * 100:.3g}%"
    if unit is MetricUnit.BYTES:
        return f"{value / 2**30:.4g}GiB"
    return format_value(Quantity(float(f"{value:.4g}")), condition.metric, kind)
