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
        hidden = _HiddenAnswer(self._ids, scope)

        async def answer(message: Message) -> None:
            for each in hidden.pass_on(message):
                await send(each)

        await self._app(scope, self._reveal_body(receive) if is_json else receive, answer)

    def _reveal_body(self, receive: Receive) -> Receive:
        """Read the body whole before codes are looked for: a read may end within a code, or within a character."""
        is_read = False

        async def receive_revealed() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            body = b""
            while not is_read:
                message = await receive()
                if message["type"] != "http.request":
                    return message
                body += message.get("body", b"")
                is_read = not message.get("more_body", False)
            # Bytes that are no text stay as they are: whoever reads the body says what is wrong with it.
            text = self._ids.reveal_in(body.decode(errors="surrogateescape"))
            return {"type": "http.request", "body": text.encode(errors="surrogateescape"), "more_body": False}

        return receive_revealed


class _HiddenAnswer:
    """One answer. Its head waits until the body tells how long it becomes; a line that is not whole waits for its end."""

    def __init__(self, ids: HiddenIds, scope: Scope) -> None:
        self._ids = ids
        self._scope = scope
        self._head: Message | None = None
        self._is_hidden = False
        self._rest = b""

    def pass_on(self, message: Message) -> Iterator[Message]:
        """What is sent in place of a message."""
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self._is_hidden = not self._scope.get(SEES_ALL_KEY) and kind.startswith(_KINDS)
            if self._is_hidden:
                self._head = message
            else:
                yield message
        elif message["type"] == "http.response.body" and self._is_hidden:
            yield from self._hide(message)
        else:
            yield message

    def _hide(self, message: Message) -> Iterator[Message]:
        content = self._rest + message.get("body", b"")
        has_more = bool(message.get("more_body"))
        whole = content.rfind(b"\n") + 1 if has_more else len(content)
        self._rest = content[whole:]
        body = self._ids.hide_in(content[:whole])
        if self._head is not None:
            head, self._head = self._head, None
            headers = MutableHeaders(scope=head)
            if has_more:
                del headers["content-length"]  # codes are not as long as ids: the length of the rest is not known yet
            elif "content-length" in headers:
                headers["content-length"] = str(len(body))
            yield head
        yield {**message, "body": body}
