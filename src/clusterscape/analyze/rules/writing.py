"""Rules as canonical text. What is written here, ``reading`` reads back as the same rule."""

import json
import re
from decimal import Decimal

from clusterscape.analyze.rules.quantities import format_decimal, write_duration, write_quantity
from clusterscape.analyze.rules.vocabulary import short_name
from clusterscape.model.metrics import METRICS
from clusterscape.model.rules import (
    Condition,
    Expression,
    Junction,
    Quantifier,
    Quantity,
    Rule,
    Scope,
    Statistic,
    StatisticKind,
    Subject,
    standard_scope,
)
from clusterscape.model.statistics import STATISTICS, Argument, Measures

BARE_NAME = re.compile(r"[\w.*?\[\]!@:/+-]+")
"""A name that needs no quotes, unless it is one of the ``CLAUSE_WORDS``."""

CLAUSE_WORDS = frozenset({"for", "after", "with", "on", "and", "or", "over"})
SUBJECT_WORDS = {Subject.GPUS: "every GPU", Subject.NODES: "every node", Subject.SOURCES: "every source"}


def format_rule(rule: Rule) -> str:
    """The rule's conditions and scope; its name, severity and the like are not part of the text."""
    return format_text(rule.expression, rule.scope)


def format_text(expression: Expression, scope: Scope) -> str:
    """Conditions, then what departs from the standard scope."""
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
        verb = "share of" if entry.measures is Measures.SHARE else "longest"
        side = statistic.kind.value.removeprefix("longest_")
        return f"{verb} {name} {side} {''.join(write_quantity(statistic.threshold, METRICS[metric], None))}"
    return f"{name} {statistic_word(statistic)}"


def statistic_word(statistic: Statistic) -> str:
    """``p95``, ``mean``, ``slope``: what stands behind the metric."""
    if statistic.kind is StatisticKind.PERCENTILE:
        assert statistic.percentile is not None
        return f"p{format_number(statistic.percentile)}"
    return statistic.kind.value


def _format_value(condition: Condition) -> str:
    text = format_value(condition.value, condition.metric, condition.statistic.kind)
    return f"{text}/h" if STATISTICS[condition.statistic.kind].measures is Measures.RATE else text


def format_value(value: Quantity, metric: str, kind: StatisticKind) -> str:
    """A value of a statistic with its unit, without the ``/h`` of rates."""
    return "".join(write_quantity(value, METRICS[metric], kind))


def format_number(number: float) -> str:
    """``95``, ``99.9``: the shortest digits that mean the same."""
    return format_decimal(Decimal(repr(number)))


def format_name(name: str) -> str:
    """As it is where that can be read back, else in quotes with JSON's escapes."""
    is_bare = BARE_NAME.fullmatch(name) and name.lower() not in CLAUSE_WORDS
    return name if is_bare else json.dumps(name, ensure_ascii=False)


def _clauses(scope: Scope) -> list[str]:
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
