"""The gate that every request passes: who asks, whether another site's page made them, and what is noted of it.

Leaves the viewer in the scope. What that viewer may see or do is not decided here, but for the scopes of API tokens.
"""

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.errors import AccessError, ClusterScapeError, ForbiddenError, ThrottledError
from clusterscape.model.access import Outcome
from clusterscape.model.viewers import ANYONE_HERE
from clusterscape.serve.identity.addresses import Addresses, Whence, is_loopback, name_of
from clusterscape.serve.identity.audit import action_of, is_change
from clusterscape.serve.identity.caller import CALLER_KEY, NOBODY, VIEWER_KEY, WHENCE_KEY, Caller
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.identity.origins import PAGE_HEADER, SAFE_METHODS, is_foreign
from clusterscape.serve.identity.security_headers import secure
from clusterscape.serve.identity.throttle import Throttle
from clusterscape.serve.identity.tokens import find_scopes
from clusterscape.serve.problems import problem_of

SESSION_ROUTE = "/api/v1/session"
NOISE_LIMIT = 50
NOISE_WINDOW_S = 300.0
"""So many refusals of one caller are noted within the window: nobody shall fill the log with them."""


class Gate:
    """ASGI middleware; refuses in the one error shape. Without ``identity`` everybody is let in, as on loopback."""

    def __init__(self, app: ASGIApp, identity: Identity | None, *, loopback_only: bool = False) -> None:
        self._app = app
        self._identity = identity
        self._loopback_only = loopback_only
        self._addresses = Addresses((), None) if identity is None else identity.addresses
        now_s: Callable[[], float] = (lambda: 0.0) if identity is None else (lambda: identity.now() / 1000)
        self._noise = Throttle(limit=NOISE_LIMIT, window_s=NOISE_WINDOW_S, now_s=now_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on where it may."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        whence = self._addresses.whence(scope)
        scope[WHENCE_KEY], scope[VIEWER_KEY], scope[CALLER_KEY] = whence, NOBODY, None
        is_personal = _is_of_api(scope["path"]) and self._identity is not None and not self._identity.is_open

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                secure(MutableHeaders(scope=message), is_https=whence.is_https, is_personal=is_personal)
                await self._note(scope, whence, int(message["status"]))
            await send(message)

        try:
            await self._admit(scope, whence)
        except ClusterScapeError as error:
            refusal = problem_of(error)
            if error.http_status == AccessError.http_status:
                refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, answer)
            return
        await self._app(scope, receive, answer)

    async def _admit(self, scope: Scope, whence: Whence) -> None:
        """Set who asks; raises where the request may not pass."""
        self._refuse_rebound(whence)
        path, headers = str(scope["path"]), Headers(scope=scope)
        if not _is_of_api(path):
            return
        if self._identity is None:
            caller: Caller | None = Caller(viewer=ANYONE_HERE, way=None)
        else:
            caller = await self._identity.find_caller(headers, whence)
        is_unsafe = scope["method"] not in SAFE_METHODS
        if caller is None:
            if not _is_of_session(path):
                raise AccessError("nobody is signed in", hint="Sign in on the page, or send `Authorization: Bearer …`.")
            if is_unsafe and is_foreign(headers, whence):
                raise ForbiddenError("another site's page may not sign in here")
            return
        scope[VIEWER_KEY], scope[CALLER_KEY] = caller.viewer, caller
        if is_unsafe:
            _refuse_foreign(caller, headers, whence)
        if caller.token is not None:
            enough = find_scopes(path, is_change=is_change(str(scope["method"]), path))
            if not caller.scopes & enough:
                raise ForbiddenError(
                    f"the token has not the scope {' or '.join(sorted(enough))}", hint="Make one that has it."
                )

    def _refuse_rebound(self, whence: Whence) -> None:
        # A site whose name was turned to 127.0.0.1 in between is of the same origin to the browser; only the name tells.
        if not self._loopback_only or is_loopback(name_of(whence.host)) or self._addresses.is_public_host(whence.host):
            return
        raise ForbiddenError(
            "this server is for this machine only",
            hint="Ask for it as localhost, or set auth.public_url to its name.",
        )

    async def _note(self, scope: Scope, whence: Whence, status: int) -> None:
        identity = self._identity
        if identity is None or not _is_of_api(scope["path"]):
            return
        caller: Caller | None = scope[CALLER_KEY]
        method, path = str(scope["method"]), str(scope["path"])
        route = getattr(scope.get("route"), "name", None)  # None: refused before it was looked for
        action = None if route is None else action_of(method, path, route)
        if status < 400:
            if action is not None:
                await identity.look_up(identity.audit.write, action, caller=caller, whence=whence, target=path)
            return
        is_bad_token = status == AccessError.http_status and "authorization" in Headers(scope=scope)
        if status not in (ForbiddenError.http_status, ThrottledError.http_status) and not is_bad_token:
            return
        key = whence.address if caller is None else f"{caller.way_text} {caller.viewer.login}"
        if self._noise.wait_s(key) > 0:
            return
        self._noise.note(key)
        told = action or ("token" if is_bad_token else "access")
        await identity.look_up(
            identity.audit.write, told, Outcome.REFUSED, caller=caller, whence=whence, target=f"{method} {path}"
        )


def _refuse_foreign(caller: Caller, headers: Headers, whence: Whence) -> None:
    if not caller.is_ambient:
        return
    if is_foreign(headers, whence):
        raise ForbiddenError("another site's page may not change anything here")
    if caller.way is not None and PAGE_HEADER not in headers:
        raise ForbiddenError(
            f"a change needs the header {PAGE_HEADER}", hint="The page sends it; scripts use an API token instead."
        )


def _is_of_api(path: str) -> bool:
    return path.startswith("/api/") or path in ("/metrics", "/openapi.json")


def _is_of_session(path: str) -> bool:
    return path == SESSION_ROUTE or path.startswith(f"{SESSION_ROUTE}/")
