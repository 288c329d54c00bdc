"""Slurm through slurmrestd: finds the newest API version that is served, sends the credentials, and explains refusals."""

import asyncio
import base64
import binascii
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import aiohttp
import orjson

from clusterscape.collect.bounded_answers import AnswerTooLargeError, UnknownEncodingError, read_bounded
from clusterscape.collect.slurm.cli import HISTORY_PATIENCE
from clusterscape.collect.slurm.faults import explain, read_answer, too_large
from clusterscape.collect.slurm.source import Document
from clusterscape.collect.slurm.values import as_object, read_int
from clusterscape.errors import SourceError
from clusterscape.model import UnixMs
from clusterscape.settings import SlurmSettings
from clusterscape.settings.limits import SourceLimits

API_VERSIONS = tuple(f"v0.0.{minor}" for minor in range(45, 36, -1))
"""Newest first. What an answer means is read from its shape; the version only makes the path."""

UNIX_PREFIX = "unix:"
CONNECT_TIMEOUT_S = 5.0


class SlurmRest:
    """A SlurmSource."""

    def __init__(
        self, settings: SlurmSettings, clock: Callable[[], UnixMs], limits: SourceLimits | None = None
    ) -> None:
        self._settings = settings
        self._most_bytes = (limits or SourceLimits()).answer_bytes
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._version: str | None = None
        self._finding: asyncio.Task[str] | None = None

    def describe(self) -> str:
        """What is asked, for people."""
        return f"slurmrestd at {self._settings.url}" + (f", API {self._version}" if self._version else "")

    async def fetch_jobs(self) -> Document:
        """The queue, ended jobs of the last minutes included."""
        return await self._ask("slurm", "jobs")

    async def fetch_nodes(self) -> Document:
        """All nodes."""
        return await self._ask("slurm", "nodes")

    async def fetch_partitions(self) -> Document:
        """All partitions."""
        return await self._ask("slurm", "partitions")

    async def fetch_history(self, start_s: int, end_s: int) -> Document:
        """Accounting. Times as ``uts…``, which every version takes; bare numbers are refused by older ones."""
        window = {"start_time": f"uts{start_s}", "end_time": f"uts{end_s}"}
        return await self._ask("slurmdb", "jobs", window, patience=HISTORY_PATIENCE)

    async def fetch_priorities(self) -> None:
        """No version of slurmrestd tells the parts of a priority."""

    async def fetch_reservations(self) -> Document:
        """All reservations."""
        return await self._ask("slurm", "reservations")

    async def fetch_preemption(self) -> None:
        """No version of slurmrestd serves the configuration that says who preempts whom."""

    async def close(self) -> None:
        """Close the connections."""
        if self._finding is not None:
            self._finding.cancel()
            await asyncio.gather(self._finding, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(
        self, service: str, key: str, query: Mapping[str, str] | None = None, *, patience: int = 1
    ) -> Document:
        path = f"/{service}/{await self._find_version()}/{key}"
        status, body = await self._get(path, query or {}, self._settings.timeout_s * patience)
        asked = f"slurmrestd {path}"
        if status == 404:
            raise self._missing(asked, service)
        if status in (401, 403):
            raise self._refused(asked, status)
        try:
            return read_answer(body, asked=asked, key=key, aside="" if status < 400 else f"HTTP status {status}")
        except SourceError as error:
            raise self._with_expiry(error) from None

    async def _find_version(self) -> str:
        """The version to use. Those who ask at the same time wait for one search, also where it fails."""
        if self._version is None:
            if self._finding is None or self._finding.done():
                self._finding = asyncio.create_task(self._search_version())
            self._version = await asyncio.shield(self._finding)
        return self._version

    async def _search_version(self) -> str:
        """The newest version served, found by asking for ``ping`` from the newest down."""
        for version in API_VERSIONS:
            status, _ = await self._get(f"/slurm/{version}/ping", {}, self._settings.timeout_s)
            if status in (401, 403):
                raise self._refused(f"slurmrestd /slurm/{version}/ping", status)
            if status != 404:
                return version
        raise SourceError(
            f"{self._settings.url} serves none of the API versions {API_VERSIONS[-1]} to {API_VERSIONS[0]}",
            hint="Check that collect.slurm.url is slurmrestd's address, without a path.",
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
                return response.status, await read_bounded(response, self._most_bytes)
        except TimeoutError:
            raise SourceError(
                f"slurmrestd at {url} did not answer {path} within {timeout_s:g} s",
                hint="Check slurmrestd and slurmctld (`sdiag`), or raise collect.slurm.timeout_s.",
            ) from None
        except AnswerTooLargeError:
            raise too_large(f"slurmrestd {path}", self._most_bytes) from None
        except (UnknownEncodingError, zlib.error) as error:
            raise SourceError(
                f"slurmrestd {path}: the answer cannot be decompressed ({error})",
                hint="A proxy may stand between.",
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

    def _missing(self, asked: str, service: str) -> SourceError:
        if service == "slurmdb":
            hint = "slurmrestd serves no accounting: start it without `-s`, or with the openapi/dbv… plugin as well."
        else:
            self._version = None
            hint = "slurmrestd was changed; the next poll looks for its versions again."
        return SourceError(f"{asked}: there is no such path", hint=hint)

    def _refused(self, asked: str, status: int) -> SourceError:
        if not self._settings.token:
            return SourceError(
                f"{asked}: slurmrestd wants a token (HTTP status {status})",
                hint="Make one with `scontrol token username=USER lifespan=SECONDS` and set collect.slurm.user and "
                "collect.slurm.token.",
            )
        return self._with_expiry(explain(asked, f"unauthorized, HTTP status {status}"))

    def _with_expiry(self, error: SourceError) -> SourceError:
        """The same error, unless the token says itself that its time is over. Slurm 22.05 calls that an unspecified error."""
        expires_s = read_token_expiry(self._settings.token or "")
        if expires_s is None or expires_s * 1000 > self._clock():
            is_vague = bool(self._settings.token) and "unspecified error" in error.message.lower()
            doubt = " Or the token is not valid: `scontrol token` makes a new one." if is_vague else ""
            return SourceError(error.message, hint=f"{error.hint or ''}{doubt}" or None)
        when = datetime.fromtimestamp(expires_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return SourceError(
            f"the token for slurmrestd expired on {when}",
            hint=f"Make a new one with `scontrol token username={self._settings.user or 'USER'} lifespan=SECONDS` and set "
            "collect.slurm.token.",
        )


def read_token_expiry(token: str) -> int | None:
    """When a JSON Web Token expires (Unix seconds), unverified; None where it does not say."""
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
            return SourceError(
                f"there is no socket at {url}", hint="Start slurmrestd with this socket, or correct the path."
            )
        if isinstance(error.os_error, PermissionError):
            return SourceError(
                f"{url} may not be opened", hint="Let the user of ClusterScape read and write slurmrestd's socket."
            )
        return SourceError(
            f"slurmrestd does not listen at {url} ({error.os_error.strerror})",
            hint="Start slurmrestd, or correct collect.slurm.url; a firewall may stand between.",
        )
    if isinstance(error, aiohttp.InvalidURL):
        return SourceError(
            f"{url!r} is no address", hint="Set collect.slurm.url to http://host:port or unix:/path/to/socket."
        )
    return SourceError(
        f"slurmrestd at {url} broke off ({type(error).__name__}: {error})",
        hint="Is it slurmrestd that listens there, and http or https as it expects? Its log may say more.",
    )
