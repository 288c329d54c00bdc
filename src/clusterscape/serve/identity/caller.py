"""Who asks, by which way and from where: what the gate leaves in the scope of a request for the routes of this area."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from clusterscape.errors import AccessError, ForbiddenError
from clusterscape.model.access import Scope, Way
from clusterscape.model.viewers import Role, Viewer
from clusterscape.serve.identity.addresses import Whence

CALLER_KEY = "clusterscape.caller"
WHENCE_KEY = "clusterscape.whence"
VIEWER_KEY = "clusterscape.viewer"
USER_KEY = "clusterscape.user"
"""Whom a request counts for in limits, where it is made for somebody else than its viewer: a response that many share."""
NOBODY = Viewer(login=None, role=Role.VIEWER)
"""Who asks for what is open to all, such as the page itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who was let in. ``way`` None: nobody has to say who they are here."""

    viewer: Viewer
    way: Way | None
    session: str | None = None
    """Digest of the browser's session."""
    token: str | None = None
    """Key of the API token."""
    scopes: frozenset[Scope] = frozenset(Scope)

    @property
    def is_ambient(self) -> bool:
        """A browser sends along by itself what lets it in, so another site's page could make it do so."""
        return self.way is None or self.session is not None or self.way is Way.PROXY

    @property
    def way_text(self) -> str:
        """As the audit log says it."""
        if self.token is not None:
            return f"token:{self.token}"
        return "here" if self.way is None else self.way.value


def name_user(viewer: Viewer, whence: Whence | None) -> str:
    """The login, or the address where there is no name."""
    if viewer.login is not None:
        return f"login {viewer.login}"
    return "nobody" if whence is None else f"address {whence.address}"


def _caller(request: Request) -> Caller:
    caller = cast(Caller | None, request.scope.get(CALLER_KEY))
    if caller is None:
        raise AccessError("nobody is signed in", hint="Sign in on the page, or send an API token.")
    return caller


def _maybe_caller(request: Request) -> Caller | None:
    return cast(Caller | None, request.scope.get(CALLER_KEY))


def _admin(request: Request) -> Caller:
    caller = _caller(request)
    if not caller.viewer.role.reaches(Role.ADMIN):
        raise ForbiddenError("only an administrator may do this", hint="Ask one; the page's menu says who you are.")
    return caller


def _whence(request: Request) -> Whence:
    return cast(Whence, request.scope[WHENCE_KEY])


CurrentCaller = Annotated[Caller, Depends(_caller)]
MaybeCaller = Annotated[Caller | None, Depends(_maybe_caller)]
AdminCaller = Annotated[Caller, Depends(_admin)]
RequestWhence = Annotated[Whence, Depends(_whence)]
