"""Checks of ``clusterscape doctor``: data folder, file permissions, and node names of exporters and schedulers."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from clusterscape.collect.contract import Collector
from clusterscape.errors import StoreError
from clusterscape.ingest.drops import Drops
from clusterscape.ingest.exporter_matching import ExporterMatcher
from clusterscape.ingest.ledger import EXPORTERS, Ledger
from clusterscape.ingest.normalize import Normalizer
from clusterscape.model import InventoryObserved, NodeId, ScrapeObserved, UnixMs
from clusterscape.model.inventory import NameQuestion
from clusterscape.settings import Settings, StorageSettings
from clusterscape.store.data_folder import check_owner, find_exposed_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check. ``is_note``: it passed, but its hint is shown."""

    what: str
    is_ok: bool
    message: str
    hint: str | None = None
    is_note: bool = False


MAX_NAMED = 3


def check_folder(storage: StorageSettings) -> Check:
    """Check that this user can write to the data folder, and its free space."""
    what, folder = "data folder", storage.data_dir
    try:
        check_owner(folder)
    except StoreError as error:
        return Check(what=what, is_ok=False, message=error.message, hint=error.hint)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        hint = "Set storage.data_dir to a folder that this user can write to."
        return Check(what=what, is_ok=False, message=f"{folder} is not writable", hint=hint)
    free = shutil.disk_usage(existing).free
    if free < storage.min_free_bytes:
        return Check(
            what=what,
            is_ok=False,
            message=f"{folder} has {free / 2**20:,.0f} MiB free, less than storage.min_free_bytes",
            hint="Free space, reduce retention.raw_days, or choose another storage.data_dir.",
        )
    state = "" if existing == folder else " (created at the first start)"
    return Check(what=what, is_ok=True, message=f"{folder}{state}, {free / 2**30:,.0f} GiB free")


def may_open(storage: StorageSettings) -> bool:
    """Whether the data folder exists and belongs to this user: only then does opening its stores change nothing else."""
    try:
        check_owner(storage.data_dir)
    except StoreError:
        return False
    return storage.data_dir.is_dir()


def check_permissions(settings: Settings, config: Path | None) -> list[Check]:
    """Check that other users cannot read the data, its backups, or a settings file with secrets."""
    what = "permissions"
    folder = settings.storage.data_dir
    exposed = (
        [*find_exposed_paths(settings.storage), *_find_exposed_backups(folder)]
        if os.access(folder, os.R_OK | os.X_OK)
        else []
    )
    checks = []
    if exposed:
        names = ", ".join(str(path) for path in exposed[:MAX_NAMED]) + (" …" if len(exposed) > MAX_NAMED else "")
        hint = f"`clusterscape serve` fixes its own files; by hand: chmod -R go= {exposed[0]}"
        checks.append(Check(what=what, is_ok=False, message=f"other users can read or replace {names}", hint=hint))
    if (
        config is not None
        and config.exists()
        and config.stat().st_mode & stat.S_IRWXO
        and _has_secret(settings, config)
    ):
        message = f"{config} contains secrets and is readable by all users"
        checks.append(Check(what=what, is_ok=False, message=message, hint=f"chmod o= {config}"))
    return checks or [Check(what=what, is_ok=True, message="data and secrets are private")]


def _find_exposed_backups(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.tar") if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]


def _has_secret(settings: Settings, config: Path) -> bool:
    """Whether the file itself contains a secret."""
    text = config.read_text(encoding="utf-8")
    return any(secret in text for secret in _iter_secrets(settings))


def _iter_secrets(section: BaseModel) -> Iterator[str]:
    """Values of secret fields, and URLs with a password."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        nested = value.values() if isinstance(value, dict) else [value]
        for part in nested:
            if isinstance(part, BaseModel):
                yield from _iter_secrets(part)
            elif isinstance(part, str) and part and (not field.repr or _has_password(part)):
                yield part


def _has_password(address: str) -> bool:
    _, separator, rest = address.partition("://")
    login, at, _ = rest.partition("@")
    return bool(separator and at and ":" in login and "/" not in login)


MAX_NAMED_NODES = 12

Observation = InventoryObserved | ScrapeObserved


async def observe_hardware(collector: Collector, now_ms: UnixMs) -> list[Observation]:
    """Poll a source once for its hardware; of a scheduler, the rest of the poll is skipped."""
    observations: list[Observation] = []
    stream = cast(Any, collector.poll(now_ms))  # an async generator, which the protocol does not declare
    async with aclosing(stream):
        async for observation in stream:
            if isinstance(observation, ScrapeObserved):
                observations.append(observation)
            elif isinstance(observation, InventoryObserved):
                observations.append(observation)
                break
    return observations


def check_node_names(
    observations: Sequence[Observation],
    node_names: Mapping[str, str],
    clock: Callable[[], UnixMs],
    *,
    has_exporters: bool,
) -> list[Check]:
    """Match exporters with nodes as the server does, and report what cannot be matched."""
    matcher = ExporterMatcher(node_names)
    ledger = Ledger()
    normalizer = Normalizer(Drops(), matcher=matcher, uuid_nodes=ledger.uuid_nodes)
    for inventory in (observation for observation in observations if isinstance(observation, InventoryObserved)):
        ledger.apply_inventory(inventory)
        matcher.update_nodes(ledger.scheduled_nodes(), inventory.host_names)
    for scrape in (observation for observation in observations if isinstance(observation, ScrapeObserved)):
        for status in scrape.statuses:
            if status.address is not None:
                matcher.add_target(status.address, status.node if status.is_named else None)
        facts = normalizer.normalize(scrape.scrapes, now_ms=clock()).facts
        if facts is not None:
            ledger.apply_hardware(facts, source=EXPORTERS, at=scrape.at)
    questions = normalizer.find_questions()
    missing = matcher.nodes_without_exporter()
    checks = [*map(_describe_question, questions), *_describe_missing(missing, matcher, has_exporters=has_exporters)]
    gpus = sum(unit.mig_profile is None for unit in ledger.units.values())
    summary = f"{gpus:,} GPUs on {len(ledger.nodes):,} nodes"
    if matcher.nodes and has_exporters and not checks:
        summary += "; every node with GPUs has an exporter, every exporter its node"
    return [Check(what="names of nodes", is_ok=True, message=summary), *checks]


def _describe_question(question: NameQuestion) -> Check:
    uncounted = "" if question.is_counted else f"; its {question.gpus} GPUs are not counted"
    advice = f"If it is {question.proposed}, add" if question.proposed else "Add, with the name of its node,"
    return Check(
        what=f"exporter {question.exporter}",
        is_ok=False,
        message=f"{question.problem}{uncounted}",
        hint=f"{advice} under [collect.node_names]: {question.setting}",
    )


def _describe_missing(missing: Sequence[NodeId], ties: ExporterMatcher, *, has_exporters: bool) -> list[Check]:
    if not missing:
        return []
    with_gpus = sum(node.gpu_count > 0 for node in ties.nodes.values())
    gpus = sum(ties.nodes[node].gpu_count for node in missing)
    if not has_exporters:
        message = f"no exporter is configured: {with_gpus:,} nodes with {gpus:,} GPUs are shown without metrics"
        return [Check(what="nodes without an exporter", is_ok=True, message=message)]
    more = f" and {len(missing) - MAX_NAMED_NODES:,} more" if len(missing) > MAX_NAMED_NODES else ""
    return [
        Check(
            what="nodes without an exporter",
            is_ok=False,
            message=f"{', '.join(missing[:MAX_NAMED_NODES])}{more}: {len(missing):,} of {with_gpus:,} nodes with GPUs, "
            f"{gpus:,} GPUs without metrics",
            hint="Start dcgm-exporter there and add it to collect.dcgm.targets; if an exporter above has another name, "
            "fix that first.",
        )
    ]
