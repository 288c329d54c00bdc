"""Options that several commands share. Command modules import what is heavy inside their function: `--help` stays instant."""

from pathlib import Path
from typing import Annotated, Any

import typer

DEFAULT_URL = "http://127.0.0.1:8321"

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="TOML file with the settings.",
        envvar="CLUSTERSCAPE_CONFIG",
        show_default="/etc/clusterscape/clusterscape.toml, where it exists",
    ),
]
HostOption = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
PortOption = Annotated[int | None, typer.Option(help="Port to listen on.", show_default="8321")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
UrlOption = Annotated[str, typer.Option(help="Address of a running ClusterScape.")]
TokenOption = Annotated[
    str | None, typer.Option(help="Its token.", envvar="CLUSTERSCAPE_SERVER__TOKEN", show_envvar=True)
]


def given(**options: Any) -> dict[str, Any]:
    """Only the options that were given."""
    return {key: value for key, value in options.items() if value is not None}


SchedulerOption = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler (tcp://…) to run on, instead of here.", show_default=False),
]
