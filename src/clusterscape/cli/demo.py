"""``clusterscape demo``: a simulated cluster with real protocols, read by the usual collectors."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape import executors
from clusterscape.cli.options import HostOption, JsonOption, PortOption, drop_unset
from clusterscape.cli.output import count, print_json, stderr, stdout, styled_line
from clusterscape.model.durations import DAY_MS

if TYPE_CHECKING:
    from clusterscape.demo import DemoCluster, HistoryPart
    from clusterscape.runtime.site import Site

HISTORY_MS = DAY_MS


def demo(
    gpus: Annotated[int, typer.Option(min=8, max=100_000, help="Number of GPUs of the simulated cluster.")] = 1024,
    seed: Annotated[int, typer.Option(min=0, help="Random seed; each seed gives another cluster.")] = 7,
    placement: Annotated[
        str,
        typer.Option(help="Placement policy of the scheduler: spread or most-allocated."),
    ] = "spread",
    host: HostOption = None,
    port: PortOption = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Data folder of the demo.", show_default="in ~/.cache/clusterscape")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data of an earlier demo.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run ClusterScape on a simulated cluster; needs no GPU and no privileges."""
    from clusterscape.cli.demo_folder import hold_demo_folder
    from clusterscape.demo import DemoCluster, start_demo_server
    from clusterscape.model import UnixMs

    _check_placement(placement)
    folder = data_dir or _cache_folder() / f"demo-{gpus}-{seed}-{placement}"
    choice: dict[str, int | str] = {"gpus": gpus, "seed": seed, "placement": placement}
    with hold_demo_folder(folder.absolute(), choice, is_fresh=fresh) as anchor_ms:
        cluster = DemoCluster(gpus=gpus, seed=seed, anchor_ms=UnixMs(anchor_ms), placement=placement)
        if not as_json:
            stderr.print(f"Building a simulated cluster of {count(gpus, 'GPU')} …", highlight=False)
        # The cluster is built in another process while this one loads.
        with start_demo_server(cluster) as demo_port:
            _serve(cluster, demo_port, folder.absolute(), host=host, port=port, as_json=as_json)


def _serve(
    cluster: "DemoCluster", demo_port: int, folder: Path, *, host: str | None, port: int | None, as_json: bool
) -> None:
    from clusterscape.runtime.server import bind, run_site
    from clusterscape.runtime.site import build_collectors, open_site
    from clusterscape.serve.identity.addresses import refuse_open_address
    from clusterscape.settings import read_settings

    settings = read_settings(
        overrides={
            "cluster": "demo",
            "server": drop_unset(host=host, port=port),
            "storage": {"data_dir": folder, "metrics": "embedded", "records": "sqlite", "artifacts": "folder"},
        }
    ).model_copy(update={"collect": cluster.collect_settings(demo_port)})
    refuse_open_address(settings.server, settings.auth)
    listener = bind(settings.server.host, settings.server.port)
    site = open_site(settings, is_demo=True)

    def print_address(address: str) -> None:
        if as_json:
            parameters = {"gpus": cluster.gpus, "seed": cluster.seed, "placement": cluster.placement}
            print_json({"url": address, **parameters, "data_dir": str(folder)})
        else:
            stdout.print(styled_line("ClusterScape demo at ", (address, "bold"), "  (Ctrl-C to stop)"), highlight=False)

    async def fill() -> None:
        from clusterscape.cli.demo_traces import import_demo_traces

        history = _fill_history(site, cluster, quiet=as_json)
        await asyncio.gather(history, _send_runs(site, cluster), import_demo_traces(site))

    run_site(site, build_collectors(settings), listener, on_ready=print_address, startup_task=fill)


def _check_placement(name: str) -> None:
    from clusterscape.demo import PLACEMENTS
    from clusterscape.errors import ConfigError

    if name not in PLACEMENTS:
        raise ConfigError(f"unknown placement {name!r}", hint=f"Choose one of: {', '.join(PLACEMENTS)}.")


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clusterscape"


async def _send_runs(site: "Site", cluster: "DemoCluster") -> None:
    """Store the simulated tracked runs as trackers send them; stored runs are skipped."""
    from clusterscape.demo.tracked_runs import FILE, iter_runs
    from clusterscape.runtime.site import SiteRuns

    runs = SiteRuns(site)
    for run in await executors.UPKEEP.run(lambda: list(iter_runs(seed=cluster.seed, anchor_ms=cluster.anchor_ms))):
        if not await runs.offsets(run.run):
            await runs.take(run.run, FILE, 0, run.data)


async def _fill_history(site: "Site", cluster: "DemoCluster", *, quiet: bool) -> None:
    """Store the last day, or what is missing since the last start, while the server runs."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.model import UnixMs

    end = site.clock()
    newest_at = site.metrics.info().newest_at
    start = UnixMs(max(end - HISTORY_MS, (newest_at or 0) + 1))
    parts = cluster.history(start, end)
    loop = asyncio.get_running_loop()
    columns = (
        TextColumn("Filling in {task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=stderr, disable=quiet, transient=True) as progress:
        task = progress.add_task("24 hours of history", total=1.0)
        while (part := await executors.UPKEEP.run(_next_part, parts)) is not None:
            await loop.run_in_executor(
                site.writer,
                site.ingest.accept_history,
                part.batches,
                part.workloads,
                part.allocations,
                part.node_state_changes,
            )
            progress.update(task, completed=part.done_ratio)
    stderr.print(f"History filled in: {site.ingest.samples_total:,} samples.", highlight=False)


def _next_part(parts: "Iterator[HistoryPart]") -> "HistoryPart | None":
    return next(parts, None)
