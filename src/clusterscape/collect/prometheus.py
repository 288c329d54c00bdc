"""A site's own Prometheus or VictoriaMetrics that already scrapes dcgm-exporter, read instead of the exporters.

Owns the HTTP API and which samples are new. Judges no value: blanks, units and labels are ingest's.
"""

import asyncio
import re
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import aiohttp
import orjson
from yarl import URL

from clusterscape.collect.bounded_answers import AnswerTooLargeError, UnknownEncodingError, read_bounded
from clusterscape.collect.exposition import Malformed
from clusterscape.collect.range_vectors import SampleReader, nonsense, read_data, read_result
from clusterscape.errors import ConfigError, SourceError
from clusterscape.model import ALIASES, Observation, RawScrape, ScrapeObserved, SourceStatus, UnixMs
from clusterscape.settings import PrometheusSettings
from clusterscape.settings.limits import SourceLimits

# How far back the first look goes, and the silence after which nobody seems to scrape any more.
LOOKBACK_S = 300
# How late a sample may become visible: remote write sends in batches, VictoriaMetrics buffers.
SETTLE_S = 30
# The most that is caught up after the server was out of reach; ingest refuses samples older than an hour.
CATCH_UP_S = 1_800
NAMES_EVERY_S = 60
_NAMES_WITHIN_S = 3_600  # generous, since the server's clock may differ from ours
_CONCURRENT_QUERIES = 4

_BRACES = re.compile(r'\s*\{((?:[^{}"\'`]|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`)*)\}\s*', re.DOTALL)


class PrometheusCollector:
    """Reads every new sample of the series that ``settings.matcher`` selects, one query per metric name."""

    name = "prometheus"

    def __init__(
        self, settings: PrometheusSettings, clock: Callable[[], UnixMs], *, limits: SourceLimits | None = None
    ) -> None:
        self.interval_s = settings.interval_s
        self._settings = settings
        self._clock = clock
        self._url = _parse_url(settings.url)
        self._source = f"{self.name} {self._url.with_user(None)}"  # without user and password
        self._session: aiohttp.ClientSession | None = None
        self._limits = limits or SourceLimits()
        self._reader = SampleReader(self._limits)
        self._names: Sequence[str] = ()
        self._names_at: UnixMs | None = None
        self._read_until: dict[str, UnixMs] = {}  # by metric name: when it last answered with series
        self._fresh_at: UnixMs | None = None  # when the last new sample came

    async def poll(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """One look: all samples that became visible since the last one."""
        started = time.monotonic()
        try:
            names = await self._known_names(now_ms)
            failures = await self._read_all(names, now_ms)
            scrape = self._reader.take(
                source=self._source, fetched_at=self._clock(), duration_s=time.monotonic() - started
            )
            problem = self._find_problem(scrape, names, failures, now_ms)
        except SourceError as error:
            scrape, problem = None, error
        note = None if scrape is None or problem is not None else _find_note(scrape.malformed)
        status = self._status(problem or note, is_ok=problem is None, duration_s=time.monotonic() - started)
        yield ScrapeObserved(at=now_ms, scrapes=[] if scrape is None else [scrape], statuses=[status])

    async def check(self) -> list[SourceStatus]:
        """Whether the server answers, and how many series and GPUs the matcher selects."""
        try:
            names = await self._fetch_names(self._clock())
            metrics = [name for name in names if name in ALIASES]
            series = await self._count(f"count({self._settings.matcher})")
            labels = "UUID, uuid, gpu_uuid, Hostname, hostname, gpu"
            gpus = await self._count(f"count(count by ({labels}) ({self._settings.matcher}))")
            _refuse_nothing(names, metrics, self._settings.matcher)
        except SourceError as error:
            return [self._status(error)]
        message = f"{series:,} series of {len(names)} metrics ({len(metrics)} known) on {gpus:,} GPUs match"
        return [self._status(None, message=message)]

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _known_names(self, now_ms: UnixMs) -> Sequence[str]:
        """The metric names to ask for, looked up again every minute."""
        if not self._names or self._names_at is None or now_ms - self._names_at >= NAMES_EVERY_S * 1000:
            found = await self._fetch_names(now_ms)
            self._names = [name for name in found if name in ALIASES]
            self._names_at = now_ms
            _refuse_nothing(found, self._names, self._settings.matcher)
        return self._names

    async def _fetch_names(self, now_ms: UnixMs) -> Sequence[str]:
        start = now_ms // 1000 - _NAMES_WITHIN_S
        body = await self._fetch(
            "GET", "api/v1/label/__name__/values", {"match[]": self._settings.matcher, "start": str(start)}
        )
        names = read_data(body)
        if not isinstance(names, list):
            raise nonsense()
        return [name for name in names if isinstance(name, str)]

    async def _read_all(self, names: Sequence[str], now_ms: UnixMs) -> Mapping[str, SourceError]:
        """Every metric, a few at a time; one that fails or has nothing to tell is asked for the same time again next round."""
        gate = asyncio.Semaphore(_CONCURRENT_QUERIES)
        failures: dict[str, SourceError] = {}

        async def read(name: str) -> None:
            async with gate:
                query = f"{narrow(self._settings.matcher, name)}[{self._window_s(name, now_ms)}s]"
                try:
                    if self._reader.read(name, await self._fetch("POST", "api/v1/query", {"query": query})):
                        self._read_until[name] = now_ms
                except SourceError as error:
                    failures[name] = error

        await asyncio.gather(*map(read, names))
        return failures

    def _window_s(self, name: str, now_ms: UnixMs) -> int:
        """How far back to ask: what the last answer covered, less what may have become visible only afterwards."""
        until = self._read_until.get(name)
        if until is None:
            return LOOKBACK_S
        return min(CATCH_UP_S, max(0, now_ms - until) // 1000 + 1 + SETTLE_S)

    def _find_problem(
        self, scrape: RawScrape, names: Sequence[str], failures: Mapping[str, SourceError], now_ms: UnixMs
    ) -> SourceError | None:
        if failures:
            name, first = next(iter(failures.items()))
            if len(failures) == len(names):
                return first
            return SourceError(
                f"{len(failures)} of {len(names)} metrics failed, {name}: {first.message}", hint=first.hint
            )
        if len(scrape.series) or self._fresh_at is None:
            self._fresh_at = now_ms
        if not len(scrape.series) and now_ms - self._fresh_at > LOOKBACK_S * 1000:
            return SourceError(
                f"no new sample for {(now_ms - self._fresh_at) // 60_000} minutes",
                hint="Look at the server's targets: it seems to scrape dcgm-exporter no longer.",
            )
        return None

    async def _count(self, query: str) -> int:
        found = read_result(await self._fetch("POST", "api/v1/query", {"query": query}), "vector")
        try:
            return int(float(found[0]["value"][1])) if found else 0
        except (TypeError, KeyError, IndexError, ValueError):
            raise nonsense() from None

    async def _fetch(self, method: str, path: str, fields: Mapping[str, str]) -> bytes:
        """The body of a good answer; anything else is a SourceError that says what to do."""
        session = self._open_session()
        sent = {"params" if method == "GET" else "data": dict(fields)}
        try:
            async with session.request(method, self._url / path, **sent) as answer:  # type: ignore[arg-type]
                body = await read_bounded(answer, self._limits.answer_bytes)
                if answer.status != 200:
                    raise _refused(answer.status, body, self._settings.matcher)
                return body
        except AnswerTooLargeError:
            raise SourceError(
                f"its answer has more than {self._limits.answer_bytes // 2**20:,} MiB",
                hint="Narrow collect.prometheus.matcher or raise limits.sources.answer_bytes.",
            ) from None
        except (UnknownEncodingError, zlib.error):
            raise nonsense() from None
        except TimeoutError:
            raise SourceError(
                f"no answer within {self._settings.timeout_s:g} s",
                hint="Narrow collect.prometheus.matcher or raise collect.prometheus.timeout_s.",
            ) from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise SourceError(
                f"its certificate is not trusted: {error.certificate_error}",
                hint="Install its authority on this machine (SSL_CERT_FILE names the file).",
            ) from None
        except aiohttp.ClientError as error:
            raise SourceError(
                f"cannot be reached: {error}",
                hint="Check collect.prometheus.url, that the server runs and that no firewall is between.",
            ) from None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            token = self._settings.token
            self._session = aiohttp.ClientSession(
                headers={"Accept-Encoding": "gzip"} | ({"Authorization": f"Bearer {token}"} if token else {}),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
            )
        return self._session

    def _status(
        self,
        problem: SourceError | None,
        *,
        is_ok: bool | None = None,
        message: str | None = None,
        duration_s: float | None = None,
    ) -> SourceStatus:
        """``is_ok``: what is said is only a note."""
        return SourceStatus(
            source=self._source,
            kind=self.name,
            is_ok=problem is None if is_ok is None else is_ok,
            at=self._clock(),
            message=problem.message if problem else message,
            hint=problem.hint if problem else None,
            duration_s=duration_s,
        )


def _find_note(malformed: Mapping[str, int]) -> SourceError | None:
    """Which limit the answers are beyond."""
    if malformed.get(Malformed.TOO_MANY):
        hint = "Narrow collect.prometheus.matcher, or raise limits.sources.series."
        return SourceError("more series match than are accepted: new ones are dropped", hint=hint)
    if malformed.get(Malformed.LONG_LABEL):
        hint = "Look at the labels of what it scrapes, or raise limits.sources.label_length."
        return SourceError("some series have labels that are too long: they are dropped", hint=hint)
    return None


def _parse_url(text: str | None) -> URL:
    try:
        url = URL(text or "")
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(
            f"collect.prometheus.url = {text!r} is no web address", hint="Write it like http://127.0.0.1:9090."
        )
    return url


def narrow(matcher: str, name: str) -> str:
    """``matcher`` reduced to the metric ``name``. One that names its metric before the braces is narrow already."""
    found = _BRACES.fullmatch(matcher)
    if found is None:
        return matcher
    conditions = found[1].strip().rstrip(", ")
    return f'{{{conditions},__name__="{name}"}}' if conditions else f'{{__name__="{name}"}}'


def _refuse_nothing(found: Sequence[str], known: Sequence[str], matcher: str) -> None:
    if not found:
        raise SourceError(
            f"no series match {matcher}",
            hint="Ask the server for DCGM_FI_DEV_GPU_UTIL to see its labels, and set collect.prometheus.matcher to them.",
        )
    if not known:
        raise SourceError(
            f"{matcher} matches {len(found)} metrics, none of a GPU (such as {found[0]})",
            hint='collect.prometheus.matcher must select dcgm-exporter\'s series, like {__name__=~"DCGM_.*"}.',
        )


def _refused(status: int, body: bytes, matcher: str) -> SourceError:
    try:
        answer = orjson.loads(body)
        said = str(answer["error"]) if isinstance(answer, dict) and "error" in answer else ""
    except orjson.JSONDecodeError:
        said = " ".join(body[:200].decode("utf-8", "replace").split())
    if status in (401, 403):
        return SourceError(
            f"refuses access (HTTP {status})", hint="Set collect.prometheus.token to a token that may query."
        )
    if status == 404:
        return SourceError(
            "has no Prometheus API at this address (HTTP 404)",
            hint="Add the path to collect.prometheus.url: /prometheus, or /select/0/prometheus on a VictoriaMetrics cluster.",
        )
    if status in (400, 422):
        return SourceError(f"refuses the query: {said}", hint=f"Mend collect.prometheus.matcher, now {matcher}.")
    return SourceError(f"answers HTTP {status}: {said}", hint="Look at the server's log.")
