"""Validation of rules: arguments match their statistic, numbers match their metric, scopes are consistent.

Rules parsed from text are always valid; records built in code, JSON and form fields may not be.
"""

import re
from collections.abc import Iterator, Mapping

from clusterscape.analyze.rules.vocabulary import LIMITED_METRICS, MAX_NUMBER
from clusterscape.errors import RuleDocumentError
from clusterscape.model.metrics import JUDGED_METRICS
from clusterscape.model.rules import (
    Basis,
    Condition,
    Expression,
    Joined,
    Junction,
    Quantifier,
    Quantity,
    Rule,
    RuleScope,
    StatisticKind,
    Subject,
)
from clusterscape.model.statistics import STATISTICS, Argument

UNSUPPORTED_CLAUSES: Mapping[Subject, Mapping[str, str]] = {
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
    Subject.USERS: {
        "projects": "project",
        "partitions": "partition",
        "machine_types": "machine type",
        "names": "name",
        "age": "age",
        "gpus": "number of GPUs",
        "blame": "GPU to blame",
    },
    Subject.PROJECTS: {
        "users": "user",
        "partitions": "partition",
        "machine_types": "machine type",
        "names": "name",
        "age": "age",
        "gpus": "number of GPUs",
        "blame": "GPU to blame",
    },
}
"""Scope clauses that a subject does not support, and what they name."""

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
    """Join terms, flattening those that are already joined by the same junction, as the parser does."""
    flat: list[Expression] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, Joined) and term.junction is junction else (term,))
    return flat[0] if len(flat) == 1 else Joined(junction, tuple(flat))


def simplify(expression: Expression) -> Expression:
    """The same expression without nested junctions of the same kind."""
    if isinstance(expression, Condition):
        return expression
    return join(expression.junction, [simplify(term) for term in expression.terms])


def check_rule(rule: Rule) -> None:
    """Raises RuleDocumentError for the first error."""
    if not _KEY.fullmatch(rule.key):
        raise _error("key", "a key has at most 64 lower-case letters, digits, `.`, `_` and `-`")
    if not rule.name.strip():
        raise _error("name", "a rule needs a name")
    if rule.color is not None and not _COLOR.fullmatch(rule.color):
        raise _error("color", "a color has the form #rrggbb")
    check_expression(rule.expression)
    check_scope(rule.scope)
    life_condition = find_life_condition(rule.expression, rule.scope.subject)
    if life_condition is not None:
        raise _error("expression", f"{NO_LIFE_MESSAGE}: {life_condition.metric} over last …")


NO_LIFE_MESSAGE = "GPUs, nodes, sources, users and projects have no life: use a window (`over last …`) or `now`"


def find_life_condition(expression: Expression, subject: Subject) -> Condition | None:
    """The first condition over a whole life, if the subject has no life (GPUs, nodes, sources, users, projects)."""
    if not subject.is_lifeless:
        return None
    return next(
        (
            condition
            for condition in iter_conditions(expression)
            if condition.window_ms is None and condition.statistic.kind is not StatisticKind.NOW
        ),
        None,
    )


def check_expression(expression: Expression) -> None:
    """Raises RuleDocumentError for the first error."""
    _check_term(expression, "expression", depth=0)
    if sum(1 for _ in iter_conditions(expression)) > MAX_CONDITIONS:
        raise _error("expression", f"a rule has at most {MAX_CONDITIONS} conditions")


def _check_term(term: Expression, path: str, *, depth: int) -> None:
    if depth > MAX_NESTING:
        raise _error(path, f"conditions are nested deeper than {MAX_NESTING} levels")
    if isinstance(term, Condition):
        _check_condition(term, path)
        return
    if len(term.terms) < 2:
        raise _error(f"{path}.terms", "a junction needs at least two terms")
    for place, inner in enumerate(term.terms):
        _check_term(inner, f"{path}.terms.{place}", depth=depth + 1)


def _check_condition(condition: Condition, path: str) -> None:
    metric = JUDGED_METRICS.get(condition.metric)
    if metric is None:
        raise _error(f"{path}.metric", f"there is no metric `{condition.metric}`")
    statistic = condition.statistic
    argument = STATISTICS[statistic.kind].argument
    if (argument is Argument.PERCENTILE) != (statistic.percentile is not None):
        raise _error(
            f"{path}.statistic.percentile", "required for the statistic `percentile`, and not allowed for others"
        )
    if statistic.percentile is not None and not 0 <= statistic.percentile <= 100:
        raise _error(f"{path}.statistic.percentile", "a percentile must be between 0 and 100")
    needs_threshold = argument is Argument.THRESHOLD
    if needs_threshold != (statistic.threshold is not None):
        raise _error(
            f"{path}.statistic.threshold",
            "required for times above or below a value, and not allowed for other statistics",
        )
    if statistic.threshold is not None:
        _check_quantity(
            statistic.threshold, has_limit=metric.name in LIMITED_METRICS, path=f"{path}.statistic.threshold"
        )
    has_limit = metric.name in LIMITED_METRICS and not needs_threshold
    _check_quantity(condition.value, has_limit=has_limit, path=f"{path}.value")
    if condition.window_ms is not None and condition.window_ms <= 0:
        raise _error(f"{path}.window_ms", "a window must be longer than 0")


def _check_quantity(quantity: Quantity, *, has_limit: bool, path: str) -> None:
    if not abs(quantity.number) <= MAX_NUMBER:
        raise _error(f"{path}.number", f"a number must be at most {MAX_NUMBER:g}")
    if quantity.basis is Basis.LIMIT and not has_limit:
        raise _error(f"{path}.basis", "only power and memory have a limit per GPU")


def check_scope(scope: RuleScope) -> None:
    """Raises RuleDocumentError for the first error."""
    for field in ("users", "projects", "partitions", "machine_types", "names"):
        if not all(getattr(scope, field)):
            raise _error(f"scope.{field}", "a name must not be empty")
    for field, minimum in (("min_age_ms", 0), ("min_samples", 1), ("min_gpus", 1)):
        if getattr(scope, field) < minimum:
            raise _error(f"scope.{field}", f"must be at least {minimum}")
    _check_subject(scope)
    if (scope.quantifier is Quantifier.SHARE) != (scope.share is not None):
        raise _error("scope.share", "required for the quantifier `share`, and not allowed for others")
    if scope.share is not None and not 0 < scope.share <= 1:
        raise _error("scope.share", "a share must be above 0 and at most 1")


def _check_subject(scope: RuleScope) -> None:
    is_used = {
        **{name: bool(getattr(scope, name)) for name in ("users", "projects", "partitions", "machine_types", "names")},
        "age": scope.min_age_ms > 0,
        "gpus": scope.min_gpus > 1,
        "blame": scope.quantifier is not Quantifier.EACH,
    }
    fields = {"age": "min_age_ms", "gpus": "min_gpus", "blame": "quantifier"}
    for name, label in UNSUPPORTED_CLAUSES[scope.subject].items():
        if is_used[name]:
            raise _error(f"scope.{fields.get(name, name)}", f"{scope.subject.value} have no {label}")


def _error(path: str, message: str) -> RuleDocumentError:
    return RuleDocumentError(f"{path}: {message}", path=path)
