"""Asks the API server: one object, a list in pages, a watch as events. Knows no kind of object; explains every refusal."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import aiohttp
import orjson

from clusterscape.collect.bounded_answers import AnswerTooLargeError, UnknownEncodingError, read_bounded
from clusterscape.collect.kubernetes.access import Access
from clusterscape.collect.kubernetes.values import as_object, dig, iter_objects, read_int, read_text
from clusterscape.errors import SourceError
from clusterscape.model import UnixMs
from clusterscape.settings.limits import SourceLimits

PAGE_LIMIT = 500
"""Objects of one page, as kubectl asks for them: bounds what one answer weighs on the server and here."""

MAX_EVENT_BYTES = 16 * 2**20
"""etcd holds no object above 1.5 MB; what is larger is not an API server's answer."""

WATCH_S = 300
"""After so long the server ends a watch, and it is asked for again where it ended."""

SILENT_S = 180.0
"""An idle watch gets a bookmark every minute; one that is silent for longer has lost its connection."""

CONNECT_TIMEOUT_S = 5.0

CLOSING_S = 0.05
"""A TLS connection that was cut is gone some turns of the event loop later, and nobody tells when."""

GONE = 410

HINT_RBAC = "Give ClusterScape's user the ClusterRole of deploy/kubernetes/clusterscape.yaml."


class ApiError(SourceError):
    """What the server refused; ``status`` is HTTP's, None where there was no answer."""

    def __init__(self, message: str, *, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list; ``is_last``: no more follow, and ``version`` is where a watch goes on."""

    items: list[dict[str, object]]
    version: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch; a BOOKMARK only tells a newer ``version``."""

    type: str
    object: dict[str, object]
    version: str | None


class KubernetesClient:
    """Of one API server."""

    def __init__(
        self, access: Access, timeout_s: float, clock: Callable[[], UnixMs], *, limits: SourceLimits | None = None
    ) -> None:
        self._access = access
        self._timeout_s = timeout_s
        self._most_bytes = (limits or SourceLimits()).answer_bytes
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self.skew_ms: int | None = None
        """The server's clock minus ours, as its last answer told; HTTP tells whole seconds."""

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
        """One JSON object; raises ApiError."""
        limits = aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=min(self._timeout_s, CONNECT_TIMEOUT_S))
        try:
            async with await self._open(path, query or {}, limits) as response:
                body = await read_bounded(response, self._most_bytes)
                self._note_clock(response)
                if response.status >= 400:
                    raise self._refused(path, response.status, body)
        except AnswerTooLargeError:
            raise ApiError(
                f"{path}: the answer is larger than {self._most_bytes // 2**20} MiB",
                hint="Is it an API server? limits.sources.answer_bytes bounds this.",
            ) from None
        except (UnknownEncodingError, zlib.error) as error:
            raise ApiError(
                f"{path}: the answer cannot be decompressed ({error})", hint=f"Is {self.url} the API server?"
            ) from None
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._unreachable(path, error) from None
        return self._parse(path, body)

    async def list(self, path: str) -> AsyncIterator[Page]:
        """All objects, page by page, as of one moment. An ApiError of status 410 means: begin again."""
        token = ""
        while True:
            query = {"limit": str(PAGE_LIMIT)} | ({"continue": token} if token else {})
            answer = await self.get(path, query)
            if not isinstance(answer.get("items"), list):
                raise ApiError(f"{path}: the answer is no list", hint=f"Is {self.url} the API server?")
            told = as_object(answer.get("metadata"))
            token = read_text(told.get("continue")) or ""
            yield Page(list(iter_objects(answer["items"])), read_text(told.get("resourceVersion")) or "", not token)
            if not token:
                return

    async def watch(self, path: str, version: str) -> AsyncIterator[WatchEvent | None]:
        """Changes since ``version``, first a None once the server has agreed. Ends when the server ends it.

        Raises ApiError; of status 410 where the server no longer knows what happened since.
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
        kind, thing = read_text(event.get("type")), as_object(event.get("object"))
        if kind == "ERROR":
            status = read_int(thing.get("code"))
            words = read_text(thing.get("message")) or "the watch failed"
            raise ApiError(f"{path}: {words}", hint="It is listed again.", status=status)
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise ApiError(f"{path}: an event of unknown type {kind!r}", hint=f"Is {self.url} the API server?")
        return WatchEvent(kind, thing, read_text(dig(thing, "metadata", "resourceVersion")))

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
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            shown = body[:80].decode("utf-8", "replace")
            raise ApiError(f"{path}: the answer is not JSON ({shown!r})", hint=f"Is {self.url} the API server?")
        return as_object(answer)

    def _note_clock(self, response: aiohttp.ClientResponse) -> None:
        try:
            told = parsedate_to_datetime(response.headers["Date"])
        except (KeyError, ValueError):
            return
        self.skew_ms = round(told.timestamp() * 1000) - self._clock()

    def _refused(self, path: str, status: int, body: bytes) -> ApiError:
        try:
            words = read_text(as_object(orjson.loads(body)).get("message"))
        except orjson.JSONDecodeError:
            words = None
        said = f"{path}: {words or 'refused'} (HTTP status {status})"
        if status == 401:
            self._access.token.reject()
            hint = "The API server does not take these credentials: make the token or the kubeconfig anew."
        elif status == 403:
            hint = HINT_RBAC
        elif status == 429:
            hint = "The API server is busy; it is asked again later."
        else:
            hint = f"Look at the log of the API server at {self.url}."
        return ApiError(said, hint=hint, status=status)

    def _unreachable(self, path: str, error: Exception) -> ApiError:
        if isinstance(error, TimeoutError):
            return ApiError(
                f"the API server at {self.url} did not answer {path} in time",
                hint="Check its load (`kubectl get --raw /readyz?verbose`), or raise collect.kubernetes.timeout_s.",
            )
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return ApiError(
                f"the certificate of {self.url} is not trusted ({error.certificate_error})",
                hint="Set collect.kubernetes.ca_file, or certificate-authority in the kubeconfig, to the cluster's CA.",
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            return ApiError(
                f"no API server listens at {self.url} ({error.os_error.strerror or error.os_error})",
                hint="Check the address and the way to it; a firewall may stand between.",
            )
        return ApiError(
            f"the API server at {self.url} broke off ({type(error).__name__}: {error})",
            hint="Is it the API server that listens there, and http or https as it expects?",
        )


def _cut(response: aiohttp.ClientResponse) -> None:
    """End a stream that has no end. Closed politely, TLS would wait for an answer from a server that is telling something."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length up to MAX_EVENT_BYTES; the last may lack its end, and is nonsense then or as good as the others."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
        for line in lines:
            if line.strip():
                yield line
        if len(rest) > MAX_EVENT_BYTES:
            raise ApiError(f"an event is larger than {MAX_EVENT_BYTES // 2**20} MiB", hint="Is it an API server?")
        await asyncio.sleep(0)  # a burst of events is not to hold up other collectors
    if rest.strip():
        yield rest
