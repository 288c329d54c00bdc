"""The Slurm collector: reads inventory, queue and accounting independently, so that a failure of one does not stop the others.

Accounting is read in windows: the past once, newest first, then small increments.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from clusterscape import executors
from clusterscape.collect.slurm.cli import SlurmCommands
from clusterscape.collect.slurm.doctor import check_source
from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_jobs import ParsedJobs, parse_jobs
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, parse_nodes, parse_partitions, partitions_of_nodes
from clusterscape.collect.slurm.parse_rules import parse_reservations
from clusterscape.collect.slurm.rest import SlurmRest
from clusterscape.collect.slurm.source import NAME, SlurmResponse, SlurmSource, fetch_timed, status_of
from clusterscape.errors import SourceError
from clusterscape.model import (
    HistoryObserved,
    InventoryObserved,
    Observation,
    PreemptionRules,
    PrioritiesObserved,
    QueueObserved,
    SchedulerRulesObserved,
    SourceStatus,
    UnixMs,
    WorkloadId,
    WorkloadState,
)
from clusterscape.settings import SlurmSettings
from clusterscape.settings.limits import SourceLimits

WINDOW_S = 6 * 3600
"""A day of a large cluster's accounting would be hundreds of megabytes of JSON."""

INCREMENT_S = 300
OVERLAP_S = 900
"""Accounting may be late: while slurmdbd is down, slurmctld queues records and sends them later."""

AHEAD_S = 60
"""Added to the end of a window, for jobs of the current second and for a controller whose clock is ahead."""

RETRY_S = 60

SETTLE_S = 10
"""Delay after an end that the queue did not show: slurmctld sends its record to slurmdbd a little later."""

MIN_INCREMENT_S = 60
"""Minimum time between two increments, however many jobs are requeued."""

Window = tuple[int, int]
"""[start, end) in Unix seconds."""


class HistoryWindows:
    """Schedules the windows of accounting to read; a failed window is retried after RETRY_S."""

    def __init__(self, history_days: float) -> None:
        self._history_s = round(history_days * 86_400)
        self._backlog: list[Window] | None = None if self._history_s else []
        self._read_until_s = 0
        self._not_before_s = 0
        self._is_urgent = False
        self._due_s: int | None = None

    def request_increment(self) -> None:
        """Read the next increment now: the queue was unavailable, and only accounting has the jobs that ended meanwhile."""
        self._is_urgent, self._not_before_s = True, 0

    def expect_record(self, now_ms: UnixMs) -> None:
        """Read the next increment soon: an execution ended whose end only accounting has. Waits until its record may exist."""
        if self._due_s is None:
            self._due_s = max(now_ms // 1000 + SETTLE_S, self._read_until_s + MIN_INCREMENT_S)

    def next_window(self, now_ms: UnixMs) -> Window | None:
        """The window to read now, or None."""
        now_s = now_ms // 1000
        # If the clock went back, these times are in the future.
        if now_s < self._read_until_s - OVERLAP_S:
            self._read_until_s = now_s
        if now_s < self._not_before_s - RETRY_S:
            self._not_before_s = 0
        if self._due_s is not None and now_s < self._due_s - MIN_INCREMENT_S:
            self._due_s = now_s
        if not self._history_s or now_s < self._not_before_s:
            return None
        if self._backlog is None:
            self._backlog = _split(now_s - self._history_s, now_s)
            self._read_until_s = now_s
        is_due = self._due_s is not None and now_s >= self._due_s
        if self._is_urgent or is_due or now_s - self._read_until_s >= INCREMENT_S:
            return (self._read_until_s - OVERLAP_S, now_s)
        return self._backlog[-1] if self._backlog else None

    def succeeded(self, window: Window) -> None:
        """Report that the window was read."""
        if self._backlog and window == self._backlog[-1]:
            self._backlog.pop()
        else:
            self._read_until_s = max(self._read_until_s, window[1])
            self._is_urgent = False
            if self._due_s is not None and window[1] >= self._due_s:
                self._due_s = None

    def failed(self, now_ms: UnixMs) -> None:
        """Report that the window could not be read."""
        self._not_before_s = now_ms // 1000 + RETRY_S


def _split(start_s: int, end_s: int) -> list[Window]:
    """Windows from start to end, oldest first, because they are popped from the end."""
    edges = [*range(end_s, start_s, -WINDOW_S), start_s]
    return [(earlier, later) for later, earlier in itertools.pairwise(edges)][::-1]


HOLDER_TTL_MS = 86_400_000
PREEMPTION_EVERY_MS = 300_000


class SlurmCollector:
    """Collects from Slurm by its commands or by slurmrestd, according to the settings."""

    def __init__(
        self,
        settings: SlurmSettings,
        clock: Callable[[], UnixMs],
        *,
        source: SlurmSource | None = None,
        limits: SourceLimits | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        # Ingest keeps at most half of them; existing workloads take precedence.
        self._max_workloads = 2 * (limits or SourceLimits()).workloads
        if source is None:
            source = SlurmRest(settings, clock, limits) if settings.mode == "rest" else SlurmCommands(settings, limits)
        self._source = source
        self._inventory = SlurmInventory()
        self._windows = HistoryWindows(settings.history_days)
        self._holders: dict[tuple[WorkloadId, UnixMs], UnixMs] = {}
        self._is_queue_unavailable = False
        self._running: dict[WorkloadId, UnixMs | None] = {}  # starts of the executions that the last queue showed
        self._preemption: PreemptionRules | None = None
        self._preemption_at: UnixMs | None = None

    @property
    def name(self) -> str:
        """``slurm``."""
        return NAME

    @property
    def interval_s(self) -> float:
        """Seconds between polls."""
        return self._settings.interval_s

    async def poll(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """Yield inventory first, because jobs are interpreted with it, then the queue, then accounting if it is due."""
        # Concurrently: each command waits for many seconds if slurmctld is down.
        nodes = asyncio.create_task(fetch_timed(self._source.fetch_nodes()))
        partitions = asyncio.create_task(fetch_timed(self._source.fetch_partitions()))
        jobs = asyncio.create_task(fetch_timed(self._source.fetch_jobs()))
        priorities = asyncio.create_task(self._source.fetch_priorities())
        reservations = asyncio.create_task(fetch_timed(self._source.fetch_reservations()))
        try:
            for observation in await self._observe_inventory(await nodes, await partitions, now_ms):
                yield observation
            for observation in await self._observe_queue(await jobs, now_ms):
                yield observation
            async for observation in _observe_priorities(priorities, now_ms):
                yield observation
            for observation in await self._observe_rules(await reservations, now_ms):
                yield observation
        finally:
            for task in (nodes, partitions, jobs, priorities, reservations):
                task.cancel()
            await asyncio.gather(nodes, partitions, jobs, priorities, reservations, return_exceptions=True)
        async for observation in self._observe_history(now_ms):
            yield observation

    async def check(self) -> list[SourceStatus]:
        """Check every part of Slurm: whether it responds, and whether its configuration has what ClusterScape needs."""
        return await check_source(self._source, self._clock(), has_history=self._settings.history_days > 0)

    async def close(self) -> None:
        """Release connections."""
        await self._source.close()

    async def _observe_inventory(
        self, nodes: SlurmResponse, partitions: SlurmResponse, at: UnixMs
    ) -> list[Observation]:
        observations: list[Observation] = []
        if nodes.document is not None:
            inventory = self._inventory = await executors.COLLECT.run(parse_nodes, nodes.document)
            dropped = dict(inventory.dropped)
            if partitions.document is None:
                parsed = partitions_of_nodes(inventory)
            else:
                parsed, dropped_partitions = parse_partitions(partitions.document, inventory)
                dropped |= dropped_partitions
            observations.append(
                InventoryObserved(
                    source=NAME,
                    at=at,
                    nodes=inventory.nodes,
                    partitions=parsed,
                    units=inventory.units,
                    is_complete=not inventory.dropped,
                    dropped=dropped,
                    host_names=inventory.host_names,
                )
            )
        return [*observations, status_of("nodes", nodes, at), status_of("partitions", partitions, at)]

    async def _observe_queue(self, jobs: SlurmResponse, at: UnixMs) -> list[Observation]:
        observations: list[Observation] = []
        if self._is_queue_unavailable and jobs.document is not None:
            self._windows.request_increment()
        self._is_queue_unavailable = jobs.document is None
        if jobs.document is not None:
            parsed = await executors.COLLECT.run(parse_jobs, jobs.document, self._inventory, at, self._max_workloads)
            self._remember_holders(parsed, at)
            if self._has_unseen_end(parsed):
                self._windows.expect_record(at)
            observations.append(
                QueueObserved(
                    source=NAME,
                    at=at,
                    workloads=parsed.workloads,
                    allocations=parsed.allocations,
                    is_complete=parsed.is_complete,
                    dropped=parsed.dropped,
                )
            )
        return [*observations, status_of("queue", jobs, at)]

    async def _observe_rules(self, reservations: SlurmResponse, at: UnixMs) -> list[Observation]:
        """Reservations at every poll, preemption rules less often: changing those requires a restart of slurmctld."""
        observations: list[Observation] = []
        if reservations.document is not None:
            if self._preemption_at is None or abs(at - self._preemption_at) >= PREEMPTION_EVERY_MS:
                try:
                    self._preemption = await self._source.fetch_preemption()
                    self._preemption_at = at
                except SourceError:
                    pass  # the status of the queue reports the failure; the last rules stay in use
            parsed = parse_reservations(reservations.document)
            observations.append(
                SchedulerRulesObserved(source=NAME, at=at, reservations=parsed, preemption=self._preemption)
            )
        return [*observations, status_of("reservations", reservations, at)]

    async def _observe_history(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """Read windows that are due, for at most one interval: a long history is read over several polls."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.interval_s
        response: SlurmResponse | None = None
        while (window := self._windows.next_window(now_ms)) is not None and loop.time() < until:
            response = await fetch_timed(self._source.fetch_history(window[0], window[1] + AHEAD_S))
            if response.document is None:
                self._windows.failed(now_ms)
                continue
            self._windows.succeeded(window)
            parsed = await executors.COLLECT.run(
                parse_history, response.document, self._inventory, now_ms, without_allocations=frozenset(self._holders)
            )
            if parsed.workloads or parsed.dropped:
                yield HistoryObserved(
                    source=NAME,
                    at=now_ms,
                    workloads=parsed.workloads,
                    allocations=parsed.allocations,
                    dropped=parsed.dropped,
                    usages=parsed.usages,
                )
        if response is not None:
            yield status_of("accounting", response, now_ms)

    def _has_unseen_end(self, parsed: ParsedJobs) -> bool:
        """Whether an execution of the last queue disappeared without an end in this one: requeued, preempted or removed."""
        workloads = {workload.id: workload for workload in parsed.workloads}
        previous = self._running
        self._running = {
            workload.id: workload.started_at
            for workload in parsed.workloads
            if workload.state in (WorkloadState.RUNNING, WorkloadState.SUSPENDED)
        }
        disappeared = previous.items() - self._running.items()
        return any(
            job not in workloads or workloads[job].state.is_active or workloads[job].started_at != started_at
            for job, started_at in disappeared
        )

    def _remember_holders(self, parsed: ParsedJobs, now_ms: UnixMs) -> None:
        """Remember executions whose units the queue gave: for them accounting, which knows only whole nodes, is ignored."""
        self._holders.update(((allocation.workload, allocation.from_at), now_ms) for allocation in parsed.allocations)
        expired = [key for key, seen_ms in self._holders.items() if now_ms - seen_ms > HOLDER_TTL_MS]
        for key in expired:
            del self._holders[key]


async def _observe_priorities(
    priorities: Awaitable[Mapping[str, Mapping[str, int]] | None], at: UnixMs
) -> AsyncIterator[Observation]:
    """Priority factors, if available. They are optional, so a failure is not reported as a failure of Slurm."""
    try:
        factors = await priorities
    except SourceError:
        return
    if factors is not None:
        yield PrioritiesObserved(source=NAME, at=at, parts=factors)
