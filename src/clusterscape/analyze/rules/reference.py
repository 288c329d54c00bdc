"""The reference page of the rule language, generated from the vocabulary of the parser."""

import textwrap

from clusterscape.analyze.rules.shipped import ShippedRule, shipped_rules
from clusterscape.analyze.rules.vocabulary import (
    LIMITED_METRICS,
    list_names,
    threshold_units,
)
from clusterscape.analyze.rules.writing import format_rule
from clusterscape.model.metrics import JUDGED_METRICS
from clusterscape.model.rules import Condition, Expression, Joined
from clusterscape.model.statistics import STATISTIC_CATALOGUE

_HEAD = """# Rules

A rule is conditions joined by `and` and `or`; `and` binds tighter, parentheses group. A condition is metric × statistic
× operator × value. It is evaluated for every workload on every GPU, over the workload's whole life there unless it has a
window. [The guide](../guide/rules.md) shows how to write one. From `analyze/rules`.

    gpu_util p95 > 90% and power p50 < 70%
    gpu_util p95 over last 30m < 5% and gpu_util max >= 50% for partition large after 40m
    share of gpu_util below 5% > 50% or longest gpu_util below 5% > 30m
    spread of gpu_util mean > 30% on any GPU with at least 8 GPUs

## Grammar

    rule       = terms { clause }
    terms      = all { "or" all }            all = one { "and" one }            one = "(" terms ")" | condition
    condition  = [ across "of" ] subject [ window ] operator value [ window ]
    subject    = metric statistic | [ "share of" ] metric side value | "longest" metric side value
    across     = "spread" | "least" | "most" | "average"                      side = "above" | "below"
    window     = "over last" duration                                          operator = < <= > >= = !=
    clause     = "for" filter name { "," name } | "for" ( "mine" | "all" ) | "after" duration
               | "with" [ "at least" ] count ( "samples" | "GPUs" )
               | "on" ( "each GPU" | "any GPU" | "all GPUs" | [ "at least" ] percent "of GPUs" )
    filter     = "user" | "project" | "partition" | "machine type" | "name"

Case does not matter. Names are exact or globs (`nlp-*`); names with spaces or commas need quotes. A time is `90s`,
`30m`, `1h30m`, `2d`.

## Numbers

`90%` of a ratio is 0.9. `70%` of power or memory is 70 % of the limit of that GPU: its power limit, its memory. Other
metrics have no limit, and `%` is an error. Shares of time are percentages, longest runs are times, slopes are per hour
(`memory slope > 1%/h`). A value within a rounding error of the bound is equal to it.

## Unknown values

A condition is unknown if its metric is not measured, if the GPU's limit is unknown, or if there are fewer samples than
`with … samples` requires (default 10). Unknown *and* false is false, unknown *or* true is true. If the whole rule is
unknown, the workload is not judged yet: it neither breaks nor fulfills the rule. So `a and (b or c)` uses `b` if it is
measured, and else `c`.

Lives younger than `after …` (default 10 minutes) are not judged. `on any GPU`, `on all GPUs` and `on 50% of GPUs` report
the whole workload; a GPU that is not judged yet keeps the verdict open as long as it could change it. `spread of`,
`least of`, `most of` and `average of` combine the workload's GPUs; GPUs without a value are ignored.

"""


def reference_page() -> str:
    """The whole page as Markdown."""
    return "\n".join(
        [_HEAD + "## Statistics\n", *_statistics(), "\n## Metrics\n", *_metrics(), "\n## Shipped rules\n", *_shipped()]
    ).rstrip()


def _statistics() -> list[str]:
    rows = ["| written | meaning |", "|---|---|"]
    rows += [f"| `{entry.written or entry.kind.value}` | {entry.help} |" for entry in STATISTIC_CATALOGUE]
    return rows


def _metrics() -> list[str]:
    rows = [
        "Any unique prefix of a name also works.",
        "",
        "| names | metric | units |",
        "|---|---|---|",
    ]
    for metric in JUDGED_METRICS.values():
        names = ", ".join(f"`{name}`" for name in list_names(metric))
        words = [f"`{unit.word}`" for unit in threshold_units(metric)]
        if metric.name in LIMITED_METRICS:
            words[-1] += " of the limit"
        rows.append(f"| {names} | {metric.label} | {', '.join(words) or 'plain number'} |")
    return rows


def _shipped() -> list[str]:
    lines = ["They can be disabled and copied, but not edited. Each explains how it avoids false alarms.", ""]
    for shipped_rule in shipped_rules():
        lines += _describe(shipped_rule)
    return lines


def _describe(shipped_rule: ShippedRule) -> list[str]:
    rule = shipped_rule.rule
    return [
        f"### {rule.key}",
        "",
        f"{rule.name} ({rule.severity.value}).",
        "",
        f"    {format_rule(rule)}",
        "",
        _wrap(rule.reason),
        "",
        *([_wrap(f"*Advice to the user:* {rule.advice}"), ""] if rule.advice else []),
        _wrap(f"*Against false alarms:* {shipped_rule.false_alarms}{_optional(rule.expression)}"),
        "",
        _wrap(f"*Thresholds:* {shipped_rule.source}"),
        "",
    ]


def _wrap(paragraph: str) -> str:
    return textwrap.fill(paragraph, width=120, break_long_words=False, break_on_hyphens=False)


def _optional(expression: Expression) -> str:
    """A note if some metrics are alternatives that need not be measured."""
    is_optional = isinstance(expression, Joined) and any(not isinstance(term, Condition) for term in expression.terms)
    return " Metrics behind an `or` need not be measured." if is_optional else ""
