"""Rules as JSON and as form fields, and conversion between text, JSON and form."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.analyze.rules.rule_strategies import rules

from clusterscape.analyze.rules.documents import FormRow, read_document, read_form, write_document, write_form
from clusterscape.analyze.rules.reading import parse_rule, parse_text
from clusterscape.errors import RuleDocumentError
from clusterscape.model.rules import Joined, Junction, Operator, Rule, StatisticKind

STALL = "gpu_util p95 > 90% and power p50 < 70%"


@pytest.fixture
def document() -> dict[str, Any]:
    return write_document(parse_rule(STALL, key="stall", name="Stalled"))


@given(rules)
@settings(max_examples=60, deadline=None)
def test_rule_round_trips_when_written_as_json(rule: Rule) -> None:
    assert read_document(json.dumps(write_document(rule))) == rule
    assert read_document(write_document(rule)) == rule


@given(rules)
@settings(max_examples=60, deadline=None)
def test_expression_round_trips_when_it_fits_a_form(rule: Rule) -> None:
    groups = rule.expression.terms if isinstance(rule.expression, Joined) else (rule.expression,)
    is_nested = any(
        (isinstance(term, Joined) and any(isinstance(inner, Joined) for inner in term.terms))
        or (isinstance(term, Joined) and rule.expression.junction is Junction.AND)
        for term in groups
        if isinstance(rule.expression, Joined)
    )
    if is_nested:
        with pytest.raises(RuleDocumentError, match="does not fit the form"):
            write_form(rule.expression)
    else:
        assert read_form(write_form(rule.expression)) == rule.expression


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"sevrity": "info"}, "sevrity"),
        ({"version": 2}, "version"),
        ({"severity": "loud"}, "severity"),
        ({"key": "Has Spaces"}, "key"),
        ({"name": " "}, "name"),
        ({"color": "red"}, "color"),
        ({"scope": {"users": ["a"], "user": "b"}}, "scope.user"),
        ({"scope": {"min_samples": 0}}, "scope.min_samples"),
        ({"scope": {"quantifier": "share"}}, "scope.share"),
        ({"scope": {"users": [""]}}, "scope.users"),
        ({"expression": {"junction": "and", "terms": []}}, "expression"),
        ({"expression": 5}, "expression"),
    ],
)
def test_path_is_named_when_a_field_is_wrong(document: dict[str, Any], change: dict[str, Any], path: str) -> None:
    with pytest.raises(RuleDocumentError) as caught:
        read_document(document | change)
    assert caught.value.path == path
    assert caught.value.message.startswith(path)


@pytest.mark.parametrize(
    ("term", "field"),
    [
        ({"metric": "nonsense"}, "metric"),
        ({"metrc": "x"}, "metrc"),
        ({"operator": "~"}, "operator"),
        ({"statistic": {"kind": "percentile"}}, "statistic.percentile"),
        ({"statistic": {"kind": "mean", "percentile": 5}}, "statistic.percentile"),
        ({"statistic": {"kind": "percentile", "percentile": 101}}, "statistic.percentile"),
        ({"statistic": {"kind": "above"}}, "statistic.threshold"),
        ({"value": {"number": 1, "basis": "limit"}}, "value.basis"),
        ({"window_ms": 0}, "window_ms"),
    ],
)
def test_path_leads_to_the_term_when_a_condition_is_wrong(
    document: dict[str, Any], term: dict[str, Any], field: str
) -> None:
    document["expression"]["terms"][0] |= term
    with pytest.raises(RuleDocumentError) as caught:
        read_document(document)
    assert caught.value.path == f"expression.terms.0.{field}"


def test_error_is_raised_when_nesting_is_too_deep(document: dict[str, Any]) -> None:
    inner = document["expression"]
    for level in range(150):
        junction = "or" if level % 2 else "and"
        inner = {"junction": junction, "terms": [inner, document["expression"]["terms"][0]]}
    with pytest.raises(RuleDocumentError):
        read_document(json.dumps(document | {"expression": inner}))


@given(st.text() | st.binary())
@settings(max_examples=60, deadline=None)
def test_only_a_document_error_is_raised_when_the_json_is_arbitrary(text: str | bytes) -> None:
    with pytest.raises(RuleDocumentError):
        read_document(text)


def test_rows_read_as_or_of_ands_when_joined_both_ways() -> None:
    text = f"{STALL} or longest util below 5% over last 2h >= 30m"
    rows = write_form(parse_text(text).expression)
    assert [row.junction for row in rows] == [Junction.OR, Junction.AND, Junction.OR]
    assert rows[1] == FormRow(
        metric="power_watts",
        statistic=StatisticKind.PERCENTILE,
        argument="50",
        operator=Operator.LESS,
        value="70",
        unit="%",
    )
    assert (rows[2].argument, rows[2].argument_unit, rows[2].value, rows[2].unit) == ("5", "%", "30", "m")
    assert read_form(rows) == parse_text(text).expression


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"metric": "util"}, "rows.0.metric"),
        ({"argument": None}, "rows.0.argument"),
        ({"unit": "W"}, "rows.0.value"),
        ({"unit": ""}, "rows.0.value"),
        ({"value": "inf"}, "rows.0.value"),
        ({"value": "ninety"}, "rows.0.value"),
        ({"argument": "200"}, "expression.statistic.percentile"),
    ],
)
def test_path_is_named_when_a_form_field_is_wrong(row: dict[str, Any], path: str) -> None:
    fields: dict[str, Any] = {
        "metric": "gpu_util_ratio",
        "statistic": StatisticKind.PERCENTILE,
        "argument": "95",
        "operator": Operator.LESS,
        "value": "90",
        "unit": "%",
    }
    with pytest.raises(RuleDocumentError) as caught:
        read_form([FormRow(**(fields | row))])
    assert caught.value.path == path
