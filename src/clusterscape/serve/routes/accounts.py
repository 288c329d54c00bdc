"""For administrators: accounts and the audit log."""

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import UnixMs
from clusterscape.model.access import Account, AuditEntry, Outcome, Role, Way
from clusterscape.model.identity_fields import access_checked
from clusterscape.query.bounds import Name
from clusterscape.serve.identity.caller import AdminCaller, Caller, RequestClient
from clusterscape.serve.identity.passwords import MOST_CHARACTERS, check_login, check_new_password, hash_password
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.routes.session import require_identity
from clusterscape.serve.state import State
from clusterscape.store.access import AuditFilter

router = APIRouter(prefix="/api/v1/accounts", tags=["access"], route_class=RedactedRoute)

Title = Annotated[str, Field(max_length=200)]
Projects = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)]
Secret = Annotated[SecretStr, Field(max_length=MOST_CHARACTERS)]


@access_checked("account")
@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAnswer:
    """An account. Role and projects of OIDC and proxy accounts are those of the last sign-in."""

    way: Way
    login: str
    title: str | None
    role: Role
    projects: list[str]
    is_disabled: bool
    created_at: int
    signed_in_at: int | None


class NewAccount(BaseModel):
    """A local account."""

    model_config = ConfigDict(extra="forbid")

    login: Name
    password: Secret
    role: Role
    projects: Projects = []
    title: Title | None = None


class AccountChange(BaseModel):
    """Changes of an account; omitted fields stay. Only ``is_disabled`` can be changed unless the account is local."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = None
    projects: Projects | None = None
    title: Title | None = None
    password: Secret | None = None
    is_disabled: bool | None = None


@router.get("")
async def list_accounts(state: State, _: AdminCaller) -> list[AccountAnswer]:
    """All accounts, by login."""
    identity = require_identity(state)
    return [_answer(account) for account in await identity.look_up(identity.store.accounts)]


@router.post("", status_code=201)
async def add_account(new: NewAccount, state: State, caller: AdminCaller, client: RequestClient) -> AccountAnswer:
    """Create a local account."""
    identity = require_identity(state)
    check_login(new.login)
    password = check_new_password(
        new.password.get_secret_value(), login=new.login, min_length=identity.auth.password_min_length
    )
    account = Account(
        way=Way.LOCAL,
        login=new.login,
        role=new.role,
        projects=frozenset(new.projects),
        title=new.title or None,
        created_at=identity.now(),
    )
    hashed = await identity.hash(hash_password, password)
    if not await identity.look_up(identity.store.add_account, account, password_hash=hashed):
        raise QueryError(f"the account {new.login} already exists")
    await identity.look_up(
        identity.audit.write,
        "account.add",
        caller=caller,
        client=client,
        target=new.login,
        details={"role": new.role.value},
    )
    return _answer(account)


@router.put("/{way}/{login}")
async def change_account(
    way: Way, login: Name, change: AccountChange, state: State, caller: AdminCaller, client: RequestClient
) -> AccountAnswer:
    """Change role, projects, name or password, or disable the account; takes effect in open sessions at once."""
    identity = require_identity(state)
    account = await identity.look_up(identity.store.account, way, login)
    if account is None:
        raise NotFoundError(f"no account {login} ({way})")
    changes = change.model_dump(exclude_unset=True)
    if way is not Way.LOCAL and set(changes) - {"is_disabled"}:
        raise QueryError(
            f"{login} signs in by {way}, which sets role, projects and name",
            hint="The settings auth.roles and auth.projects map groups to roles and projects.",
        )
    if _is_self(caller, account) and ("role" in changes or changes.get("is_disabled")):
        raise QueryError(
            "you cannot change your own role or disable your own account", hint="Ask another administrator."
        )
    if change.password is not None:
        password = change.password.get_secret_value()
        check_new_password(password, login=login, min_length=identity.auth.password_min_length)
        hashed = await identity.hash(hash_password, password)
        await identity.look_up(identity.store.set_password, login, hashed)
    changed = replace(
        account,
        role=change.role or account.role,
        projects=account.projects if change.projects is None else frozenset(change.projects),
        title=account.title if change.title is None else change.title or None,
        is_disabled=account.is_disabled if change.is_disabled is None else change.is_disabled,
    )
    await identity.look_up(identity.store.change_account, changed)
    if change.password is not None or changed.is_disabled:
        await identity.look_up(identity.store.end_sessions, way, login)
    details = {name: str(value) for name, value in changes.items() if name != "password"}
    if change.password is not None:
        details["password"] = "changed"  # noqa: S105 – the fact, not the password
    await identity.look_up(
        identity.audit.write, "account.change", caller=caller, client=client, target=login, details=details
    )
    return _answer(changed)


@router.delete("/{way}/{login}", status_code=204)
async def remove_account(way: Way, login: Name, state: State, caller: AdminCaller, client: RequestClient) -> None:
    """Delete an account with its sessions and tokens."""
    identity = require_identity(state)
    account = await identity.look_up(identity.store.account, way, login)
    if account is None:
        raise NotFoundError(f"no account {login} ({way})")
    if _is_self(caller, account):
        raise QueryError("you cannot remove your own account", hint="Ask another administrator.")
    await identity.look_up(identity.store.remove_account, way, login)
    await identity.look_up(identity.audit.write, "account.remove", caller=caller, client=client, target=login)


def _is_self(caller: Caller, account: Account) -> bool:
    return (caller.way, caller.viewer.login) == (account.way, account.login)


def _answer(account: Account) -> AccountAnswer:
    return AccountAnswer(
        way=account.way,
        login=account.login,
        title=account.title,
        role=account.role,
        projects=sorted(account.projects),
        is_disabled=account.is_disabled,
        created_at=account.created_at,
        signed_in_at=account.signed_in_at,
    )


audit_router = APIRouter(prefix="/api/v1/audit", tags=["access"], route_class=RedactedRoute)


@access_checked("audit log")
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """An action that a user did or tried. ``way``: static, local, oidc, proxy, token:KEY, here or command."""

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
    """Entries, newest first. ``next``: pass it as ``before`` to get older entries; null: there are none."""

    entries: list[AuditRow]
    next: str | None


@audit_router.get("")
async def list_audit(
    state: State,
    _: AdminCaller,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    actor: Annotated[str | None, Query(max_length=256, description="A login.")] = None,
    action: Annotated[
        str | None,
        Query(max_length=100, description="Such as rule.save; a prefix such as rule matches all that start with it."),
    ] = None,
    since: Annotated[int | None, Query(ge=0, lt=2**53, description="Milliseconds since 1970.")] = None,
    before: Annotated[str | None, Query(max_length=64)] = None,
) -> AuditPage:
    """The audit log: who did or tried what, when and from where."""
    identity = require_identity(state)
    audit_filter = AuditFilter(
        actor=actor, action=action, since_ms=None if since is None else UnixMs(since), before=before
    )
    page = await identity.look_up(identity.store.audit, audit_filter, limit=limit)
    entries = [audit_row(entry) for entry in page]
    return AuditPage(entries=entries, next=entries[-1].key if len(entries) == limit else None)


def audit_row(entry: AuditEntry) -> AuditRow:
    """An audit entry as it is sent."""
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
