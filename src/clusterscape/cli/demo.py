"""``clusterscape demo``: a pretend cluster behind real protocols, read by the ordinary collectors."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape import __version__
from clusterscape.cli.options import HostOption, JsonOption, PortOption, given
from clusterscape.cli.output import answers, count, errors, print_json

if TYPE_CHECKING:
    from clusterscape.cli.site import Site
    from clusterscape.demo import DemoCluster, HistoryPart

DAY_MS = 86_400_000
HISTORY_MS = DAY_MS
DEMO_FILES = (
    "metrics",
    "records.db",
    "records.db-wal",
    "records.db-shm",
    "alerts.db",
    "alerts.db-wal",
    "alerts.db-shm",
    "life-statistics.bin",
    "artifacts",
)
ANCHOR_KEPT_MS = 3 * DAY_MS
"""A pretend cluster older than this begins anew: its past would take too long to play through again."""


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
    from clusterscape.demo import DemoCluster, start_demo_server
    from clusterscape.model import UnixMs

    _check_placement(placement)
    folder = data_dir or _cache_folder() / f"demo-{gpus}-{seed}-{placement}"
    cluster_of: dict[str, int | str] = {"gpus": gpus, "seed": seed, "placement": placement}
    anchor_ms = UnixMs(_anchor(folder, cluster_of, fresh=fresh))
    cluster = DemoCluster(gpus=gpus, seed=seed, anchor_ms=anchor_ms, placement=placement)
    if not as_json:
        errors.print(f"Building a pretend cluster of {count(gpus, 'GPU')} …", highlight=False)
    # The cluster builds itself in its own process while this one is still loading.
    with start_demo_server(cluster) as demo_port:
        _serve(cluster, demo_port, folder, host=host, port=port, as_json=as_json)


def _serve(
    cluster: "DemoCluster", demo_port: int, folder: Path, *, host: str | None, port: int | None, as_json: bool
) -> None:
    from clusterscape.cli.running import bind, run_site
    from clusterscape.cli.site import build_collectors, open_site
    from clusterscape.serve.identity.addresses import refuse_open_address
    from clusterscape.settings import read_settings

    settings = read_settings(
        overrides={
            "cluster": "demo",
            "server": given(host=host, port=port),
            "storage": {"data_dir": folder, "metrics": "embedded", "records": "sqlite"},
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
            answers.print(f"ClusterScape demo at [bold]{address}[/bold]  (Ctrl-C ends it)", highlight=False)

    async def fill() -> None:
        from clusterscape.cli.demo_traces import import_demo_traces

        history = _fill_history(site, cluster, quiet=as_json)
        await asyncio.gather(history, _send_runs(site, cluster), import_demo_traces(site))

    run_site(site, build_collectors(settings.collect), listener, on_ready=ready, beside=fill)


def _check_placement(name: str) -> None:
    from clusterscape.demo import PLACEMENTS
    from clusterscape.errors import ConfigError

    if name not in PLACEMENTS:
        raise ConfigError(f"there is no placement {name!r}", hint=f"Choose one of: {', '.join(PLACEMENTS)}.")


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clusterscape"


def _anchor(folder: Path, cluster_of: dict[str, int | str], *, fresh: bool) -> int:
    """The moment from which the pretend past is played; kept, so that a second start of the same cluster finds it again."""
    note = folder / "demo.json"
    now = time.time_ns() // 1_000_000
    try:
        kept = json.loads(note.read_text(encoding="utf-8"))
        is_same = kept["version"] == __version__ and kept["cluster"] == cluster_of
        if is_same and not fresh and now - kept["anchor_ms"] < ANCHOR_KEPT_MS:
            return int(kept["anchor_ms"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no demo was here, or its note is unreadable: either way it begins anew
    # Only what a demo writes is removed, whatever folder was named.
    for part in DEMO_FILES:
        path = folder / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"anchor_ms": now, "version": __version__, "cluster": cluster_of}), encoding="utf-8")
    return now


async def _send_runs(site: "Site", cluster: "DemoCluster") -> None:
    """The pretend tracked runs, by the way that trackers send theirs; what is there already is left out."""
    from clusterscape.cli.site import SiteRuns
    from clusterscape.demo.tracked_runs import FILE, iter_runs

    runs = SiteRuns(site)
    for one in await asyncio.to_thread(lambda: list(iter_runs(seed=cluster.seed, anchor_ms=cluster.anchor_ms))):
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
        while (part := await asyncio.to_thread(_next, parts)) is not None:
            await loop.run_in_executor(
                site.writer, site.ingest.accept_history, part.batches, part.workloads, part.allocations, part.node_turns
            )
            progress.update(task, completed=part.done_ratio)
    if not quiet:
        errors.print(f"History filled in: {site.ingest.samples_total:,} samples.", highlight=False)


def _next(parts: "Iterator[HistoryPart]") -> "HistoryPart | None":
    return next(parts, None)
