"""The audit log: which requests are recorded, and as which action. Reads and uploads of trackers are not recorded."""

import logging
import re
from collections.abc import Callable, Mapping

from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.model.access import AuditEntry, Outcome
from clusterscape.serve.identity.addresses import ClientInfo
from clusterscape.serve.identity.caller import Caller
from clusterscape.serve.identity.origins import SAFE_METHODS
from clusterscape.store.access import AccessStore

log = logging.getLogger(__name__)

# Reads that are POSTed because their parameters are long; they store nothing.
_READS = re.compile(
    r"/api/v1/(rules/(read|complete|try)|units\.parquet|scheduling/whatif|traces/[^/]+/whatif|simulations(/[^/]+)?)"
)
# Pieces of runs and traces, sent every few seconds.
_UPLOADS = re.compile(r"/api/v1/(runs/[^/]+/files/[^/]+|traces/[^/]+/files/.+)")
_EXPORTED = re.compile(r"/api/v1/(units)\.parquet")
# These routes write their own entries, with more detail.
_AUDITED_BY_ROUTES = re.compile(r"/api/v1/(session|sessions|accounts|tokens|audit)(/.*)?")

ACTIONS = {
    "save_rule": "rule.save",
    "remove_rule": "rule.remove",
    "order_rules": "rule.order",
    "mute_rule": "mute.add",
    "unmute_rule": "mute.remove",
    "write_comment": "comment.add",
    "remove_comment": "comment.remove",
    "save_view": "view.save",
    "remove_view": "view.remove",
    "set_start_view": "view.start",
    "save_insight": "insight.save",
    "remove_insight": "insight.remove",
    "delete_run": "run.delete",
    "create_trace": "trace.create",
    "import_trace": "trace.import",
    "delete_trace": "trace.remove",
    "upload_job_trace": "job_trace.add",
    "remove_job_trace": "job_trace.remove",
    "remove_simulation": "simulation.remove",
}
"""The action by the name of the route; other routes are recorded as ``change.NAME``."""


def is_change(method: str, path: str) -> bool:
    """Whether a request changes stored data."""
    return method not in SAFE_METHODS and _READS.fullmatch(path) is None


def action_of(method: str, path: str, route: str) -> str | None:
    """The action that a successful request is recorded as; None: not recorded."""
    exported = _EXPORTED.fullmatch(path)
    if exported is not None:
        return f"export.{exported[1]}"
    is_api_change = path.startswith("/api/") and is_change(method, path)
    if not is_api_change or _UPLOADS.fullmatch(path) or _AUDITED_BY_ROUTES.fullmatch(path):
        return None
    return ACTIONS.get(route, f"change.{route}")


class AuditLog:
    """Writes audit entries. Never raises: the action is already done, so a failing store is only logged."""

    def __init__(self, store: AccessStore, clock: Callable[[], UnixMs]) -> None:
        self._store = store
        self._clock = clock

    def write(
        self,
        action: str,
        outcome: Outcome = Outcome.DONE,
        *,
        caller: Caller | None = None,
        client: ClientInfo | None = None,
        actor: str | None = None,
        way: str | None = None,
        target: str | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        """Write an entry; ``actor`` and ``way`` are used if there is no authenticated caller yet."""
        entry = AuditEntry(
            at=self._clock(),
            action=action,
            outcome=outcome,
            actor=actor if caller is None else caller.viewer.login,
            way=way if caller is None else caller.way_text,
            address=None if client is None else client.address,
            target=target,
            details=details or {},
        )
        try:
            self._store.append_audit(entry)
        except StoreError as error:
            log.error("audit entry lost: %s by %s: %s", action, entry.actor or "nobody", error.message)
