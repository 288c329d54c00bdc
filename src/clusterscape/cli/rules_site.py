"""Rules of a running server: list, try, add, switch, remove, export; and its violations."""

from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import answers, count, errors, listing_table, print_json, print_text
from clusterscape.cli.rules import app
from clusterscape.cli.status import fetch, send
from clusterscape.errors import QueryError
from clusterscape.model.quantities import format_hours
from clusterscape.model.rules import Severity

TRIAL_TIMEOUT_S = 3600.0
HOUR_MS = 3_600_000
NAMED = 20

KeyArgument = Annotated[str, typer.Argument(help="The rule's key.")]


@app.command("add")
def add_rule(
    key: Annotated[str, typer.Argument(help="Small letters, digits, - and _; never changes.")],
    text: Annotated[str, typer.Argument(help="The rule, such as 'gpu_util p95 < 80% after 30m'.")],
    name: Annotated[str | None, typer.Option(help="What people call it.", show_default="the key")] = None,
    severity: Annotated[Severity, typer.Option(help="How much it matters.")] = Severity.WARNING,
    reason: Annotated[str, typer.Option(help="Why it matters and what to do.")] = "",
    advice: Annotated[str, typer.Option(help="To the workload's user: what it means and what they can do.")] = "",
    color: Annotated[str | None, typer.Option(help="#rrggbb.", show_default="by severity")] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a rule to a running server, or replace one."""
    words = {"name": name or key, "reason": reason, "advice": advice}
    body = {"text": text, "severity": severity.value, "color": color, **words}
    saved = send("PUT", _address(url, key), body, token)
    if as_json:
        print_json(saved)
        return
    answers.print(f"{saved['key']}: {saved['text']}", highlight=False)
    for line in saved["words"]:
        answers.print(f"  {line}", highlight=False)


@app.command("remove")
def remove_rule(key: KeyArgument, url: UrlOption = DEFAULT_URL, token: TokenOption = None) -> None:
    """Forget an own rule and its violations; a shipped one becomes again what it was."""
    send("DELETE", _address(url, key), None, token)


@app.command("enable")
def enable_rule(key: KeyArgument, url: UrlOption = DEFAULT_URL, token: TokenOption = None) -> None:
    """Judge by a rule again."""
    send("PUT", _address(url, key), {"is_enabled": True}, token)


@app.command("disable")
def disable_rule(key: KeyArgument, url: UrlOption = DEFAULT_URL, token: TokenOption = None) -> None:
    """Judge by a rule no more; it stays in the list."""
    send("PUT", _address(url, key), {"is_enabled": False}, token)


@app.command("export")
def export_rules(
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Write the rules as Prometheus alerting rules, as far as Prometheus can express them."""
    from clusterscape.analyze.rules.documents import read_document
    from clusterscape.analyze.rules.prometheus_rules import to_prometheus_rules

    found = fetch(f"{url.rstrip('/')}/api/v1/rules", token)
    text, skipped = to_prometheus_rules([read_document(rule["document"]) for rule in found["rules"]])
    print_text(text)
    for rule, why in skipped:
        errors.print(f"left out {rule.key}: {why}", style="yellow", highlight=False)


def list_violations(
    since: Annotated[str, typer.Option(help="How far back, such as 2h or 7d.")] = "24h",
    rule: Annotated[str | None, typer.Option(help="Only of this rule.")] = None,
    user: Annotated[str | None, typer.Option(help="Only by this user.")] = None,
    project: Annotated[str | None, typer.Option(help="Only by this project.")] = None,
    only_open: Annotated[bool, typer.Option("--open", help="Only those that go on.")] = False,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who broke which rule, most GPU-hours first."""
    asked = {"hours": hours_of(since), "rule": rule, "user": user, "project": project}
    pairs = {key: value for key, value in asked.items() if value is not None} | ({"is_open": True} if only_open else {})
    found = fetch(f"{url.rstrip('/')}/api/v1/violations?{urlencode(pairs)}", token)
    if as_json:
        print_json(found)
        return
    _print_violations(found["violations"])
    answers.print(f"{format_hours(found['gpu_hours'])} GPU-hours in violation in the last {since}.", highlight=False)


def print_rules(found: dict[str, Any], *, as_json: bool) -> None:
    """The rules of a server, with what they say now."""
    if as_json:
        print_json(found)
        return
    table = table_of("key", "severity", "now", "rule")
    for rule in found["rules"]:
        counts = rule["counts"]
        now = "off" if not rule["is_enabled"] else "–" if counts is None else _now(counts)
        table.add_row(rule["key"], rule["severity"], now, rule["text"])
    answers.print(table, highlight=False)
    for key, why in found["unreadable"].items():
        errors.print(f"{key} cannot be read: {why}", style="yellow", highlight=False)


def try_on_site(texts: list[str], since: str, url: str, token: str | None, *, as_json: bool) -> None:
    """What rules would have done on what a server remembers."""
    if not texts:
        raise QueryError("there is nothing to judge", hint="Give a rule, or a log with --nvidia-smi telemetry.csv.")
    base = f"{url.rstrip('/')}/api/v1/rules/try"
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    tried = []
    with Progress(*columns, console=errors, transient=True, disable=as_json) as progress:
        for text in texts:
            progress.add_task(f"Judging the last {since} by {text}", total=None)
            tried.append(send("POST", base, {"text": text, "hours": hours_of(since)}, token, timeout_s=TRIAL_TIMEOUT_S))
    if as_json:
        print_json(tried)
        return
    for each in tried:
        answers.print(each["text"], style="bold", highlight=False)
        _print_violations(each["violations"])
        answers.print(
            f"Would have fired {count(each['times'], 'time')} on {count(each['workloads'], 'workload')} in the last "
            f"{since}: {format_hours(each['gpu_hours'])} GPU-hours. Judged every {each['step_ms'] / 60_000:.0f} min, "
            f"{each['judged']:,} of {each['lives']:,} lives.",
            highlight=False,
        )


def _print_violations(violations: list[dict[str, Any]]) -> None:
    if not violations:
        return
    table = table_of("rule", "workload", "user", "project", "GPUs", "GPU-hours", "state", "name")
    for each in violations[:NAMED]:
        state = "muted" if each["mute"] else "now" if each["until"] is None else "past"
        table.add_row(
            each["rule"],
            each["workload"],
            each["user"] or "–",
            each["project"] or "–",
            f"{each['gpus']:,}",
            format_hours(each["gpu_hours"]),
            state,
            each["workload_name"] or "–",
        )
    answers.print(table, highlight=False)
    if len(violations) > NAMED:
        answers.print(f"and {len(violations) - NAMED:,} more; --json has all", style="dim", highlight=False)


def table_of(*headings: str) -> Table:
    """A table of answers: the last column wraps, the others do not."""
    table = listing_table(expand=True)
    for heading in headings:
        is_last = heading == headings[-1]
        right = heading in ("GPUs", "GPU-hours")
        table.add_column(
            heading,
            no_wrap=not is_last,
            overflow="fold",
            ratio=1 if is_last else None,
            justify="right" if right else "left",
        )
    return table


def _now(counts: dict[str, int]) -> str:
    return f"{count(counts['units'], 'GPU')} of {count(counts['workloads'], 'workload')}" if counts["units"] else "none"


def hours_of(since: str) -> float:
    """``7d`` in hours."""
    from clusterscape.analyze.rules.reading import parse_duration_ms

    return parse_duration_ms(since) / HOUR_MS


def _address(url: str, key: str) -> str:
    return f"{url.rstrip('/')}/api/v1/rules/{key}"
