"""API tokens: the user's own, and for administrators all tokens."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError
from clusterscape.model.access import Account, ApiToken, Role, Scope, Way
from clusterscape.model.identity_fields import access_checked
from clusterscape.query.bounds import ItemId
from clusterscape.serve.identity.caller import Caller, CurrentCaller, RequestClient
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.routes.session import require_identity
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1/tokens", tags=["access"], route_class=RedactedRoute)


class Owner(BaseModel):
    """The owner of a new token."""

    model_config = ConfigDict(extra="forbid")

    way: Way
    login: Annotated[str, Field(max_length=256)]


class NewToken(BaseModel):
    """A new token; without ``owner`` it belongs to the current user."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1, max_length=200)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=8)]
    days: Annotated[float, Field(gt=0, le=3660)] = 90
    owner: Owner | None = None


@access_checked("token")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """A token without its secret. ``start``: its first characters, to recognize it."""

    key: str
    start: str
    title: str
    way: Way
    login: str
    scopes: list[Scope]
    created_at: int
    expires_at: int
    used_at: int | None
    revoked_at: int | None
    is_live: bool


@access_checked("token")
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeToken:
    """A new token. ``secret`` is returned only here."""

    token: TokenAnswer
    secret: str


@router.get("")
async def list_tokens(
    state: State,
    caller: CurrentCaller,
    everybody: Annotated[bool, Query(description="All tokens of all owners; for administrators.")] = False,
) -> list[TokenAnswer]:
    """Tokens of the current user, newest first."""
    identity = require_identity(state)
    now = identity.now()
    if everybody:
        _require_admin(caller)
        return [token_answer(token, now) for token in await identity.look_up(identity.store.tokens)]
    if caller.way is None or caller.viewer.login is None:
        return []
    tokens = await identity.look_up(identity.store.tokens, caller.way, caller.viewer.login)
    return [token_answer(token, now) for token in tokens]


@router.post("", status_code=201)
async def create_token(new: NewToken, state: State, caller: CurrentCaller, client: RequestClient) -> MadeToken:
    """Create a token; only this response has its secret."""
    identity = require_identity(state)
    owner = await _find_owner(identity, caller, new.owner)
    token, secret = await identity.look_up(
        identity.tokens.create, owner, title=new.title, scopes=new.scopes, days=new.days
    )
    await identity.look_up(
        identity.audit.write,
        "token.create",
        caller=caller,
        client=client,
        target=token.key,
        details={"owner": owner.login, "title": token.title, "scopes": ",".join(sorted(token.scopes))},
    )
    return MadeToken(token=token_answer(token, identity.now()), secret=secret)


@router.delete("/{key}", status_code=204)
async def revoke_token(key: ItemId, state: State, caller: CurrentCaller, client: RequestClient) -> None:
    """Revoke a token: one of the current user, or any token for administrators."""
    identity = require_identity(state)
    is_admin = caller.viewer.role.is_at_least(Role.ADMIN)
    if not is_admin and (caller.way is None or caller.viewer.login is None):
        raise NotFoundError(f"no valid token {key}")
    owner = None if is_admin or caller.way is None else (caller.way, caller.viewer.login or "")
    token = await identity.look_up(identity.tokens.revoke, key, owner=owner)
    await identity.look_up(
        identity.audit.write, "token.revoke", caller=caller, client=client, target=key, details={"owner": token.login}
    )


def token_answer(token: ApiToken, now: int) -> TokenAnswer:
    """A token without its secret."""
    return TokenAnswer(
        key=token.key,
        start=token.start,
        title=token.title,
        way=token.way,
        login=token.login,
        scopes=sorted(token.scopes),
        created_at=token.created_at,
        expires_at=token.expires_at,
        used_at=token.used_at,
        revoked_at=token.revoked_at,
        is_live=token.revoked_at is None and now < token.expires_at,
    )


def _require_admin(caller: Caller) -> None:
    if not caller.viewer.role.is_at_least(Role.ADMIN):
        raise ForbiddenError("this requires the role admin")


async def _find_owner(identity: Identity, caller: Caller, requested_owner: Owner | None) -> Account:
    way = caller.way if requested_owner is None else requested_owner.way
    login = caller.viewer.login if requested_owner is None else requested_owner.login
    if requested_owner is not None and (way, login) != (caller.way, caller.viewer.login):
        _require_admin(caller)
    account = None if way is None or login is None else await identity.look_up(identity.store.account, way, login)
    if account is None:
        raise QueryError(
            "tokens belong to accounts, and you have none"
            if requested_owner is None
            else f"no account {login} ({way})",
            hint="An administrator can create one: `clusterscape user add`.",
        )
    return account
