"""Reads a Prometheus or VictoriaMetrics server that already scrapes the site's exporters, instead of the exporters.

Owns the HTTP API and decides which samples are new. Does not interpret values: ingest handles blanks, units and labels.
"""

import asyncio
import re
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import aiohttp
import orjson
from yarl import URL

from clusterscape.collect.bounded_responses import ResponseTooLargeError, UnsupportedEncodingError, read_bounded
from clusterscape.collect.exposition import Malformed
from clusterscape.collect.range_vectors import SampleReader, invalid_response, read_data, read_result
from clusterscape.errors import ConfigError, SourceError
from clusterscape.model import SOURCE_NAMES, UNIT_METRICS, Observation, RawScrape, ScrapeObserved, SourceStatus, UnixMs
from clusterscape.settings import PrometheusSettings
from clusterscape.settings.limits import SourceLimits

# How far back the first poll reads; also the time without new samples after which the server seems to scrape no longer.
LOOKBACK_S = 300
# How late a sample may become visible: remote write sends batches, VictoriaMetrics buffers.
SETTLE_S = 30
# How far back a poll reads after an outage of the server; ingest drops samples older than an hour.
CATCH_UP_S = 1_800
NAMES_EVERY_S = 60
_NAMES_WITHIN_S = 3_600  # generous, since the server's clock may differ from ours
_CONCURRENT_QUERIES = 4

_GPU_NAMES = frozenset(alias.partition("{")[0] for metric in UNIT_METRICS for alias in metric.aliases)
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
        """Read all samples that became visible since the last poll."""
        started = time.monotonic()
        try:
            names = await self._read_names(now_ms)
            failures = await self._read_all(names, now_ms)
            scrape = self._reader.take(
                source=self._source, fetched_at=self._clock(), duration_s=time.monotonic() - started
            )
            problem = self._find_problem(scrape, names, failures, now_ms)
        except SourceError as error:
            scrape, problem = None, error
        warning = None if scrape is None or problem is not None else _find_limit_warning(scrape.malformed)
        status = self._status(problem or warning, is_ok=problem is None, duration_s=time.monotonic() - started)
        yield ScrapeObserved(at=now_ms, scrapes=[] if scrape is None else [scrape], statuses=[status])

    async def check(self) -> list[SourceStatus]:
        """Check that the server responds, and count the series and GPUs that the matcher selects."""
        try:
            names = await self._fetch_names(self._clock())
            metrics = [name for name in names if name in SOURCE_NAMES]
            _require_readable_metrics(names, metrics, self._settings.matcher)
            series = await self._count(f"count({self._settings.matcher})")
            gpu_metric = next((name for name in metrics if name in _GPU_NAMES), None)
            gpus = 0
            if gpu_metric is not None:
                labels = "UUID, uuid, gpu_uuid, Hostname, hostname, gpu"
                matcher = restrict_matcher(self._settings.matcher, gpu_metric)
                gpus = await self._count(f"count(count by ({labels}) ({matcher}))")
        except SourceError as error:
            return [self._status(error)]
        message = f"{series:,} series of {len(names)} metrics ({len(metrics)} known) on {gpus:,} GPUs match"
        return [self._status(None, message=message)]

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _read_names(self, now_ms: UnixMs) -> Sequence[str]:
        """The names of the metrics to query, refreshed every minute."""
        if not self._names or self._names_at is None or now_ms - self._names_at >= NAMES_EVERY_S * 1000:
            names = await self._fetch_names(now_ms)
            self._names = [name for name in names if name in SOURCE_NAMES]
            self._names_at = now_ms
            _require_readable_metrics(names, self._names, self._settings.matcher)
        return self._names

    async def _fetch_names(self, now_ms: UnixMs) -> Sequence[str]:
        start = now_ms // 1000 - _NAMES_WITHIN_S
        body = await self._fetch(
            "GET", "api/v1/label/__name__/values", {"match[]": self._settings.matcher, "start": str(start)}
        )
        names = read_data(body)
        if not isinstance(names, list):
            raise invalid_response()
        return [name for name in names if isinstance(name, str)]

    async def _read_all(self, names: Sequence[str], now_ms: UnixMs) -> Mapping[str, SourceError]:
        """Query every metric, a few at a time. A metric without a result is queried for the same time range again next poll."""
        semaphore = asyncio.Semaphore(_CONCURRENT_QUERIES)
        failures: dict[str, SourceError] = {}

        async def read(name: str) -> None:
            async with semaphore:
                query = f"{restrict_matcher(self._settings.matcher, name)}[{self._window_s(name, now_ms)}s]"
                try:
                    if self._reader.read(name, await self._fetch("POST", "api/v1/query", {"query": query})):
                        self._read_until[name] = now_ms
                except SourceError as error:
                    failures[name] = error

        await asyncio.gather(*map(read, names))
        return failures

    def _window_s(self, name: str, now_ms: UnixMs) -> int:
        """How far back to query: since the last result, plus the time in which samples may become visible late."""
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
                hint="Check the targets of the server: it seems to scrape the exporters no longer.",
            )
        return None

    async def _count(self, query: str) -> int:
        result = read_result(await self._fetch("POST", "api/v1/query", {"query": query}), "vector")
        try:
            return int(float(result[0]["value"][1])) if result else 0
        except (TypeError, KeyError, IndexError, ValueError):
            raise invalid_response() from None

    async def _fetch(self, method: str, path: str, fields: Mapping[str, str]) -> bytes:
        """Return the body of a successful response. Raises SourceError, with a hint, for anything else."""
        session = self._open_session()
        payload = {"params" if method == "GET" else "data": dict(fields)}
        try:
            async with session.request(method, self._url / path, **payload) as response:  # type: ignore[arg-type]
                body = await read_bounded(response, self._limits.response_bytes)
                if response.status != 200:
                    raise _explain_status(response.status, body, self._settings.matcher)
                return body
        except ResponseTooLargeError:
            raise SourceError(
                f"its response has more than {self._limits.response_bytes // 2**20:,} MiB",
                hint="Narrow collect.prometheus.matcher or raise limits.sources.response_bytes.",
            ) from None
        except (UnsupportedEncodingError, zlib.error):
            raise invalid_response() from None
        except TimeoutError:
            raise SourceError(
                f"no response within {self._settings.timeout_s:g} s",
                hint="Narrow collect.prometheus.matcher or raise collect.prometheus.timeout_s.",
            ) from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise SourceError(
                f"its certificate is not trusted: {error.certificate_error}",
                hint="Install its certificate authority on this machine (SSL_CERT_FILE names the file).",
            ) from None
        except aiohttp.ClientError as error:
            raise SourceError(
                f"cannot be reached: {error}",
                hint="Check collect.prometheus.url, that the server runs and that no firewall blocks it.",
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
        """``is_ok`` is True if ``problem`` is only a warning; by default it is whether there is no problem."""
        return SourceStatus(
            source=self._source,
            kind=self.name,
            is_ok=problem is None if is_ok is None else is_ok,
            at=self._clock(),
            message=problem.message if problem else message,
            hint=problem.hint if problem else None,
            duration_s=duration_s,
        )


def _find_limit_warning(malformed: Mapping[str, int]) -> SourceError | None:
    """Return the limit that the responses exceed, if any."""
    if malformed.get(Malformed.TOO_MANY):
        hint = "Narrow collect.prometheus.matcher, or raise limits.sources.series."
        return SourceError("more series match than the limit: new series are dropped", hint=hint)
    if malformed.get(Malformed.LONG_LABEL):
        hint = "Check the labels of its series, or raise limits.sources.label_length."
        return SourceError("some labels are too long: their series are dropped", hint=hint)
    return None


def _parse_url(text: str | None) -> URL:
    try:
        url = URL(text or "")
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(
            f"collect.prometheus.url = {text!r} is not an http(s) URL", hint="Write it like http://127.0.0.1:9090."
        )
    return url


def restrict_matcher(matcher: str, name: str) -> str:
    """Restrict ``matcher`` to the metric ``name``. A matcher with its metric before the braces is returned unchanged."""
    braces = _BRACES.fullmatch(matcher)
    if braces is None:
        return matcher
    conditions = braces[1].strip().rstrip(", ")
    return f'{{{conditions},__name__="{name}"}}' if conditions else f'{{__name__="{name}"}}'


def _require_readable_metrics(names: Sequence[str], readable: Sequence[str], matcher: str) -> None:
    if not names:
        raise SourceError(
            f"no series match {matcher}",
            hint="Query DCGM_FI_DEV_GPU_UTIL on the server to see its labels, and use them in collect.prometheus.matcher.",
        )
    if not readable:
        raise SourceError(
            f"{matcher} matches {len(names)} metrics, but none that is read (for example {names[0]})",
            hint='collect.prometheus.matcher must select series of known exporters, like {__name__=~"DCGM_.*"}.',
        )


def _explain_status(status: int, body: bytes, matcher: str) -> SourceError:
    try:
        document = orjson.loads(body)
        detail = str(document["error"]) if isinstance(document, dict) and "error" in document else ""
    except orjson.JSONDecodeError:
        detail = " ".join(body[:200].decode("utf-8", "replace").split())
    if status in (401, 403):
        return SourceError(
            f"access denied (HTTP {status})", hint="Set collect.prometheus.token to a token that may query."
        )
    if status == 404:
        return SourceError(
            "no Prometheus API at this URL (HTTP 404)",
            hint="Add the path to collect.prometheus.url: /prometheus, or /select/0/prometheus on a VictoriaMetrics cluster.",
        )
    if status in (400, 422):
        return SourceError(f"the query was rejected: {detail}", hint=f"Fix collect.prometheus.matcher, now {matcher}.")
    return SourceError(f"returned HTTP {status}: {detail}", hint="Check the log of the server.")
