"""The audit log, for administrators."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from clusterscape.model import UnixMs
from clusterscape.model.access import AuditEntry, Outcome
from clusterscape.model.identity_fields import access_checked
from clusterscape.serve.identity.caller import AdminCaller
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.routes.session import need_identity
from clusterscape.serve.state import State
from clusterscape.store.access import AuditFilter

router = APIRouter(prefix="/api/v1/audit", tags=["access"], route_class=RedactedRoute)


@access_checked("audit log")
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One thing that somebody did or tried. ``way``: static, local, oidc, proxy, token:KEY, here or command."""

    key: str
    at: int
    action: str
    outcome: Outcome
    actor: str | None
    way: str | None
    address: str | None
    target: str | None
    details: dict[str, str]


@access_checked("audit log")
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Entries, newest first. ``next``: hand it in as ``before`` for the older ones; null: these were the last."""

    entries: list[AuditRow]
    next: str | None


@router.get("")
async def list_audit(
    state: State,
    _: AdminCaller,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    actor: Annotated[str | None, Query(max_length=256, description="A login.")] = None,
    action: Annotated[
        str | None, Query(max_length=100, description="Such as rule.save; rule finds all that begin so.")
    ] = None,
    since: Annotated[int | None, Query(ge=0, lt=2**53, description="Milliseconds since 1970.")] = None,
    before: Annotated[str | None, Query(max_length=64)] = None,
) -> AuditPage:
    """What was done or tried: who, when, from where, what."""
    identity = need_identity(state)
    where = AuditFilter(actor=actor, action=action, since_ms=None if since is None else UnixMs(since), before=before)
    found = await identity.look_up(identity.store.audit, where, limit=limit)
    entries = [audit_row(entry) for entry in found]
    return AuditPage(entries=entries, next=entries[-1].key if len(entries) == limit else None)


def audit_row(entry: AuditEntry) -> AuditRow:
    """An entry as it is told."""
    return AuditRow(
        key=entry.key or "",
        at=entry.at,
        action=entry.action,
        outcome=entry.outcome,
        actor=entry.actor,
        way=entry.way,
        address=entry.address,
        target=entry.target,
        details=dict(entry.details),
    )
