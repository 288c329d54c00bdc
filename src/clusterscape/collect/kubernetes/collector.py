"""The Kubernetes collector: watches every kind that the server has, and yields their combined state at each poll."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

from clusterscape import executors
from clusterscape.collect.kubernetes.access import open_access
from clusterscape.collect.kubernetes.client import KubernetesClient
from clusterscape.collect.kubernetes.doctor import check_cluster
from clusterscape.collect.kubernetes.grouping import NAME
from clusterscape.collect.kubernetes.reading import read_snapshot
from clusterscape.collect.kubernetes.reflector import FIRST_RETRY_S, Reflector, watch_resource
from clusterscape.collect.kubernetes.resources import RESOURCES, find_paths
from clusterscape.collect.kubernetes.snapshot import Snapshot, take_snapshot
from clusterscape.collect.kubernetes.statuses import part_statuses, skew_status, source_status
from clusterscape.errors import SourceError
from clusterscape.model import InventoryObserved, Observation, QueueObserved, SourceStatus, UnixMs
from clusterscape.settings import KubernetesSettings
from clusterscape.settings.limits import SourceLimits

DISCOVER_EVERY_MS = 300_000
"""A queueing system may be installed at any time."""


class KubernetesCollector:
    """Collects from one API server. Watches start with the first poll."""

    def __init__(
        self,
        settings: KubernetesSettings,
        clock: Callable[[], UnixMs],
        *,
        first_retry_s: float = FIRST_RETRY_S,
        limits: SourceLimits | None = None,
    ) -> None:
        self._limits = limits or SourceLimits()
        self._settings = settings
        self._clock = clock
        self._first_retry_s = first_retry_s
        self._client: KubernetesClient | None = None
        self._watches: dict[str, Reflector[object]] = {}
        self._discovered_at: UnixMs | None = None

    @property
    def name(self) -> str:
        """``kubernetes``."""
        return NAME

    @property
    def interval_s(self) -> float:
        """Seconds between polls."""
        return self._settings.interval_s

    async def poll(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """Yield nodes and queues, then workloads, then the status of each part. Stale kinds are left out."""
        try:
            await self._discover(now_ms)
        except SourceError as error:
            yield source_status("API server", now_ms, error)
            if not self._watches:
                return
        else:
            yield source_status("API server", now_ms, None)
        watches = self._watches
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                await asyncio.gather(*(watch.settle() for watch in watches.values()))
        except TimeoutError:
            pass  # reported in the statuses below
        departed = [watch.take_departed() for watch in watches.values()]
        snapshot = take_snapshot(((key, watch.facts) for key, watch in watches.items()), departed, now_ms=now_ms)
        for observation in await executors.COLLECT.run(self._observe, snapshot, now_ms):
            yield observation
        for status in part_statuses(watches, snapshot, self._settings, now_ms):
            yield status
        if self._client is not None and self._client.skew_ms is not None:
            yield skew_status(self._client.skew_ms, now_ms)

    async def check(self) -> list[SourceStatus]:
        """For ``clusterscape doctor``: every kind once, without watching."""
        now = self._clock()
        try:
            client = self._open()
            paths = await find_paths(client)
        except SourceError as error:
            return [source_status("API server", now, error)]
        return await check_cluster(client, paths, self._settings, now)

    async def close(self) -> None:
        """End the watches and close the connections."""
        await asyncio.gather(*(watch.stop() for watch in self._watches.values()))
        self._watches = {}
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _open(self) -> KubernetesClient:
        if self._client is None:
            self._client = KubernetesClient(
                open_access(self._settings), self._settings.timeout_s, self._clock, limits=self._limits
            )
        return self._client

    async def _discover(self, now_ms: UnixMs) -> None:
        """Watch the kinds that the server has; repeated regularly, because kinds can be installed or removed."""
        if self._discovered_at is not None and now_ms - self._discovered_at < DISCOVER_EVERY_MS:
            return
        client = self._open()
        paths = await find_paths(client)
        for resource in RESOURCES:
            watch, path = self._watches.get(resource.key), paths.get(resource.key)
            if watch is not None and watch.path != path:
                await watch.stop()
                del self._watches[resource.key]
            if path is not None and resource.key not in self._watches:
                self._watches[resource.key] = watch_resource(
                    client,
                    resource,
                    path,
                    self._settings,
                    first_retry_s=self._first_retry_s,
                    max_objects=self._limits.objects,
                )
        self._discovered_at = now_ms

    def _observe(self, snapshot: Snapshot, now_ms: UnixMs) -> Sequence[Observation]:
        """Stale kinds yield nothing: a server that does not respond is not an empty cluster."""
        observations: list[Observation] = []
        if not self._watches["nodes"].is_fresh:
            return observations
        inventory, queue = read_snapshot(snapshot, self._settings, now_ms)
        dropped: Counter[str] = Counter(inventory.dropped)
        for watch in self._watches.values():
            dropped += watch.dropped
        # A stale kind may hide workloads and queues that still exist.
        is_complete = all(watch.is_fresh for watch in self._watches.values() if watch.has_listed)
        observations.append(
            InventoryObserved(
                source=NAME,
                at=now_ms,
                nodes=inventory.nodes,
                partitions=inventory.partitions,
                units=inventory.units,
                is_complete=is_complete,
                dropped=dict(dropped),
                host_names=inventory.host_names,
            )
        )
        if self._watches["pods"].is_fresh:
            observations.append(
                QueueObserved(
                    source=NAME,
                    at=now_ms,
                    workloads=queue.workloads,
                    allocations=queue.allocations,
                    is_complete=is_complete,
                    aliases=queue.aliases,
                )
            )
        return observations
