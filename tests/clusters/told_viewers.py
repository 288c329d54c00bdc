"""Viewers by name: header X-As names the viewer, instead of authentication."""

from collections.abc import Mapping

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from clusterscape.model.access import Viewer
from clusterscape.serve.identity.caller import VIEWER_KEY
from clusterscape.serve.identity.gate import Gate


class _HeaderViewers:
    def __init__(self, app: ASGIApp, viewers: Mapping[str, Viewer]) -> None:
        self._app = app
        self._viewers = viewers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = Headers(scope=scope).get("x-as") if scope["type"] == "http" else None
        if name is not None:
            scope[VIEWER_KEY] = self._viewers[name]
        await self._app(scope, receive, send)


def believe_names(app: FastAPI, viewers: Mapping[str, Viewer]) -> None:
    """Installed right behind the authentication layer, so that all inner layers see its result."""
    names = [getattr(middleware.cls, "__name__", "") for middleware in app.user_middleware]
    behind = names.index(Gate.__name__) + 1
    app.user_middleware.insert(behind, Middleware(_HeaderViewers, viewers=viewers))
