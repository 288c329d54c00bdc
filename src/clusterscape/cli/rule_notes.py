"""What people add to violations on a running server: mutes and comments. Commands of ``clusterscape rules``."""

import getpass
import time
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import answers, print_json
from clusterscape.cli.rules_site import KeyArgument, hours_of, table_of
from clusterscape.cli.status import fetch, send
from clusterscape.model.quantities import format_duration

app = typer.Typer()

AuthorOption = Annotated[str | None, typer.Option("--author", help="Who says so.", show_default="you")]


@app.command("mute")
def mute_rule(
    key: KeyArgument,
    reason: Annotated[str, typer.Option(help="Why nobody needs to be told.")],
    workload: Annotated[str | None, typer.Option(help="Only of this workload.", show_default="all")] = None,
    time_: Annotated[str, typer.Option("--for", help="For how long, such as 8h or 7d.")] = "7d",
    author: AuthorOption = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Alert nobody of a rule's violations for a while; they are still judged, kept and shown as muted."""
    body = {
        "rule": key,
        "workload": workload,
        "reason": reason,
        "author": author or getpass.getuser(),
        "hours": hours_of(time_),
    }
    mute = send("POST", f"{_root(url)}/mutes", body, token)
    if as_json:
        print_json(mute)
        return
    whose = mute["workload"] or "all workloads"
    _say(f"{key} is muted for {whose} for {_left(mute['expires_at'])}. To end it: rules unmute {mute['key']}")


@app.command("unmute")
def unmute_rule(
    key: Annotated[str, typer.Argument(help="The mute's key; `rules mutes` lists them.")],
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a mute before its time."""
    send("DELETE", f"{_root(url)}/mutes/{quote(key, safe='')}", None, token)
    if as_json:
        print_json({"unmuted": key})


@app.command("mutes")
def list_mutes(url: UrlOption = DEFAULT_URL, token: TokenOption = None, as_json: JsonOption = False) -> None:
    """List the mutes in force."""
    mutes = fetch(f"{_root(url)}/mutes", token)
    if as_json:
        print_json(mutes)
    elif not mutes:
        _say("Nothing is muted.")
    else:
        table = table_of("mute", "rule", "workload", "by", "ends in", "reason")
        for each in mutes:
            left = _left(each["expires_at"])
            table.add_row(each["key"], each["rule"], each["workload"] or "all", each["author"], left, each["reason"])
        answers.print(table, highlight=False)


@app.command("comment")
def comment_workload(
    workload: Annotated[str, typer.Argument(help="The workload, such as slurm:4711.")],
    text: Annotated[str, typer.Argument(help="What there is to say.")],
    author: AuthorOption = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a comment about a workload, to be read beside its violations."""
    body = {"workload": workload, "author": author or getpass.getuser(), "text": text}
    comment = send("POST", f"{_root(url)}/comments", body, token)
    if as_json:
        print_json(comment)
    else:
        _say(f"Comment {comment['key']} about {workload}.")


@app.command("comments")
def list_comments(
    workload: Annotated[str | None, typer.Option(help="Only about this workload.")] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what people wrote, newest first."""
    query = f"?{urlencode({'workload': workload})}" if workload else ""
    comments: list[dict[str, Any]] = fetch(f"{_root(url)}/comments{query}", token)
    if as_json:
        print_json(comments)
    elif not comments:
        _say("Nobody wrote anything.")
    else:
        table = table_of("comment", "workload", "by", "ago", "text")
        for each in comments:
            ago = format_duration(time.time() - each["created_at"] / 1000)
            table.add_row(each["key"], each["workload"], each["author"], ago, each["text"])
        answers.print(table, highlight=False)


@app.command("uncomment")
def remove_comment(
    key: Annotated[str, typer.Argument(help="The comment's key; `rules comments` lists them.")],
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back a comment."""
    send("DELETE", f"{_root(url)}/comments/{quote(key, safe='')}", None, token)
    if as_json:
        print_json({"removed": key})


def _root(url: str) -> str:
    return f"{url.rstrip('/')}/api/v1"


def _left(expires_at: int) -> str:
    return format_duration(max(0.0, expires_at / 1000 - time.time()))


def _say(text: str) -> None:
    answers.print(text, highlight=False, soft_wrap=True)
