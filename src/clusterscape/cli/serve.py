"""``clusterscape serve``: collects from a cluster and serves the page and the API."""

import logging
from typing import Annotated

import typer

from clusterscape.cli.options import ConfigOption, HostOption, JsonOption, PortOption, drop_unset
from clusterscape.cli.output import count, print_json, set_up_log, stderr, stdout, styled_line


def serve(
    config: ConfigOption = None,
    host: HostOption = None,
    port: PortOption = None,
    role: Annotated[
        str | None,
        typer.Option(help="`web`: only serve; `collector`: only collect; `all`: both.", show_default="all"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Collect from the configured sources and serve the page and the API."""
    from clusterscape.cli.demo_folder import remove_demo_marker
    from clusterscape.cli.site_settings import describe_config, log_paths
    from clusterscape.runtime.replicas import check_roles, is_replicated
    from clusterscape.runtime.server import bind, run_site
    from clusterscape.runtime.site import build_collectors, open_site
    from clusterscape.serve.identity.addresses import refuse_open_address
    from clusterscape.settings import find_config, read_settings
    from clusterscape.store.data_folder import hold_data_folder, prepare_data_folder

    settings = read_settings(find_config(config), overrides={"server": drop_unset(host=host, port=port, role=role)})
    if not logging.getLogger().isEnabledFor(logging.DEBUG):  # --verbose overrides the settings
        set_up_log(logging.getLevelNamesMapping()[settings.log.level.upper()], as_json=settings.log.format == "json")
    log_paths(settings, config)
    refuse_open_address(settings.server, settings.auth)
    check_roles(settings)
    collectors = [] if settings.server.role == "web" else build_collectors(settings)
    if not collectors and settings.server.role != "web":
        stderr.print(
            "No source is configured, so nothing is collected. Set collect.dcgm.targets, collect.slurm.mode, "
            "collect.kubernetes.mode, collect.prometheus.url or collect.nvml.enabled; `clusterscape doctor` checks them.",
            style="yellow",
        )
    listener = bind(settings.server.host, settings.server.port)
    prepare_data_folder(settings.storage)

    def print_address(address: str) -> None:
        if as_json:
            places = {"config": describe_config(config), "data_dir": str(settings.storage.data_dir)}
            collector_names = [collector.name for collector in collectors]
            print_json({"url": address, "cluster": settings.cluster, **places, "collectors": collector_names})
        else:
            listed = ", ".join(collector.name for collector in collectors) or "none"
            collecting = f"  ({count(len(collectors), 'collector')}: {listed})"
            stdout.print(styled_line("ClusterScape at ", (address, "bold"), collecting))

    with hold_data_folder(settings.storage.data_dir, is_shared=is_replicated(settings)):
        remove_demo_marker(settings.storage.data_dir)
        run_site(open_site(settings), collectors, listener, on_ready=print_address)
