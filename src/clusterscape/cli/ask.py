"""``clusterscape ask``: any question of the page's to a running server, answered as JSON, or as a file where it is a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from clusterscape.cli.options import DEFAULT_URL, TokenOption, UrlOption
from clusterscape.errors import QueryError


def ask(
    path: Annotated[
        str, typer.Argument(help="What to ask, as docs/reference/api.md lists it: '/workloads?state=running'.")
    ],
    method: Annotated[str, typer.Option(help="GET asks; POST, PUT and DELETE may change something.")] = "GET",
    body: Annotated[str | None, typer.Option(help="JSON to send, or @FILE with it.", show_default=False)] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write it here: tables as CSV or Parquet by the name's ending."),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Ask a running server anything that its page asks; the answer is JSON, tables are one object a row."""
    from clusterscape.remote import connect

    found = connect(url, token).send(method.upper(), path, None if body is None else _parse(body))
    if output is not None:
        _write(found, output)
    elif found is not None:
        _print(found)


def _parse(body: str) -> Any:
    try:
        text = Path(body[1:]).read_text(encoding="utf-8") if body.startswith("@") else body
        return json.loads(text)
    except OSError as error:
        raise QueryError(f"{body[1:]} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise QueryError(
            f"the body is not JSON: {error}", hint="Quote it for the shell, or give it as @FILE."
        ) from None


def _print(found: Any) -> None:
    import polars as pl

    from clusterscape.cli.output import print_json, print_text

    if isinstance(found, bytes):
        print_text(found.decode(errors="replace") + "\n")
    else:
        print_json(found.to_dicts() if isinstance(found, pl.DataFrame) else found)


def _write(found: Any, output: Path) -> None:
    import polars as pl

    if isinstance(found, pl.DataFrame) and output.suffix == ".parquet":
        found.write_parquet(output, compression="zstd")
    elif isinstance(found, pl.DataFrame) and output.suffix == ".csv":
        found.write_csv(output)
    elif isinstance(found, bytes):
        output.write_bytes(found)
    else:
        rows = found.to_dicts() if isinstance(found, pl.DataFrame) else found
        output.write_text(json.dumps(rows, default=str) + "\n", encoding="utf-8")
