"""``clusterscape demo``: a pretend cluster behind real protocols, read by the ordinary collectors."""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from clusterscape import __version__
from clusterscape.cli.output import answers, count, errors, print_json
from clusterscape.cli.running import bind, run_site
from clusterscape.cli.serve import HostOption, JsonOption, PortOption, given
from clusterscape.cli.site import DAY_MS, Site, build_collectors, open_site, system_clock
from clusterscape.demo import DemoCluster, HistoryPart, start_demo_server
from clusterscape.model import UnixMs
from clusterscape.settings import read_settings

HISTORY_MS = DAY_MS
ANCHOR_KEPT_MS = 3 * DAY_MS
"""A pretend cluster older than this begins anew: its past would take too long to play through again."""


def demo(
    gpus: Annotated[int, typer.Option(min=8, max=100_000, help="GPUs of the pretend cluster.")] = 1024,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another cluster.")] = 7,
    host: HostOption = None,
    port: PortOption = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where the demo keeps its data.", show_default="the user's cache folder")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what an earlier demo stored.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run ClusterScape on a pretend cluster: no GPU, no server and no rights needed."""
    folder = data_dir or _cache_folder() / f"demo-{gpus}-{seed}"
    anchor = _anchor(folder, fresh=fresh)
    settings = read_settings(
        overrides={
            "cluster": "demo",
            "server": given(host=host, port=port),
            "storage": {"data_dir": folder, "metrics": "embedded", "records": "sqlite"},
        }
    )
    listener = bind(settings.server.host, settings.server.port)
    if not as_json:
        errors.print(f"Building a pretend cluster of {count(gpus, 'GPU')} …", highlight=False)
    cluster = DemoCluster(gpus=gpus, seed=seed, anchor_ms=anchor)
    with start_demo_server(cluster) as demo_port:
        settings = settings.model_copy(update={"collect": cluster.collect_settings(demo_port)})
        site = open_site(settings, is_demo=True)

        def ready(address: str) -> None:
            if as_json:
                print_json({"url": address, "gpus": gpus, "seed": seed, "data_dir": str(folder)})
            else:
                answers.print(f"ClusterScape demo at [bold]{address}[/bold]  (Ctrl-C ends it)", highlight=False)

        async def fill() -> None:
            await _fill_history(site, cluster, quiet=as_json)

        run_site(site, build_collectors(settings.collect), listener, on_ready=ready, beside=fill)


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clusterscape"


def _anchor(folder: Path, *, fresh: bool) -> UnixMs:
    """The moment from which the pretend past is played; kept, so that a second start finds the same cluster."""
    note = folder / "demo.json"
    now = system_clock()
    try:
        kept = json.loads(note.read_text(encoding="utf-8"))
        is_usable = not fresh and kept["version"] == __version__ and now - kept["anchor_ms"] < ANCHOR_KEPT_MS
        if is_usable:
            return UnixMs(int(kept["anchor_ms"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no demo was here, or its note is unreadable: either way it begins anew
    # Only what a demo writes is removed, whatever folder was named.
    for part in ("metrics", "records.sqlite", "records.sqlite-wal", "records.sqlite-shm"):
        path = folder / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"anchor_ms": now, "version": __version__}), encoding="utf-8")
    return now


async def _fill_history(site: Site, cluster: DemoCluster, *, quiet: bool) -> None:
    """The last day, or what is missing of it since the last start, beside the running server."""
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
                site.writer, site.ingest.accept_history, part.batches, part.workloads, part.allocations
            )
            progress.update(task, completed=part.done_ratio)
    if not quiet:
        errors.print(f"History filled in: {site.ingest.samples_total:,} samples.", highlight=False)


def _next(parts: Iterator[HistoryPart]) -> HistoryPart | None:
    return next(parts, None)
