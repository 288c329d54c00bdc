"""Signing in and out on the page, and who is signed in."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field, SecretStr

from clusterscape.errors import AccessError, NotFoundError, QueryError, SignInError
from clusterscape.model.access import Outcome, Way
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.viewers import Role
from clusterscape.serve.identity.addresses import Whence
from clusterscape.serve.identity.caller import Caller, CurrentCaller, MaybeCaller, RequestWhence
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
    """A new password of one's own."""

    old: Secret
    new: Secret


@access_checked("session")
@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who is signed in. ``way``: static, local, oidc, proxy; null where nobody has to sign in."""

    login: str | None
    title: str | None
    role: Role
    projects: list[str]
    way: Way | None


@access_checked("session")
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer:
    """Who asks, and how to sign in. ``provider``: what the button "Sign in with …" says; null: there is none."""

    who: Who | None
    is_open: bool
    takes_password: bool
    takes_token: bool
    provider: str | None
    password_min_length: int


@router.get("/session")
def get_session(state: State, caller: MaybeCaller) -> SessionAnswer:
    """Who is signed in, and by which ways one can; open to all."""
    identity = state.identity
    return SessionAnswer(
        who=None if caller is None else _who(caller),
        is_open=identity is None or identity.is_open,
        takes_password=identity is not None and identity.takes_password,
        takes_token=identity is not None and identity.takes_token,
        provider=None if identity is None or identity.provider is None else identity.auth.oidc.title,
        password_min_length=12 if identity is None else identity.auth.password_min_length,
    )


@router.post("/session", status_code=204)
async def sign_in(
    form: SignIn, request: Request, response: Response, state: State, caller: MaybeCaller, whence: RequestWhence
) -> None:
    """Set the cookie of a new session where token or password is right; the session of before ends."""
    identity = need_identity(state)
    agent = request.headers.get("user-agent", "")
    if form.token is not None and identity.takes_token:
        session_id = await identity.sign_in_with_token(form.token.get_secret_value(), whence, agent)
    elif form.login is not None and form.password is not None and identity.takes_password:
        password = form.password.get_secret_value()
        session_id = await identity.sign_in_with_password(form.login, password, whence, agent)
    else:
        raise QueryError("that is no way to sign in here", hint="GET /api/v1/session says which there are.")
    await _replace_session(identity, caller)
    _set_session(response, identity, session_id, whence)


@router.delete("/session", status_code=204)
async def sign_out(response: Response, state: State, caller: MaybeCaller, whence: RequestWhence) -> None:
    """End the session and forget its cookie."""
    identity = need_identity(state)
    if caller is not None and caller.session is not None:
        await identity.look_up(identity.store.end_session, caller.session)
        await identity.look_up(identity.audit.write, "sign_out", caller=caller, whence=whence)
    _forget(response, COOKIE, whence)


@router.delete("/sessions", status_code=204)
async def sign_out_everywhere(response: Response, state: State, caller: CurrentCaller, whence: RequestWhence) -> None:
    """End all sessions of whoever asks, in every browser."""
    identity = need_identity(state)
    if caller.way is not None:
        await identity.look_up(identity.store.end_sessions, caller.way, caller.viewer.login)
        await identity.look_up(identity.audit.write, "sign_out.everywhere", caller=caller, whence=whence)
    _forget(response, COOKIE, whence)


@router.put("/session/password", status_code=204)
async def change_password(
    form: NewPassword, request: Request, response: Response, state: State, caller: CurrentCaller, whence: RequestWhence
) -> None:
    """Change one's own password; every session ends, and this browser gets a new one."""
    identity = need_identity(state)
    login = caller.viewer.login
    if caller.way is not Way.LOCAL or caller.session is None or login is None:
        raise QueryError("there is no password to change", hint="Only local accounts have one, changed on the page.")
    new = check_new_password(form.new.get_secret_value(), login=login, min_length=identity.auth.password_min_length)
    identity.throttle.begin(whence.address, login)
    if not await identity.hash(identity.is_password, login, form.old.get_secret_value()):
        await identity.look_up(
            identity.audit.write, "account.password", Outcome.REFUSED, caller=caller, whence=whence, target=login
        )
        raise AccessError("the old password is wrong")
    identity.throttle.succeed(whence.address, login)
    hashed = await identity.hash(hash_password, new)
    await identity.look_up(identity.store.set_password, login, hashed)
    await identity.look_up(identity.store.end_sessions, Way.LOCAL, login)
    await identity.look_up(identity.audit.write, "account.password", caller=caller, whence=whence, target=login)
    agent = request.headers.get("user-agent", "")
    _set_session(
        response, identity, await identity.look_up(identity.sessions.open, Way.LOCAL, login, whence, agent), whence
    )


@router.get("/session/oidc", status_code=303, response_class=RedirectResponse)
async def begin_sign_in(
    state: State, whence: RequestWhence, next_path: Annotated[str, Query(alias="next", max_length=LONGEST_NEXT)] = "/"
) -> RedirectResponse:
    """Send the browser to the provider; it comes back to the callback."""
    from clusterscape.serve.identity.oidc import PENDING_S

    identity = need_identity(state)
    if identity.provider is None:
        raise NotFoundError("there is no provider to sign in with")
    try:
        address, pending = await identity.provider.begin(f"{whence.origin}{CALLBACK}", _own_path(next_path))
    except SignInError as error:
        return await _say_why(identity, error, whence)
    response = RedirectResponse(address, status_code=303)
    response.headers.append(
        "Set-Cookie",
        write_cookie(PENDING_COOKIE, pending.encode(), is_https=whence.is_https, max_age_s=PENDING_S),
    )
    return response


@router.get("/session/oidc/callback", status_code=303, response_class=RedirectResponse)
async def finish_sign_in(
    request: Request, state: State, caller: MaybeCaller, whence: RequestWhence
) -> RedirectResponse:
    """What the provider sends the browser back to: sets the cookie of a new session, or says why not."""
    from clusterscape.serve.identity.oidc import decode_pending

    identity = need_identity(state)
    if identity.provider is None:
        raise NotFoundError("there is no provider to sign in with")
    cookie = request.cookies.get(cookie_name(PENDING_COOKIE, is_https=whence.is_https), "")
    pending = decode_pending(cookie)
    try:
        person = await identity.provider.finish(pending, request.query_params, f"{whence.origin}{CALLBACK}")
        session_id = await identity.sign_in_person(person, whence, request.headers.get("user-agent", ""))
    except SignInError as error:
        response = await _say_why(identity, error, whence)
    else:
        await _replace_session(identity, caller)
        response = RedirectResponse(_own_path(pending.next if pending else "/"), status_code=303)
        _set_session(response, identity, session_id, whence)
    _forget(response, PENDING_COOKIE, whence)
    return response


def need_identity(state: AppState) -> Identity:
    """The identity; raises NotFoundError where nothing of who asks is kept."""
    if state.identity is None:
        raise NotFoundError("this server does not ask who somebody is")
    return state.identity


def _who(caller: Caller) -> Who:
    viewer = caller.viewer
    return Who(
        login=viewer.login, title=viewer.title, role=viewer.role, projects=sorted(viewer.projects), way=caller.way
    )


async def _replace_session(identity: Identity, caller: Caller | None) -> None:
    """The session that the browser had before ends: nobody else can have put it there to use it later."""
    if caller is not None and caller.session is not None:
        await identity.look_up(identity.store.end_session, caller.session)


def _set_session(response: Response, identity: Identity, session_id: str, whence: Whence) -> None:
    max_age_s = identity.sessions.max_ms // 1000
    response.headers.append(
        "Set-Cookie", write_cookie(COOKIE, session_id, is_https=whence.is_https, max_age_s=max_age_s)
    )


def _forget(response: Response, cookie: str, whence: Whence) -> None:
    response.headers.append("Set-Cookie", write_cookie(cookie, "", is_https=whence.is_https, max_age_s=0))


async def _say_why(identity: Identity, error: SignInError, whence: Whence) -> RedirectResponse:
    """Back to the page, which has words for the reason; the log has the rest."""
    await identity.look_up(
        identity.audit.write,
        "sign_in",
        Outcome.REFUSED,
        way=Way.OIDC.value,
        whence=whence,
        details={"reason": error.reason, "message": error.message},
    )
    return RedirectResponse(f"/?sign_in={error.reason}", status_code=303)


def _own_path(path: str) -> str:
    """A path of this page; anything that a browser could take for another site's address is none."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_own else "/"
