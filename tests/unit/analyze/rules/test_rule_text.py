"""Rules as text: parsing, formatting and error messages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.analyze.rules.rule_strategies import rules, scopes

from clusterscape.analyze.rules.checking import check_rule
from clusterscape.analyze.rules.reading import parse_rule, parse_text
from clusterscape.analyze.rules.writing import format_rule, format_text
from clusterscape.errors import RuleSyntaxError
from clusterscape.model.rules import (
    Across,
    Basis,
    Condition,
    Joined,
    Junction,
    Operator,
    Quantifier,
    Quantity,
    Rule,
    RuleScope,
    Statistic,
    StatisticKind,
)

BUSY = "gpu_util p95 > 90%"


def condition_of(text: str) -> Condition:
    expression = parse_text(text).expression
    assert isinstance(expression, Condition)
    return expression


def error_of(text: str, *, me: str | None = None) -> RuleSyntaxError:
    with pytest.raises(RuleSyntaxError) as caught:
        parse_text(text, me=me)
    return caught.value


@given(rules)
@settings(max_examples=100, deadline=None)
def test_rule_round_trips_when_written_and_read(rule: Rule) -> None:
    check_rule(rule)
    text = format_rule(rule)
    assert parse_text(text) == (rule.expression, rule.scope), text
    assert format_text(*parse_text(text)) == text


def test_percent_means_the_limit_when_the_metric_is_no_ratio() -> None:
    assert condition_of("power p50 < 70%").value == Quantity(0.7, Basis.LIMIT)
    assert condition_of("gpu_util p95 > 90%").value == Quantity(0.9)
    assert condition_of("share of power below 30% > 50%") == Condition(
        metric="power_watts",
        statistic=Statistic(StatisticKind.BELOW, threshold=Quantity(0.3, Basis.LIMIT)),
        operator=Operator.MORE,
        value=Quantity(0.5),
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("power max > 0.65 kW", 650.0),
        ("power max > 650", 650.0),
        ("memory max >= 40GiB", 40 * 2.0**30),
        ("memory max >= 40 gb", 40e9),
        ("temperature max > 85 °C", 85.0),
        ("sm_clock p50 < 1200 MHz", 1.2e9),
        ("nvlink mean < 1.5 GB/s", 1.5e9),
        ("thermal_throttle increase > 2m", 120.0),
        ("memory_temperature now > -5C", -5.0),
        ("longest util below 5% > 1h30m", 5400.0),
        ("longest util below 5% > 90", 90.0),
        ("util mean < 0.5", 0.5),
        ("energy increase > 2 kWh", 7.2e6),
    ],
)
def test_number_is_canonical_when_a_unit_is_written(text: str, number: float) -> None:
    assert condition_of(text).value == Quantity(number)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("util", "gpu_util_ratio"),
        ("GPU_UTIL", "gpu_util_ratio"),
        ("gpu_util_ratio", "gpu_util_ratio"),
        ("memory", "memory_used_bytes"),
        ("sm_act", "sm_active_ratio"),
        ("tensor", "tensor_active_ratio"),
        ("power", "power_watts"),
        ("temperature", "gpu_temperature_celsius"),
        ("nvlink", "nvlink_tx_bytes_per_second"),
    ],
)
def test_metric_is_found_when_named_in_short(name: str, metric: str) -> None:
    assert condition_of(f"{name} mean > 0").metric == metric


def test_and_binds_tighter_than_or_when_both_are_written() -> None:
    flat = parse_text(f"{BUSY} or {BUSY} and power now < 5 W").expression
    grouped = parse_text(f"({BUSY} or {BUSY}) and power now < 5 W").expression
    assert isinstance(flat, Joined)
    assert isinstance(grouped, Joined)
    assert flat.junction is Junction.OR
    assert grouped.junction is Junction.AND


def test_window_and_workload_wide_statistic_are_read_when_written_either_way() -> None:
    first = condition_of("spread of util mean over last 30m > 30%")
    assert (first.window_ms, first.across) == (1_800_000, Across.SPREAD)
    assert condition_of("spread of util mean > 30% over the last 1800 s") == first


def test_scope_is_read_when_clauses_follow() -> None:
    text = (
        f"{BUSY} for user alice, \"bob the 2nd\" for projects nlp-* for machine type 'A100 80G' "
        "on at least 50% of the GPUs with at least 8 GPUs with 20 samples after 1h30m"
    )
    assert parse_text(text).scope == RuleScope(
        users=("alice", "bob the 2nd"),
        projects=("nlp-*",),
        machine_types=("A100 80G",),
        min_age_ms=5_400_000,
        min_samples=20,
        min_gpus=8,
        quantifier=Quantifier.SHARE,
        share=0.5,
    )


def test_mine_means_the_viewer_when_there_is_one() -> None:
    assert parse_text(f"{BUSY} for mine", me="alice").scope.users == ("alice",)
    assert "nobody is signed in" in error_of(f"{BUSY} for mine").message


def test_standard_scope_is_left_out_when_written() -> None:
    assert format_rule(parse_rule(f"{BUSY} after 10m with 10 samples on each GPU", key="k", name="n")) == BUSY


@pytest.mark.parametrize(
    ("text", "column", "length", "suggestion"),
    [
        ("gpu_utl p95 > 90%", 1, 7, "gpu_util"),
        ("DCGM_FI_DEV_GPU_UTIL p95 > 90%", 1, 20, "gpu_util"),
        ("util avrage > 90%", 6, 6, "average"),
        ("util p95 > 90", 12, 2, "90%"),
        ("util p101 > 90%", 6, 4, None),
        ("util p95 ! 90%", 10, 1, "!="),
        ("temperature max > 80%", 19, 3, None),
        ("power p50 < 70 GB", 13, 5, None),
        ("xid_error now > 5W", 17, 2, None),
        (f"{BUSY} adn power now > 5", 20, 3, "and"),
        (f"{BUSY} for usr alice", 24, 3, "user"),
        (f"{BUSY} over last 30", 32, 0, None),
        (f"{BUSY} over last 30x", 32, 1, None),
        (f"({BUSY}", 20, 0, None),
        (f"{BUSY})", 19, 1, None),
        (f"{BUSY} on 150% of GPUs", 23, 3, None),
        (f"{BUSY} after 5m after 6m", 29, 5, None),
        (f"{BUSY} with 0 samples", 25, 1, None),
        ('util p95 > 5% for user "\\q"', 24, 4, None),
        ("sm p95 > 5%", 1, 2, None),
        ("power now > 1e999", 13, 5, None),
        ("", 1, 0, None),
        ("util", 5, 0, None),
    ],
)
def test_error_points_and_suggests_when_the_text_is_wrong(
    text: str, column: int, length: int, suggestion: str | None
) -> None:
    error = error_of(text)
    assert (error.column, error.length, error.suggestion) == (column, length, suggestion)
    line, carets = error.render().split("\n")
    assert line == text
    assert carets == " " * (column - 1) + "^" * max(1, length)


def test_candidates_are_named_when_a_metric_is_ambiguous() -> None:
    assert error_of("sm p95 > 5%").hint == "One of `sm_active`, `sm_occupancy`, `sm_clock`."


TYPED = r"""util power gpu_util p95 mean over last 30m 1h > < >= != 90% 70 W GB and or ( ) share of longest above below spread
for user alice , on any GPU 50% GPUs with at least samples after "a b" slope /h 1e5 ° " ' \ p"""
WORDS = st.sampled_from(TYPED.split())


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join), st.lists(WORDS).map("".join)))
@settings(max_examples=400, deadline=None)
def test_only_syntax_errors_are_raised_when_the_text_is_arbitrary(text: str) -> None:
    error = None
    try:
        parse_text(text)
    except RuleSyntaxError as caught:
        error = caught
    if error is not None:
        assert 1 <= error.column <= len(text) + 1
        assert error.column - 1 + error.length <= len(text)
        assert error.render()


@pytest.mark.parametrize(
    "text", ["(" * 5000, "util now > 1" + "0" * 9000, f"{BUSY} and " * 500 + BUSY, "x" * 20_000, "util p" + "9" * 5000]
)
def test_error_is_reported_when_the_text_is_enormous(text: str) -> None:
    assert error_of(text).message


@given(scopes())
@settings(max_examples=100, deadline=None)
def test_scope_round_trips_when_written_after_any_condition(scope: RuleScope) -> None:
    expression = parse_text("power slope > 1%/h or util now = 5%").expression
    assert parse_text(format_text(expression, scope)).scope == scope
