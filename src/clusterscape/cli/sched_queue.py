"""``clusterscape sched queue``, ``why``, ``what-if`` and ``results``: the live queue of a running server, why a workload waits,
the effect of changes, and stored results of simulations.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import listing_table, stdout
from clusterscape.cli.status import describe_awaited, describe_reservations
from clusterscape.errors import QueryError
from clusterscape.model.quantities import format_duration

_VERDICTS = {"better": "green", "worse": "yellow", "unclear": "dim", "same": "dim"}


def _format_time(at_ms: int | None) -> str:
    return "–" if at_ms is None else datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%a %d %b %H:%M")


def _format_change(seconds: float) -> str:
    if abs(seconds) < 30:
        return "±0"
    return f"{'+' if seconds > 0 else '−'}{format_duration(abs(seconds))}"


def print_queue(response: dict[str, Any]) -> None:
    """Print waiting workloads in queue order."""
    rows = response["workloads"]
    for line in describe_reservations(response["reservations"]):
        stdout.print(line, highlight=False)
    if not rows:
        awaited = describe_awaited(response["awaited"])
        stdout.print(f"The queue is not known yet: {awaited}." if awaited else "No workloads are waiting.")
        return
    table = listing_table()
    for heading, justify in (
        ("#", "right"),
        ("workload", "left"),
        ("user", "left"),
        ("partition", "left"),
        ("GPUs", "right"),
        ("waited", "right"),
        ("likely start", "left"),
        ("latest start", "left"),
        ("scheduler says", "left"),
        ("why", "left"),
    ):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for row in rows:
        likely = row["likely"]
        interval = "–" if likely is None else f"{_format_time(likely['from_at'])} – {_format_time(likely['to_at'])}"
        cells = [
            "–" if row["position"] is None else str(row["position"]),
            row["workload"],
            row["user"] or "–",
            row["partition"],
            str(row["gpus"]),
            format_duration(row["waited_s"]) if row["waited_s"] is not None else "–",
            interval,
            _format_time(row["planned_at"]),
            _format_time(row["scheduler_at"]),
            row["reason_text"] or "–",
        ]
        table.add_row(*cells)
    stdout.print(table)
    summary = f"{len(rows)} wait for {sum(row['gpus'] for row in rows):,} GPUs{_count_blocked(rows)}"
    stdout.print(f"{summary}; intervals cover 80 % of simulated futures.", style="dim", highlight=False)


def _count_blocked(rows: list[dict[str, Any]]) -> str:
    """``, 2 held, 3 not waiting for resources``: workloads without a place in the queue."""
    held = sum(row["waits_for"] == "held" for row in rows)
    blocked = sum(row["position"] is None and row["waits_for"] != "held" for row in rows)
    return (f", {held} held" if held else "") + (f", {blocked} not waiting for resources" if blocked else "")


def print_explanation(explanation: dict[str, Any]) -> None:
    """Print why a workload waits."""
    stdout.print(explanation["workload"], style="bold", highlight=False)
    for line in explanation["text"]:
        stdout.print(line, highlight=False)
    row = explanation["row"]
    if row is not None and row["likely"] is not None:
        likely = row["likely"]
        interval = f"{_format_time(likely['from_at'])} – {_format_time(likely['to_at'])}, 80 %"
        stdout.print(f"Likely start: {_format_time(likely['likely_at'])} ({interval}).", highlight=False)
    if explanation["ahead"]:
        stdout.line()
        stdout.print("Ahead in the queue, nearest last:", style="dim")
        for other in explanation["ahead"]:
            line = f"  {other['workload']}  {other['user'] or '–'}  {other['gpus']} GPUs  {other['why']}"
            stdout.print(line, highlight=False)
    if explanation["holders"]:
        stdout.line()
        stdout.print("Workloads on the resources it needs:", style="dim")
        for holder in explanation["holders"]:
            ends = f"ends by {_format_time(holder['ends_by'])}, likely {_format_time(holder['likely_end_at'])}"
            line = f"  {holder['workload']}  {holder['user'] or '–'}  {holder['gpus']} GPUs  {ends}"
            stdout.print(line, highlight=False)
    _print_promise(explanation["promise"])
    if explanation["changes"]:
        stdout.line()
        title = f"Changes that would make its {explanation['baseline']} start sooner, smallest first:"
        stdout.print(title, style="dim")
        for change in explanation["changes"]:
            stdout.print(f"  {change['words']}: {format_duration(change['gain_s'])} sooner", highlight=False)


def _print_promise(promise: dict[str, Any] | None) -> None:
    if promise is None:
        return
    stdout.line()
    stdout.print("Promised starts:", style="dim")
    stdout.print(f"  first {_format_time(promise['first_at'])}", highlight=False)
    for slip in promise["slips"]:
        names = f" ({', '.join(slip['by'])})" if slip["by"] else ""
        line = f"  {_format_change(slip['change_s'])}  {slip['words']}{names}"
        stdout.print(line, highlight=False)
    end = promise["started_at"] or promise["last_at"]
    line = f"  total {_format_change(promise['slipped_s'])}: {_format_time(end)}"
    stdout.print(line, highlight=False)


def print_what_if(result: dict[str, Any]) -> None:
    """Print the effect of a change on the queue."""
    title = ", ".join(result["changes"]) or "nothing changed"
    stdout.print(f"With {title}: {result['simulated']} waiting, {result['futures']} futures", style="bold")
    table = listing_table()
    for heading in ("measure", "now", "with change", "difference (95 %)"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    for measure in result["measures"]:
        low, high = (_format_value(measure[key], measure["unit"]) for key in ("low", "high"))
        difference = f"{_format_value(measure['difference'], measure['unit'])} ({low} … {high})"
        table.add_row(
            measure["title"],
            _format_value(measure["baseline"], measure["unit"]),
            _format_value(measure["changed"], measure["unit"]),
            "same" if measure["verdict"] == "same" else difference,
            style=_VERDICTS[measure["verdict"]] if measure["verdict"] in ("unclear", "same") else None,
        )
    stdout.print(table)
    for row in result["room"]:
        if row["changed"] != row["now"]:
            stdout.print(describe_room(row), highlight=False)
    stdout.print(f"Current placement: {result['placement']['text']}", highlight=False)
    for warning in result["warnings"]:
        stdout.print(f"{warning['title']}: {warning['text']}", style="yellow", highlight=False)


def describe_room(row: dict[str, Any]) -> str:
    """How many more or fewer of the waiting workloads of a request would have room."""
    change = row["changed"] - row["now"]
    more = "more" if change > 0 else "fewer"
    return (
        f"{row['partition']}: {abs(change)} {more} {row['gpus']}-GPU {'job' if abs(change) == 1 else 'jobs'} could start now "
        f"({row['changed']} instead of {row['now']} of {row['waiting']} waiting), had recent starts used this placement."
    )


def _format_value(value: float, unit: str) -> str:
    sign = "−" if value < 0 else ""
    if unit == "s":
        return f"{sign}{format_duration(abs(value))}"
    return f"{sign}{abs(value):,.1f} {unit}".strip()


TIMEOUT_S = 180.0


def queue(
    partition: Annotated[str | None, typer.Option(help="Only this partition.", show_default=False)] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List waiting workloads: position, size, wait, likely start and reason."""
    from clusterscape.cli.output import print_json
    from clusterscape.cli.status import fetch

    response = fetch(f"{url.rstrip('/')}/api/v1/scheduling/queue", token)
    if partition is not None:
        response["workloads"] = [row for row in response["workloads"] if row["partition"] == partition]
    if as_json:
        print_json(response)
    else:
        print_queue(response)


def why(
    workload: Annotated[
        str,
        typer.Argument(help="Job id of the scheduler (4711, 4711_3), or id from `clusterscape list`."),
    ],
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain why a workload waits: jobs ahead, needed resources and who uses them, promised starts, and what would help."""
    from clusterscape.cli.output import print_json
    from clusterscape.cli.status import fetch

    explanation = fetch(f"{url.rstrip('/')}/api/v1/scheduling/queue/{quote(workload, safe='')}", token)
    if as_json:
        print_json(explanation)
    else:
        print_explanation(explanation)


def what_if(
    policy: Annotated[
        str | None,
        typer.Option(
            help="Order of the queue: fcfs, sjf, size-priority, fair-share, …", show_default="current priorities"
        ),
    ] = None,
    backfill: Annotated[
        str | None, typer.Option(help="Backfilling: none, first-fit, easy, relaxed or adaptive.", show_default="easy")
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(help="Placement: most-allocated, least-allocated, best-fit, fgd, …", show_default="as inferred"),
    ] = None,
    drain: Annotated[list[str] | None, typer.Option(help="Drain this node; repeatable.")] = None,
    add: Annotated[list[str] | None, typer.Option(help="Add nodes, as PARTITION:COUNT; repeatable.")] = None,
    cap: Annotated[
        list[str] | None, typer.Option(help="Limit the GPUs of a workload, as PARTITION:GPUS; repeatable.")
    ] = None,
    first: Annotated[list[str] | None, typer.Option(help="Move a waiting workload to the front; repeatable.")] = None,
    priority: Annotated[
        list[str] | None, typer.Option(help="Change a priority, as WORKLOAD=NUMBER; repeatable.")
    ] = None,
    futures: Annotated[int, typer.Option(min=2, max=100, help="Number of simulated futures.")] = 24,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a change would do to the queue as it is now, on the same sampled futures with and without it."""
    from clusterscape.cli.output import print_json
    from clusterscape.cli.status import send

    body = {
        "policy": policy,
        "backfill": backfill,
        "placement": placement,
        "drained": drain or [],
        "added": _parse_counts(add, ":"),
        "limits": _parse_counts(cap, ":"),
        "first": first or [],
        "priorities": _parse_counts(priority, "="),
        "futures": futures,
    }
    result = send("POST", f"{url.rstrip('/')}/api/v1/scheduling/whatif", body, token, timeout_s=TIMEOUT_S)
    if as_json:
        print_json(result)
    else:
        print_what_if(result)


def _parse_counts(pairs: list[str] | None, separator: str) -> dict[str, int]:
    counts: dict[str, Any] = {}
    for pair in pairs or []:
        name, _, count = pair.rpartition(separator)
        if not name or not count.isdecimal():
            raise QueryError(f"{pair!r} is not a name and a number", hint=f"Write it as NAME{separator}12.")
        counts[name] = int(count)
    return counts


def results(
    result: Annotated[str | None, typer.Argument(help="Name of a result.", show_default="list all")] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Delete the result; operators can delete those of others.")
    ] = False,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List results of simulations stored on a server, show one, or delete it."""
    from clusterscape.cli.output import print_json, stdout
    from clusterscape.cli.status import fetch, send

    root = f"{url.rstrip('/')}/api/v1/simulations"
    if result is None:
        if remove:
            raise QueryError("--remove needs a result", hint="`clusterscape sched results` lists them.")
        stored_results = fetch(root, token)["simulations"]
        if as_json:
            print_json(stored_results)
        else:
            _print_results(stored_results)
        return
    address = f"{root}/{quote(result, safe='')}"
    if remove:
        send("DELETE", f"{address}/result", None, token)
        if as_json:
            print_json({"removed": result})
        else:
            stdout.print(f"Deleted {result}.", highlight=False)
        return
    stored = fetch(address, token)
    if as_json:
        print_json(stored)
    else:
        _print_result(stored)


def _print_results(stored: list[dict[str, Any]]) -> None:
    from clusterscape.cli.output import listing_table, stdout

    if not stored:
        stdout.print("No stored results.")
        return
    table = listing_table()
    for heading in ("result", "trace", "orders", "backfilling", "run times", "created"):
        table.add_column(heading)
    for row in stored:
        options = row["asked"]
        created = datetime.fromtimestamp(row["made_at"] / 1000).astimezone().strftime("%a %d %b %H:%M")
        choices = (", ".join(options["policies"]), ", ".join(options["backfills"]), options["estimates"])
        table.add_row(row["simulation"], row["trace"], *choices, created)
    stdout.print(table, highlight=False)


def _print_result(simulation: dict[str, Any]) -> None:
    from clusterscape.cli.output import count, listing_table, stdout

    jobs = f"{count(simulation['simulated_jobs'], 'job')} on {simulation['processors']:,} {simulation['size_unit']}"
    problem = f": {simulation['problem']}" if simulation["problem"] else ""
    stdout.print(f"{simulation['trace']}: {jobs}, {simulation['state']}{problem}", highlight=False)
    table = listing_table()
    table.add_column("choice")
    for measure in simulation["choices"][0]["measures"] if simulation["choices"] else []:
        table.add_column(f"{measure['title']} ({measure['unit']})" if measure["unit"] else measure["title"])
    for choice in simulation["choices"]:
        omega = "" if choice["omega"] is None else f" ω {choice['omega']:g}"
        values = ["–" if measure["value"] is None else f"{measure['value']:,.4g}" for measure in choice["measures"]]
        table.add_row(f"{choice['policy']} + {choice['backfill']}{omega}", *values)
    stdout.print(table, highlight=False)
