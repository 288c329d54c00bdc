"""``clusterscape ask``: sends a request to the HTTP API of a running server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from clusterscape.cli.options import DEFAULT_URL, OUTPUT, TokenOption, UrlOption
from clusterscape.errors import QueryError


def ask(
    path: Annotated[str, typer.Argument(help="Path of the API with its query; docs/reference/api.md lists all paths.")],
    method: Annotated[str, typer.Option(help="HTTP method: GET, POST, PUT or DELETE.")] = "GET",
    body: Annotated[str | None, typer.Option(help="JSON body, or @FILE.", show_default=False)] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the response to a file; tables as CSV or Parquet, by the suffix.",
            show_default="standard output",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Send a request to the HTTP API of a running server and print the JSON response, as curl does."""
    from clusterscape.remote import connect

    response = connect(url, token).send(method.upper(), path, None if body is None else _parse_body(body))
    if output is not None:
        _write(response, output)
    elif response is not None:
        _print(response)


def _parse_body(body: str) -> Any:
    try:
        text = Path(body[1:]).read_text(encoding="utf-8") if body.startswith("@") else body
        return json.loads(text)
    except OSError as error:
        raise QueryError(f"{body[1:]} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise QueryError(
            f"the body is not JSON: {error}", hint="Quote it for the shell, or give it as @FILE."
        ) from None


def _print(response: Any) -> None:
    import polars as pl

    from clusterscape.cli.output import print_json, print_text

    if isinstance(response, bytes):
        print_text(response.decode(errors="replace") + "\n")
    else:
        print_json(response.to_dicts() if isinstance(response, pl.DataFrame) else response)


def _write(response: Any, output: Path) -> None:
    import polars as pl

    if isinstance(response, pl.DataFrame) and output.suffix == ".parquet":
        response.write_parquet(output, compression="zstd")
    elif isinstance(response, pl.DataFrame) and output.suffix == ".csv":
        response.write_csv(output)
    elif isinstance(response, bytes):
        output.write_bytes(response)
    else:
        rows = response.to_dicts() if isinstance(response, pl.DataFrame) else response
        output.write_text(json.dumps(rows, default=str) + "\n", encoding="utf-8")
