"""Queries slurmrestd: finds the newest supported API version, sends the credentials, and explains errors."""

import asyncio
import base64
import binascii
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import aiohttp
import orjson

from clusterscape.collect.bounded_responses import ResponseTooLargeError, UnsupportedEncodingError, read_bounded
from clusterscape.collect.slurm.cli import HISTORY_TIMEOUT_FACTOR
from clusterscape.collect.slurm.faults import explain, parse_response, response_too_large
from clusterscape.collect.slurm.source import Document
from clusterscape.collect.slurm.values import as_object, read_int
from clusterscape.errors import SourceError
from clusterscape.model import UnixMs
from clusterscape.settings import SlurmSettings
from clusterscape.settings.limits import SourceLimits

API_VERSIONS = tuple(f"v0.0.{minor}" for minor in range(45, 36, -1))
"""Newest first. Responses are parsed by their structure; the version is used only in the path."""

UNIX_PREFIX = "unix:"
CONNECT_TIMEOUT_S = 5.0


class SlurmRest:
    """A SlurmSource that queries slurmrestd."""

    def __init__(
        self, settings: SlurmSettings, clock: Callable[[], UnixMs], limits: SourceLimits | None = None
    ) -> None:
        self._settings = settings
        self._max_bytes = (limits or SourceLimits()).response_bytes
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._version: str | None = None
        self._version_search: asyncio.Task[str] | None = None

    def describe(self) -> str:
        """A name for messages."""
        return f"slurmrestd at {self._settings.url}" + (f", API {self._version}" if self._version else "")

    async def fetch_jobs(self) -> Document:
        """The queue, including jobs that ended in the last minutes."""
        return await self._fetch("slurm", "jobs")

    async def fetch_nodes(self) -> Document:
        """All nodes."""
        return await self._fetch("slurm", "nodes")

    async def fetch_partitions(self) -> Document:
        """All partitions."""
        return await self._fetch("slurm", "partitions")

    async def fetch_history(self, start_s: int, end_s: int) -> Document:
        """Accounting. Times are ``uts…``, which every version accepts; older ones reject plain numbers."""
        window = {"start_time": f"uts{start_s}", "end_time": f"uts{end_s}"}
        return await self._fetch("slurmdb", "jobs", window, timeout_factor=HISTORY_TIMEOUT_FACTOR)

    async def fetch_priorities(self) -> None:
        """Not available: no version of slurmrestd has priority factors."""

    async def fetch_reservations(self) -> Document:
        """All reservations."""
        return await self._fetch("slurm", "reservations")

    async def fetch_preemption(self) -> None:
        """Not available: no version of slurmrestd has the preemption configuration."""

    async def close(self) -> None:
        """Close the connections."""
        if self._version_search is not None:
            self._version_search.cancel()
            await asyncio.gather(self._version_search, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _fetch(
        self, service: str, key: str, query: Mapping[str, str] | None = None, *, timeout_factor: int = 1
    ) -> Document:
        path = f"/{service}/{await self._find_version()}/{key}"
        status, body = await self._get(path, query or {}, self._settings.timeout_s * timeout_factor)
        request = f"slurmrestd {path}"
        if status == 404:
            raise self._not_found(request, service)
        if status in (401, 403):
            raise self._unauthorized(request, status)
        try:
            return parse_response(
                body, request=request, key=key, stderr="" if status < 400 else f"HTTP status {status}"
            )
        except SourceError as error:
            raise self._with_expiry(error) from None

    async def _find_version(self) -> str:
        """The API version to use. Concurrent calls wait for the same search, even if it fails."""
        if self._version is None:
            if self._version_search is None or self._version_search.done():
                self._version_search = asyncio.create_task(self._search_version())
            self._version = await asyncio.shield(self._version_search)
        return self._version

    async def _search_version(self) -> str:
        """Find the newest supported version by requesting ``ping``, newest first."""
        for version in API_VERSIONS:
            status, _ = await self._get(f"/slurm/{version}/ping", {}, self._settings.timeout_s)
            if status in (401, 403):
                raise self._unauthorized(f"slurmrestd /slurm/{version}/ping", status)
            if status != 404:
                return version
        raise SourceError(
            f"{self._settings.url} supports none of the API versions {API_VERSIONS[-1]} to {API_VERSIONS[0]}",
            hint="Check that collect.slurm.url is the URL of slurmrestd, without a path.",
        )

    async def _get(self, path: str, query: Mapping[str, str], timeout_s: float) -> tuple[int, bytes]:
        url = self._settings.url
        if url is None:
            raise SourceError(
                "collect.slurm.url is not set", hint="Set it to http://host:port or unix:/path/to/socket."
            )
        session = self._open(url)
        base = "http://localhost" if url.startswith(UNIX_PREFIX) else url.rstrip("/")
        try:
            limits = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(timeout_s, CONNECT_TIMEOUT_S))
            async with session.get(base + path, params=query, timeout=limits, allow_redirects=False) as response:
                return response.status, await read_bounded(response, self._max_bytes)
        except TimeoutError:
            raise SourceError(
                f"slurmrestd at {url} did not respond to {path} within {timeout_s:g} s",
                hint="Check slurmrestd and slurmctld (`sdiag`), or raise collect.slurm.timeout_s.",
            ) from None
        except ResponseTooLargeError:
            raise response_too_large(f"slurmrestd {path}", self._max_bytes) from None
        except (UnsupportedEncodingError, zlib.error) as error:
            raise SourceError(
                f"slurmrestd {path}: cannot decompress the response ({error})",
                hint="A proxy may be in between.",
            ) from None
        except aiohttp.ClientError as error:
            raise _unreachable(url, error) from None

    def _open(self, url: str) -> aiohttp.ClientSession:
        if self._session is None:
            connector = (
                aiohttp.UnixConnector(url.removeprefix(UNIX_PREFIX))
                if url.startswith(UNIX_PREFIX)
                else aiohttp.TCPConnector(limit=4)
            )
            headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
            if self._settings.user:
                headers["X-SLURM-USER-NAME"] = self._settings.user
            if self._settings.token:
                headers["X-SLURM-USER-TOKEN"] = self._settings.token.strip()
            self._session = aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False)
        return self._session

    def _not_found(self, request: str, service: str) -> SourceError:
        if service == "slurmdb":
            hint = "slurmrestd does not serve accounting: start it without `-s`, or add the openapi/dbv… plugin."
        else:
            self._version = None
            hint = "slurmrestd was changed; the next poll detects its API version again."
        return SourceError(f"{request}: not found (HTTP status 404)", hint=hint)

    def _unauthorized(self, request: str, status: int) -> SourceError:
        if not self._settings.token:
            return SourceError(
                f"{request}: slurmrestd requires a token (HTTP status {status})",
                hint="Create one with `scontrol token username=USER lifespan=SECONDS` and set collect.slurm.user and "
                "collect.slurm.token.",
            )
        return self._with_expiry(explain(request, f"unauthorized, HTTP status {status}"))

    def _with_expiry(self, error: SourceError) -> SourceError:
        """The same error, unless the token has expired, which Slurm 22.05 reports as an unspecified error."""
        expires_s = read_token_expiry(self._settings.token or "")
        if expires_s is None or expires_s * 1000 > self._clock():
            is_vague = bool(self._settings.token) and "unspecified error" in error.message.lower()
            token_hint = " Or the token is invalid: create a new one with `scontrol token`." if is_vague else ""
            return SourceError(error.message, hint=f"{error.hint or ''}{token_hint}" or None)
        when = datetime.fromtimestamp(expires_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return SourceError(
            f"the token for slurmrestd expired on {when}",
            hint=f"Create a new one with `scontrol token username={self._settings.user or 'USER'} lifespan=SECONDS` and set "
            "collect.slurm.token.",
        )


def read_token_expiry(token: str) -> int | None:
    """When a JSON Web Token expires (Unix seconds), unverified; None if it has no expiry."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    return read_int(as_object(claims).get("exp"))


def _unreachable(url: str, error: aiohttp.ClientError) -> SourceError:
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, FileNotFoundError):
            return SourceError(f"no socket at {url}", hint="Start slurmrestd with this socket, or fix the path.")
        if isinstance(error.os_error, PermissionError):
            return SourceError(
                f"permission denied: {url}", hint="Allow the user of ClusterScape to read and write the socket."
            )
        return SourceError(
            f"cannot connect to slurmrestd at {url} ({error.os_error.strerror})",
            hint="Start slurmrestd, or fix collect.slurm.url; a firewall may block it.",
        )
    if isinstance(error, aiohttp.InvalidURL):
        return SourceError(
            f"{url!r} is not a valid URL", hint="Set collect.slurm.url to http://host:port or unix:/path/to/socket."
        )
    return SourceError(
        f"slurmrestd at {url} closed the connection ({type(error).__name__}: {error})",
        hint="Check that slurmrestd listens there, and whether it expects http or https. Its log may have details.",
    )
