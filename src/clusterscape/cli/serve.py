"""``clusterscape serve``: the page and the API over a real cluster."""

import logging
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, HostOption, JsonOption, PortOption, given
from clusterscape.cli.output import answers, count, errors, print_json, set_up_log, styled_line


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
    from clusterscape.cli.demo_folder import disown_demo
    from clusterscape.cli.site_settings import describe_config, report_places
    from clusterscape.runtime.replicas import check_roles, is_replicated
    from clusterscape.runtime.server import bind, run_site
    from clusterscape.runtime.site import build_collectors, open_site
    from clusterscape.serve.identity.addresses import refuse_open_address
    from clusterscape.settings import find_config, read_settings
    from clusterscape.store.data_folder import hold_data_folder, prepare_data_folder

    settings = read_settings(find_config(config), overrides={"server": given(host=host, port=port, role=role)})
    if not logging.getLogger().isEnabledFor(logging.DEBUG):  # --verbose says more than the settings
        set_up_log(logging.getLevelNamesMapping()[settings.log.level.upper()], as_json=settings.log.format == "json")
    report_places(settings, config)
    refuse_open_address(settings.server, settings.auth)
    check_roles(settings)
    collectors = [] if settings.server.role == "web" else build_collectors(settings)
    if not collectors and settings.server.role != "web":
        errors.print(
            "Nothing is collected: no source is configured. Set collect.dcgm.targets, collect.slurm.mode, "
            "collect.kubernetes.mode, collect.prometheus.url or collect.nvml.enabled; `clusterscape doctor` checks them.",
            style="yellow",
        )
    listener = bind(settings.server.host, settings.server.port)
    prepare_data_folder(settings.storage)

    def ready(address: str) -> None:
        if as_json:
            places = {"config": describe_config(config), "data_dir": str(settings.storage.data_dir)}
            names = [collector.name for collector in collectors]
            print_json({"url": address, "cluster": settings.cluster, **places, "collectors": names})
        else:
            named = ", ".join(collector.name for collector in collectors) or "none"
            collecting = f"  ({count(len(collectors), 'collector')}: {named})"
            answers.print(styled_line("ClusterScape at ", (address, "bold"), collecting))

    with hold_data_folder(settings.storage.data_dir, is_shared=is_replicated(settings)):
        disown_demo(settings.storage.data_dir)
        run_site(open_site(settings), collectors, listener, on_ready=ready)
