"""Options that several commands share. Command modules import heavy modules inside their functions: `--help` stays instant."""

from pathlib import Path
from typing import Annotated, Any

import typer

DEFAULT_URL = "http://127.0.0.1:8321"

CONNECTION = "Connection"
"""Help panel of options that select a server."""
INPUT = "Input"
"""Help panel of options that say how to read a file."""
OUTPUT = "Output"
"""Help panel of options that change what is printed or written."""

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="Settings file (TOML).",
        envvar="CLUSTERSCAPE_CONFIG",
        show_default="/etc/clusterscape/clusterscape.toml, if it exists",
    ),
]
HostOption = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
PortOption = Annotated[int | None, typer.Option(help="Port to listen on.", show_default="8321")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)]
URL_VARIABLE = "CLUSTERSCAPE_URL"
UrlOption = Annotated[
    str,
    typer.Option(
        help="URL of a running ClusterScape server.", envvar=URL_VARIABLE, show_envvar=True, rich_help_panel=CONNECTION
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        help="API token for that server.",
        envvar="CLUSTERSCAPE_SERVER__TOKEN",
        show_envvar=True,
        rich_help_panel=CONNECTION,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(help="Format of the trace.", show_default="detected from the file", rich_help_panel=INPUT),
]
TimezoneOption = Annotated[
    str,
    typer.Option(help="Time zone of timestamps without an offset, such as Europe/Berlin.", rich_help_panel=INPUT),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(help="Run on a Dask cluster: address of its scheduler (tcp://…).", show_default="on this machine"),
]


def example(*commands: str) -> str:
    """The epilog of a command's help: example command lines."""
    return "\n  ".join(("Example:" if len(commands) == 1 else "Examples:", *commands))


def drop_unset(**options: Any) -> dict[str, Any]:
    """Only the options that were set on the command line."""
    return {name: value for name, value in options.items() if value is not None}
