"""``clusterscape mail``: which mails on ended jobs the user of the token gets."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from clusterscape.cli.options import DEFAULT_URL, TokenOption, UrlOption

_WORDS = {
    "all": "a mail on every ended job that asked for one",
    "waste": "mails only on jobs that could have done with less",
    "none": "no mails on ended jobs",
}


def mail(
    choice: Annotated[
        str | None, typer.Argument(help="all, waste or none; without it, print the choice.", metavar="[CHOICE]")
    ] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Choose which mails on ended jobs you get: all, only on waste, or none."""
    from clusterscape.remote import connect

    server = connect(url, token)
    if choice is not None:
        if choice not in _WORDS:
            raise typer.BadParameter(f"{choice!r} is none of {', '.join(_WORDS)}")
        server.send("PUT", "/mail-choice", {"choice": choice})
    chosen = server.get("/mail-choice")["choice"]
    sys.stdout.write(
        f"You get {_WORDS[chosen]}.\n" if chosen else "You have not chosen: you get what the site sends.\n"
    )
