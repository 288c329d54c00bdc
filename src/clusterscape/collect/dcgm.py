"""Scrapes dcgm-exporters, hundreds to thousands of them, each at its own moment of the interval.

Owns connections, rounds and back-off. A dead exporter delays nobody: who does not answer in time is reported in a later
observation of the round; who was slow or failed last time is asked beside the others, and who keeps failing ever more seldom.
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
from clusterscape.collect.bounded_answers import AnswerTooLargeError, UnknownEncodingError, read_bounded
from clusterscape.collect.exporter_failures import BadStatusError, Failure, explain_error, find_failure, find_note
from clusterscape.collect.exposition import ExpositionParser
from clusterscape.collect.targets import Target, TargetList, TargetProblem
from clusterscape.model import RawScrape, ScrapeObserved, SourceStatus, UnixMs
from clusterscape.settings import DcgmSettings
from clusterscape.settings.limits import SourceLimits

GRACE_S = 1.0
"""How long beyond the jitter a round waits for the slowest of the targets that were prompt last time."""

PATIENCE_S = GRACE_S / 2
"""How long a target that does not answer keeps its place from others; less than the grace, so that these are in time."""

PARSED_ASIDE_BYTES = 2**19
"""Larger answers are parsed in a thread: one with new labels only takes 15 µs a line, which the event loop has not."""

MAX_BACK_OFF = 8
"""A target that keeps failing is asked at least every so many intervals."""

_KIND = "dcgm"
_FETCH_ERRORS = (
    aiohttp.ClientError,
    OSError,
    ValueError,
    zlib.error,
    AnswerTooLargeError,
    UnknownEncodingError,
    BadStatusError,
)
_HEADERS = {"Accept": "text/plain;version=0.0.4,*/*;q=0.1", "Accept-Encoding": "identity", "User-Agent": "clusterscape"}


@dataclass(slots=True)
class _Watch:
    """A target and how it has been doing."""

    target: Target
    url: yarl.URL
    source: str
    parser: ExpositionParser
    offset_s: float
    failures: int = 0
    is_slow: bool = False
    noted_at: int = 0
    due_at: int = 0  # while failing: not to be asked before

    @property
    def is_prompt(self) -> bool:
        """Whether a round waits for it."""
        return not self.failures and not self.is_slow

    def is_due(self, now_ms: UnixMs) -> bool:
        """Whether to ask it in this round. A clock that went back says nothing about how long it was left alone."""
        return not self.failures or not self.noted_at <= now_ms < self.due_at

    def note(self, status: SourceStatus, now_ms: UnixMs, interval_s: float) -> None:
        """Plan the next question; half an interval of slack, since rounds do not begin to the millisecond."""
        self.is_slow = (status.duration_s or 0.0) > GRACE_S
        self.failures = 0 if status.is_ok else self.failures + 1
        wait = min(2.0 ** (self.failures - 1), MAX_BACK_OFF) - 0.5
        self.noted_at, self.due_at = now_ms, now_ms + round(wait * interval_s * 1000)


@dataclass(frozen=True, slots=True)
class _Answer:
    watch: _Watch
    status: SourceStatus
    scrape: RawScrape | None


class _Gate:
    """Lets so many through at once; who waits for an answer beyond the patience gives its place to the next, and goes on."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)

    @asynccontextmanager
    async def pass_through(self) -> AsyncIterator[None]:
        await self._places.acquire()
        place = _Place(self._places)
        try:
            yield
        finally:
            place.give_up()


class _Place:
    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._is_held = True
        self._wait()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + PATIENCE_S
        self._timer = loop.call_at(self._due, self._lose_patience)

    def _lose_patience(self) -> None:
        # A loop that is late has not looked for answers either: letting more in would only make it later.
        if asyncio.get_running_loop().time() - self._due > PATIENCE_S / 10:
            self._wait()
        else:
            self.give_up()

    def give_up(self) -> None:
        self._timer.cancel()
        if self._is_held:
            self._is_held = False
            self._places.release()


class DcgmCollector:
    """The collector of exporter text."""

    def __init__(
        self,
        settings: DcgmSettings,
        clock: Callable[[], UnixMs],
        *,
        owns: Callable[[Target], bool] = lambda _: True,
        limits: SourceLimits | None = None,
    ) -> None:
        """``owns``: which targets are this collector's, where several share them."""
        self._owns = owns
        self._limits = limits or SourceLimits()
        self._settings = settings
        self._clock = clock
        self._targets = TargetList(settings)
        self._watches: dict[Target, _Watch] = {}
        self._troubled_lists: set[str] = set()
        self._session: aiohttp.ClientSession | None = None
        self._gate: _Gate | None = None

    @property
    def name(self) -> str:
        """``dcgm``."""
        return _KIND

    @property
    def interval_s(self) -> float:
        """Seconds between rounds."""
        return self._settings.interval_s

    async def poll(self, now_ms: UnixMs) -> AsyncGenerator[ScrapeObserved, None]:
        """One round: first what the prompt targets answered; then, where there is any, what came late or failed."""
        watches, list_statuses = await self._read_targets()
        due = [watch for watch in watches if watch.is_due(now_ms)]
        prompt = [self._start(watch) for watch in due if watch.is_prompt]
        others = [self._start(watch) for watch in due if not watch.is_prompt]
        try:
            done, late = await _wait(prompt, timeout_s=self._settings.jitter_s + GRACE_S)
            if done or list_statuses:
                yield self._observe(done, now_ms, list_statuses)
            if late or others:
                done, _ = await _wait([*late, *others])
                yield self._observe(done, now_ms)
        finally:
            for task in (*prompt, *others):
                task.cancel()

    async def check(self) -> list[SourceStatus]:
        """Ask every target once, now."""
        watches, statuses = await self._read_targets()
        answers = await asyncio.gather(*(self._ask(watch, offset_s=0.0) for watch in watches))
        return [*statuses, *(answer.status for answer in answers)]

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _read_targets(self) -> tuple[list[_Watch], list[SourceStatus]]:
        targets, problems = await self._targets.read()
        own = filter(self._owns, targets)
        self._watches = {target: self._watches.get(target) or self._watch(target) for target in own}
        if not targets and not problems:
            problems = [TargetProblem("collect.dcgm", "there is no exporter to ask", "Name targets in collect.dcgm.")]
        return list(self._watches.values()), self._list_statuses(problems)

    def _watch(self, target: Target) -> _Watch:
        return _Watch(
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
        """The problems of target lists, and for a list that is well again its good news, once."""
        by_origin: dict[str, list[TargetProblem]] = {}
        for problem in problems:
            by_origin.setdefault(problem.origin, []).append(problem)
        statuses = [
            self._list_status(origin, Failure("; ".join(p.message for p in found[:3]), found[0].hint))
            for origin, found in by_origin.items()
        ]
        statuses += [self._list_status(origin, None) for origin in sorted(self._troubled_lists - by_origin.keys())]
        self._troubled_lists = set(by_origin)
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

    def _start(self, watch: _Watch) -> "asyncio.Task[_Answer]":
        return asyncio.create_task(self._ask(watch, offset_s=watch.offset_s))

    async def _ask(self, watch: _Watch, *, offset_s: float) -> _Answer:
        """Fetch and parse one target. Raises nothing that a target can cause."""
        target, timeout_s = watch.target, self._settings.timeout_s
        if offset_s > 0:
            await asyncio.sleep(offset_s)
        session, gate = self._connect()
        scrape: RawScrape | None = None
        note: Failure | None = None
        async with gate.pass_through():
            began_at, began = self._clock(), time.perf_counter()
            try:
                async with asyncio.timeout(timeout_s):
                    text = await _fetch(session, watch.url, self._limits.scrape_bytes)
            except _FETCH_ERRORS as error:
                failure: Failure | None = explain_error(error, target, timeout_s)
                duration_s = time.perf_counter() - began
            else:
                duration_s = time.perf_counter() - began
                scrape = await _parse(watch.parser, text, began_at, duration_s)
                failure = find_failure(scrape, target)
                note = find_note(scrape.malformed)
        said = failure or note
        status = SourceStatus(
            source=watch.source,
            kind=_KIND,
            is_ok=failure is None,
            at=began_at,
            node=target.node,
            address=target.address,
            is_named=target.is_named,
            message=said.message if said else None,
            hint=said.hint if said else None,
            duration_s=duration_s,
        )
        return _Answer(watch, status, scrape)

    def _connect(self) -> tuple[aiohttp.ClientSession, _Gate]:
        if self._session is None or self._gate is None:
            self._gate = _Gate(self._settings.concurrency)
            # The gate limits, not the pool: a pool's place is held until its time-out by a target that is dead.
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
        return self._session, self._gate

    def _observe(
        self, done: Iterable["asyncio.Task[_Answer]"], now_ms: UnixMs, statuses: Sequence[SourceStatus] = ()
    ) -> ScrapeObserved:
        answers = [task.result() for task in done]
        for answer in answers:
            answer.watch.note(answer.status, now_ms, self.interval_s)
        return ScrapeObserved(
            at=self._clock(),
            scrapes=[answer.scrape for answer in answers if answer.scrape is not None],
            statuses=[*statuses, *(answer.status for answer in answers)],
        )


async def _wait(
    tasks: Sequence["asyncio.Task[_Answer]"], timeout_s: float | None = None
) -> tuple[list["asyncio.Task[_Answer]"], list["asyncio.Task[_Answer]"]]:
    """Those done and those not, each in the order given."""
    if tasks:
        await asyncio.wait(tasks, timeout=timeout_s)
    return [task for task in tasks if task.done()], [task for task in tasks if not task.done()]


async def _fetch(session: aiohttp.ClientSession, url: yarl.URL, most_bytes: int) -> bytes:
    async with session.get(url) as response:
        if response.status != 200:
            raise BadStatusError(response.status)
        return await read_bounded(response, most_bytes)


async def _parse(parser: ExpositionParser, text: bytes, fetched_at: UnixMs, duration_s: float) -> RawScrape:
    if len(text) < PARSED_ASIDE_BYTES:
        return parser.parse(text, fetched_at=fetched_at, duration_s=duration_s)
    return await executors.COLLECT.run(parser.parse, text, fetched_at=fetched_at, duration_s=duration_s)


def _offset_ratio(target: Target) -> float:
    """Where in the jitter a target stands: fixed by its address, so that its samples are evenly spaced."""
    return zlib.crc32(target.url.encode()) / 2**32
