"""``clusterscape doctor``: checks every configured connection and says what is wrong and how to mend it."""

import asyncio
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.table import Table

from clusterscape.cli.output import answers, print_json
from clusterscape.cli.serve import ConfigOption, JsonOption
from clusterscape.cli.site import build_collectors
from clusterscape.errors import ClusterScapeError, StoreBusyError
from clusterscape.serve.auth import refuse_open_address
from clusterscape.settings import Settings, read_settings
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at."""

    what: str
    is_ok: bool
    message: str
    hint: str | None = None


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check the configuration, the stores and every source. Ends with 1 where something is wrong."""
    settings = read_settings(config)
    checks = [
        Check(what="settings", is_ok=True, message=f"{config} is valid" if config else "defaults; no file was given"),
        _check_address(settings),
        *_check_stores(settings),
        *asyncio.run(_check_sources(settings)),
    ]
    if as_json:
        print_json([{"what": c.what, "ok": c.is_ok, "message": c.message, "hint": c.hint} for c in checks])
    else:
        _print(checks)
    if not all(check.is_ok for check in checks):
        raise typer.Exit(1)


def _check_address(settings: Settings) -> Check:
    server = settings.server
    try:
        refuse_open_address(server)
    except ClusterScapeError as error:
        return Check(what="address", is_ok=False, message=error.message, hint=error.hint)
    guard = "with a token" if server.token else "loopback only, no token needed"
    return Check(what="address", is_ok=True, message=f"{server.host}:{server.port}, {guard}")


def _check_stores(settings: Settings) -> list[Check]:
    storage = settings.storage
    checks = [_check_folder(storage.data_dir, storage.min_free_bytes)]
    try:
        metrics = open_metric_store(storage, settings.retention)
    except StoreBusyError as error:
        checks.append(
            Check(what="metric store", is_ok=True, message=f"in use by a running ClusterScape ({error.message})")
        )
    except ClusterScapeError as error:
        checks.append(Check(what="metric store", is_ok=False, message=error.message, hint=error.hint))
    else:
        info = metrics.info()
        held = "empty" if not info.samples else f"{info.samples:,} samples"
        checks.append(Check(what="metric store", is_ok=True, message=f"{info.engine}, {held}"))
        metrics.close()
    try:
        records = open_record_store(storage)
    except ClusterScapeError as error:
        checks.append(Check(what="record store", is_ok=False, message=error.message, hint=error.hint))
    else:
        checks.append(Check(what="record store", is_ok=True, message=f"{len(records.nodes()):,} nodes known"))
        records.close()
    return checks


def _check_folder(folder: Path, min_free_bytes: int) -> Check:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        return Check(
            what="data folder",
            is_ok=False,
            message=f"{folder} cannot be written",
            hint="Give storage.data_dir a folder that this user may write to.",
        )
    free = shutil.disk_usage(existing).free
    if free < min_free_bytes:
        return Check(
            what="data folder",
            is_ok=False,
            message=f"{folder} has {free / 2**20:,.0f} MiB free, less than storage.min_free_bytes",
            hint="Make room, shorten retention.raw_days, or choose another storage.data_dir.",
        )
    return Check(what="data folder", is_ok=True, message=f"{folder}, {free / 2**30:,.0f} GiB free")


async def _check_sources(settings: Settings) -> list[Check]:
    collectors = build_collectors(settings.collect)
    if not collectors:
        return [
            Check(
                what="sources",
                is_ok=False,
                message="no source is configured, so there is nothing to show",
                hint="Set collect.dcgm.targets, collect.slurm.mode, collect.prometheus.url or collect.nvml.enabled.",
            )
        ]
    checks = []
    for collector in collectors:
        try:
            statuses = await collector.check()
        finally:
            await collector.close()
        checks += [Check(what=s.source, is_ok=s.is_ok, message=s.message or "answers", hint=s.hint) for s in statuses]
    return checks


def _print(checks: list[Check]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(width=2)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        sign = "[green]✓[/green]" if check.is_ok else "[red]✗[/red]"
        text = check.message if check.is_ok or not check.hint else f"{check.message}\n[dim]→ {check.hint}[/dim]"
        table.add_row(sign, check.what, text)
    answers.print(table)
    wrong = sum(not check.is_ok for check in checks)
    answers.print("All is well." if not wrong else f"[red]{wrong} of {len(checks)} checks failed.[/red]")
