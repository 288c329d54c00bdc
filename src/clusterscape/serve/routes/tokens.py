"""API tokens: one's own, and for administrators everybody's."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError
from clusterscape.model.access import Account, ApiToken, Scope, Way
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.viewers import Role
from clusterscape.query.bounds import ItemId
from clusterscape.serve.identity.caller import Caller, CurrentCaller, RequestWhence
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.routes.session import need_identity
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1/tokens", tags=["access"], route_class=RedactedRoute)


class Owner(BaseModel):
    """Whose token it is to be."""

    model_config = ConfigDict(extra="forbid")

    way: Way
    login: Annotated[str, Field(max_length=256)]


class NewToken(BaseModel):
    """A token to make; without an owner it is one's own."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1, max_length=200)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=8)]
    days: Annotated[float, Field(gt=0, le=3660)] = 90
    owner: Owner | None = None


@access_checked("token")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """A token as lists show it. ``start``: its first characters, to know it again by."""

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
    """A new token. ``secret`` is told here once and never again."""

    token: TokenAnswer
    secret: str


@router.get("")
async def list_tokens(
    state: State,
    caller: CurrentCaller,
    everybody: Annotated[bool, Query(description="All tokens of all owners; for administrators.")] = False,
) -> list[TokenAnswer]:
    """One's own tokens, newest first."""
    identity = need_identity(state)
    now = identity.now()
    if everybody:
        _need_admin(caller)
        return [answer_token(token, now) for token in await identity.look_up(identity.store.tokens)]
    if caller.way is None or caller.viewer.login is None:
        return []
    found = await identity.look_up(identity.store.tokens, caller.way, caller.viewer.login)
    return [answer_token(token, now) for token in found]


@router.post("", status_code=201)
async def create_token(new: NewToken, state: State, caller: CurrentCaller, whence: RequestWhence) -> MadeToken:
    """Make a token; its secret is in the answer and nowhere else."""
    identity = need_identity(state)
    owner = await _find_owner(identity, caller, new.owner)
    token, secret = await identity.look_up(
        identity.tokens.create, owner, title=new.title, scopes=new.scopes, days=new.days
    )
    await identity.look_up(
        identity.audit.write,
        "token.create",
        caller=caller,
        whence=whence,
        target=token.key,
        details={"owner": owner.login, "title": token.title, "scopes": ",".join(sorted(token.scopes))},
    )
    return MadeToken(token=answer_token(token, identity.now()), secret=secret)


@router.delete("/{key}", status_code=204)
async def revoke_token(key: ItemId, state: State, caller: CurrentCaller, whence: RequestWhence) -> None:
    """End a token: one's own, or anybody's for administrators."""
    identity = need_identity(state)
    is_admin = caller.viewer.role.reaches(Role.ADMIN)
    if not is_admin and (caller.way is None or caller.viewer.login is None):
        raise NotFoundError(f"there is no token {key} to revoke")
    owner = None if is_admin or caller.way is None else (caller.way, caller.viewer.login or "")
    token = await identity.look_up(identity.tokens.revoke, key, owner=owner)
    await identity.look_up(
        identity.audit.write, "token.revoke", caller=caller, whence=whence, target=key, details={"owner": token.login}
    )


def answer_token(token: ApiToken, now: int) -> TokenAnswer:
    """A token as lists show it."""
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


def _need_admin(caller: Caller) -> None:
    if not caller.viewer.role.reaches(Role.ADMIN):
        raise ForbiddenError("only an administrator may see everybody's tokens")


async def _find_owner(identity: Identity, caller: Caller, named: Owner | None) -> Account:
    way = caller.way if named is None else named.way
    login = caller.viewer.login if named is None else named.login
    if named is not None and (way, login) != (caller.way, caller.viewer.login):
        _need_admin(caller)
    account = None if way is None or login is None else await identity.look_up(identity.store.account, way, login)
    if account is None:
        raise QueryError(
            "a token belongs to an account" if named is None else f"there is no account {login} ({way})",
            hint="An administrator can make one: `clusterscape user add`.",
        )
    return account
