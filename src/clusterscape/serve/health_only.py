"""The face of a process that only collects: alive or not, and its own metrics. Everything else is another's to answer."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

ANSWERED = frozenset({"/healthz", "/metrics"})


class OnlyHealth:
    """Lets requests for ANSWERED pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] in ANSWERED:
            await self._app(scope, receive, send)
            return
        message = "this process only collects"
        hint = "Ask one that serves: `clusterscape serve --role web`."
        error = {"code": "not_found", "message": message, "hint": hint}
        await JSONResponse({"error": error}, status_code=404)(scope, receive, send)
