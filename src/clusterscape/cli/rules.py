"""``clusterscape rules``: lists, explains and tests rules.

Testing rules on a recorded log needs no server; commands that need one are in ``rules_site.py``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from clusterscape.cli.options import DEFAULT_URL, INPUT, JsonOption, TokenOption, UrlOption, example
from clusterscape.cli.output import count, listing_table, print_json, stderr, stdout, styled_line
from clusterscape.cli.status import fetch
from clusterscape.errors import QueryError, RuleSyntaxError, SourceError

if TYPE_CHECKING:
    from clusterscape.analyze.rules.replay import ReplayedRow
    from clusterscape.cli.recorded_lives import RecordedLives
    from clusterscape.model.rules import Rule

MAX_EVALUATIONS = 500
"""Maximum number of evaluations of a log without --every: each evaluation reads the log up to its time."""

app = typer.Typer(help="Rules that find wasted and stalled GPUs: list, test, add, mute.", no_args_is_help=True)

RuleArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Rule expressions, or keys of built-in rules.", metavar="[RULE]...", show_default="all built-in rules"
    ),
]


@app.command("list", epilog=example("clusterscape rules list"))
def list_rules(url: UrlOption = DEFAULT_URL, token: TokenOption = None, as_json: JsonOption = False) -> None:
    """List the rules of a running server with their current violations; without a server, the built-in rules."""
    from clusterscape.analyze.rules.shipped import shipped_rules
    from clusterscape.cli.rules_site import print_rules

    try:
        print_rules(fetch(f"{url.rstrip('/')}/api/v1/rules", token), as_json=as_json)
        return
    except SourceError as error:
        if url != DEFAULT_URL:
            raise
        if not as_json:
            stderr.print(f"{error.message}. Showing the built-in rules.", style="yellow", highlight=False)
    if as_json:
        print_json([_describe(shipped.rule) for shipped in shipped_rules()])
        return
    table = listing_table(expand=True)
    for heading in ("key", "severity", "rule"):
        table.add_column(heading, no_wrap=heading != "rule", overflow="fold", ratio=1 if heading == "rule" else None)
    for shipped in shipped_rules():
        table.add_row(shipped.rule.key, shipped.rule.severity.value, _describe(shipped.rule)["text"])
    stdout.print(table, highlight=False)


@app.command(
    "explain",
    epilog=example("clusterscape rules explain low-utilization", "clusterscape rules explain 'gpu_util p95 < 80%'"),
)
def explain_rule(
    rule: Annotated[str, typer.Argument(help="Rule expression, or key of a built-in rule.")],
    as_json: JsonOption = False,
) -> None:
    """Explain a rule: its conditions, why it matters, and how it avoids false alarms."""
    from clusterscape.analyze.rules.shipped import find_shipped_rule
    from clusterscape.analyze.rules.writing import explain_in_words

    parsed, shipped = _find_rule(rule, 1), find_shipped_rule(rule)
    words = explain_in_words(parsed)
    if as_json:
        extra = {"false_alarms": shipped.false_alarms, "source": shipped.source} if shipped else {}
        print_json(_describe(parsed) | {"words": words} | extra)
        return
    stdout.print(styled_line((parsed.name, "bold"), f"  ({parsed.severity.value})"), highlight=False)
    stdout.print(_describe(parsed)["text"], style="cyan", highlight=False)
    for line in words:
        stdout.print(f"  {line}", highlight=False)
    if shipped:
        for heading, text in (
            ("Why", parsed.reason),
            ("Advice to the user", parsed.advice),
            ("Against false alarms", shipped.false_alarms),
            ("Thresholds", shipped.source),
        ):
            stdout.line()
            stdout.print(styled_line((f"{heading}.", "bold"), f" {text}"), highlight=False)


@app.command(
    "test",
    epilog=example(
        "clusterscape rules test 'gpu_util p95 < 80% after 30m' --since 7d",
        "clusterscape rules test --nvidia-smi telemetry.csv --timezone Europe/Berlin",
    ),
)
def replay_rules(
    rules: RuleArgument = None,
    nvidia_smi: Annotated[
        Path | None,
        typer.Option(
            help="Test on this log of `nvidia-smi --query-gpu=timestamp,index,… --format=csv -l 1`.",
            show_default="history of the server",
            rich_help_panel=INPUT,
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines with t, pid, mode and phase (start, end) that divide the log into runs.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    every: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds between evaluations.", show_default="1")
    ] = None,
    min_age: Annotated[str | None, typer.Option(help="Minimum age of a run, such as 30s; overrides the rules.")] = None,
    speed: Annotated[
        float, typer.Option(min=0.001, help="Speed-up of the log: all times in the rules are divided by it.")
    ] = 1.0,
    timezone: Annotated[
        str, typer.Option(help="Time zone of the log, such as Europe/Berlin.", rich_help_panel=INPUT)
    ] = "UTC",
    since: Annotated[str, typer.Option(help="Without a log: how far back to test, such as 7d.")] = "24h",
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test rules on the history of a running server, or on a recorded nvidia-smi log."""
    if nvidia_smi is None:
        from clusterscape.cli.rules_site import replay_on_server

        texts = [text if find_by_key(text) is None else format_by_key(text) for text in rules or []]
        replay_on_server(texts, since, url, token, as_json=as_json)
        return
    from clusterscape.analyze.rules.shipped import shipped_rules

    names = rules or [shipped.rule.key for shipped in shipped_rules()]
    chosen = [_adapt(_find_rule(text, number), min_age, speed) for number, text in enumerate(names, start=1)]

    from clusterscape.analyze.rules.replay import replay
    from clusterscape.cli.recorded_lives import read_recorded_lives

    lives = read_recorded_lives(nvidia_smi, events, zone=_zone(timezone))
    if min_age is None:
        chosen = [_fit_age(rule, text, lives) for rule, text in zip(chosen, names, strict=True)]
    span_ms = int(lives.until_at.max() - lives.from_at.min())
    step_ms = round(every * 1000) if every else max(1000, lives.interval_ms, -(-span_ms // MAX_EVALUATIONS))
    rows = replay(chosen, lives.columns, lives.facts, lives.from_at, lives.until_at, step_ms=step_ms)
    if as_json:
        print_json(_report(chosen, lives, rows, step_ms))
        return
    _print(rows, step_ms, lives.skipped_lines)


def find_by_key(text: str) -> "Rule | None":
    """The built-in rule with this key."""
    from clusterscape.analyze.rules.shipped import find_shipped_rule

    shipped = find_shipped_rule(text)
    return shipped.rule if shipped else None


def format_by_key(key: str) -> str:
    """The expression of the built-in rule with this key."""
    return str(_describe(_find_rule(key, 1))["text"])


def _find_rule(text: str, number: int) -> "Rule":
    from clusterscape.analyze.rules.reading import parse_rule

    shipped = find_by_key(text)
    if shipped is not None:
        return shipped
    try:
        return parse_rule(text, key=f"rule-{number}", name=f"Rule {number}")
    except RuleSyntaxError as error:
        # Hints are printed verbatim, so the caret line goes there.
        error.hint = "\n".join(filter(None, (error.render(), error.hint)))
        raise


def _adapt(rule: "Rule", min_age: str | None, speed: float) -> "Rule":
    from clusterscape.analyze.rules.reading import parse_duration_ms
    from clusterscape.analyze.rules.replay import scale_times

    rule = scale_times(rule, speed) if speed != 1.0 else rule
    if min_age is None:
        return rule
    return replace(rule, scope=replace(rule.scope, min_age_ms=parse_duration_ms(min_age)))


def _fit_age(rule: "Rule", text: str, lives: "RecordedLives") -> "Rule":
    """Reduce the default minimum age of a rule if no run of the log is that old.

    The first third of the longest run then counts as its start, which rules ignore.
    """
    longest_ms = int((lives.until_at - lives.from_at).max())
    if find_by_key(text) is not None or "after" in text.lower().split() or rule.scope.min_age_ms <= longest_ms:
        return rule
    age_ms = longest_ms // 3000 * 1000
    stderr.print(
        f"{rule.key}: evaluated from an age of {age_ms // 1000} s, as no run of the log is older than "
        f"{longest_ms // 1000} s; set another age with `after 10s` in the rule, or with --min-age.",
        style="yellow", highlight=False, soft_wrap=True,
    )  # fmt: skip
    return replace(rule, scope=replace(rule.scope, min_age_ms=age_ms))


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise QueryError(f"unknown time zone {name!r}", hint="Use a name such as UTC or Europe/Berlin.") from None


def _describe(rule: "Rule") -> dict[str, Any]:
    from clusterscape.analyze.rules.documents import write_document
    from clusterscape.analyze.rules.writing import format_rule

    return {"text": format_rule(rule)} | write_document(rule)


def _report(
    rules: Sequence["Rule"], lives: "RecordedLives", rows: Sequence["ReplayedRow"], step_ms: int
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
            for row in rows
        ],
    }


def _print(rows: Sequence["ReplayedRow"], step_ms: int, skipped_lines: int) -> None:
    from clusterscape.analyze.rules.writing import format_values

    broken = [row for row in rows if row.broken]
    table = listing_table(expand=True)
    for heading in ("rule", "workload", "unit", "first", "last", "broken", "statistics"):
        is_last = heading == "statistics"
        table.add_column(heading, no_wrap=not is_last, overflow="fold", ratio=1 if is_last else None)
    for row in broken:
        table.add_row(
            row.rule.key,
            row.workload,
            row.unit,
            _format_time(row.first_at),
            _format_time(row.last_at),
            f"{row.broken} of {row.evaluations}",
            format_values(row.rule, row.values),
        )
    if broken:
        stdout.print(table, highlight=False)
    unjudged = [row for row in rows if not row.judged]
    lives = len({(row.workload, row.unit) for row in rows})
    rules = len({row.rule.key for row in rows})
    stdout.print(
        f"{count(len(broken), 'violation')} by {count(rules, 'rule')} on {lives} "
        f"{'life' if lives == 1 else 'lives'}, evaluated every {step_ms / 1000:g} s.",
        highlight=False,
    )
    for (key, reason), times in Counter((row.rule.key, row.why_unjudged) for row in unjudged).items():
        where = "" if times == lives else f" on {times} of {lives} lives"
        stderr.print(f"{key}: never evaluated{where} ({reason}).", style="yellow", highlight=False, soft_wrap=True)
    if any(row.why_unjudged.startswith("younger than") for row in unjudged):
        stderr.print(
            "Use --min-age 10s to evaluate younger runs, or --speed 60 to shorten all times in the rules.",
            style="yellow",
        )
    if skipped_lines:
        stderr.print(f"{count(skipped_lines, 'line')} of the log could not be read.", style="yellow", highlight=False)


def _format_time(at_ms: int | None) -> str:
    return "–" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"
