"""``clusterscape serve``: the page and the API over a real cluster."""

from pathlib import Path
from typing import Annotated, Any

import typer

from clusterscape.cli.output import answers, count, errors, print_json
from clusterscape.cli.running import bind, run_site
from clusterscape.cli.site import build_collectors, open_site
from clusterscape.serve.auth import refuse_open_address
from clusterscape.settings import read_settings

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file with the settings.", show_default=False)
]
HostOption = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
PortOption = Annotated[int | None, typer.Option(help="Port to listen on.", show_default="8321")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def serve(
    config: ConfigOption = None, host: HostOption = None, port: PortOption = None, as_json: JsonOption = False
) -> None:
    """Collect from the configured sources and serve the page."""
    settings = read_settings(config, overrides={"server": given(host=host, port=port)})
    refuse_open_address(settings.server)
    collectors = build_collectors(settings.collect)
    if not collectors:
        errors.print(
            "Nothing is collected: no source is configured. Set collect.dcgm.targets, collect.slurm.mode, "
            "collect.prometheus.url or collect.nvml.enabled; `clusterscape doctor` checks them.",
            style="yellow",
        )
    listener = bind(settings.server.host, settings.server.port)
    site = open_site(settings)

    def ready(address: str) -> None:
        if as_json:
            print_json({"url": address, "cluster": settings.cluster, "collectors": [c.name for c in collectors]})
        else:
            names = ", ".join(collector.name for collector in collectors) or "none"
            answers.print(f"ClusterScape at [bold]{address}[/bold]  ({count(len(collectors), 'collector')}: {names})")

    run_site(site, collectors, listener, on_ready=ready)


def given(**options: Any) -> dict[str, Any]:
    """Only the options that were given."""
    return {key: value for key, value in options.items() if value is not None}
