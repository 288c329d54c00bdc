"""The reference page of the rule language, written from the code that reads it."""

from clusterscape.analyze.rules.shipped import ShippedRule, shipped_rules
from clusterscape.analyze.rules.vocabulary import (
    LIMITED_METRICS,
    names_of,
    threshold_units,
)
from clusterscape.analyze.rules.writing import format_rule
from clusterscape.model.metrics import CATALOGUE
from clusterscape.model.rules import Condition, Expression, Joined
from clusterscape.model.statistics import STATISTIC_CATALOGUE

_HEAD = """# Rules

A rule is conditions joined by `and` and `or`; `and` binds tighter, parentheses group. A condition is metric × statistic
× operator × value. It is judged for every workload on every GPU, over that workload's whole life there unless a window
is named. [The guide](../guide/rules.md) shows how to write one. From `analyze/rules`.

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

Case does not matter. Names are exact or globs (`nlp-*`); those with spaces or commas stand in quotes. A time is `90s`,
`30m`, `1h30m`, `2d`.

## Numbers

`90%` of a ratio is 0.9. `70%` of power or memory is 70 % of that GPU's own limit: its power limit, its memory. Other
metrics have no limit, and `%` of them is refused. Shares of time are percentages, longest runs are times, slopes are
per hour (`memory slope > 1%/h`). A value that differs from the bound by no more than a rounding error equals it.

## What is not known

A condition is unknown where its metric is not measured, where the GPU's limit is not known, or where the time it looks
at holds fewer samples than `with … samples` wants (10). Unknown *and* false is false, unknown *or* true is true, and a
rule that stays unknown has not judged yet: it neither accuses nor acquits. So `a and (b or c)` uses `b` where it is
measured and falls back to `c` where it is not.

Younger lives than `after …` (10 minutes) are not judged. `on any GPU`, `on all GPUs` and `on 50% of GPUs` blame the
whole workload; a GPU that is not judged yet keeps the verdict open as long as it could decide it. `spread of`, `least
of`, `most of` and `average of` take the workload's GPUs together, those without a value left out.

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
        "Any beginning of a name that fits one metric only will do as well.",
        "",
        "| names | metric | units |",
        "|---|---|---|",
    ]
    for metric in CATALOGUE:
        names = ", ".join(f"`{name}`" for name in names_of(metric))
        words = [f"`{unit.word}`" for unit in threshold_units(metric)]
        if metric.name in LIMITED_METRICS:
            words[-1] += " of the limit"
        rows.append(f"| {names} | {metric.label} | {', '.join(words) or 'plain number'} |")
    return rows


def _shipped() -> list[str]:
    lines = ["They can be switched off and copied, not changed. Each says why it seldom cries wolf.", ""]
    for one in shipped_rules():
        lines += _describe(one)
    return lines


def _describe(one: ShippedRule) -> list[str]:
    rule = one.rule
    return [
        f"### {rule.key}",
        "",
        f"{rule.name} ({rule.severity.value}).",
        "",
        f"    {format_rule(rule)}",
        "",
        f"{rule.reason}",
        "",
        *([f"*To its user:* {rule.advice}", ""] if rule.advice else []),
        f"*Against false alarms:* {one.false_alarms}{_optional(rule.expression)}",
        "",
        f"*Thresholds:* {one.source}",
        "",
    ]


def _optional(expression: Expression) -> str:
    """A note where some term is an alternative that need not be measured."""
    is_optional = isinstance(expression, Joined) and any(not isinstance(term, Condition) for term in expression.terms)
    return " Metrics behind an `or` need not be measured." if is_optional else ""
