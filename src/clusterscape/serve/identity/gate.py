"""The gate that every request passes: authentication, protection against cross-site requests, and the audit log.

Stores the viewer in the ASGI scope. Authorization happens later, except for the scopes of API tokens.
"""

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.errors import AccessError, ClusterScapeError, ForbiddenError, ThrottledError
from clusterscape.model.access import LOCAL_ADMIN, Outcome
from clusterscape.serve.identity.addresses import Addresses, ClientInfo, is_loopback, strip_port
from clusterscape.serve.identity.audit import action_of, is_change
from clusterscape.serve.identity.caller import CALLER_KEY, CLIENT_KEY, NOBODY, VIEWER_KEY, Caller
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.identity.origins import PAGE_HEADER, SAFE_METHODS, is_cross_site
from clusterscape.serve.identity.security_headers import secure
from clusterscape.serve.identity.throttle import Throttle
from clusterscape.serve.identity.tokens import find_scopes
from clusterscape.serve.problems import error_response

SESSION_ROUTE = "/api/v1/session"
AUDITED_REFUSALS = 50
AUDITED_REFUSALS_WINDOW_S = 300.0
"""The most refusals of one caller that are recorded within the window, so that no client can fill the audit log."""


class Gate:
    """ASGI middleware; refuses with the common error shape. Without ``identity`` everybody is let in, as on loopback."""

    def __init__(self, app: ASGIApp, identity: Identity | None, *, loopback_only: bool = False) -> None:
        self._app = app
        self._identity = identity
        self._loopback_only = loopback_only
        self._addresses = Addresses((), None) if identity is None else identity.addresses
        now_s: Callable[[], float] = (lambda: 0.0) if identity is None else (lambda: identity.now() / 1000)
        self._refusal_throttle = Throttle(limit=AUDITED_REFUSALS, window_s=AUDITED_REFUSALS_WINDOW_S, now_s=now_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = self._addresses.read_client(scope)
        scope[CLIENT_KEY], scope[VIEWER_KEY], scope[CALLER_KEY] = client, NOBODY, None
        is_personal = _is_api_path(scope["path"]) and self._identity is not None and not self._identity.is_open

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                secure(MutableHeaders(scope=message), is_https=client.is_https, is_personal=is_personal)
                await self._write_audit(scope, client, int(message["status"]))
            await send(message)

        try:
            await self._admit(scope, client)
        except ClusterScapeError as error:
            refusal = error_response(error)
            if error.http_status == AccessError.http_status:
                refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, answer)
            return
        await self._app(scope, receive, answer)

    async def _admit(self, scope: Scope, client: ClientInfo) -> None:
        """Authenticate the caller and store them in the scope; raises if the request must be refused."""
        self._refuse_dns_rebinding(client)
        path, headers = str(scope["path"]), Headers(scope=scope)
        if not _is_api_path(path):
            return
        if self._identity is None:
            caller: Caller | None = Caller(viewer=LOCAL_ADMIN, way=None)
        else:
            caller = await self._identity.find_caller(headers, client)
        is_unsafe = scope["method"] not in SAFE_METHODS
        if caller is None:
            if not _is_session_path(path):
                raise AccessError("not signed in", hint="Sign in on the page, or send `Authorization: Bearer …`.")
            if is_unsafe and is_cross_site(headers, client):
                raise ForbiddenError("cross-site sign-in refused")
            return
        scope[VIEWER_KEY], scope[CALLER_KEY] = caller.viewer, caller
        if is_unsafe:
            _refuse_cross_site(caller, headers, client)
        if caller.token is not None:
            accepted_scopes = find_scopes(path, is_change=is_change(str(scope["method"]), path))
            if not caller.scopes & accepted_scopes:
                raise ForbiddenError(
                    f"the token lacks the scope {' or '.join(sorted(accepted_scopes))}",
                    hint="Create a token with this scope.",
                )

    def _refuse_dns_rebinding(self, client: ClientInfo) -> None:
        # DNS rebinding: to the browser, a foreign site whose name now resolves to 127.0.0.1 has the same origin.
        if (
            not self._loopback_only
            or is_loopback(strip_port(client.host))
            or self._addresses.is_public_host(client.host)
        ):
            return
        raise ForbiddenError(
            "this server accepts requests to localhost only",
            hint="Open it as localhost, or set auth.public_url to its name.",
        )

    async def _write_audit(self, scope: Scope, client: ClientInfo, status: int) -> None:
        identity = self._identity
        if identity is None or not _is_api_path(scope["path"]):
            return
        caller: Caller | None = scope[CALLER_KEY]
        method, path = str(scope["method"]), str(scope["path"])
        route = getattr(scope.get("route"), "name", None)  # None: refused before routing
        action = None if route is None else action_of(method, path, route)
        if status < 400:
            if action is not None:
                await identity.look_up(identity.audit.write, action, caller=caller, client=client, target=path)
            return
        is_bad_token = status == AccessError.http_status and "authorization" in Headers(scope=scope)
        if status not in (ForbiddenError.http_status, ThrottledError.http_status) and not is_bad_token:
            return
        key = client.address if caller is None else f"{caller.way_text} {caller.viewer.login}"
        if self._refusal_throttle.wait_s(key) > 0:
            return
        self._refusal_throttle.note(key)
        audited_action = action or ("token" if is_bad_token else "access")
        await identity.look_up(
            identity.audit.write,
            audited_action,
            Outcome.REFUSED,
            caller=caller,
            client=client,
            target=f"{method} {path}",
        )


def _refuse_cross_site(caller: Caller, headers: Headers, client: ClientInfo) -> None:
    if not caller.is_ambient:
        return
    if is_cross_site(headers, client):
        raise ForbiddenError("cross-site request refused")
    if caller.way is not None and PAGE_HEADER not in headers:
        raise ForbiddenError(
            f"the header {PAGE_HEADER} is missing",
            hint="The page sends it with every change; scripts use an API token instead.",
        )


def _is_api_path(path: str) -> bool:
    return path.startswith("/api/") or path in ("/metrics", "/openapi.json")


def _is_session_path(path: str) -> bool:
    return path == SESSION_ROUTE or path.startswith(f"{SESSION_ROUTE}/")
