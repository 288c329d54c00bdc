"""``clusterscape demo``: a pretend cluster behind real protocols, read by the ordinary collectors."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape import executors
from clusterscape.cli.options import HostOption, JsonOption, PortOption, given
from clusterscape.cli.output import answers, count, errors, print_json, styled_line

if TYPE_CHECKING:
    from clusterscape.demo import DemoCluster, HistoryPart
    from clusterscape.runtime.site import Site

DAY_MS = 86_400_000
HISTORY_MS = DAY_MS


def demo(
    gpus: Annotated[int, typer.Option(min=8, max=100_000, help="GPUs of the pretend cluster.")] = 1024,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another cluster.")] = 7,
    placement: Annotated[
        str,
        typer.Option(
            help="Where the pretend scheduler puts jobs: spread over all nodes, or most-allocated nodes first."
        ),
    ] = "spread",
    host: HostOption = None,
    port: PortOption = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where the demo keeps its data.", show_default="the user's cache folder")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what an earlier demo stored.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run ClusterScape on a pretend cluster: no GPU, no server and no rights needed."""
    from clusterscape.cli.demo_folder import hold_demo_folder
    from clusterscape.demo import DemoCluster, start_demo_server
    from clusterscape.model import UnixMs

    _check_placement(placement)
    folder = data_dir or _cache_folder() / f"demo-{gpus}-{seed}-{placement}"
    cluster_of: dict[str, int | str] = {"gpus": gpus, "seed": seed, "placement": placement}
    with hold_demo_folder(folder.absolute(), cluster_of, is_fresh=fresh) as anchor_ms:
        cluster = DemoCluster(gpus=gpus, seed=seed, anchor_ms=UnixMs(anchor_ms), placement=placement)
        if not as_json:
            errors.print(f"Building a pretend cluster of {count(gpus, 'GPU')} …", highlight=False)
        # The cluster builds itself in its own process while this one is still loading.
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
            "server": given(host=host, port=port),
            "storage": {"data_dir": folder, "metrics": "embedded", "records": "sqlite", "artifacts": "folder"},
        }
    ).model_copy(update={"collect": cluster.collect_settings(demo_port)})
    refuse_open_address(settings.server, settings.auth)
    listener = bind(settings.server.host, settings.server.port)
    site = open_site(settings, is_demo=True)

    def ready(address: str) -> None:
        if as_json:
            about = {"gpus": cluster.gpus, "seed": cluster.seed, "placement": cluster.placement}
            print_json({"url": address, **about, "data_dir": str(folder)})
        else:
            answers.print(
                styled_line("ClusterScape demo at ", (address, "bold"), "  (Ctrl-C ends it)"), highlight=False
            )

    async def fill() -> None:
        from clusterscape.cli.demo_traces import import_demo_traces

        history = _fill_history(site, cluster, quiet=as_json)
        await asyncio.gather(history, _send_runs(site, cluster), import_demo_traces(site))

    run_site(site, build_collectors(settings), listener, on_ready=ready, beside=fill)


def _check_placement(name: str) -> None:
    from clusterscape.demo import PLACEMENTS
    from clusterscape.errors import ConfigError

    if name not in PLACEMENTS:
        raise ConfigError(f"there is no placement {name!r}", hint=f"Choose one of: {', '.join(PLACEMENTS)}.")


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clusterscape"


async def _send_runs(site: "Site", cluster: "DemoCluster") -> None:
    """The pretend tracked runs, by the way that trackers send theirs; what is there already is left out."""
    from clusterscape.demo.tracked_runs import FILE, iter_runs
    from clusterscape.runtime.site import SiteRuns

    runs = SiteRuns(site)
    for one in await executors.UPKEEP.run(lambda: list(iter_runs(seed=cluster.seed, anchor_ms=cluster.anchor_ms))):
        if not await runs.offsets(one.run):
            await runs.take(one.run, FILE, 0, one.data)


async def _fill_history(site: "Site", cluster: "DemoCluster", *, quiet: bool) -> None:
    """The last day, or what is missing of it since the last start, beside the running server."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.model import UnixMs

    end = site.clock()
    newest = site.metrics.info().newest_at
    start = UnixMs(max(end - HISTORY_MS, (newest or 0) + 1))
    parts = cluster.history(start, end)
    loop = asyncio.get_running_loop()
    columns = (
        TextColumn("Filling in {task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, disable=quiet, transient=True) as progress:
        task = progress.add_task("24 hours of history", total=1.0)
        while (part := await executors.UPKEEP.run(_next, parts)) is not None:
            await loop.run_in_executor(
                site.writer, site.ingest.accept_history, part.batches, part.workloads, part.allocations, part.node_turns
            )
            progress.update(task, completed=part.done_ratio)
    if not quiet:
        errors.print(f"History filled in: {site.ingest.samples_total:,} samples.", highlight=False)


def _next(parts: "Iterator[HistoryPart]") -> "HistoryPart | None":
    return next(parts, None)
