"""Rules as JSON: versioned, checked, every wrong or unknown field named by its path.

The models also serve as the API's types. ``read_document`` and ``write_document`` are the only ways in and out.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from clusterscape.analyze.rules.checking import check_rule, simplify
from clusterscape.analyze.rules.vocabulary import closest
from clusterscape.errors import RuleDocumentError
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
    Scope,
    Severity,
    Statistic,
    StatisticKind,
    Subject,
)

VERSION: Literal[1] = 1
_CONDITION, _JOINED = "condition-term", "joined-term"  # no field is named so


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class QuantityDocument(_Document):
    """A number to compare with."""

    number: float
    basis: Basis = Basis.UNIT


class StatisticDocument(_Document):
    """A number over a time."""

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
    """Terms joined by the same word."""

    junction: Junction
    terms: tuple["ExpressionDocument", ...]


def _kind_of(value: object) -> str:
    """Which kind a term is meant to be: a joint has a junction or terms."""
    if isinstance(value, Mapping):
        return _JOINED if "junction" in value or "terms" in value else _CONDITION
    return _JOINED if isinstance(value, JoinedDocument) else _CONDITION


ExpressionDocument = Annotated[
    Annotated[ConditionDocument, Tag(_CONDITION)] | Annotated[JoinedDocument, Tag(_JOINED)], Discriminator(_kind_of)
]


class ScopeDocument(_Document):
    """Whom a rule judges, and from when on. For GPUs, nodes and sources ``min_age_ms`` is 0."""

    users: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    machine_types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    min_age_ms: int = Scope().min_age_ms
    min_samples: int = Scope().min_samples
    min_gpus: int = Scope().min_gpus
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
    """The rule as JSON-able values."""
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
    """Conditions as JSON-able values."""
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
    """The rule of a JSON text or its values; raises RuleDocumentError with the path of what is wrong."""
    try:
        if isinstance(document, str | bytes):
            model = RuleDocument.model_validate_json(document)
        else:
            model = RuleDocument.model_validate(document)
        rule = _rule(model)
    except ValidationError as error:
        raise _explain(error) from None
    except RecursionError:
        raise RuleDocumentError("expression: conditions are nested too deep", path="expression") from None
    check_rule(rule)
    return rule


def _rule(model: RuleDocument) -> Rule:
    return Rule(
        key=model.key,
        name=model.name,
        severity=model.severity,
        expression=simplify(_expression(model.expression)),
        scope=Scope(**dict(model.scope)),
        reason=model.reason,
        advice=model.advice,
        owner=model.owner,
        color=model.color,
        is_enabled=model.is_enabled,
        is_shipped=model.is_shipped,
    )


def _expression(model: ConditionDocument | JoinedDocument) -> Expression:
    if isinstance(model, JoinedDocument):
        if len(model.terms) < 2:
            raise RuleDocumentError("expression: two or more terms are joined", path="expression")
        return Joined(model.junction, tuple(_expression(term) for term in model.terms))
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


def _explain(error: ValidationError) -> RuleDocumentError:
    """The first problem, by its path."""
    found = error.errors(include_url=False)
    first = found[0]
    path = ".".join(str(part) for part in first["loc"] if part not in (_CONDITION, _JOINED)) or "document"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    if first["type"] == "extra_forbidden":
        close = closest(str(first["loc"][-1]), _FIELDS)
        hint = f"Did you mean `{close}`?" if close else None
        return RuleDocumentError(f"{path}: there is no such field{more}", path=path, hint=hint)
    return RuleDocumentError(f"{path}: {first['msg']}{more}", path=path)
