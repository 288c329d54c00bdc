"""``clusterscape job``: the card of a job, from a running server."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from clusterscape.cli.options import CONNECTION, DEFAULT_URL, OUTPUT, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import print_json


def job(
    jobs: Annotated[
        list[str],
        typer.Argument(
            help="Ids as Slurm prints them: 4711, 4711_3 (array task), 4711+1 (component).", metavar="JOB..."
        ),
    ],
    as_json: JsonOption = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", "-n", help="Print without colors.", rich_help_panel=OUTPUT)
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", "-c", help="Name of the cluster; it must be the server's.", rich_help_panel=CONNECTION
        ),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Show what jobs used of their cores, memory and GPUs, in the lines that users of seff and jobstats know."""
    from clusterscape.remote import connect

    server = connect(url, token)
    cards = [server.get(f"/jobs/{quote(name, safe='')}") for name in jobs]
    for card in cards:
        _check_cluster(card, cluster)
    if as_json:
        print_json(cards[0] if len(cards) == 1 else cards)
        return
    from clusterscape.analyze.jobcard.text import card_text

    has_color = not no_color and sys.stdout.isatty()
    for card in cards:
        sys.stdout.write(card_text(card, url=url, has_color=has_color))


def _check_cluster(card: dict[str, Any], cluster: str | None) -> None:
    if cluster is not None and card["cluster"] != cluster:
        from clusterscape.errors import QueryError

        raise QueryError(
            f"this server is of the cluster {card['cluster']}, not of {cluster}",
            hint="Give the address of the other cluster's server with --url.",
        )
