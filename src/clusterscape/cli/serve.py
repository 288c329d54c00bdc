"""``clusterscape serve``: the page and the API over a real cluster."""

import logging
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, HostOption, JsonOption, PortOption, given
from clusterscape.cli.output import answers, count, errors, print_json, set_up_log


def serve(
    config: ConfigOption = None,
    host: HostOption = None,
    port: PortOption = None,
    role: Annotated[
        str | None,
        typer.Option(help="`web` only serves, `collector` only collects, `all` does both.", show_default="all"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Collect from the configured sources and serve the page."""
    from clusterscape.cli.replicas import check_roles
    from clusterscape.cli.running import bind, run_site
    from clusterscape.cli.site import build_collectors, open_site
    from clusterscape.serve.identity.addresses import refuse_open_address
    from clusterscape.settings import read_settings

    settings = read_settings(config, overrides={"server": given(host=host, port=port, role=role)})
    if not logging.getLogger().isEnabledFor(logging.DEBUG):  # --verbose says more than the settings
        set_up_log(logging.getLevelNamesMapping()[settings.log.level.upper()], as_json=settings.log.format == "json")
    refuse_open_address(settings.server, settings.auth)
    check_roles(settings)
    collectors = [] if settings.server.role == "web" else build_collectors(settings.collect)
    if not collectors and settings.server.role != "web":
        errors.print(
            "Nothing is collected: no source is configured. Set collect.dcgm.targets, collect.slurm.mode, "
            "collect.kubernetes.mode, collect.prometheus.url or collect.nvml.enabled; `clusterscape doctor` checks them.",
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
