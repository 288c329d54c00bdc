"""Requests to the API server: one object, a list in pages, a watch as events. Independent of the kind; explains errors."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import aiohttp
import orjson

from clusterscape.collect.bounded_responses import ResponseTooLargeError, UnsupportedEncodingError, read_bounded
from clusterscape.collect.kubernetes.access import Access
from clusterscape.collect.kubernetes.values import as_object, dig, iter_objects, read_int, read_text
from clusterscape.errors import SourceError
from clusterscape.model import UnixMs
from clusterscape.settings.limits import SourceLimits

PAGE_LIMIT = 500
"""Objects per page, as in kubectl: limits the size of one response."""

MAX_EVENT_BYTES = 16 * 2**20
"""etcd stores no object above 1.5 MB; anything larger is not from an API server."""

WATCH_S = 300
"""After this time the server ends a watch, which is then resumed."""

SILENT_S = 180.0
"""An idle watch gets a bookmark every minute; one that is silent for longer has lost its connection."""

CONNECT_TIMEOUT_S = 5.0

CLOSING_S = 0.05
"""An aborted TLS connection is closed some event-loop iterations later, without notification."""

GONE = 410

HINT_RBAC = "Give ClusterScape's user the ClusterRole of deploy/kubernetes/clusterscape.yaml."


class KubernetesApiError(SourceError):
    """A failed request; ``status`` is the HTTP status, None without a response."""

    def __init__(self, message: str, *, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list. On the last page (``is_last``) ``version`` is where a watch starts."""

    items: list[dict[str, object]]
    version: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch; a BOOKMARK only has a newer ``version``."""

    type: str
    object: dict[str, object]
    version: str | None


class KubernetesClient:
    """Client of one API server."""

    def __init__(
        self, access: Access, timeout_s: float, clock: Callable[[], UnixMs], *, limits: SourceLimits | None = None
    ) -> None:
        self._access = access
        self._timeout_s = timeout_s
        self._max_bytes = (limits or SourceLimits()).response_bytes
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self.skew_ms: int | None = None
        """The server's clock minus ours in the last response; HTTP dates have whole seconds."""

    @property
    def url(self) -> str:
        """The server's address."""
        return self._access.url

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            if self._session.connector is not None:
                await self._session.connector.close(abort_ssl=True)
            await self._session.close()
            self._session = None
            await asyncio.sleep(CLOSING_S)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, object]:
        """Fetch one JSON object. Raises KubernetesApiError."""
        limits = aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=min(self._timeout_s, CONNECT_TIMEOUT_S))
        try:
            async with await self._open(path, query or {}, limits) as response:
                body = await read_bounded(response, self._max_bytes)
                self._note_clock(response)
                if response.status >= 400:
                    raise self._refused(path, response.status, body)
        except ResponseTooLargeError:
            raise KubernetesApiError(
                f"{path}: the response is larger than {self._max_bytes // 2**20} MiB",
                hint="Is it an API server? The limit is limits.sources.response_bytes.",
            ) from None
        except (UnsupportedEncodingError, zlib.error) as error:
            raise KubernetesApiError(
                f"{path}: cannot decompress the response ({error})", hint=f"Is {self.url} the API server?"
            ) from None
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._unreachable(path, error) from None
        return self._parse(path, body)

    async def list(self, path: str) -> AsyncIterator[Page]:
        """Yield all objects, page by page, as of one moment. A KubernetesApiError with status 410 means: start again."""
        token = ""
        while True:
            query = {"limit": str(PAGE_LIMIT)} | ({"continue": token} if token else {})
            response = await self.get(path, query)
            if not isinstance(response.get("items"), list):
                raise KubernetesApiError(f"{path}: the response is not a list", hint=f"Is {self.url} the API server?")
            metadata = as_object(response.get("metadata"))
            token = read_text(metadata.get("continue")) or ""
            yield Page(
                list(iter_objects(response["items"])), read_text(metadata.get("resourceVersion")) or "", not token
            )
            if not token:
                return

    async def watch(self, path: str, version: str) -> AsyncIterator[WatchEvent | None]:
        """Yield changes since ``version``, after a None once the watch is established. Ends when the server ends it.

        Raises KubernetesApiError, with status 410 if the server no longer has the changes since ``version``.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_S),
        }
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=SILENT_S)
        try:
            async with await self._open(path, query, limits) as response:
                self._note_clock(response)
                if response.status >= 400:
                    raise self._refused(path, response.status, await response.content.read(2**20))
                try:
                    yield None
                    async for line in _lines(response.content):
                        yield self._read_event(path, line)
                finally:
                    _cut(response)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._unreachable(path, error) from None

    def _read_event(self, path: str, line: bytes) -> WatchEvent:
        event = self._parse(path, line)
        kind, item = read_text(event.get("type")), as_object(event.get("object"))
        if kind == "ERROR":
            status = read_int(item.get("code"))
            message = read_text(item.get("message")) or "the watch failed"
            raise KubernetesApiError(f"{path}: {message}", hint="It will be listed again.", status=status)
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise KubernetesApiError(
                f"{path}: an event of unknown type {kind!r}", hint=f"Is {self.url} the API server?"
            )
        return WatchEvent(kind, item, read_text(dig(item, "metadata", "resourceVersion")))

    async def _open(self, path: str, query: Mapping[str, str], limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._access.tls or False)
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"Accept": "application/json", "User-Agent": "clusterscape"},
                auto_decompress=False,
            )
        token = await self._access.token.get()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers["Accept-Encoding"] = "identity" if "watch" in query else "gzip"
        return await self._session.get(
            self._access.url + path, params=query, headers=headers, timeout=limits, allow_redirects=False
        )

    def _parse(self, path: str, body: bytes) -> dict[str, object]:
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            shown = body[:80].decode("utf-8", "replace")
            raise KubernetesApiError(
                f"{path}: the response is not JSON ({shown!r})", hint=f"Is {self.url} the API server?"
            )
        return as_object(document)

    def _note_clock(self, response: aiohttp.ClientResponse) -> None:
        try:
            server_time = parsedate_to_datetime(response.headers["Date"])
        except (KeyError, ValueError):
            return
        self.skew_ms = round(server_time.timestamp() * 1000) - self._clock()

    def _refused(self, path: str, status: int, body: bytes) -> KubernetesApiError:
        try:
            message = read_text(as_object(orjson.loads(body)).get("message"))
        except orjson.JSONDecodeError:
            message = None
        error_message = f"{path}: {message or 'refused'} (HTTP status {status})"
        if status == 401:
            self._access.token.reject()
            hint = "The API server rejects these credentials: create the token or the kubeconfig again."
        elif status == 403:
            hint = HINT_RBAC
        elif status == 429:
            hint = "The API server is busy; the request is retried later."
        else:
            hint = f"Check the log of the API server at {self.url}."
        return KubernetesApiError(error_message, hint=hint, status=status)

    def _unreachable(self, path: str, error: Exception) -> KubernetesApiError:
        if isinstance(error, TimeoutError):
            return KubernetesApiError(
                f"the API server at {self.url} did not respond to {path} in time",
                hint="Check its load (`kubectl get --raw /readyz?verbose`), or raise collect.kubernetes.timeout_s.",
            )
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return KubernetesApiError(
                f"the certificate of {self.url} is not trusted ({error.certificate_error})",
                hint="Set collect.kubernetes.ca_file, or certificate-authority in the kubeconfig, to the cluster's CA.",
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            return KubernetesApiError(
                f"cannot connect to the API server at {self.url} ({error.os_error.strerror or error.os_error})",
                hint="Check the URL and the network; a firewall may block it.",
            )
        return KubernetesApiError(
            f"the API server at {self.url} closed the connection ({type(error).__name__}: {error})",
            hint="Is it the API server that listens there, and http or https as it expects?",
        )


def _cut(response: aiohttp.ClientResponse) -> None:
    """Abort an endless stream: a normal TLS close would wait for the server."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield lines of up to MAX_EVENT_BYTES; the last one may be incomplete."""
    partial_line = b""
    async for chunk in content.iter_any():
        *lines, partial_line = (partial_line + chunk).split(b"\n") if b"\n" in chunk else (partial_line + chunk,)
        for line in lines:
            if line.strip():
                yield line
        if len(partial_line) > MAX_EVENT_BYTES:
            raise KubernetesApiError(
                f"an event is larger than {MAX_EVENT_BYTES // 2**20} MiB", hint="Is it an API server?"
            )
        await asyncio.sleep(0)  # a burst of events must not block other collectors
    if partial_line.strip():
        yield partial_line
