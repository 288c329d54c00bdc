"""Accounts, for administrators: who may come in, as what."""

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model.access import Account, Way
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.viewers import Role
from clusterscape.query.bounds import Name
from clusterscape.serve.identity.caller import AdminCaller, Caller, RequestWhence
from clusterscape.serve.identity.passwords import MOST_CHARACTERS, check_login, check_new_password, hash_password
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.routes.session import need_identity
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1/accounts", tags=["access"], route_class=RedactedRoute)

Title = Annotated[str, Field(max_length=200)]
Projects = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)]
Secret = Annotated[SecretStr, Field(max_length=MOST_CHARACTERS)]


@access_checked("account")
@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAnswer:
    """Somebody who came in, or may. Role and projects of OIDC and proxy accounts are those of the last sign-in."""

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
    """What to change; what is not given stays. Only ``is_disabled`` can be changed of others than local accounts."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = None
    projects: Projects | None = None
    title: Title | None = None
    password: Secret | None = None
    is_disabled: bool | None = None


@router.get("")
async def list_accounts(state: State, _: AdminCaller) -> list[AccountAnswer]:
    """All accounts, by login."""
    identity = need_identity(state)
    return [_answer(account) for account in await identity.look_up(identity.store.accounts)]


@router.post("", status_code=201)
async def add_account(new: NewAccount, state: State, caller: AdminCaller, whence: RequestWhence) -> AccountAnswer:
    """Make a local account."""
    identity = need_identity(state)
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
        raise QueryError(f"there is an account {new.login} already")
    await identity.look_up(
        identity.audit.write,
        "account.add",
        caller=caller,
        whence=whence,
        target=new.login,
        details={"role": new.role.value},
    )
    return _answer(account)


@router.put("/{way}/{login}")
async def change_account(
    way: Way, login: Name, change: AccountChange, state: State, caller: AdminCaller, whence: RequestWhence
) -> AccountAnswer:
    """Change role, projects, name or password, or shut somebody out; sessions follow at once."""
    identity = need_identity(state)
    account = await identity.look_up(identity.store.account, way, login)
    if account is None:
        raise NotFoundError(f"there is no account {login} ({way})")
    given = change.model_dump(exclude_unset=True)
    if way is not Way.LOCAL and set(given) - {"is_disabled"}:
        raise QueryError(
            f"{login} comes in by {way}: role, projects and name are told there",
            hint="The settings auth.roles and auth.projects say what groups mean.",
        )
    if _is_self(caller, account) and ("role" in given or given.get("is_disabled")):
        raise QueryError("nobody can take their own rights", hint="Another administrator can.")
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
    told = {name: str(value) for name, value in given.items() if name != "password"}
    if change.password is not None:
        told["password"] = "changed"  # noqa: S105 – says that, not what
    await identity.look_up(
        identity.audit.write, "account.change", caller=caller, whence=whence, target=login, details=told
    )
    return _answer(changed)


@router.delete("/{way}/{login}", status_code=204)
async def remove_account(way: Way, login: Name, state: State, caller: AdminCaller, whence: RequestWhence) -> None:
    """Forget an account with its sessions and tokens."""
    identity = need_identity(state)
    account = await identity.look_up(identity.store.account, way, login)
    if account is None:
        raise NotFoundError(f"there is no account {login} ({way})")
    if _is_self(caller, account):
        raise QueryError("nobody can remove themselves", hint="Another administrator can.")
    await identity.look_up(identity.store.remove_account, way, login)
    await identity.look_up(identity.audit.write, "account.remove", caller=caller, whence=whence, target=login)


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
