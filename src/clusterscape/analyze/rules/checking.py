"""What makes a rule whole: arguments that fit their statistic, numbers that fit their metric, scopes without contradiction.

Text cannot say anything that fails here; records built by hand, JSON and form fields can.
"""

import re
from collections.abc import Iterator, Mapping

from clusterscape.analyze.rules.quantities import MAX_NUMBER
from clusterscape.analyze.rules.vocabulary import LIMITED_METRICS
from clusterscape.errors import RuleDocumentError
from clusterscape.model.metrics import METRICS
from clusterscape.model.rules import (
    Basis,
    Condition,
    Expression,
    Joined,
    Junction,
    Quantifier,
    Quantity,
    Rule,
    Scope,
    StatisticKind,
    Subject,
)
from clusterscape.model.statistics import STATISTICS, Argument

UNFIT: Mapping[Subject, Mapping[str, str]] = {
    Subject.WORKLOADS: {},
    Subject.GPUS: {"users": "user", "projects": "project", "age": "age", "gpus": "number of GPUs"},
    Subject.NODES: {
        "users": "user",
        "projects": "project",
        "age": "age",
        "gpus": "number of GPUs",
        "blame": "GPU to blame",
    },
    Subject.SOURCES: {
        "users": "user",
        "projects": "project",
        "partitions": "partition",
        "machine_types": "machine type",
        "age": "age",
        "gpus": "number of GPUs",
        "blame": "GPU to blame",
    },
}
"""Clauses of a scope that a subject does not have, and what they name."""

MAX_CONDITIONS = 64
MAX_NESTING = 16
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def iter_conditions(expression: Expression) -> Iterator[Condition]:
    """Every condition, from left to right."""
    if isinstance(expression, Condition):
        yield expression
        return
    for term in expression.terms:
        yield from iter_conditions(term)


def join(junction: Junction, terms: list[Expression]) -> Expression:
    """Terms joined, those already joined by the same word taken apart: how text is read."""
    flat: list[Expression] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, Joined) and term.junction is junction else (term,))
    return flat[0] if len(flat) == 1 else Joined(junction, tuple(flat))


def simplify(expression: Expression) -> Expression:
    """The same expression without joints inside joints of the same kind."""
    if isinstance(expression, Condition):
        return expression
    return join(expression.junction, [simplify(term) for term in expression.terms])


def check_rule(rule: Rule) -> None:
    """Raises RuleDocumentError at the first thing that is wrong."""
    if not _KEY.fullmatch(rule.key):
        raise _wrong("key", "a key is lower-case letters, digits, `.`, `_` and `-`, 64 at most")
    if not rule.name.strip():
        raise _wrong("name", "a rule needs a name")
    if rule.color is not None and not _COLOR.fullmatch(rule.color):
        raise _wrong("color", "a color is written #rrggbb")
    check_expression(rule.expression)
    check_scope(rule.scope)
    lifeless = find_lifeless(rule.expression, rule.scope.subject)
    if lifeless is not None:
        raise _wrong("expression", f"{NO_LIFE}: {lifeless.metric} over last …")


NO_LIFE = "GPUs, nodes and sources have no life: look at a window, or at `now`"


def find_lifeless(expression: Expression, subject: Subject) -> Condition | None:
    """The first condition that looks at a whole life where the subject has none."""
    if not subject.is_hardware:
        return None
    return next(
        (
            each
            for each in iter_conditions(expression)
            if each.window_ms is None and each.statistic.kind is not StatisticKind.NOW
        ),
        None,
    )


def check_expression(expression: Expression) -> None:
    """Raises RuleDocumentError at the first thing that is wrong."""
    _check_term(expression, "expression", depth=0)
    if sum(1 for _ in iter_conditions(expression)) > MAX_CONDITIONS:
        raise _wrong("expression", f"a rule holds {MAX_CONDITIONS} conditions at most")


def _check_term(term: Expression, path: str, *, depth: int) -> None:
    if depth > MAX_NESTING:
        raise _wrong(path, f"conditions are nested deeper than {MAX_NESTING}")
    if isinstance(term, Condition):
        _check_condition(term, path)
        return
    if len(term.terms) < 2:
        raise _wrong(f"{path}.terms", "two or more terms are joined")
    for place, inner in enumerate(term.terms):
        _check_term(inner, f"{path}.terms.{place}", depth=depth + 1)


def _check_condition(condition: Condition, path: str) -> None:
    metric = METRICS.get(condition.metric)
    if metric is None:
        raise _wrong(f"{path}.metric", f"there is no metric `{condition.metric}`")
    statistic = condition.statistic
    argument = STATISTICS[statistic.kind].argument
    if (argument is Argument.PERCENTILE) != (statistic.percentile is not None):
        raise _wrong(f"{path}.statistic.percentile", "a percentile, and nothing else, says which")
    if statistic.percentile is not None and not 0 <= statistic.percentile <= 100:
        raise _wrong(f"{path}.statistic.percentile", "a percentile is from 0 to 100")
    needs_threshold = argument is Argument.THRESHOLD
    if needs_threshold != (statistic.threshold is not None):
        raise _wrong(f"{path}.statistic.threshold", "times above or below a value, and nothing else, say which value")
    if statistic.threshold is not None:
        _check_quantity(
            statistic.threshold, has_limit=metric.name in LIMITED_METRICS, path=f"{path}.statistic.threshold"
        )
    has_limit = metric.name in LIMITED_METRICS and not needs_threshold
    _check_quantity(condition.value, has_limit=has_limit, path=f"{path}.value")
    if condition.window_ms is not None and condition.window_ms <= 0:
        raise _wrong(f"{path}.window_ms", "a window is longer than nothing")


def _check_quantity(quantity: Quantity, *, has_limit: bool, path: str) -> None:
    if not abs(quantity.number) <= MAX_NUMBER:
        raise _wrong(f"{path}.number", f"a number is {MAX_NUMBER:g} at most")
    if quantity.basis is Basis.LIMIT and not has_limit:
        raise _wrong(f"{path}.basis", "only power and memory have a limit of the GPU's own")


def check_scope(scope: Scope) -> None:
    """Raises RuleDocumentError at the first thing that is wrong."""
    for field in ("users", "projects", "partitions", "machine_types", "names"):
        if not all(getattr(scope, field)):
            raise _wrong(f"scope.{field}", "a name is not empty")
    for field, least in (("min_age_ms", 0), ("min_samples", 1), ("min_gpus", 1)):
        if getattr(scope, field) < least:
            raise _wrong(f"scope.{field}", f"at least {least}")
    _check_subject(scope)
    if (scope.quantifier is Quantifier.SHARE) != (scope.share is not None):
        raise _wrong("scope.share", "a share of the GPUs, and no other quantifier, says which")
    if scope.share is not None and not 0 < scope.share <= 1:
        raise _wrong("scope.share", "a share is above 0 and at most 1")


def _check_subject(scope: Scope) -> None:
    said = {
        **{name: bool(getattr(scope, name)) for name in ("users", "projects", "partitions", "machine_types")},
        "age": scope.min_age_ms > 0,
        "gpus": scope.min_gpus > 1,
        "blame": scope.quantifier is not Quantifier.EACH,
    }
    fields = {"age": "min_age_ms", "gpus": "min_gpus", "blame": "quantifier"}
    for name, what in UNFIT[scope.subject].items():
        if said[name]:
            raise _wrong(f"scope.{fields.get(name, name)}", f"{scope.subject.value} have no {what}")


def _wrong(path: str, message: str) -> RuleDocumentError:
    return RuleDocumentError(f"{path}: {message}", path=path)
