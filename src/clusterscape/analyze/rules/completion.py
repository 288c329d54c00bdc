"""Autocompletion of rule text, and the whole vocabulary for a form. Only suggests; does not validate."""

import re
from typing import Any, NamedTuple

from clusterscape.analyze.rules.reading import MAX_LENGTH, parse_text
from clusterscape.analyze.rules.scanner import Expected, ExpectedError
from clusterscape.analyze.rules.scope_reading import FILTER_WORDS
from clusterscape.analyze.rules.vocabulary import (
    LIMITED_METRICS,
    SHORT_NAMES,
    find_metrics,
    list_names,
    short_name,
    threshold_units,
    value_units,
)
from clusterscape.errors import RuleSyntaxError
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.metrics import JUDGED_METRICS, MetricKind
from clusterscape.model.rules import Across, Operator, Quantifier, Severity, StatisticKind, Subject
from clusterscape.model.statistics import STATISTIC_CATALOGUE, STATISTICS, Argument, MeasuredThing

_LAST_WORD = re.compile(r"[\w.%°/]*\Z")
_METRIC_BEFORE = re.compile(r"([^\W\d]\w*)")
_ACROSS_HELP = {
    Across.SPREAD: "Largest minus smallest among the workload's GPUs.",
    Across.LEAST: "The smallest among the workload's GPUs.",
    Across.MOST: "The largest among the workload's GPUs.",
    Across.AVERAGE: "The mean over the workload's GPUs.",
}
_CONTINUATIONS = {
    "and": "Both must hold.",
    "or": "At least one must hold.",
    "over last": "Only the latest part of the life: `over last 30m`.",
    "for": "Which workloads: `for user …`; or other subjects: `for every GPU`, `for every node`, `for every source`.",
    "on": "Whether GPUs or the whole workload are reported: `on any GPU`.",
    "with": "Minimum number of samples or GPUs: `with 20 samples`.",
    "after": "Minimum age: `after 30m`.",
}
_FIXED: dict[Expected, tuple[str, ...]] = {
    Expected.SIDE: ("above", "below"),
    Expected.OPERATOR: tuple(operator.value for operator in Operator),
    Expected.DURATION: ("10m", "30m", "1h", "6h"),
    Expected.FILTER: FILTER_WORDS,
    Expected.QUANTIFIER: ("each GPU", "any GPU", "all GPUs", "50% of GPUs"),
    Expected.AMOUNT: ("20 samples", "at least 8 GPUs"),
}


class Completion(NamedTuple):
    """``insert`` replaces the text from ``start`` (counted from 0) to the cursor."""

    insert: PublicText
    start: int
    help: PublicText


def complete(text: str, cursor: int | None = None) -> list[Completion]:
    """Suggestions at ``cursor`` (None: the end), most likely first; empty if the text before it is invalid."""
    before = text[: len(text) if cursor is None else max(0, cursor)][:MAX_LENGTH]
    match = _LAST_WORD.search(before)
    assert match is not None
    start, word = match.start(), match.group().lower()
    offers = _offers(before[:start])
    if word:
        offers = [offer for offer in offers if offer[0].lower().startswith(word)] or [
            offer for offer in offers if word in offer[0].lower()
        ]
    return [Completion(insert, start, help_text) for insert, help_text in offers if insert.lower() != word]


def _offers(before: str) -> list[tuple[str, str]]:
    try:
        parse_text(before, me="me")
    except ExpectedError as error:
        if error.length or error.column <= len(before.rstrip()):
            return []
        return _expected_offers(error.expected, before)
    except RuleSyntaxError:
        return []
    return list(_CONTINUATIONS.items())


def _expected_offers(expected: Expected, before: str) -> list[tuple[str, str]]:
    match expected:
        case Expected.CONDITION:
            starts = [(f"{across.value} of", text) for across, text in _ACROSS_HELP.items()]
            return [
                *_metric_offers(),
                ("share of", "Share of the time above or below a value."),
                ("longest", "Longest time above or below a value without a break."),
                *starts,
            ]
        case Expected.METRIC:
            return _metric_offers()
        case Expected.STATISTIC:
            return _statistic_offers()
        case Expected.VALUE:
            return _value_offers(before)
        case Expected.CONTINUATION:
            return [(")", "Closes the parenthesis."), *_CONTINUATIONS.items()]
        case _:
            return [(word, "") for word in _FIXED.get(expected, ())]


def _metric_offers() -> list[tuple[str, str]]:
    ordered = sorted(JUDGED_METRICS.values(), key=lambda metric: not metric.summary)
    offers = [(short_name(metric.name), f"{metric.label}: {metric.help}") for metric in ordered]
    alias_offers = [
        (name, JUDGED_METRICS[metric_name].label)
        for name, metric_name in SHORT_NAMES.items()
        if name != short_name(metric_name)
    ]
    return offers + alias_offers


def _statistic_offers() -> list[tuple[str, str]]:
    offers = [(f"p{number}", f"{number}th percentile.") for number in (95, 50, 5, 99)]
    # Percentiles are offered as numbers above, and runs start with `longest`.
    offers += [
        (entry.kind.value, entry.help)
        for entry in STATISTIC_CATALOGUE
        if entry.argument is not Argument.PERCENTILE and entry.measures is not MeasuredThing.DURATION
    ]
    return offers


def _value_offers(before: str) -> list[tuple[str, str]]:
    """Example values in the units of the last named metric."""
    named = [matches[0] for word in _METRIC_BEFORE.findall(before) if len(matches := find_metrics(word)) == 1]
    if not named:
        return []
    metric = JUDGED_METRICS[named[-1]]
    if metric.unit.value == "ratio" or metric.name in LIMITED_METRICS:
        return [(f"{number}%", "") for number in (90, 70, 50, 15, 5)]
    return [(f"10{unit.word}", "") for unit in threshold_units(metric)[:3]] or [("0", "")]


def describe_language() -> dict[str, Any]:
    """The vocabulary as JSON-compatible values, for the form and its help."""
    return {
        "metrics": [
            {
                "name": metric.name,
                "short": short_name(metric.name),
                "aliases": list_names(metric),
                "label": metric.label,
                "help": metric.help,
                "unit": metric.unit.value,
                "units": [unit.word for unit in threshold_units(metric)],
                "is_counter": metric.kind is MetricKind.COUNTER,
                "has_limit": metric.name in LIMITED_METRICS,
                "is_summary": metric.summary,
            }
            for metric in JUDGED_METRICS.values()
        ],
        "statistics": [
            {
                "kind": entry.kind.value,
                "label": entry.label,
                "help": entry.help,
                "argument": None if entry.argument is None else entry.argument.value,
                "units": _fixed_units(entry.kind),
                "unit_suffix": "/h" if entry.measures is MeasuredThing.RATE else "",
            }
            for entry in STATISTIC_CATALOGUE
        ],
        "operators": [operator.value for operator in Operator],
        "across": [{"kind": across.value, "help": text} for across, text in _ACROSS_HELP.items()],
        "subjects": [subject.value for subject in Subject],
        "quantifiers": [quantifier.value for quantifier in Quantifier],
        "severities": [severity.value for severity in Severity],
        "windows_ms": [600_000, 1_800_000, 3_600_000, 21_600_000, 86_400_000],
    }


def _fixed_units(kind: StatisticKind) -> list[str] | None:
    """Units of the compared value if they do not depend on the metric; else None."""
    if STATISTICS[kind].argument is not Argument.THRESHOLD:
        return None
    return [unit.word for unit in value_units(next(iter(JUDGED_METRICS.values())), kind)]
