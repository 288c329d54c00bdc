"""Rules and their readings in words, for people who did not write them."""

from collections.abc import Mapping

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.quantities import write_duration
from clusterscape.analyze.rules.writing import format_condition, format_subject, format_value
from clusterscape.model.metrics import METRICS, MetricUnit
from clusterscape.model.rules import (
    Across,
    Basis,
    Condition,
    Operator,
    Quantifier,
    Quantity,
    Rule,
    Scope,
    StatisticKind,
    Subject,
)
from clusterscape.model.statistics import RUNS, SHARES, STATISTICS

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
    Across.LEAST: "the least among the workload's GPUs of",
    Across.MOST: "the most among the workload's GPUs of",
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
    what = f"{across}{metric.label}, {label}{over}"
    return f"{format_condition(condition)}: {what}, is {_OPERATORS[condition.operator]} {value}."


def _of_limit(quantity: Quantity) -> str:
    return " of the GPU's own limit" if quantity.basis is Basis.LIMIT else ""


def _describe_scope(scope: Scope) -> str:
    if scope.subject.is_hardware:
        return _describe_hardware(scope)
    blamed = {
        Quantifier.EACH: "each GPU by itself",
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
    whose = "; ".join(f"{word} {', '.join(names)}" for word, names in filters if names) or "every workload"
    size = f", of {scope.min_gpus} GPUs or more" if scope.min_gpus > 1 else ""
    age = write_duration(scope.min_age_ms)
    return f"Judges {whose}{size}, from {age} of age and {scope.min_samples} samples on; blames {blamed}."


def _describe_hardware(scope: Scope) -> str:
    filters = (("partitions", scope.partitions), ("machine types", scope.machine_types), ("names", scope.names))
    which = "; ".join(f"{word} {', '.join(names)}" for word, names in filters if names)
    share = f"{(scope.share or 0) * 100:g}% of its"
    blamed = {
        Quantifier.EACH: "",
        Quantifier.ANY: "; blames the node if any of its GPUs meets this",
        Quantifier.ALL: "; blames the node if all of its GPUs meet this",
        Quantifier.SHARE: f"; blames the node if {share} GPUs meet this",
    }[scope.quantifier]
    samples = "" if scope.min_samples == 1 else f", from {scope.min_samples} samples on"
    whom = {Subject.GPUS: "every GPU, whoever holds it", Subject.NODES: "every node", Subject.SOURCES: "every source"}
    return f"Judges {whom[scope.subject]}{f' of {which}' if which else ''}{samples}{blamed}."


def format_values(rule: Rule, values: Mapping[str, float]) -> str:
    """``gpu_util p95 100%, power p50 121.5W``: the statistics behind a verdict, short."""
    parts = []
    for condition in dict.fromkeys(iter_conditions(rule.expression)):
        value = values.get(format_condition(condition))
        if value is not None:
            parts.append(f"{format_subject(condition)} {format_reading(value, condition)}")
    return ", ".join(parts)


def format_reading(value: float, condition: Condition) -> str:
    """``121.5W``: a statistic of a condition with its unit. Four digits are enough to read."""
    unit, kind = METRICS[condition.metric].unit, condition.statistic.kind
    if kind in RUNS:
        return write_duration(round(value) * 1000)
    is_ratio = kind in SHARES or unit is MetricUnit.RATIO or (condition.across and condition.value.basis is Basis.LIMIT)
    if is_ratio:
        return f"{value * 100:.3g}%"
    if unit is MetricUnit.BYTES:
        return f"{value / 2**30:.4g}GiB"
    return format_value(Quantity(float(f"{value:.4g}")), condition.metric, kind)
