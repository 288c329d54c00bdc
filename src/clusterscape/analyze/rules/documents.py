"""Rules as JSON (versioned and validated; errors name the path of the field) and as form fields: a flat list of rows, each joined
to the previous one by ``and`` or ``or``.

The models are also the types of the API. Use only ``read_document`` and ``write_document`` to convert.

A form can represent an ``or`` of ``and``s. An ``or`` inside an ``and`` raises an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from clusterscape.analyze.rules.checking import check_expression, check_rule, join, simplify
from clusterscape.analyze.rules.vocabulary import (
    UnitMismatchError,
    find_closest,
    parse_decimal,
    read_quantity,
    suggest_metric,
    write_quantity,
)
from clusterscape.analyze.rules.writing import format_number
from clusterscape.errors import RuleDocumentError
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.metrics import METRICS, Metric
from clusterscape.model.rules import (
    Across,
    Basis,
    Condition,
    Expression,
    Joined,
    Junction,
    Operator,
    Quantifier,
    Quantity,
    Rule,
    RuleScope,
    Severity,
    Statistic,
    StatisticKind,
    Subject,
)
from clusterscape.model.statistics import STATISTICS, Argument

VERSION: Literal[1] = 1
_CONDITION, _JOINED = "condition-term", "joined-term"  # no field has these names


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class QuantityDocument(_Document):
    """A number to compare with."""

    number: float
    basis: Basis = Basis.UNIT


class StatisticDocument(_Document):
    """A statistic of a metric over time."""

    kind: StatisticKind
    percentile: float | None = None
    threshold: QuantityDocument | None = None


class ConditionDocument(_Document):
    """Metric × statistic × operator × value."""

    metric: str
    statistic: StatisticDocument
    operator: Operator
    value: QuantityDocument
    window_ms: int | None = None
    across: Across | None = None


class JoinedDocument(_Document):
    """Terms joined by ``and`` or ``or``."""

    junction: Junction
    terms: tuple["ExpressionDocument", ...]


def _classify_term(value: object) -> str:
    """The tag of a term: a joined term has ``junction`` or ``terms``."""
    if isinstance(value, Mapping):
        return _JOINED if "junction" in value or "terms" in value else _CONDITION
    return _JOINED if isinstance(value, JoinedDocument) else _CONDITION


ExpressionDocument = Annotated[
    Annotated[ConditionDocument, Tag(_CONDITION)] | Annotated[JoinedDocument, Tag(_JOINED)],
    Discriminator(_classify_term),
]


class ScopeDocument(_Document):
    """What a rule applies to, and from when on. For GPUs, nodes and sources ``min_age_ms`` is 0."""

    users: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    machine_types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    min_age_ms: int = RuleScope().min_age_ms
    min_samples: int = RuleScope().min_samples
    min_gpus: int = RuleScope().min_gpus
    quantifier: Quantifier = Quantifier.EACH
    share: float | None = None
    subject: Subject = Subject.WORKLOADS


class RuleDocument(_Document):
    """A whole rule."""

    version: Literal[1] = VERSION
    key: str
    name: str
    severity: Severity
    expression: ExpressionDocument
    scope: Annotated[ScopeDocument, Field(default_factory=ScopeDocument)]
    reason: str = ""
    advice: str = ""
    owner: str | None = None
    color: str | None = None
    is_enabled: bool = True
    is_shipped: bool = False


_FIELDS = sorted(
    {
        name
        for model in (
            QuantityDocument,
            StatisticDocument,
            ConditionDocument,
            JoinedDocument,
            ScopeDocument,
            RuleDocument,
        )
        for name in model.model_fields
    }
)


def write_document(rule: Rule) -> dict[str, Any]:
    """The rule as JSON-compatible values."""
    scope = rule.scope
    return {
        "version": VERSION,
        "key": rule.key,
        "name": rule.name,
        "severity": rule.severity.value,
        "expression": write_expression(rule.expression),
        "scope": {
            "users": list(scope.users),
            "projects": list(scope.projects),
            "partitions": list(scope.partitions),
            "machine_types": list(scope.machine_types),
            "names": list(scope.names),
            "min_age_ms": scope.min_age_ms,
            "min_samples": scope.min_samples,
            "min_gpus": scope.min_gpus,
            "quantifier": scope.quantifier.value,
            "share": scope.share,
            "subject": scope.subject.value,
        },
        "reason": rule.reason,
        "advice": rule.advice,
        "owner": rule.owner,
        "color": rule.color,
        "is_enabled": rule.is_enabled,
        "is_shipped": rule.is_shipped,
    }


def write_expression(expression: Expression) -> dict[str, Any]:
    """Conditions as JSON-compatible values."""
    if isinstance(expression, Joined):
        return {
            "junction": expression.junction.value,
            "terms": [write_expression(term) for term in expression.terms],
        }
    statistic = expression.statistic
    return {
        "metric": expression.metric,
        "statistic": {
            "kind": statistic.kind.value,
            "percentile": statistic.percentile,
            "threshold": None if statistic.threshold is None else _write_quantity(statistic.threshold),
        },
        "operator": expression.operator.value,
        "value": _write_quantity(expression.value),
        "window_ms": expression.window_ms,
        "across": None if expression.across is None else expression.across.value,
    }


def _write_quantity(quantity: Quantity) -> dict[str, Any]:
    return {"number": quantity.number, "basis": quantity.basis.value}


def read_document(document: Mapping[str, Any] | str | bytes) -> Rule:
    """Parse a rule from JSON text or values; raises RuleDocumentError with the path of the error."""
    try:
        if isinstance(document, str | bytes):
            model = RuleDocument.model_validate_json(document)
        else:
            model = RuleDocument.model_validate(document)
        rule = _to_rule(model)
    except ValidationError as error:
        raise _convert_error(error) from None
    except RecursionError:
        raise RuleDocumentError("expression: conditions are nested too deeply", path="expression") from None
    check_rule(rule)
    return rule


def _to_rule(model: RuleDocument) -> Rule:
    return Rule(
        key=model.key,
        name=model.name,
        severity=model.severity,
        expression=simplify(_to_expression(model.expression)),
        scope=RuleScope(**dict(model.scope)),
        reason=model.reason,
        advice=model.advice,
        owner=model.owner,
        color=model.color,
        is_enabled=model.is_enabled,
        is_shipped=model.is_shipped,
    )


def _to_expression(model: ConditionDocument | JoinedDocument) -> Expression:
    if isinstance(model, JoinedDocument):
        if len(model.terms) < 2:
            raise RuleDocumentError("expression: `and` and `or` need at least two terms", path="expression")
        return Joined(model.junction, tuple(_to_expression(term) for term in model.terms))
    threshold = model.statistic.threshold
    statistic = Statistic(
        model.statistic.kind,
        percentile=model.statistic.percentile,
        threshold=None if threshold is None else Quantity(threshold.number, threshold.basis),
    )
    return Condition(
        metric=model.metric,
        statistic=statistic,
        operator=model.operator,
        value=Quantity(model.value.number, model.value.basis),
        window_ms=model.window_ms,
        across=model.across,
    )


def _convert_error(error: ValidationError) -> RuleDocumentError:
    """An error about the first problem, with its path."""
    problems = error.errors(include_url=False)
    first = problems[0]
    path = ".".join(str(part) for part in first["loc"] if part not in (_CONDITION, _JOINED)) or "document"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        close = find_closest(str(first["loc"][-1]), _FIELDS)
        hint = f"Did you mean `{close}`?" if close else None
        return RuleDocumentError(f"{path}: unknown field{more}", path=path, hint=hint)
    return RuleDocumentError(f"{path}: {first['msg']}{more}", path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRow:
    """One condition as form fields. ``argument``: the percentile, or the threshold of a time above or below."""

    metric: PublicText
    statistic: StatisticKind
    operator: Operator
    value: PublicText  # as typed
    unit: PublicText = ""
    argument: PublicText | None = None
    argument_unit: PublicText = ""
    window_ms: int | None = None
    across: Across | None = None
    junction: Junction = Junction.AND  # to the previous row; ignored in the first


def write_form(expression: Expression) -> list[FormRow]:
    """The form rows of ``expression``; raises RuleDocumentError if a form cannot represent it."""
    groups = expression.terms if _is_joined_by(expression, Junction.OR) else (expression,)
    rows: list[FormRow] = []
    for group in groups:
        members = group.terms if _is_joined_by(group, Junction.AND) else (group,)
        for place, member in enumerate(members):
            if not isinstance(member, Condition):
                raise RuleDocumentError(
                    "an `or` inside an `and` does not fit the form", path="expression", hint="Edit this rule as text."
                )
            rows.append(_write_row(member, Junction.AND if place else Junction.OR))
    return rows


def _is_joined_by(expression: Expression, junction: Junction) -> TypeGuard[Joined]:
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
    """The expression of the form rows; raises RuleDocumentError with the path of the invalid field."""
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
        raise RuleDocumentError(f"{path}: `{text[:40]}` is not a number", path=path)
    return number


def _read_number(text: str, unit: str, metric: Metric, kind: StatisticKind | None, path: str) -> Quantity:
    number = _read_decimal(text, path)
    try:
        return read_quantity(number, unit, metric, kind)
    except UnitMismatchError as error:
        hint = f"Did you mean `{error.suggestion}`?" if error.suggestion else None
        raise RuleDocumentError(f"{path}: {error}", path=path, hint=hint) from None
