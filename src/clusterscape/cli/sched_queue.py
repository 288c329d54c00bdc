"""``clusterscape sched queue``, ``why`` and ``what-if``: the live queue of a running server, in words or as JSON."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.errors import QueryError

TIMEOUT_S = 180.0


def queue(
    partition: Annotated[str | None, typer.Option(help="Only this partition's queue.", show_default=False)] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who waits: place, size, wait, likely start and why."""
    from clusterscape.cli.output import print_json
    from clusterscape.cli.sched_queue_output import print_queue
    from clusterscape.cli.status import fetch

    found = fetch(f"{url.rstrip('/')}/api/v1/scheduling/queue", token)
    if partition is not None:
        found["workloads"] = [row for row in found["workloads"] if row["partition"] == partition]
    if as_json:
        print_json(found)
    else:
        print_queue(found)


def why(
    workload: Annotated[
        str,
        typer.Argument(help="The workload, as the scheduler names it (4711, 4711_3) or `list` does."),
    ],
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a workload waits: who is ahead, what must come free, who holds it, what was promised, what would help."""
    from clusterscape.cli.output import print_json
    from clusterscape.cli.sched_queue_output import print_story
    from clusterscape.cli.status import fetch

    found = fetch(f"{url.rstrip('/')}/api/v1/scheduling/queue/{quote(workload, safe='')}", token)
    if as_json:
        print_json(found)
    else:
        print_story(found)


def what_if(
    policy: Annotated[
        str | None,
        typer.Option(
            help="Another order: fcfs, sjf, size-priority, fair-share, …", show_default="priorities, as it is"
        ),
    ] = None,
    backfill: Annotated[
        str | None, typer.Option(help="none, first-fit, easy, relaxed or adaptive.", show_default="easy")
    ] = None,
    placement: Annotated[
        str | None, typer.Option(help="least-allocated, best-fit, fgd, …", show_default="most-allocated")
    ] = None,
    drain: Annotated[
        list[str] | None, typer.Option(help="A node that takes nothing new; may be given several times.")
    ] = None,
    add: Annotated[list[str] | None, typer.Option(help="More nodes, as PARTITION:COUNT.")] = None,
    cap: Annotated[list[str] | None, typer.Option(help="Most GPUs of one workload, as PARTITION:GPUS.")] = None,
    first: Annotated[list[str] | None, typer.Option(help="A waiting workload that goes first.")] = None,
    priority: Annotated[list[str] | None, typer.Option(help="Another priority, as WORKLOAD=NUMBER.")] = None,
    futures: Annotated[int, typer.Option(min=2, max=100, help="Futures that are sampled.")] = 24,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a change would do to the queue as it is now, on the same sampled futures with and without it."""
    from clusterscape.cli.output import print_json
    from clusterscape.cli.sched_queue_output import print_what_if
    from clusterscape.cli.status import send

    body = {
        "policy": policy,
        "backfill": backfill,
        "placement": placement,
        "drained": drain or [],
        "added": _read_counts(add, ":"),
        "limits": _read_counts(cap, ":"),
        "first": first or [],
        "priorities": _read_counts(priority, "="),
        "futures": futures,
    }
    found = send("POST", f"{url.rstrip('/')}/api/v1/scheduling/whatif", body, token, timeout_s=TIMEOUT_S)
    if as_json:
        print_json(found)
    else:
        print_what_if(found)


def _read_counts(pairs: list[str] | None, mark: str) -> dict[str, int]:
    found: dict[str, Any] = {}
    for pair in pairs or []:
        name, _, count = pair.rpartition(mark)
        if not name or not count.isdecimal():
            raise QueryError(f"{pair!r} is not a name and a number", hint=f"Write it as NAME{mark}12.")
        found[name] = int(count)
    return found
