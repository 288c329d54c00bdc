"""The audit log's words: which requests are noted, as what, and by whom. What is asked only, and what trackers send, is not."""

import logging
import re
from collections.abc import Callable, Mapping

from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.model.access import AuditEntry, Outcome
from clusterscape.serve.identity.addresses import Whence
from clusterscape.serve.identity.caller import Caller
from clusterscape.serve.identity.origins import SAFE_METHODS
from clusterscape.store.access import AccessStore

log = logging.getLogger(__name__)

# Sent, not fetched, because the question is long; nothing is kept.
_ASKED = re.compile(
    r"/api/v1/(rules/(read|complete|try)|units\.parquet|scheduling/whatif|traces/[^/]+/whatif|simulations(/[^/]+)?)"
)
# Pieces of runs and traces, every few seconds each.
_SENT = re.compile(r"/api/v1/(runs/[^/]+/files/[^/]+|traces/[^/]+/files/.+)")
_EXPORTED = re.compile(r"/api/v1/(units)\.parquet")
# Their routes say more than a method and a path do.
_NOTED_BY_ROUTES = re.compile(r"/api/v1/(session|sessions|accounts|tokens|audit)(/.*)?")

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
"""By the name of the route; a route that is not named here is noted as ``change.NAME``."""


def is_change(method: str, path: str) -> bool:
    """Whether a request is meant to change something that is kept."""
    return method not in SAFE_METHODS and _ASKED.fullmatch(path) is None


def action_of(method: str, path: str, route: str) -> str | None:
    """What a request that was answered well is noted as; None: not at all."""
    exported = _EXPORTED.fullmatch(path)
    if exported is not None:
        return f"export.{exported[1]}"
    is_noted = path.startswith("/api/") and is_change(method, path)
    if not is_noted or _SENT.fullmatch(path) or _NOTED_BY_ROUTES.fullmatch(path):
        return None
    return ACTIONS.get(route, f"change.{route}")


class AuditLog:
    """Writes entries. Never raises: what was done is done, and a store that is full or away is said in the log."""

    def __init__(self, store: AccessStore, clock: Callable[[], UnixMs]) -> None:
        self._store = store
        self._clock = clock

    def write(
        self,
        action: str,
        outcome: Outcome = Outcome.DONE,
        *,
        caller: Caller | None = None,
        whence: Whence | None = None,
        actor: str | None = None,
        way: str | None = None,
        target: str | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        """Note what was done; ``actor`` and ``way`` where nobody was let in yet."""
        entry = AuditEntry(
            at=self._clock(),
            action=action,
            outcome=outcome,
            actor=actor if caller is None else caller.viewer.login,
            way=way if caller is None else caller.way_text,
            address=None if whence is None else whence.address,
            target=target,
            details=details or {},
        )
        try:
            self._store.append_audit(entry)
        except StoreError as error:
            log.error("audit entry lost: %s by %s: %s", action, entry.actor or "nobody", error.message)
