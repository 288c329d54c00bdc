"""What ``clusterscape doctor`` looks at: every configured connection, what is wrong with it and how to mend it."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterscape.cli.site import build_collectors, system_clock
from clusterscape.errors import ClusterScapeError, StoreBusyError
from clusterscape.model import SourceStatus
from clusterscape.model.access import Way
from clusterscape.model.viewers import Role
from clusterscape.serve.identity.addresses import refuse_open_address
from clusterscape.settings import Settings, StorageSettings
from clusterscape.store.access import open_access_store
from clusterscape.store.artifacts import open_artifact_store
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.watch.alerts import SPOOL_FILE, build_channels, read_spool


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at."""

    what: str
    is_ok: bool
    message: str
    hint: str | None = None


def check_everything(settings: Settings, config: Path | None) -> list[Check]:
    """Settings, address, stores, every source and every channel of alerts."""
    return [
        Check(what="settings", is_ok=True, message=f"{config} is valid" if config else "defaults; no file was given"),
        _check_address(settings),
        *_check_stores(settings),
        *_check_sign_in(settings),
        *asyncio.run(_check_sources(settings)),
        *_check_alerts(settings),
    ]


def _check_address(settings: Settings) -> Check:
    server = settings.server
    try:
        refuse_open_address(server, settings.auth)
    except ClusterScapeError as error:
        return Check(what="address", is_ok=False, message=error.message, hint=error.hint)
    ways = [*settings.auth.modes, *(["token"] if server.token else [])]
    guard = f"people sign in by {' or '.join(ways)}" if ways else "loopback only, nobody has to sign in"
    return Check(what="address", is_ok=True, message=f"{server.host}:{server.port}, {guard}")


def _check_stores(settings: Settings) -> list[Check]:
    storage = settings.storage
    checks = [_check_folder(storage.data_dir, storage.min_free_bytes)]
    try:
        metrics = open_metric_store(storage, settings.retention, cluster=settings.cluster)
    except StoreBusyError as error:
        checks.append(
            Check(what="metric store", is_ok=True, message=f"in use by a running ClusterScape ({error.message})")
        )
    except ClusterScapeError as error:
        checks.append(Check(what="metric store", is_ok=False, message=error.message, hint=error.hint))
    else:
        checks += _check_server(metrics, storage.metrics)
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
    return [*checks, *_check_artifacts(storage)]


def _check_server(metrics: MetricStore, address: str) -> list[Check]:
    """Whether a metrics server answers questions; the embedded store always does."""
    if address == "embedded":
        return []
    try:
        metrics.latest(["gpu_util_ratio"], at_ms=system_clock(), lookback_ms=60_000)
    except ClusterScapeError as error:
        return [Check(what="metrics server", is_ok=False, message=error.message, hint=error.hint)]
    return [Check(what="metrics server", is_ok=True, message="answers questions")]


def _check_artifacts(storage: StorageSettings) -> list[Check]:
    """Whether a store of artifacts elsewhere lets itself be listed; a folder is made when it is needed."""
    if storage.artifacts == "folder":
        return []
    try:
        found = open_artifact_store(storage).list("traces/")
    except ClusterScapeError as error:
        return [Check(what="artifacts", is_ok=False, message=error.message, hint=error.hint)]
    return [Check(what="artifacts", is_ok=True, message=f"{storage.artifacts}, {len(found):,} files of traces")]


def _check_sign_in(settings: Settings) -> list[Check]:
    """Whether somebody can come in who may let others in, and whether the provider answers."""
    checks = []
    if "local" in settings.auth.modes:
        checks.append(_check_local_accounts(settings))
    if "oidc" in settings.auth.modes:
        from clusterscape.serve.identity.oidc import OidcProvider

        try:
            issuer = asyncio.run(OidcProvider(settings.auth.oidc, clock=system_clock).check())
        except ClusterScapeError as error:
            checks.append(Check(what="sign-in by oidc", is_ok=False, message=error.message, hint=error.hint))
        else:
            checks.append(Check(what="sign-in by oidc", is_ok=True, message=f"{issuer} answers"))
    return checks


def _check_local_accounts(settings: Settings) -> Check:
    what = "local accounts"
    try:
        store = open_access_store(settings.storage)
    except ClusterScapeError as error:
        return Check(what=what, is_ok=False, message=error.message, hint=error.hint)
    accounts = [each for each in store.accounts() if each.way is Way.LOCAL and not each.is_disabled]
    store.close()
    if not any(each.role is Role.ADMIN for each in accounts) and settings.server.token is None:
        hint = "clusterscape user add NAME --role admin"
        return Check(what=what, is_ok=False, message="nobody can come in as an administrator", hint=hint)
    return Check(what=what, is_ok=True, message=f"{len(accounts):,}")


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
                hint="Set collect.dcgm.targets, collect.slurm.mode, collect.kubernetes.mode, collect.prometheus.url or "
                "collect.nvml.enabled.",
            )
        ]
    checks = []
    for collector in collectors:
        try:
            statuses = await collector.check()
        finally:
            await collector.close()
        checks += _describe_sources(statuses)
    return checks


def _check_alerts(settings: Settings) -> list[Check]:
    """How the configured channels did when they were last used; `clusterscape alerts test` tries one."""
    try:
        states = {state.name: state for state in read_spool(settings.storage.data_dir / SPOOL_FILE)}
        build_channels(settings.alerts, cluster=settings.cluster, clock=system_clock)
    except ClusterScapeError as error:
        return [Check(what="alerts", is_ok=False, message=error.message, hint=error.hint)]
    checks = []
    for name in settings.alerts.channels:
        state = states.get(name)
        well = "never used" if state is None else f"{state.delivered:,} delivered, {state.waiting_turns:,} waiting"
        error_text = None if state is None or state.failing_since is None else state.last_error
        hint = f"Mend it, then try it: clusterscape alerts test {name}"
        checks.append(Check(what=f"alerts to {name}", is_ok=error_text is None, message=error_text or well, hint=hint))
    return checks


LISTED_ONE_BY_ONE = 8


def _describe_sources(statuses: Sequence[SourceStatus]) -> list[Check]:
    """Every source that fails; the well ones one by one, or as a number where there are many."""
    well = [status for status in statuses if status.is_ok]
    if len(well) > LISTED_ONE_BY_ONE:
        kind = well[0].kind
        summary = [Check(what=kind, is_ok=True, message=f"{len(well):,} of {len(statuses):,} sources answer")]
        return summary + [_describe(status) for status in statuses if not status.is_ok]
    return [_describe(status) for status in statuses]


def _describe(status: SourceStatus) -> Check:
    return Check(what=status.source, is_ok=status.is_ok, message=status.message or "answers", hint=status.hint)
