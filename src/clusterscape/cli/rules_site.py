"""Commands of ``clusterscape rules`` that need a running server: add, remove, enable, export; violations, mutes, comments."""

import getpass
import time
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption, example
from clusterscape.cli.output import count, listing_table, print_json, print_text, stderr, stdout
from clusterscape.cli.rules import app
from clusterscape.cli.status import fetch, send
from clusterscape.errors import QueryError
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.quantities import format_duration, format_hours
from clusterscape.model.rules import Severity

TRIAL_TIMEOUT_S = 3600.0
MAX_ROWS = 20

KeyArgument = Annotated[str, typer.Argument(help="Key of the rule.")]


@app.command("add", epilog=example("clusterscape rules add low-util 'gpu_util p95 < 80% after 30m' --severity warning"))
def add_rule(
    key: Annotated[
        str, typer.Argument(help="Key of the rule: lower-case letters, digits, - and _. It cannot be changed later.")
    ],
    text: Annotated[str, typer.Argument(help="Rule expression, such as 'gpu_util p95 < 80% after 30m'.")],
    name: Annotated[str | None, typer.Option(help="Display name.", show_default="the key")] = None,
    severity: Annotated[Severity, typer.Option(help="Severity.")] = Severity.WARNING,
    reason: Annotated[str, typer.Option(help="Why the rule matters and what to do.")] = "",
    advice: Annotated[str, typer.Option(help="Advice to the user of the workload.")] = "",
    color: Annotated[str | None, typer.Option(help="Color, as #rrggbb.", show_default="by severity")] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add or replace a rule."""
    texts = {"name": name or key, "reason": reason, "advice": advice}
    body = {"text": text, "severity": severity.value, "color": color, **texts}
    saved = send("PUT", _rule_url(url, key), body, token)
    if as_json:
        print_json(saved)
        return
    stdout.print(f"{saved['key']}: {saved['text']}", highlight=False)
    for line in saved["words"]:
        stdout.print(f"  {line}", highlight=False)


@app.command("remove", epilog=example("clusterscape rules remove low-util"))
def remove_rule(key: KeyArgument, url: UrlOption = DEFAULT_URL, token: TokenOption = None) -> None:
    """Delete a custom rule and its violations; reset a built-in rule to its defaults."""
    send("DELETE", _rule_url(url, key), None, token)


@app.command("enable", epilog=example("clusterscape rules enable low-util"))
def enable_rule(key: KeyArgument, url: UrlOption = DEFAULT_URL, token: TokenOption = None) -> None:
    """Enable a rule."""
    send("PUT", _rule_url(url, key), {"is_enabled": True}, token)


@app.command("disable", epilog=example("clusterscape rules disable low-util"))
def disable_rule(key: KeyArgument, url: UrlOption = DEFAULT_URL, token: TokenOption = None) -> None:
    """Disable a rule; it stays in the list."""
    send("PUT", _rule_url(url, key), {"is_enabled": False}, token)


@app.command("export", epilog=example("clusterscape rules export > prometheus-rules.yaml"))
def export_rules(
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Print the rules as Prometheus alerting rules, as far as Prometheus can express them."""
    from clusterscape.analyze.rules.documents import read_document
    from clusterscape.analyze.rules.prometheus_rules import to_prometheus_rules

    response = fetch(f"{url.rstrip('/')}/api/v1/rules", token)
    text, skipped = to_prometheus_rules([read_document(rule["document"]) for rule in response["rules"]])
    print_text(text)
    for rule, reason in skipped:
        stderr.print(f"skipped {rule.key}: {reason}", style="yellow", highlight=False)


def list_violations(
    since: Annotated[str, typer.Option(help="How far back, such as 2h or 7d.")] = "24h",
    rule: Annotated[str | None, typer.Option(help="Only of this rule.")] = None,
    user: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    only_open: Annotated[bool, typer.Option("--open", help="Only open violations.")] = False,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List violations of rules, most GPU-hours first."""
    filters = {"hours": parse_hours(since), "rule": rule, "user": user, "project": project}
    pairs = {key: value for key, value in filters.items() if value is not None} | (
        {"is_open": True} if only_open else {}
    )
    response = fetch(f"{url.rstrip('/')}/api/v1/violations?{urlencode(pairs)}", token)
    if as_json:
        print_json(response)
        return
    _print_violations(response["violations"])
    stdout.print(f"{format_hours(response['gpu_hours'])} GPU-hours in violation in the last {since}.", highlight=False)


def print_rules(response: dict[str, Any], *, as_json: bool) -> None:
    """Print the rules of a server with their current violations."""
    if as_json:
        print_json(response)
        return
    table = wrapping_table("key", "severity", "now", "rule")
    for rule in response["rules"]:
        counts = rule["counts"]
        now = "off" if not rule["is_enabled"] else "–" if counts is None else _format_counts(counts)
        table.add_row(rule["key"], rule["severity"], now, rule["text"])
    stdout.print(table, highlight=False)
    for key, reason in response["unreadable"].items():
        stderr.print(f"{key} is invalid: {reason}", style="yellow", highlight=False)


def replay_on_server(texts: list[str], since: str, url: str, token: str | None, *, as_json: bool) -> None:
    """Test rules on the history of a server and print the violations."""
    if not texts:
        raise QueryError("no rule to test", hint="Give a rule, or a log with --nvidia-smi telemetry.csv.")
    base = f"{url.rstrip('/')}/api/v1/rules/try"
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    results = []
    with Progress(*columns, console=stderr, transient=True, disable=as_json) as progress:
        for text in texts:
            progress.add_task(f"Evaluating the last {since}: {text}", total=None)
            results.append(
                send("POST", base, {"text": text, "hours": parse_hours(since)}, token, timeout_s=TRIAL_TIMEOUT_S)
            )
    if as_json:
        print_json(results)
        return
    for result in results:
        stdout.print(result["text"], style="bold", highlight=False)
        _print_violations(result["violations"])
        stdout.print(
            f"Would have fired {count(result['times'], 'time')} on {count(result['workloads'], 'workload')} in the last "
            f"{since}: {format_hours(result['gpu_hours'])} GPU-hours. Evaluated every {result['step_ms'] / 60_000:.0f} min, "
            f"{result['judged']:,} of {result['lives']:,} lives.",
            highlight=False,
        )


def _print_violations(violations: list[dict[str, Any]]) -> None:
    if not violations:
        return
    table = wrapping_table("rule", "workload", "user", "project", "GPUs", "GPU-hours", "state", "name")
    for violation in violations[:MAX_ROWS]:
        state = "muted" if violation["mute"] else "now" if violation["until"] is None else "past"
        table.add_row(
            violation["rule"],
            violation["workload"],
            violation["user"] or "–",
            violation["project"] or "–",
            f"{violation['gpus']:,}",
            format_hours(violation["gpu_hours"]),
            state,
            violation["workload_name"] or "–",
        )
    stdout.print(table, highlight=False)
    if len(violations) > MAX_ROWS:
        stdout.print(f"and {len(violations) - MAX_ROWS:,} more; --json prints all", style="dim", highlight=False)


def wrapping_table(*headings: str) -> Table:
    """A table whose last column wraps."""
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


def _format_counts(counts: dict[str, int]) -> str:
    return f"{count(counts['units'], 'GPU')} of {count(counts['workloads'], 'workload')}" if counts["units"] else "none"


def parse_hours(since: str) -> float:
    """``7d`` in hours."""
    from clusterscape.analyze.rules.reading import parse_duration_ms

    return parse_duration_ms(since) / HOUR_MS


def _rule_url(url: str, key: str) -> str:
    return f"{url.rstrip('/')}/api/v1/rules/{key}"


notes_app = typer.Typer()

AuthorOption = Annotated[str | None, typer.Option("--author", help="Author.", show_default="your user name")]


@notes_app.command(
    "mute", epilog=example("clusterscape rules mute low-util --workload slurm:4711 --reason 'debugging' --for 8h")
)
def mute_rule(
    key: KeyArgument,
    reason: Annotated[str, typer.Option(help="Reason for the mute.")],
    workload: Annotated[str | None, typer.Option(help="Only for this workload.", show_default="all")] = None,
    duration: Annotated[str, typer.Option("--for", help="Duration, such as 8h or 7d.")] = "7d",
    author: AuthorOption = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send no alerts about a rule for a while (a silence); violations are still recorded and shown as muted."""
    body = {
        "rule": key,
        "workload": workload,
        "reason": reason,
        "author": author or getpass.getuser(),
        "hours": parse_hours(duration),
    }
    mute = send("POST", f"{_api_root(url)}/mutes", body, token)
    if as_json:
        print_json(mute)
        return
    scope = mute["workload"] or "all workloads"
    _print_line(
        f"{key} is muted for {scope} for {_time_left(mute['expires_at'])}. To end it: rules unmute {mute['key']}"
    )


@notes_app.command("unmute", epilog=example("clusterscape rules unmute 3f9a1c"))
def unmute_rule(
    key: Annotated[str, typer.Argument(help="Key of the mute, from `rules mutes`.")],
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a mute."""
    send("DELETE", f"{_api_root(url)}/mutes/{quote(key, safe='')}", None, token)
    if as_json:
        print_json({"unmuted": key})


@notes_app.command("mutes", epilog=example("clusterscape rules mutes"))
def list_mutes(url: UrlOption = DEFAULT_URL, token: TokenOption = None, as_json: JsonOption = False) -> None:
    """List active mutes."""
    mutes = fetch(f"{_api_root(url)}/mutes", token)
    if as_json:
        print_json(mutes)
    elif not mutes:
        _print_line("No active mutes.")
    else:
        table = wrapping_table("mute", "rule", "workload", "by", "ends in", "reason")
        for mute in mutes:
            left = _time_left(mute["expires_at"])
            table.add_row(mute["key"], mute["rule"], mute["workload"] or "all", mute["author"], left, mute["reason"])
        stdout.print(table, highlight=False)


@notes_app.command("comment", epilog=example("clusterscape rules comment slurm:4711 'waiting for data'"))
def comment_workload(
    workload: Annotated[str, typer.Argument(help="Id of the workload, such as slurm:4711.")],
    text: Annotated[str, typer.Argument(help="Text of the comment.")],
    author: AuthorOption = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a comment to a workload, shown with its violations."""
    body = {"workload": workload, "author": author or getpass.getuser(), "text": text}
    comment = send("POST", f"{_api_root(url)}/comments", body, token)
    if as_json:
        print_json(comment)
    else:
        _print_line(f"Added comment {comment['key']} to {workload}.")


@notes_app.command("comments", epilog=example("clusterscape rules comments --workload slurm:4711"))
def list_comments(
    workload: Annotated[str | None, typer.Option(help="Only of this workload.")] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List comments, newest first."""
    query = f"?{urlencode({'workload': workload})}" if workload else ""
    comments: list[dict[str, Any]] = fetch(f"{_api_root(url)}/comments{query}", token)
    if as_json:
        print_json(comments)
    elif not comments:
        _print_line("No comments.")
    else:
        table = wrapping_table("comment", "workload", "by", "ago", "text")
        for comment in comments:
            ago = format_duration(time.time() - comment["created_at"] / 1000)
            table.add_row(comment["key"], comment["workload"], comment["author"], ago, comment["text"])
        stdout.print(table, highlight=False)


@notes_app.command("uncomment", epilog=example("clusterscape rules uncomment 3f9a1c"))
def remove_comment(
    key: Annotated[str, typer.Argument(help="Key of the comment, from `rules comments`.")],
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a comment."""
    send("DELETE", f"{_api_root(url)}/comments/{quote(key, safe='')}", None, token)
    if as_json:
        print_json({"removed": key})


def _api_root(url: str) -> str:
    return f"{url.rstrip('/')}/api/v1"


def _time_left(expires_at: int) -> str:
    return format_duration(max(0.0, expires_at / 1000 - time.time()))


def _print_line(text: str) -> None:
    stdout.print(text, highlight=False, soft_wrap=True)
