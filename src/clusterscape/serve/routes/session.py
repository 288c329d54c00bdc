"""Sign-in, sign-out and the current user."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field, SecretStr

from clusterscape.errors import AccessError, NotFoundError, QueryError, SignInError
from clusterscape.model.access import Outcome, Role, Way
from clusterscape.model.identity_fields import access_checked
from clusterscape.serve.identity.addresses import ClientInfo
from clusterscape.serve.identity.caller import Caller, CurrentCaller, MaybeCaller, RequestClient
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.identity.passwords import MOST_CHARACTERS, check_new_password, hash_password
from clusterscape.serve.identity.sessions import COOKIE, cookie_name, write_cookie
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import AppState, State

router = APIRouter(prefix="/api/v1", tags=["session"], route_class=RedactedRoute)

PENDING_COOKIE = "clusterscape_sign_in"
CALLBACK = "/api/v1/session/oidc/callback"
LONGEST_NEXT = 3000

Secret = Annotated[SecretStr, Field(max_length=MOST_CHARACTERS)]


class SignIn(BaseModel):
    """What the sign-in form sends: the server's token, or a user name and a password."""

    token: Secret | None = None
    login: Annotated[str, Field(max_length=256)] | None = None
    password: Secret | None = None


class NewPassword(BaseModel):
    """A change of the user's own password."""

    old: Secret
    new: Secret


@access_checked("session")
@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The signed-in user. ``way``: static, local, oidc or proxy; null if the server requires no sign-in."""

    login: str | None
    title: str | None
    role: Role
    projects: list[str]
    way: Way | None


@access_checked("session")
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer:
    """The current user, and how to sign in. ``provider``: name for the button "Sign in with …"; null: no provider."""

    who: Who | None
    is_open: bool
    takes_password: bool
    takes_token: bool
    provider: str | None
    password_min_length: int


@router.get("/session")
def get_session(state: State, caller: MaybeCaller) -> SessionAnswer:
    """The current user and the available sign-in methods; requires no sign-in."""
    identity = state.identity
    return SessionAnswer(
        who=None if caller is None else _who(caller),
        is_open=identity is None or identity.is_open,
        takes_password=identity is not None and identity.takes_password,
        takes_token=identity is not None and identity.takes_token,
        provider=None if identity is None or identity.provider is None else identity.auth.oidc.provider_name,
        password_min_length=12 if identity is None else identity.auth.password_min_length,
    )


@router.post("/session", status_code=204)
async def sign_in(
    form: SignIn, request: Request, response: Response, state: State, caller: MaybeCaller, client: RequestClient
) -> None:
    """Sign in with a token or a password: sets the cookie of a new session and ends the previous session."""
    identity = require_identity(state)
    agent = request.headers.get("user-agent", "")
    if form.token is not None and identity.takes_token:
        session_id = await identity.sign_in_with_token(form.token.get_secret_value(), client, agent)
    elif form.login is not None and form.password is not None and identity.takes_password:
        password = form.password.get_secret_value()
        session_id = await identity.sign_in_with_password(form.login, password, client, agent)
    else:
        raise QueryError(
            "this sign-in method is not available", hint="GET /api/v1/session lists the available methods."
        )
    await _end_previous_session(identity, caller)
    _set_session(response, identity, session_id, client)


@router.delete("/session", status_code=204)
async def sign_out(response: Response, state: State, caller: MaybeCaller, client: RequestClient) -> None:
    """End the session and delete its cookie."""
    identity = require_identity(state)
    if caller is not None and caller.session is not None:
        await identity.look_up(identity.store.end_session, caller.session)
        await identity.look_up(identity.audit.write, "sign_out", caller=caller, client=client)
    _delete_cookie(response, COOKIE, client)


@router.delete("/sessions", status_code=204)
async def sign_out_everywhere(response: Response, state: State, caller: CurrentCaller, client: RequestClient) -> None:
    """End all sessions of the current user, in every browser."""
    identity = require_identity(state)
    if caller.way is not None:
        await identity.look_up(identity.store.end_sessions, caller.way, caller.viewer.login)
        await identity.look_up(identity.audit.write, "sign_out.everywhere", caller=caller, client=client)
    _delete_cookie(response, COOKIE, client)


@router.put("/session/password", status_code=204)
async def change_password(
    form: NewPassword, request: Request, response: Response, state: State, caller: CurrentCaller, client: RequestClient
) -> None:
    """Change the user's own password; ends all sessions and starts a new one for this browser."""
    identity = require_identity(state)
    login = caller.viewer.login
    if caller.way is not Way.LOCAL or caller.session is None or login is None:
        raise QueryError(
            "this account has no password", hint="Only local accounts signed in on the page can change their password."
        )
    new = check_new_password(form.new.get_secret_value(), login=login, min_length=identity.auth.password_min_length)
    identity.throttle.begin(client.address, login)
    if not await identity.hash(identity.is_password, login, form.old.get_secret_value()):
        await identity.look_up(
            identity.audit.write, "account.password", Outcome.REFUSED, caller=caller, client=client, target=login
        )
        raise AccessError("the old password is wrong")
    identity.throttle.succeed(client.address, login)
    hashed = await identity.hash(hash_password, new)
    await identity.look_up(identity.store.set_password, login, hashed)
    await identity.look_up(identity.store.end_sessions, Way.LOCAL, login)
    await identity.look_up(identity.audit.write, "account.password", caller=caller, client=client, target=login)
    agent = request.headers.get("user-agent", "")
    _set_session(
        response, identity, await identity.look_up(identity.sessions.open, Way.LOCAL, login, client, agent), client
    )


@router.get("/session/oidc", status_code=303, response_class=RedirectResponse)
async def begin_sign_in(
    state: State, client: RequestClient, next_path: Annotated[str, Query(alias="next", max_length=LONGEST_NEXT)] = "/"
) -> RedirectResponse:
    """Redirect the browser to the provider, which redirects it back to the callback."""
    from clusterscape.serve.identity.oidc import PENDING_S

    identity = require_identity(state)
    if identity.provider is None:
        raise NotFoundError("no sign-in provider is configured")
    try:
        address, pending = await identity.provider.begin(f"{client.origin}{CALLBACK}", _same_site_path(next_path))
    except SignInError as error:
        return await _redirect_with_reason(identity, error, client)
    response = RedirectResponse(address, status_code=303)
    response.headers.append(
        "Set-Cookie",
        write_cookie(PENDING_COOKIE, pending.encode(), is_https=client.is_https, max_age_s=PENDING_S),
    )
    return response


@router.get("/session/oidc/callback", status_code=303, response_class=RedirectResponse)
async def finish_sign_in(
    request: Request, state: State, caller: MaybeCaller, client: RequestClient
) -> RedirectResponse:
    """The callback of the provider: sets the cookie of a new session, or redirects with the reason of the failure."""
    from clusterscape.serve.identity.oidc import decode_pending

    identity = require_identity(state)
    if identity.provider is None:
        raise NotFoundError("no sign-in provider is configured")
    cookie = request.cookies.get(cookie_name(PENDING_COOKIE, is_https=client.is_https), "")
    pending = decode_pending(cookie)
    try:
        person = await identity.provider.finish(pending, request.query_params, f"{client.origin}{CALLBACK}")
        session_id = await identity.sign_in_person(person, client, request.headers.get("user-agent", ""))
    except SignInError as error:
        response = await _redirect_with_reason(identity, error, client)
    else:
        await _end_previous_session(identity, caller)
        response = RedirectResponse(_same_site_path(pending.next if pending else "/"), status_code=303)
        _set_session(response, identity, session_id, client)
    _delete_cookie(response, PENDING_COOKIE, client)
    return response


def require_identity(state: AppState) -> Identity:
    """The identity; raises NotFoundError if the server requires no authentication."""
    if state.identity is None:
        raise NotFoundError("this server has no accounts")
    return state.identity


def _who(caller: Caller) -> Who:
    viewer = caller.viewer
    return Who(
        login=viewer.login, title=viewer.title, role=viewer.role, projects=sorted(viewer.projects), way=caller.way
    )


async def _end_previous_session(identity: Identity, caller: Caller | None) -> None:
    """End the previous session of the browser, to prevent session fixation."""
    if caller is not None and caller.session is not None:
        await identity.look_up(identity.store.end_session, caller.session)


def _set_session(response: Response, identity: Identity, session_id: str, client: ClientInfo) -> None:
    max_age_s = identity.sessions.max_ms // 1000
    response.headers.append(
        "Set-Cookie", write_cookie(COOKIE, session_id, is_https=client.is_https, max_age_s=max_age_s)
    )


def _delete_cookie(response: Response, cookie: str, client: ClientInfo) -> None:
    response.headers.append("Set-Cookie", write_cookie(cookie, "", is_https=client.is_https, max_age_s=0))


async def _redirect_with_reason(identity: Identity, error: SignInError, client: ClientInfo) -> RedirectResponse:
    """Redirect to the page, which explains the reason; the audit log has the details."""
    await identity.look_up(
        identity.audit.write,
        "sign_in",
        Outcome.REFUSED,
        way=Way.OIDC.value,
        client=client,
        details={"reason": error.reason, "message": error.message},
    )
    return RedirectResponse(f"/?sign_in={error.reason}", status_code=303)


def _same_site_path(path: str) -> str:
    """``path`` if it is a path of this site, else ``/``: prevents redirects to other sites."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_own else "/"
