"""The checks of ``clusterscape doctor``: settings, stores, sources, alert channels."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterscape.cli.site_checks import (
    Check,
    check_folder,
    check_node_names,
    check_permissions,
    may_open,
    observe_hardware,
)
from clusterscape.errors import ClusterScapeError, StoreBusyError
from clusterscape.model import SourceStatus
from clusterscape.model.access import Role, Way
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
"""Collectors that read GPU metrics."""


def check_everything(settings: Settings, config: Path | None) -> list[Check]:
    """Check settings, address, stores, every source and every alert channel."""
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
    methods = [*settings.auth.modes, *(["token"] if server.token else [])]
    access = f"sign-in by {' or '.join(methods)}" if methods else "loopback only, no sign-in needed"
    return Check(what="address", is_ok=True, message=f"{server.host}:{server.port}, {access}")


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
        return [Check(what=what, is_ok=True, message="embedded, not opened: see the check of the data folder")]
    try:
        metrics = open_metric_store(storage, settings.retention, cluster=settings.cluster)
    except StoreBusyError as error:
        return [Check(what=what, is_ok=True, message=f"in use by a running ClusterScape ({error.message})")]
    except ClusterScapeError as error:
        return [Check(what=what, is_ok=False, message=error.message, hint=error.hint)]
    checks = _check_server(metrics, storage.metrics)
    info = metrics.info()
    content = "empty" if not info.samples else f"{info.samples:,} samples"
    metrics.close()
    return [*checks, Check(what=what, is_ok=True, message=f"{info.engine}, {content}")]


def _check_records(storage: StorageSettings) -> list[Check]:
    what = "record store"
    if find_sqlite_file(storage) is not None and not may_open(storage):
        return [Check(what=what, is_ok=True, message="SQLite, not opened: see the check of the data folder")]
    try:
        records = open_record_store(storage)
    except ClusterScapeError as error:
        return [Check(what=what, is_ok=False, message=error.message, hint=error.hint)]
    nodes = len(records.nodes())
    records.close()
    return [Check(what=what, is_ok=True, message=f"{nodes:,} nodes")]


def _check_server(metrics: MetricStore, address: str) -> list[Check]:
    """Query a metrics server; the embedded store needs no check."""
    if address == "embedded":
        return []
    try:
        metrics.latest(["gpu_util_ratio"], at_ms=system_clock(), lookback_ms=60_000)
    except ClusterScapeError as error:
        return [Check(what="metrics server", is_ok=False, message=error.message, hint=error.hint)]
    return [Check(what="metrics server", is_ok=True, message="responds to queries")]


def _check_artifacts(storage: StorageSettings) -> list[Check]:
    """List files of a remote artifact store; a local folder is created when it is needed."""
    if storage.artifacts == "folder":
        return []
    try:
        files = open_artifact_store(storage).list("traces/")
    except ClusterScapeError as error:
        return [Check(what="artifacts", is_ok=False, message=error.message, hint=error.hint)]
    return [Check(what="artifacts", is_ok=True, message=f"{storage.artifacts}, {len(files):,} files of traces")]


NEARLY_FULL = 0.9


def _check_uploads(settings: Settings) -> list[Check]:
    """Compare uploads with their quota."""
    storage, limits = settings.storage, settings.limits.uploads
    if not may_open(storage):
        return []
    try:
        use = count_use(open_artifact_store(storage), {}, UPLOAD_PREFIXES)
    except ClusterScapeError as error:
        return [Check(what="uploads", is_ok=False, message=error.message, hint=error.hint)]
    message = (
        f"{use.uploads:,} of {limits.stored_traces:,} traces and job traces, "
        f"{use.size_bytes / 2**30:,.1f} of {limits.stored_bytes / 2**30:,.0f} GiB"
    )
    is_full = use.uploads >= limits.stored_traces or use.size_bytes >= limits.stored_bytes
    is_note = use.uploads > NEARLY_FULL * limits.stored_traces or use.size_bytes > NEARLY_FULL * limits.stored_bytes
    hint = (
        "Delete some (`clusterscape trace list`), or raise limits.uploads.stored_traces or stored_bytes."
        if is_note
        else None
    )
    return [Check(what="uploads", is_ok=not is_full, message=message, hint=hint, is_note=is_note)]


def _check_sign_in(settings: Settings) -> list[Check]:
    """Check that an administrator can sign in, and that the OIDC provider responds."""
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
            checks.append(Check(what="sign-in by oidc", is_ok=True, message=f"{issuer} responds"))
    return checks


def _check_local_accounts(settings: Settings) -> Check:
    what = "local accounts"
    if find_sqlite_file(settings.storage) is not None and not may_open(settings.storage):
        hint = "clusterscape user add NAME --role admin"
        return Check(what=what, is_ok=False, message="no accounts, or not readable", hint=hint)
    try:
        store = open_access_store(settings.storage)
    except ClusterScapeError as error:
        return Check(what=what, is_ok=False, message=error.message, hint=error.hint)
    accounts = [account for account in store.accounts() if account.way is Way.LOCAL and not account.is_disabled]
    store.close()
    if not any(account.role is Role.ADMIN for account in accounts) and settings.server.token is None:
        hint = "clusterscape user add NAME --role admin"
        return Check(what=what, is_ok=False, message="no administrator can sign in", hint=hint)
    return Check(what=what, is_ok=True, message=f"{len(accounts):,}")


async def _check_sources(settings: Settings) -> list[Check]:
    collectors = build_collectors(settings)
    if not collectors:
        return [
            Check(
                what="sources",
                is_ok=False,
                message="no source is configured",
                hint="Set collect.dcgm.targets, collect.slurm.mode, collect.kubernetes.mode, collect.prometheus.url or "
                "collect.nvml.enabled.",
            )
        ]
    checks, observations = [], []
    for collector in collectors:
        try:
            checks += _describe_sources(await collector.check())
            observations += await observe_hardware(collector, system_clock())
        finally:
            await collector.close()
    collect = settings.collect
    has_exporters = any(collector.name in MEASURING for collector in collectors)
    return [*checks, *check_node_names(observations, collect.node_names, system_clock, has_exporters=has_exporters)]


def _check_alerts(settings: Settings) -> list[Check]:
    """The last deliveries of the configured channels; `clusterscape alerts test` tests a channel."""
    try:
        states = {state.name: state for state in read_spool(settings.storage.data_dir / SPOOL_FILE)}
        build_channels(settings.alerts, cluster=settings.cluster, clock=system_clock)
    except ClusterScapeError as error:
        return [Check(what="alerts", is_ok=False, message=error.message, hint=error.hint)]
    checks = []
    for name in settings.alerts.channels:
        state = states.get(name)
        delivered = "never used" if state is None else f"{state.delivered:,} delivered, {state.waiting_turns:,} waiting"
        error_text = None if state is None or state.failing_since is None else state.last_error
        hint = f"Fix it, then test it: clusterscape alerts test {name}"
        checks.append(
            Check(what=f"alerts to {name}", is_ok=error_text is None, message=error_text or delivered, hint=hint)
        )
    return checks


def _check_background(settings: Settings) -> list[Check]:
    """Background loops of the server that runs with these settings; nothing if no server responds."""
    host = settings.server.host
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 – compared, not bound
    url = f"http://{f'[{name}]' if ':' in name else name}:{settings.server.port}"
    server = connect(url, settings.server.token, timeout_s=BACKGROUND_TIMEOUT_S)
    try:
        health = server.get("/healthz")
    except (ClusterScapeError, OSError, ValueError):
        return []
    failing = health.get("failing") if isinstance(health, dict) else None
    if failing is None:
        return []
    sources = _fetch_sources(server)
    if not failing:
        summary = Check(what="background work", is_ok=True, message=f"{url} reports no failing loop")
        return [summary, *_describe_limits(sources)]
    reasons = _read_reasons(sources)
    hint = "The server's log has the details."
    checks = [
        Check(what=f"background: {loop}", is_ok=False, message=reasons.get(loop, "fails"), hint=hint)
        for loop in failing
    ]
    return checks + _describe_limits(sources)


def _fetch_sources(server: Server) -> dict[str, Any]:
    """The state of the server's sources; empty if the token of the settings does not permit it."""
    try:
        sources = server.get("/sources")
    except (ClusterScapeError, OSError, ValueError):
        return {}
    return sources if isinstance(sources, dict) else {}


def _read_reasons(sources: Mapping[str, Any]) -> dict[str, str]:
    """Error messages of failing loops, by name."""
    return {
        state["loop"]: f"fails ({state['failures']:,} times): {state['error']}, {state['problem'] or 'no message'}"
        for state in sources.get("background", ())
        if state["error"] is not None
    }


def _describe_limits(sources: Mapping[str, Any]) -> list[Check]:
    """Sources that exceeded a limit on the running server, which a single poll cannot show."""
    notes = [note for group in sources.get("groups", ()) for note in group.get("notes", ())]
    return [
        Check(what=note["source"], is_ok=True, message=note["message"], hint=note["hint"], is_note=True)
        for note in notes[:MAX_LISTED]
    ]


MAX_LISTED = 8


def _describe_sources(statuses: Sequence[SourceStatus]) -> list[Check]:
    """Every failing source; healthy sources one by one, or only their number if there are many."""
    healthy = [status for status in statuses if status.is_ok]
    if len(healthy) > MAX_LISTED:
        kind = healthy[0].kind
        summary = [Check(what=kind, is_ok=True, message=f"{len(healthy):,} of {len(statuses):,} sources respond")]
        return summary + [_describe(status) for status in statuses if not status.is_ok or status.is_limited]
    return [_describe(status) for status in statuses]


def _describe(status: SourceStatus) -> Check:
    message = status.message or "responds"
    return Check(what=status.source, is_ok=status.is_ok, message=message, hint=status.hint, is_note=status.is_limited)
