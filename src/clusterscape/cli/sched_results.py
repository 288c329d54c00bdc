"""``clusterscape sched results``: what a running server kept of the simulator tab: listed, shown, forgotten."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.errors import QueryError


def results(
    result: Annotated[
        str | None, typer.Argument(help="One of them, by its name; without it they are listed.", show_default=False)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget this one: yours, or any where you operate.")] = False,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the kept results of simulations on a server, show one, or forget it."""
    from clusterscape.cli.output import answers, print_json
    from clusterscape.cli.status import fetch, send

    root = f"{url.rstrip('/')}/api/v1/simulations"
    if result is None:
        if remove:
            raise QueryError("which result is to be forgotten?", hint="Name it as `clusterscape sched results` does.")
        kept = fetch(root, token)["simulations"]
        if as_json:
            print_json(kept)
        else:
            _print_kept(kept)
        return
    address = f"{root}/{quote(result, safe='')}"
    if remove:
        send("DELETE", f"{address}/result", None, token)
        if as_json:
            print_json({"removed": result})
        else:
            answers.print(f"{result} is forgotten.", highlight=False)
        return
    found = fetch(address, token)
    if as_json:
        print_json(found)
    else:
        _print_result(found)


def _print_kept(kept: list[dict[str, Any]]) -> None:
    from clusterscape.cli.output import answers, listing_table

    if not kept:
        answers.print("No result of a simulation is kept.")
        return
    table = listing_table()
    for heading in ("result", "trace", "orders", "backfilling", "run times", "made"):
        table.add_column(heading)
    for row in kept:
        asked = row["asked"]
        made = datetime.fromtimestamp(row["made_at"] / 1000).astimezone().strftime("%a %d %b %H:%M")
        ways = (", ".join(asked["policies"]), ", ".join(asked["backfills"]), asked["estimates"])
        table.add_row(row["simulation"], row["trace"], *ways, made)
    answers.print(table, highlight=False)


def _print_result(found: dict[str, Any]) -> None:
    from clusterscape.cli.output import answers, count, listing_table

    jobs = f"{count(found['simulated_jobs'], 'job')} on {found['processors']:,} {found['size_unit']}"
    said = f": {found['problem']}" if found["problem"] else ""
    answers.print(f"{found['trace']}: {jobs}, {found['state']}{said}", highlight=False)
    table = listing_table()
    table.add_column("choice")
    for measure in found["choices"][0]["measures"] if found["choices"] else []:
        table.add_column(f"{measure['title']} ({measure['unit']})" if measure["unit"] else measure["title"])
    for choice in found["choices"]:
        omega = "" if choice["omega"] is None else f" ω {choice['omega']:g}"
        values = ["–" if each["value"] is None else f"{each['value']:,.4g}" for each in choice["measures"]]
        table.add_row(f"{choice['policy']} + {choice['backfill']}{omega}", *values)
    answers.print(table, highlight=False)
