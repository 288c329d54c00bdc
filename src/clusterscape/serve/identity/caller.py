"""The caller of a request, which the gate stores in the ASGI scope: account, sign-in method and address."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from clusterscape.errors import AccessError, ForbiddenError
from clusterscape.model.access import Role, Scope, Viewer, Way
from clusterscape.serve.identity.addresses import ClientInfo

CALLER_KEY = "clusterscape.caller"
CLIENT_KEY = "clusterscape.client"
VIEWER_KEY = "clusterscape.viewer"
USER_KEY = "clusterscape.user"
"""The user whose limits a request counts against, if that is not its viewer: shared responses are computed for many viewers."""
NOBODY = Viewer(login=None, role=Role.VIEWER)
"""The viewer of public paths, such as the page itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated caller. ``way`` None: the server requires no authentication."""

    viewer: Viewer
    way: Way | None
    session: str | None = None
    """Digest of the browser session."""
    token: str | None = None
    """Key of the API token."""
    scopes: frozenset[Scope] = frozenset(Scope)

    @property
    def is_ambient(self) -> bool:
        """Whether the browser attaches the credentials by itself, so that another site could trigger authenticated requests."""
        return self.way is None or self.session is not None or self.way is Way.PROXY

    @property
    def way_text(self) -> str:
        """The sign-in method as written to the audit log."""
        if self.token is not None:
            return f"token:{self.token}"
        return "here" if self.way is None else self.way.value


def user_key(viewer: Viewer, client: ClientInfo | None) -> str:
    """The key of a user in limits: the login, or the address if there is none."""
    if viewer.login is not None:
        return f"login {viewer.login}"
    return "nobody" if client is None else f"address {client.address}"


def _caller(request: Request) -> Caller:
    caller = cast(Caller | None, request.scope.get(CALLER_KEY))
    if caller is None:
        raise AccessError("not signed in", hint="Sign in on the page, or send an API token.")
    return caller


def _maybe_caller(request: Request) -> Caller | None:
    return cast(Caller | None, request.scope.get(CALLER_KEY))


def _admin(request: Request) -> Caller:
    caller = _caller(request)
    if not caller.viewer.role.is_at_least(Role.ADMIN):
        raise ForbiddenError(
            "this requires the role admin", hint="Ask an administrator; the page's menu shows your role."
        )
    return caller


def _client(request: Request) -> ClientInfo:
    return cast(ClientInfo, request.scope[CLIENT_KEY])


CurrentCaller = Annotated[Caller, Depends(_caller)]
MaybeCaller = Annotated[Caller | None, Depends(_maybe_caller)]
AdminCaller = Annotated[Caller, Depends(_admin)]
RequestClient = Annotated[ClientInfo, Depends(_client)]
