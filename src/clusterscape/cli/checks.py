"""What ``clusterscape doctor`` looks at: every configured connection, what is wrong with it and how to mend it."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterscape.cli.check import Check
from clusterscape.cli.folder_checks import check_folder, check_permissions, may_open
from clusterscape.cli.name_checks import check_names, look_at_hardware
from clusterscape.errors import ClusterScapeError, StoreBusyError
from clusterscape.model import SourceStatus
from clusterscape.model.access import Way
from clusterscape.model.viewers import Role
from clusterscape.remote import Server, connect
from clusterscape.runtime.site import UPLOAD_PREFIXES, build_collectors, system_clock
from clusterscape.serve.identity.addresses import refuse_open_address
from clusterscape.settings import Settings, StorageSettings
from clusterscape.store.access import open_access_store
from clusterscape.store.artifacts import open_artifact_store
from clusterscape.store.artifacts.quota import count_use
from clusterscape.store.data_folder import create_private_files
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.store.records.engines import find_sqlite_file
from clusterscape.watch.alerts import SPOOL_FILE, build_channels, read_spool

BACKGROUND_TIMEOUT_S = 3.0
MEASURING = frozenset({"dcgm", "prometheus", "nvml"})
"""Collectors of samples."""


def check_everything(settings: Settings, config: Path | None) -> list[Check]:
    """Settings, address, stores, every source and every channel of alerts."""
    return [
        Check(what="settings", is_ok=True, message=f"{config} is valid" if config else "defaults; no file was given"),
        _check_address(settings),
        *check_permissions(settings, config),
        *_check_stores(settings),
        *_check_sign_in(settings),
        *asyncio.run(_check_sources(settings)),
        *_check_alerts(settings),
        *_check_background(settings),
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
    create_private_files()
    return [
        check_folder(storage),
        *_check_metrics(settings),
        *_check_records(storage),
        *_check_artifacts(storage),
        *_check_uploads(settings),
    ]


def _check_metrics(settings: Settings) -> list[Check]:
    what, storage = "metric store", settings.storage
    if storage.metrics == "embedded" and not may_open(storage):
        return [Check(what=what, is_ok=True, message="embedded, not opened: see the data folder")]
    try:
        metrics = open_metric_store(storage, settings.retention, cluster=settings.cluster)
    except StoreBusyError as error:
        return [Check(what=what, is_ok=True, message=f"in use by a running ClusterScape ({error.message})")]
    except ClusterScapeError as error:
        return [Check(what=what, is_ok=False, message=error.message, hint=error.hint)]
    checks = _check_server(metrics, storage.metrics)
    info = metrics.info()
    held = "empty" if not info.samples else f"{info.samples:,} samples"
    metrics.close()
    return [*checks, Check(what=what, is_ok=True, message=f"{info.engine}, {held}")]


def _check_records(storage: StorageSettings) -> list[Check]:
    what = "record store"
    if find_sqlite_file(storage) is not None and not may_open(storage):
        return [Check(what=what, is_ok=True, message="SQLite, not opened: see the data folder")]
    try:
        records = open_record_store(storage)
    except ClusterScapeError as error:
        return [Check(what=what, is_ok=False, message=error.message, hint=error.hint)]
    nodes = len(records.nodes())
    records.close()
    return [Check(what=what, is_ok=True, message=f"{nodes:,} nodes known")]


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


NEARLY_FULL = 0.9


def _check_uploads(settings: Settings) -> list[Check]:
    """How much uploads take of what they may."""
    storage, limits = settings.storage, settings.limits.uploads
    if not may_open(storage):
        return []
    try:
        use = count_use(open_artifact_store(storage), {}, UPLOAD_PREFIXES)
    except ClusterScapeError as error:
        return [Check(what="uploads", is_ok=False, message=error.message, hint=error.hint)]
    message = (
        f"{use.uploads:,} of {limits.kept:,} traces and job traces, "
        f"{use.size_bytes / 2**30:,.1f} of {limits.kept_bytes / 2**30:,.0f} GiB"
    )
    is_full = use.uploads >= limits.kept or use.size_bytes >= limits.kept_bytes
    is_note = use.uploads > NEARLY_FULL * limits.kept or use.size_bytes > NEARLY_FULL * limits.kept_bytes
    hint = "Delete some (`clusterscape trace list`), or raise limits.uploads.kept or kept_bytes." if is_note else None
    return [Check(what="uploads", is_ok=not is_full, message=message, hint=hint, is_note=is_note)]


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
    if find_sqlite_file(settings.storage) is not None and not may_open(settings.storage):
        hint = "clusterscape user add NAME --role admin"
        return Check(what=what, is_ok=False, message="there are none yet, or they cannot be read", hint=hint)
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


async def _check_sources(settings: Settings) -> list[Check]:
    collectors = build_collectors(settings)
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
    checks, seen = [], []
    for collector in collectors:
        try:
            checks += _describe_sources(await collector.check())
            seen += await look_at_hardware(collector, system_clock())
        finally:
            await collector.close()
    collect = settings.collect
    has_exporters = any(collector.name in MEASURING for collector in collectors)
    return [*checks, *check_names(seen, collect.node_names, system_clock, has_exporters=has_exporters)]


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


def _check_background(settings: Settings) -> list[Check]:
    """Background loops of the server that runs with these settings; nothing where none answers."""
    host = settings.server.host
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 – where it listens, not where we do
    url = f"http://{f'[{name}]' if ':' in name else name}:{settings.server.port}"
    server = connect(url, settings.server.token, timeout_s=BACKGROUND_TIMEOUT_S)
    try:
        health = server.get("/healthz")
    except (ClusterScapeError, OSError, ValueError):
        return []
    failing = health.get("failing") if isinstance(health, dict) else None
    if failing is None:
        return []
    sources = _ask_sources(server)
    if not failing:
        well = Check(what="background work", is_ok=True, message=f"{url} reports no failing loop")
        return [well, *_describe_limits(sources)]
    reasons = _read_reasons(sources)
    hint = "The server's log has the details."
    checks = [
        Check(what=f"background: {loop}", is_ok=False, message=reasons.get(loop, "fails"), hint=hint)
        for loop in failing
    ]
    return checks + _describe_limits(sources)


def _ask_sources(server: Server) -> dict[str, Any]:
    """What the server says of its sources, where the token of the settings lets us ask."""
    try:
        answer = server.get("/sources")
    except (ClusterScapeError, OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _read_reasons(sources: Mapping[str, Any]) -> dict[str, str]:
    """Why loops fail."""
    return {
        state["loop"]: f"fails ({state['failures']:,} times): {state['error']}, {state['problem'] or 'no message'}"
        for state in sources.get("background", ())
        if state["error"] is not None
    }


def _describe_limits(sources: Mapping[str, Any]) -> list[Check]:
    """Sources that the running server found beyond a limit: those of which a single look sees nothing."""
    notes = [note for group in sources.get("groups", ()) for note in group.get("notes", ())]
    return [
        Check(what=note["source"], is_ok=True, message=note["message"], hint=note["hint"], is_note=True)
        for note in notes[:LISTED_ONE_BY_ONE]
    ]


LISTED_ONE_BY_ONE = 8


def _describe_sources(statuses: Sequence[SourceStatus]) -> list[Check]:
    """Every source that fails; the well ones one by one, or as a number where there are many."""
    well = [status for status in statuses if status.is_ok]
    if len(well) > LISTED_ONE_BY_ONE:
        kind = well[0].kind
        summary = [Check(what=kind, is_ok=True, message=f"{len(well):,} of {len(statuses):,} sources answer")]
        return summary + [_describe(status) for status in statuses if not status.is_ok or status.is_limited]
    return [_describe(status) for status in statuses]


def _describe(status: SourceStatus) -> Check:
    message = status.message or "answers"
    return Check(what=status.source, is_ok=status.is_ok, message=message, hint=status.hint, is_note=status.is_limited)
