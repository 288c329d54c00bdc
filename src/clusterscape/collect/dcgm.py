"""Scrapes dcgm-exporters, up to thousands of them, each at its own offset within the interval.

Owns connections, rounds and backoff. A dead exporter does not delay the others: targets that were slow or failed last time do not
hold up the first observation of a round but are reported in a second one, and targets that keep failing are retried with backoff.
"""

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import yarl

from clusterscape import executors
from clusterscape.collect.bounded_responses import ResponseTooLargeError, UnsupportedEncodingError, read_bounded
from clusterscape.collect.exporter_failures import (
    BadStatusError,
    Failure,
    explain_error,
    find_failure,
    find_limit_warning,
)
from clusterscape.collect.exposition import ExpositionParser
from clusterscape.collect.targets import Target, TargetList, TargetProblem
from clusterscape.model import RawScrape, ScrapeObserved, SourceStatus, UnixMs
from clusterscape.settings import DcgmSettings
from clusterscape.settings.limits import SourceLimits

GRACE_S = 1.0
"""How long after the jitter a round waits for the targets that were prompt last time."""

SLOT_TIMEOUT_S = GRACE_S / 2
"""How long a target that does not respond occupies a concurrency slot; less than the grace, so that the others are in time."""

PARSE_IN_THREAD_BYTES = 2**19
"""Larger responses are parsed in a thread: new series take 15 µs per line, too long for the event loop."""

MAX_BACKOFF_INTERVALS = 8
"""The longest backoff, in intervals between two scrapes of a target that keeps failing."""

_KIND = "dcgm"
_FETCH_ERRORS = (
    aiohttp.ClientError,
    OSError,
    ValueError,
    zlib.error,
    ResponseTooLargeError,
    UnsupportedEncodingError,
    BadStatusError,
)
_HEADERS = {"Accept": "text/plain;version=0.0.4,*/*;q=0.1", "Accept-Encoding": "identity", "User-Agent": "clusterscape"}


@dataclass(slots=True)
class _TargetState:
    """A target, its parser and its recent failures."""

    target: Target
    url: yarl.URL
    source: str
    parser: ExpositionParser
    offset_s: float
    failures: int = 0
    is_slow: bool = False
    scraped_at: int = 0
    due_at: int = 0  # while failing: when to scrape it next

    @property
    def is_prompt(self) -> bool:
        """Whether a round waits for it."""
        return not self.failures and not self.is_slow

    def is_due(self, now_ms: UnixMs) -> bool:
        """Whether to scrape it in this round. If the clock went back, the backoff is ignored."""
        return not self.failures or not self.scraped_at <= now_ms < self.due_at

    def record(self, status: SourceStatus, now_ms: UnixMs, interval_s: float) -> None:
        """Set the time of the next scrape, with half an interval of slack because rounds do not start to the millisecond."""
        self.is_slow = (status.duration_s or 0.0) > GRACE_S
        self.failures = 0 if status.is_ok else self.failures + 1
        backoff = min(2.0 ** (self.failures - 1), MAX_BACKOFF_INTERVALS) - 0.5
        self.scraped_at, self.due_at = now_ms, now_ms + round(backoff * interval_s * 1000)


@dataclass(frozen=True, slots=True)
class _ScrapeResult:
    state: _TargetState
    status: SourceStatus
    scrape: RawScrape | None


class _SlotLimit:
    """Concurrency limit; a request that waits longer than SLOT_TIMEOUT_S releases its slot and continues without one."""

    def __init__(self, slots: int) -> None:
        self._slots = asyncio.Semaphore(slots)

    @asynccontextmanager
    async def hold_slot(self) -> AsyncIterator[None]:
        await self._slots.acquire()
        slot = _Slot(self._slots)
        try:
            yield
        finally:
            slot.release()


class _Slot:
    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._is_held = True
        self._start_timer()

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + SLOT_TIMEOUT_S
        self._timer = loop.call_at(self._due, self._on_timeout)

    def _on_timeout(self) -> None:
        # If the event loop is late, responses may be waiting unread: more requests would only delay it further.
        if asyncio.get_running_loop().time() - self._due > SLOT_TIMEOUT_S / 10:
            self._start_timer()
        else:
            self.release()

    def release(self) -> None:
        self._timer.cancel()
        if self._is_held:
            self._is_held = False
            self._slots.release()


class DcgmCollector:
    """Scrapes all targets of the settings."""

    def __init__(
        self,
        settings: DcgmSettings,
        clock: Callable[[], UnixMs],
        *,
        owns: Callable[[Target], bool] = lambda _: True,
        limits: SourceLimits | None = None,
    ) -> None:
        """``owns`` selects the targets of this collector, if several shards split them."""
        self._owns = owns
        self._limits = limits or SourceLimits()
        self._settings = settings
        self._clock = clock
        self._targets = TargetList(settings)
        self._states: dict[Target, _TargetState] = {}
        self._failed_lists: set[str] = set()
        self._session: aiohttp.ClientSession | None = None
        self._slot_limit: _SlotLimit | None = None

    @property
    def name(self) -> str:
        """``dcgm``."""
        return _KIND

    @property
    def interval_s(self) -> float:
        """Seconds between rounds."""
        return self._settings.interval_s

    async def poll(self, now_ms: UnixMs) -> AsyncGenerator[ScrapeObserved, None]:
        """Run one round. First yields the results of the prompt targets, then those that were late or failed, if any."""
        states, list_statuses = await self._read_targets()
        due = [state for state in states if state.is_due(now_ms)]
        prompt = [self._start(state) for state in due if state.is_prompt]
        slow = [self._start(state) for state in due if not state.is_prompt]
        try:
            done, late = await _wait(prompt, timeout_s=self._settings.jitter_s + GRACE_S)
            if done or list_statuses:
                yield self._observe(done, now_ms, list_statuses)
            if late or slow:
                done, _ = await _wait([*late, *slow])
                yield self._observe(done, now_ms)
        finally:
            for task in (*prompt, *slow):
                task.cancel()

    async def check(self) -> list[SourceStatus]:
        """Scrape every target once, now."""
        states, statuses = await self._read_targets()
        results = await asyncio.gather(*(self._scrape(state, offset_s=0.0) for state in states))
        return [*statuses, *(result.status for result in results)]

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _read_targets(self) -> tuple[list[_TargetState], list[SourceStatus]]:
        targets, problems = await self._targets.read()
        owned = filter(self._owns, targets)
        self._states = {target: self._states.get(target) or self._new_state(target) for target in owned}
        if not targets and not problems:
            problems = [TargetProblem("collect.dcgm", "no exporters to scrape", "Set collect.dcgm.targets.")]
        return list(self._states.values()), self._list_statuses(problems)

    def _new_state(self, target: Target) -> _TargetState:
        return _TargetState(
            target=target,
            url=yarl.URL(target.url),
            source=f"{_KIND} {target.shown_url}",
            parser=ExpositionParser(
                target.shown_url,
                target.node if target.is_named else None,
                address=target.address,
                limits=self._limits,
            ),
            offset_s=_offset_ratio(target) * self._settings.jitter_s,
        )

    def _list_statuses(self, problems: Sequence[TargetProblem]) -> list[SourceStatus]:
        """Statuses of the target lists with problems, and once an ok status for each list that recovered."""
        by_origin: dict[str, list[TargetProblem]] = {}
        for problem in problems:
            by_origin.setdefault(problem.origin, []).append(problem)
        statuses = [
            self._list_status(origin, Failure("; ".join(p.message for p in list_problems[:3]), list_problems[0].hint))
            for origin, list_problems in by_origin.items()
        ]
        statuses += [self._list_status(origin, None) for origin in sorted(self._failed_lists - by_origin.keys())]
        self._failed_lists = set(by_origin)
        return statuses

    def _list_status(self, origin: str, failure: Failure | None) -> SourceStatus:
        return SourceStatus(
            source=f"{_KIND} targets of {origin}",
            kind=_KIND,
            is_ok=failure is None,
            at=self._clock(),
            message=failure.message if failure else None,
            hint=failure.hint if failure else None,
        )

    def _start(self, state: _TargetState) -> "asyncio.Task[_ScrapeResult]":
        return asyncio.create_task(self._scrape(state, offset_s=state.offset_s))

    async def _scrape(self, state: _TargetState, *, offset_s: float) -> _ScrapeResult:
        """Fetch and parse one target. A failure of the target becomes a status, never an exception."""
        target, timeout_s = state.target, self._settings.timeout_s
        if offset_s > 0:
            await asyncio.sleep(offset_s)
        session, slot_limit = self._connect()
        scrape: RawScrape | None = None
        warning: Failure | None = None
        async with slot_limit.hold_slot():
            began_at, began = self._clock(), time.perf_counter()
            try:
                async with asyncio.timeout(timeout_s):
                    text = await _fetch(session, state.url, self._limits.scrape_bytes)
            except _FETCH_ERRORS as error:
                failure: Failure | None = explain_error(error, target, timeout_s)
                duration_s = time.perf_counter() - began
            else:
                duration_s = time.perf_counter() - began
                scrape = await _parse(state.parser, text, began_at, duration_s)
                failure = find_failure(scrape, target)
                warning = find_limit_warning(scrape.malformed)
        problem = failure or warning
        status = SourceStatus(
            source=state.source,
            kind=_KIND,
            is_ok=failure is None,
            at=began_at,
            node=target.node,
            address=target.address,
            is_named=target.is_named,
            message=problem.message if problem else None,
            hint=problem.hint if problem else None,
            duration_s=duration_s,
        )
        return _ScrapeResult(state, status, scrape)

    def _connect(self) -> tuple[aiohttp.ClientSession, _SlotLimit]:
        if self._session is None or self._slot_limit is None:
            self._slot_limit = _SlotLimit(self._settings.concurrency)
            # The slots limit concurrency, not the connection pool: a dead target would hold its connection until the timeout.
            connector = aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=300, keepalive_timeout=2 * self._settings.interval_s + 5
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=_HEADERS,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session, self._slot_limit

    def _observe(
        self, done: Iterable["asyncio.Task[_ScrapeResult]"], now_ms: UnixMs, statuses: Sequence[SourceStatus] = ()
    ) -> ScrapeObserved:
        results = [task.result() for task in done]
        for result in results:
            result.state.record(result.status, now_ms, self.interval_s)
        return ScrapeObserved(
            at=self._clock(),
            scrapes=[result.scrape for result in results if result.scrape is not None],
            statuses=[*statuses, *(result.status for result in results)],
        )


async def _wait(
    tasks: Sequence["asyncio.Task[_ScrapeResult]"], timeout_s: float | None = None
) -> tuple[list["asyncio.Task[_ScrapeResult]"], list["asyncio.Task[_ScrapeResult]"]]:
    """Wait, and return the tasks that are done and those that are not, each in their original order."""
    if tasks:
        await asyncio.wait(tasks, timeout=timeout_s)
    return [task for task in tasks if task.done()], [task for task in tasks if not task.done()]


async def _fetch(session: aiohttp.ClientSession, url: yarl.URL, max_bytes: int) -> bytes:
    async with session.get(url) as response:
        if response.status != 200:
            raise BadStatusError(response.status)
        return await read_bounded(response, max_bytes)


async def _parse(parser: ExpositionParser, text: bytes, fetched_at: UnixMs, duration_s: float) -> RawScrape:
    if len(text) < PARSE_IN_THREAD_BYTES:
        return parser.parse(text, fetched_at=fetched_at, duration_s=duration_s)
    return await executors.COLLECT.run(parser.parse, text, fetched_at=fetched_at, duration_s=duration_s)


def _offset_ratio(target: Target) -> float:
    """The offset of a target within the jitter, 0 to 1: fixed by its URL, so that its samples are evenly spaced."""
    return zlib.crc32(target.url.encode()) / 2**32
