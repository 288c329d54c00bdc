"""Ids that are names leave the server as codes and come back as ids, for all but those who see everything.

Only JSON is looked through here; tables are hidden where they are made (``Queries.hide_ids``).
"""

from collections.abc import Iterator

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.query.visibility.hidden_ids import HiddenIds
from clusterscape.serve.state import SEES_ALL_KEY

_KINDS = ("application/json", "application/x-ndjson")


class HideIds:
    """ASGI middleware of private sites. What is not said to see everything, sees codes."""

    def __init__(self, app: ASGIApp, ids: HiddenIds) -> None:
        self._app = app
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with ids, and its answer back with codes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = self._ids.reveal_in(scope["path"])
        asked = scope["query_string"].decode("latin-1")
        scope["query_string"] = self._ids.reveal_in(asked, is_encoded=True).encode("latin-1")
        is_json = Headers(scope=scope).get("content-type", "").startswith("application/json")
        held: list[Message] = []

        async def take() -> Message:
            message = await receive()
            if is_json and message["type"] == "http.request" and message.get("body"):
                return {**message, "body": self._ids.reveal_in(message["body"].decode(errors="replace")).encode()}
            return message

        async def answer(message: Message) -> None:
            for each in self._hide(scope, held, message):
                await send(each)

        await self._app(scope, take, answer)

    def _hide(self, scope: Scope, held: list[Message], message: Message) -> Iterator[Message]:
        """The head of an answer is held until its body tells how long it becomes."""
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            if scope.get(SEES_ALL_KEY) or not kind.startswith(_KINDS):
                yield message
            else:
                held.append(message)
        elif message["type"] == "http.response.body" and (held or scope.get(_OPEN_KEY)):
            body = self._ids.hide_in(message.get("body", b""))
            if held:
                head = held.pop()
                if "content-length" in MutableHeaders(scope=head):
                    MutableHeaders(scope=head)["content-length"] = str(len(body))
                scope[_OPEN_KEY] = bool(message.get("more_body"))
                yield head
            yield {**message, "body": body}
        else:
            yield message


_OPEN_KEY = "clusterscape.hiding"
"""Of answers that come in several parts."""
