"""Completions while a rule is typed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.analyze.rules.completion import complete, describe_language
from clusterscape.analyze.rules.reading import parse_text
from clusterscape.model.rules import StatisticKind


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", "gpu_util"),
        ("gpu_", "gpu_util"),
        ("tens", "tensor_active"),
        ("spr", "spread of"),
        ("util ", "p95"),
        ("util me", "mean"),
        ("util p95 ", ">"),
        ("util p95 > ", "90%"),
        ("temperature max > ", "10C"),
        ("longest util ", "below"),
        ("util p95 > 90% ", "and"),
        ("util p95 > 90% o", "over last"),
        ("util p95 > 90% and ", "power"),
        ("(util p95 > 90% ", ")"),
        ("util p95 > 90% for ", "machine type"),
        ("util p95 > 90% on ", "any GPU"),
        ("util p95 over last ", "30m"),
        ("util p95 > 90% with ", "20 samples"),
    ],
)
def test_matching_words_are_offered_when_the_text_ends_there(text: str, offered: str) -> None:
    assert offered in [completion.insert for completion in complete(text)]


def test_word_under_the_cursor_is_replaced_when_accepted() -> None:
    text = "util p95 > 90% and pow p50"
    best = complete(text, cursor=22)[0]
    assert text[: best.start] + best.insert == "util p95 > 90% and power"


def test_nothing_is_offered_when_the_text_before_is_wrong() -> None:
    assert complete("utl p95 > 90% ") == []


@given(st.text(max_size=40), st.none() | st.integers(-5, 50))
@settings(max_examples=300, deadline=None)
def test_completion_never_raises_when_the_text_is_arbitrary(text: str, cursor: int | None) -> None:
    complete(text, cursor)


def test_vocabulary_is_complete_and_plain_when_described() -> None:
    language = json.loads(json.dumps(describe_language()))
    assert {statistic["kind"] for statistic in language["statistics"]} == set(StatisticKind)
    names = [name for metric in language["metrics"] for name in metric["aliases"]]
    assert len(names) == len(set(names))
    for metric in language["metrics"]:
        for name in metric["aliases"]:
            assert parse_text(f"{name} now > 0").expression == parse_text(f"{metric['name']} now > 0").expression
