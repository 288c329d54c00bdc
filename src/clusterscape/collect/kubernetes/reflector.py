"""Keeps the objects of one kind up to date: lists once, then follows a watch. Each object is parsed when it arrives.

A watch that ends is resumed; an expired one (410) is listed again; failures are retried with exponential backoff, without jitter
because only one process collects.
"""

import asyncio
import contextlib
import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Generic, TypeVar, cast

from clusterscape.collect.kubernetes.client import GONE, KubernetesApiError, KubernetesClient, WatchEvent
from clusterscape.collect.kubernetes.resources import Resource
from clusterscape.collect.kubernetes.values import Json, dig, read_text
from clusterscape.errors import SourceError
from clusterscape.settings import KubernetesSettings
from clusterscape.supervision import cancel_and_wait

log = logging.getLogger(__name__)

CANCEL_AGAIN_S = 1.0
FIRST_RETRY_S = 0.5
LONGEST_RETRY_S = 30.0
REFUSED_RETRY_S = 120.0
"""Rights and installed kinds change seldom."""

REFUSED = (401, 403, 404)
MAX_EXPIRED_IN_A_ROW = 3

Fact = TypeVar("Fact")


class Reflector(Generic[Fact]):
    """Parsed objects of one path. ``parse`` returns None for an object that is not needed."""

    def __init__(
        self,
        client: KubernetesClient,
        path: str,
        parse: Callable[[Json], Fact | None],
        *,
        first_retry_s: float = FIRST_RETRY_S,
        max_objects: int | None = None,
    ) -> None:
        self.path = path
        self.is_full = False
        """Whether there are more objects than are kept."""
        self._max_objects = sys.maxsize if max_objects is None else max_objects
        self.error: SourceError | None = None
        """Why the objects are stale; None while the watch works."""
        self.dropped: Counter[str] = Counter()
        self.lists = 0
        self._client = client
        self._parse = parse
        self._first_retry_s = first_retry_s
        self._facts: dict[str, Fact] = {}
        self._departed: dict[str, Fact] = {}
        self._version: str | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def facts(self) -> Mapping[str, Fact]:
        """By UID."""
        return self._facts

    def take_departed(self) -> Mapping[str, Fact]:
        """Return the objects that were deleted since the last call, in their last state."""
        departed, self._departed = self._departed, {}
        return departed

    @property
    def has_listed(self) -> bool:
        """Whether it was ever read whole."""
        return self.lists > 0

    @property
    def is_fresh(self) -> bool:
        """Whether what is held is what the server has."""
        return self.has_listed and self.error is None

    def start(self) -> None:
        """Begin, where it has not begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"watch {self.path}")

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            await cancel_and_wait(self._task, again_s=CANCEL_AGAIN_S)
            self._task = None

    async def settle(self) -> None:
        """Wait until it is read whole, or has failed."""
        while not self.has_listed and self.error is None:
            await self._changed.wait()

    async def _run(self) -> None:
        retry_s = self._first_retry_s
        expired_count = 0
        while True:
            wait_s = self._first_retry_s
            try:
                if self._version is None:
                    await self._list()
                await self._follow()
                retry_s, expired_count = self._first_retry_s, 0
            except KubernetesApiError as error:
                expired_count = expired_count + 1 if error.status == GONE else 0
                if error.status == GONE:
                    self._version = None
                if not 0 < expired_count < MAX_EXPIRED_IN_A_ROW:
                    wait_s = REFUSED_RETRY_S if error.status in REFUSED else retry_s
                    retry_s = min(LONGEST_RETRY_S, retry_s * 2)
                    self._fail(error)
            except SourceError as error:
                wait_s = retry_s
                retry_s = min(LONGEST_RETRY_S, retry_s * 2)
                self._fail(error)
            except Exception as error:  # a fault of ours in one kind must not end its watch for ever
                log.exception("watch of %s failed", self.path)
                wait_s = LONGEST_RETRY_S
                self._fail(SourceError(f"{type(error).__name__}: {error}", hint="This is a bug in ClusterScape."))
            await asyncio.sleep(wait_s)

    def _fail(self, error: SourceError) -> None:
        self.error = error
        if isinstance(error, KubernetesApiError) and error.status is None and "JSON" in error.message:
            self._version = None  # after an invalid response events may be lost: list again
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _list(self) -> None:
        facts: dict[str, Fact] = {}
        dropped: Counter[str] = Counter()
        version = ""
        self.is_full = False
        new = 0  # those known before come first, wherever they are in the list
        async for page in self._client.list(self.path):
            for item in page.items:
                has_room = len(self._facts) + new < self._max_objects
                new += self._put(facts, item, dropped, has_room=has_room)
            version = page.version
            await asyncio.sleep(0)
        self._facts, self.dropped, self._version = facts, dropped, version
        self.lists += 1
        self.error = None
        self._notify()

    async def _follow(self) -> None:
        version = self._version or ""
        # Closed here, not by the garbage collector: each stream holds a connection.
        stream = cast(AsyncGenerator[WatchEvent | None], self._client.watch(self.path, version))
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                if event is None:
                    self.error = None
                    continue
                if event.type == "DELETED":
                    self._remove(event.object)
                elif event.type != "BOOKMARK":
                    has_room = len(self._facts) < self._max_objects
                    self._put(self._facts, event.object, self.dropped, has_room=has_room)
                self._version = event.version or self._version

    def _remove(self, item: Json) -> None:
        uid, fact = _uid(item), self._parse(item)
        is_gone = uid is not None and self._facts.pop(uid, None) is not None
        if uid is not None and is_gone and fact is not None and len(self._departed) < self._max_objects:
            self._departed[uid] = fact

    def _put(self, facts: dict[str, Fact], item: Json, dropped: Counter[str], *, has_room: bool) -> bool:
        """Whether it is new and was put."""
        uid = _uid(item)
        if uid is None:
            dropped[f"{self.path}: no uid"] += 1
            return False
        fact = self._parse(item)
        if fact is None:
            facts.pop(uid, None)
            return False
        is_new = uid not in self._facts and uid not in facts
        if is_new and not has_room:
            dropped[f"{self.path}: too many objects"] += 1
            self.is_full = True
            return False
        facts[uid] = fact
        self._departed.pop(uid, None)
        return is_new


def watch_resource(
    client: KubernetesClient,
    resource: Resource,
    path: str,
    settings: KubernetesSettings,
    *,
    first_retry_s: float = FIRST_RETRY_S,
    max_objects: int | None = None,
) -> Reflector[object]:
    """Begin to watch all objects of a kind."""

    def parse(item: Json) -> object | None:
        return resource.parse(item, settings)

    watch: Reflector[object] = Reflector(client, path, parse, first_retry_s=first_retry_s, max_objects=max_objects)
    watch.start()
    return watch


def _uid(item: Json) -> str | None:
    return read_text(dig(item, "metadata", "uid"))
