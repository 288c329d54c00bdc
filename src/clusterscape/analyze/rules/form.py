"""Rules as form fields: a flat list of rows, each joined to the one before by ``and`` or ``or``; ``and`` binds tighter.

A form holds one ``or`` of ``and``s. An ``or`` inside an ``and`` does not fit, and is said not to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeGuard

from clusterscape.analyze.rules.checking import check_expression, join
from clusterscape.analyze.rules.quantities import UnitMismatchError, parse_decimal, read_quantity, write_quantity
from clusterscape.analyze.rules.vocabulary import suggest_metric
from clusterscape.analyze.rules.writing import format_number
from clusterscape.errors import RuleDocumentError
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.metrics import METRICS, Metric
from clusterscape.model.rules import (
    Across,
    Condition,
    Expression,
    Joined,
    Junction,
    Operator,
    Quantity,
    Statistic,
    StatisticKind,
)
from clusterscape.model.statistics import STATISTICS, Argument


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRow:
    """One condition as fields. ``argument`` is the percentile, or the value that a time is above or below."""

    metric: PublicText
    statistic: StatisticKind
    operator: Operator
    value: PublicText  # as typed
    unit: PublicText = ""
    argument: PublicText | None = None
    argument_unit: PublicText = ""
    window_ms: int | None = None
    across: Across | None = None
    junction: Junction = Junction.AND  # to the row before; without meaning in the first


def write_form(expression: Expression) -> list[FormRow]:
    """The rows of ``expression``; raises RuleDocumentError where it does not fit a form."""
    groups = expression.terms if _is(expression, Junction.OR) else (expression,)
    rows: list[FormRow] = []
    for group in groups:
        members = group.terms if _is(group, Junction.AND) else (group,)
        for place, member in enumerate(members):
            if not isinstance(member, Condition):
                raise RuleDocumentError(
                    "an `or` inside an `and` does not fit the form", path="expression", hint="Edit this rule as text."
                )
            rows.append(_write_row(member, Junction.AND if place else Junction.OR))
    return rows


def _is(expression: Expression, junction: Junction) -> TypeGuard[Joined]:
    return isinstance(expression, Joined) and expression.junction is junction


def _write_row(condition: Condition, junction: Junction) -> FormRow:
    metric, statistic = METRICS[condition.metric], condition.statistic
    value, unit = write_quantity(condition.value, metric, statistic.kind)
    argument, argument_unit = None, ""
    if statistic.percentile is not None:
        argument = format_number(statistic.percentile)
    elif statistic.threshold is not None:
        argument, argument_unit = write_quantity(statistic.threshold, metric, None)
    return FormRow(
        metric=condition.metric,
        statistic=statistic.kind,
        operator=condition.operator,
        value=value,
        unit=unit,
        argument=argument,
        argument_unit=argument_unit,
        window_ms=condition.window_ms,
        across=condition.across,
        junction=junction,
    )


def read_form(rows: Sequence[FormRow]) -> Expression:
    """The expression of the rows; raises RuleDocumentError with the path of the field that is wrong."""
    if not rows:
        raise RuleDocumentError("rows: a rule needs a condition", path="rows")
    groups: list[list[Expression]] = []
    for place, row in enumerate(rows):
        condition = _read_row(row, f"rows.{place}")
        if not groups or row.junction is Junction.OR:
            groups.append([])
        groups[-1].append(condition)
    expression = join(Junction.OR, [join(Junction.AND, group) for group in groups])
    check_expression(expression)
    return expression


def _read_row(row: FormRow, path: str) -> Condition:
    metric = METRICS.get(row.metric)
    if metric is None:
        close = suggest_metric(row.metric)
        hint = f"Did you mean `{close}`?" if close else None
        raise RuleDocumentError(f"{path}.metric: there is no metric `{row.metric}`", path=f"{path}.metric", hint=hint)
    return Condition(
        metric=metric.name,
        statistic=_read_statistic(row, metric, path),
        operator=row.operator,
        value=_read_number(row.value, row.unit, metric, row.statistic, f"{path}.value"),
        window_ms=row.window_ms,
        across=row.across,
    )


def _read_statistic(row: FormRow, metric: Metric, path: str) -> Statistic:
    kind, argument = row.statistic, STATISTICS[row.statistic].argument
    if argument is None:
        return Statistic(kind)
    if row.argument is None:
        raise RuleDocumentError(f"{path}.argument: this statistic needs an argument", path=f"{path}.argument")
    if argument is Argument.PERCENTILE:
        return Statistic(kind, percentile=float(_read_decimal(row.argument, f"{path}.argument")))
    threshold = _read_number(row.argument, row.argument_unit, metric, None, f"{path}.argument")
    return Statistic(kind, threshold=threshold)


def _read_decimal(text: str, path: str) -> Decimal:
    number = parse_decimal(text.strip())
    if number is None:
        raise RuleDocumentError(f"{path}: `{text[:40]}` is no number", path=path)
    return number


def _read_number(text: str, unit: str, metric: Metric, kind: StatisticKind | None, path: str) -> Quantity:
    number = _read_decimal(text, path)
    try:
        return read_quantity(number, unit, metric, kind)
    except UnitMismatchError as error:
        hint = f"Did you mean `{error.suggestion}`?" if error.suggestion else None
        raise RuleDocumentError(f"{path}: {error}", path=path, hint=hint) from None
