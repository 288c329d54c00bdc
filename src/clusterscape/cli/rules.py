"""``clusterscape rules``: what rules there are, what one means, and what it says or would have said.

Judging a recorded log needs no server; what needs one is in ``rules_site.py``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import answers, count, errors, listing_table, print_json, styled_line
from clusterscape.cli.status import fetch
from clusterscape.errors import QueryError, RuleSyntaxError, SourceError

if TYPE_CHECKING:
    from clusterscape.analyze.rules.replay import ReplayedRow
    from clusterscape.cli.recorded_lives import RecordedLives
    from clusterscape.model.rules import Rule

MAX_EVALUATIONS = 500
"""Without --every a long log is judged so many times at most: each evaluation reads everything up to its moment."""

app = typer.Typer(help="Rules that catch wasted and stalled GPUs.", no_args_is_help=True)

RuleArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Texts of rules, or keys of shipped ones.", metavar="[RULE]...", show_default="all shipped rules"
    ),
]


@app.command("list")
def list_rules(url: UrlOption = DEFAULT_URL, token: TokenOption = None, as_json: JsonOption = False) -> None:
    """List the rules of a running server and what they say now; without one, the shipped rules."""
    from clusterscape.analyze.rules.shipped import shipped_rules
    from clusterscape.cli.rules_site import print_rules

    try:
        print_rules(fetch(f"{url.rstrip('/')}/api/v1/rules", token), as_json=as_json)
        return
    except SourceError as error:
        if url != DEFAULT_URL:
            raise
        if not as_json:
            errors.print(f"{error.message}. These are the shipped rules.", style="yellow", highlight=False)
    if as_json:
        print_json([_describe(one.rule) for one in shipped_rules()])
        return
    table = listing_table(expand=True)
    for heading in ("key", "severity", "rule"):
        table.add_column(heading, no_wrap=heading != "rule", overflow="fold", ratio=1 if heading == "rule" else None)
    for one in shipped_rules():
        table.add_row(one.rule.key, one.rule.severity.value, _describe(one.rule)["text"])
    answers.print(table, highlight=False)


@app.command("explain")
def explain_rule(
    rule: Annotated[str, typer.Argument(help="The text of a rule, or the key of a shipped one.")],
    as_json: JsonOption = False,
) -> None:
    """Say what a rule looks at, why it matters and what is done against false alarms."""
    from clusterscape.analyze.rules.explaining import explain_in_words
    from clusterscape.analyze.rules.shipped import find_shipped_rule

    found, shipped = _find_rule(rule, 1), find_shipped_rule(rule)
    words = explain_in_words(found)
    if as_json:
        besides = {"false_alarms": shipped.false_alarms, "source": shipped.source} if shipped else {}
        print_json(_describe(found) | {"words": words} | besides)
        return
    answers.print(styled_line((found.name, "bold"), f"  ({found.severity.value})"), highlight=False)
    answers.print(_describe(found)["text"], style="cyan", highlight=False)
    for line in words:
        answers.print(f"  {line}", highlight=False)
    if shipped:
        for heading, text in (
            ("Why", found.reason),
            ("To its user", found.advice),
            ("Against false alarms", shipped.false_alarms),
            ("Thresholds", shipped.source),
        ):
            answers.line()
            answers.print(styled_line((f"{heading}.", "bold"), f" {text}"), highlight=False)


@app.command("test")
def judge_log(
    rules: RuleArgument = None,
    nvidia_smi: Annotated[
        Path | None, typer.Option(help="A log of `nvidia-smi --query-gpu=timestamp,index,… --format=csv -l 1`.")
    ] = None,
    events: Annotated[
        Path | None, typer.Option(help="JSON lines with t, pid, mode and phase (start, end): cut the log into runs.")
    ] = None,
    every: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds between evaluations.", show_default="1")
    ] = None,
    min_age: Annotated[
        str | None, typer.Option(help="Judge from this age on, such as 30s, whatever the rules say.")
    ] = None,
    speed: Annotated[
        float, typer.Option(min=0.001, help="A log that runs so many times as fast as real work: times are shortened.")
    ] = 1.0,
    timezone: Annotated[str, typer.Option(help="The zone of the log's timestamps, such as Europe/Berlin.")] = "UTC",
    since: Annotated[str, typer.Option(help="Without a log: how much of a running server's past, such as 7d.")] = "24h",
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the past by rules: a recorded log evaluation by evaluation, else what a running server remembers."""
    if nvidia_smi is None:
        from clusterscape.cli.rules_site import try_on_site

        texts = [text if find_key(text) is None else format_found(text) for text in rules or []]
        try_on_site(texts, since, url, token, as_json=as_json)
        return
    from clusterscape.analyze.rules.shipped import shipped_rules

    named = rules or [one.rule.key for one in shipped_rules()]
    chosen = [_adapt(_find_rule(text, place), min_age, speed) for place, text in enumerate(named, start=1)]

    from clusterscape.analyze.rules.replay import replay
    from clusterscape.cli.recorded_lives import read_recorded_lives

    lives = read_recorded_lives(nvidia_smi, events, zone=_zone(timezone))
    if min_age is None:
        chosen = [_fit_age(rule, text, lives) for rule, text in zip(chosen, named, strict=True)]
    span_ms = int(lives.until_at.max() - lives.from_at.min())
    step_ms = round(every * 1000) if every else max(1000, lives.interval_ms, -(-span_ms // MAX_EVALUATIONS))
    found = replay(chosen, lives.columns, lives.facts, lives.from_at, lives.until_at, step_ms=step_ms)
    if as_json:
        print_json(_report(chosen, lives, found, step_ms))
        return
    _print(found, step_ms, lives.skipped_lines)


def find_key(text: str) -> "Rule | None":
    """The shipped rule of that key."""
    from clusterscape.analyze.rules.shipped import find_shipped_rule

    found = find_shipped_rule(text)
    return found.rule if found else None


def format_found(key: str) -> str:
    """The text of the shipped rule of that key."""
    return str(_describe(_find_rule(key, 1))["text"])


def _find_rule(text: str, place: int) -> "Rule":
    from clusterscape.analyze.rules.reading import parse_rule

    shipped = find_key(text)
    if shipped is not None:
        return shipped
    try:
        return parse_rule(text, key=f"rule-{place}", name=f"Rule {place}")
    except RuleSyntaxError as error:
        # The terminal shows hints as they are: the caret line goes there.
        error.hint = "\n".join(filter(None, (error.render(), error.hint)))
        raise


def _adapt(rule: "Rule", min_age: str | None, speed: float) -> "Rule":
    from clusterscape.analyze.rules.reading import parse_duration_ms
    from clusterscape.analyze.rules.replay import at_speed

    rule = at_speed(rule, speed) if speed != 1.0 else rule
    if min_age is None:
        return rule
    return replace(rule, scope=replace(rule.scope, min_age_ms=parse_duration_ms(min_age)))


def _fit_age(rule: "Rule", text: str, lives: "RecordedLives") -> "Rule":
    """A rule that does not say from which age on it judges, for a log whose runs never reach the usual age.

    The first third of the longest run is then taken for its start, which no rule should judge.
    """
    longest_ms = int((lives.until_at - lives.from_at).max())
    if find_key(text) is not None or "after" in text.lower().split() or rule.scope.min_age_ms <= longest_ms:
        return rule
    age_ms = longest_ms // 3000 * 1000
    errors.print(
        f"{rule.key}: judged from {age_ms // 1000} s of age on, as no run of the log is older than "
        f"{longest_ms // 1000} s; `after 10s` in the rule or --min-age says otherwise.",
        style="yellow", highlight=False, soft_wrap=True,
    )  # fmt: skip
    return replace(rule, scope=replace(rule.scope, min_age_ms=age_ms))


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise QueryError(f"there is no time zone {name!r}", hint="Write it as Europe/Berlin or UTC.") from None


def _describe(rule: "Rule") -> dict[str, Any]:
    from clusterscape.analyze.rules.documents import write_document
    from clusterscape.analyze.rules.writing import format_rule

    return {"text": format_rule(rule)} | write_document(rule)


def _report(
    rules: Sequence["Rule"], lives: "RecordedLives", found: Sequence["ReplayedRow"], step_ms: int
) -> dict[str, Any]:
    return {
        "rules": [_describe(rule) for rule in rules],
        "every_s": step_ms / 1000,
        "skipped_lines": lives.skipped_lines,
        "results": [
            {
                "rule": row.rule.key,
                "workload": row.workload,
                "unit": row.unit,
                "is_broken": row.broken > 0,
                "first_violation_at": row.first_at,
                "last_violation_at": row.last_at,
                "evaluations": row.evaluations,
                "judged": row.judged,
                "broken": row.broken,
                "values": row.values,
                "why_unjudged": row.why_unjudged or None,
            }
            for row in found
        ],
    }


def _print(found: Sequence["ReplayedRow"], step_ms: int, skipped_lines: int) -> None:
    from clusterscape.analyze.rules.explaining import format_values

    broken = [row for row in found if row.broken]
    table = listing_table(expand=True)
    for heading in ("rule", "workload", "unit", "first", "last", "broken", "statistics"):
        is_last = heading == "statistics"
        table.add_column(heading, no_wrap=not is_last, overflow="fold", ratio=1 if is_last else None)
    for row in broken:
        table.add_row(
            row.rule.key,
            row.workload,
            row.unit,
            _moment(row.first_at),
            _moment(row.last_at),
            f"{row.broken} of {row.evaluations}",
            format_values(row.rule, row.values),
        )
    if broken:
        answers.print(table, highlight=False)
    unjudged = [row for row in found if not row.judged]
    lives = len({(row.workload, row.unit) for row in found})
    rules = len({row.rule.key for row in found})
    answers.print(
        f"{count(len(broken), 'violation')} by {count(rules, 'rule')} on {lives} "
        f"{'life' if lives == 1 else 'lives'}, evaluated every {step_ms / 1000:g} s.",
        highlight=False,
    )
    for (key, reason), times in Counter((row.rule.key, row.why_unjudged) for row in unjudged).items():
        where = "" if times == lives else f" on {times} of {lives} lives"
        errors.print(f"{key}: never judged{where} ({reason}).", style="yellow", highlight=False, soft_wrap=True)
    if any(row.why_unjudged.startswith("younger than") for row in unjudged):
        errors.print(
            "--min-age 10s judges younger runs, too; --speed 60 shortens every time in the rules.", style="yellow"
        )
    if skipped_lines:
        errors.print(f"{count(skipped_lines, 'line')} of the log could not be read.", style="yellow", highlight=False)


def _moment(at_ms: int | None) -> str:
    return "–" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"
