"""Hypothesis strategies for every rule that the language can express."""

from dataclasses import replace

from hypothesis import strategies as st

from clusterscape.analyze.rules.checking import join
from clusterscape.analyze.rules.vocabulary import LIMITED_METRICS
from clusterscape.model.metrics import JUDGED_METRICS
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
from clusterscape.model.statistics import RUNS, SHARES

numbers = st.one_of(
    st.integers(-1000, 1000).map(lambda n: n / 100),
    st.integers(0, 10**12).map(float),
    st.floats(-1e18, 1e18),
).map(lambda number: number + 0.0)
durations_ms = st.one_of(
    st.integers(1, 10 * 365 * 86_400_000), st.integers(1, 10_000).map(lambda minutes: minutes * 60_000)
)
names = st.lists(st.text(min_size=1, max_size=12), min_size=0, max_size=3).map(tuple)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    metric = draw(st.sampled_from(list(JUDGED_METRICS.values())))
    has_limit = metric.name in LIMITED_METRICS
    basis = st.sampled_from(Basis) if has_limit else st.just(Basis.UNIT)
    kind = draw(st.sampled_from(StatisticKind))
    is_timed = kind in SHARES or kind in RUNS
    statistic = Statistic(
        kind,
        percentile=draw(st.floats(0, 100).map(lambda n: n + 0.0)) if kind is StatisticKind.PERCENTILE else None,
        threshold=Quantity(draw(numbers), draw(basis)) if is_timed else None,
    )
    return Condition(
        metric=metric.name,
        statistic=statistic,
        operator=draw(st.sampled_from(Operator)),
        value=Quantity(draw(numbers), Basis.UNIT if is_timed else draw(basis)),
        window_ms=draw(st.none() | durations_ms),
        across=draw(st.none() | st.sampled_from(Across)),
    )


def _joined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.builds(join, st.sampled_from(Junction), st.lists(inner, min_size=2, max_size=3))


expressions: st.SearchStrategy[Expression] = st.recursive(conditions(), _joined, max_leaves=5)


@st.composite
def scopes(draw: st.DrawFn) -> RuleScope:
    quantifier = draw(st.sampled_from(Quantifier))
    share = draw(st.floats(0, 1, exclude_min=True)) if quantifier is Quantifier.SHARE else None
    return RuleScope(
        users=draw(names),
        projects=draw(names),
        partitions=draw(names),
        machine_types=draw(names),
        names=draw(names),
        min_age_ms=draw(st.just(0) | durations_ms),
        min_samples=draw(st.integers(1, 10**8)),
        min_gpus=draw(st.integers(1, 10**8)),
        quantifier=quantifier,
        share=share,
    )


@st.composite
def hardware_scopes(draw: st.DrawFn) -> RuleScope:
    """Scopes of rules on what has no life: no age, names of its own only, and quantifiers for GPUs only."""
    subject = draw(st.sampled_from([subject_kind for subject_kind in Subject if subject_kind.is_lifeless]))
    is_gpu = subject is Subject.GPUS
    quantifier = draw(st.sampled_from(Quantifier)) if is_gpu else Quantifier.EACH
    share = draw(st.floats(0, 1, exclude_min=True)) if quantifier is Quantifier.SHARE else None
    has_places = subject in (Subject.GPUS, Subject.NODES)
    return RuleScope(
        partitions=draw(names) if has_places else (),
        machine_types=draw(names) if has_places else (),
        users=draw(names) if subject is Subject.USERS else (),
        projects=draw(names) if subject is Subject.PROJECTS else (),
        names=draw(names) if has_places or subject is Subject.SOURCES else (),
        min_age_ms=0,
        min_samples=draw(st.integers(1, 10**8)),
        quantifier=quantifier,
        share=share,
        subject=subject,
    )


def _with_windows(expression: Expression) -> Expression:
    if isinstance(expression, Joined):
        return replace(expression, terms=tuple(_with_windows(term) for term in expression.terms))
    return replace(expression, window_ms=expression.window_ms or 60_000)


hardware_rules = st.builds(
    Rule,
    key=st.just("hardware"),
    name=st.just("hardware"),
    severity=st.sampled_from(Severity),
    expression=expressions.map(_with_windows),
    scope=hardware_scopes(),
)

rules = st.builds(
    Rule,
    key=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True),
    name=st.text(min_size=1).filter(lambda text: bool(text.strip())),
    severity=st.sampled_from(Severity),
    expression=expressions,
    scope=scopes(),
    reason=st.text(),
    owner=st.none() | st.text(min_size=1),
    color=st.none() | st.just("#a1B2c3"),
    is_enabled=st.booleans(),
    is_shipped=st.booleans(),
)
