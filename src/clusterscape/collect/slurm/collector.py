"""The Slurm collector: inventory, queue and accounting, each on its own, so that a failure of one stops no other."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from clusterscape import executors
from clusterscape.collect.slurm.answers import NAME, Answer, ask, status_of
from clusterscape.collect.slurm.cli import SlurmCommands
from clusterscape.collect.slurm.doctor import check_source
from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_jobs import ParsedJobs, parse_jobs
from clusterscape.collect.slurm.parse_nodes import Inventory, parse_nodes, parse_partitions, partitions_of_nodes
from clusterscape.collect.slurm.parse_rules import parse_reservations
from clusterscape.collect.slurm.rest import SlurmRest
from clusterscape.collect.slurm.source import SlurmSource
from clusterscape.collect.slurm.windows import AHEAD_S, HistoryWindows
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

FORGET_HOLDER_MS = 86_400_000
PREEMPTION_EVERY_MS = 300_000


class SlurmCollector:
    """Collects from Slurm by its commands or by slurmrestd, as the settings say."""

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
        # Ingest keeps half of them, those that it knows first.
        self._most_workloads = 2 * (limits or SourceLimits()).workloads
        if source is None:
            source = SlurmRest(settings, clock, limits) if settings.mode == "rest" else SlurmCommands(settings, limits)
        self._source = source
        self._inventory = Inventory()
        self._windows = HistoryWindows(settings.history_days)
        self._holders: dict[tuple[WorkloadId, UnixMs], UnixMs] = {}
        self._is_queue_away = False
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
        """Inventory first, since jobs are read in its light, then the queue, then what accounting is due."""
        # All at once: each command waits for many seconds where slurmctld is away.
        nodes = asyncio.create_task(ask(self._source.fetch_nodes()))
        partitions = asyncio.create_task(ask(self._source.fetch_partitions()))
        jobs = asyncio.create_task(ask(self._source.fetch_jobs()))
        parts = asyncio.create_task(self._source.fetch_priorities())
        reservations = asyncio.create_task(ask(self._source.fetch_reservations()))
        try:
            for observation in await self._see_inventory(await nodes, await partitions, now_ms):
                yield observation
            for observation in await self._see_queue(await jobs, now_ms):
                yield observation
            async for observation in _see_priorities(parts, now_ms):
                yield observation
            for observation in await self._see_rules(await reservations, now_ms):
                yield observation
        finally:
            for task in (nodes, partitions, jobs, parts, reservations):
                task.cancel()
            await asyncio.gather(nodes, partitions, jobs, parts, reservations, return_exceptions=True)
        async for observation in self._see_history(now_ms):
            yield observation

    async def check(self) -> list[SourceStatus]:
        """Every part of Slurm: whether it answers, and whether its configuration tells what ClusterScape needs."""
        return await check_source(self._source, self._clock(), has_history=self._settings.history_days > 0)

    async def close(self) -> None:
        """Release connections."""
        await self._source.close()

    async def _see_inventory(self, nodes: Answer, partitions: Answer, at: UnixMs) -> list[Observation]:
        seen: list[Observation] = []
        if nodes.document is not None:
            inventory = self._inventory = await executors.COLLECT.run(parse_nodes, nodes.document)
            dropped = dict(inventory.dropped)
            if partitions.document is None:
                found = partitions_of_nodes(inventory)
            else:
                found, lost = parse_partitions(partitions.document, inventory)
                dropped |= lost
            seen.append(
                InventoryObserved(
                    source=NAME,
                    at=at,
                    nodes=inventory.nodes,
                    partitions=found,
                    units=inventory.units,
                    is_complete=not inventory.dropped,
                    dropped=dropped,
                    host_names=inventory.host_names,
                )
            )
        return [*seen, status_of("nodes", nodes, at), status_of("partitions", partitions, at)]

    async def _see_queue(self, jobs: Answer, at: UnixMs) -> list[Observation]:
        seen: list[Observation] = []
        if self._is_queue_away and jobs.document is not None:
            self._windows.hasten()
        self._is_queue_away = jobs.document is None
        if jobs.document is not None:
            parsed = await executors.COLLECT.run(parse_jobs, jobs.document, self._inventory, at, self._most_workloads)
            self._remember_holders(parsed, at)
            if self._has_unseen_end(parsed):
                self._windows.expect_record(at)
            seen.append(
                QueueObserved(
                    source=NAME,
                    at=at,
                    workloads=parsed.workloads,
                    allocations=parsed.allocations,
                    is_complete=parsed.is_complete,
                    dropped=parsed.dropped,
                )
            )
        return [*seen, status_of("queue", jobs, at)]

    async def _see_rules(self, reservations: Answer, at: UnixMs) -> list[Observation]:
        """Reservations at every poll, preemption rules now and then: who changes those restarts slurmctld."""
        seen: list[Observation] = []
        if reservations.document is not None:
            if self._preemption_at is None or abs(at - self._preemption_at) >= PREEMPTION_EVERY_MS:
                try:
                    self._preemption = await self._source.fetch_preemption()
                    self._preemption_at = at
                except SourceError:
                    pass  # the queue says that Slurm is away; what was last known stays
            found = parse_reservations(reservations.document)
            seen.append(SchedulerRulesObserved(source=NAME, at=at, reservations=found, preemption=self._preemption))
        return [*seen, status_of("reservations", reservations, at)]

    async def _see_history(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """Windows that are due, until one interval has passed: a long past is read over several polls."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.interval_s
        answer: Answer | None = None
        while (window := self._windows.next_window(now_ms)) is not None and loop.time() < until:
            answer = await ask(self._source.fetch_history(window[0], window[1] + AHEAD_S))
            if answer.document is None:
                self._windows.failed(now_ms)
                continue
            self._windows.succeeded(window)
            parsed = await executors.COLLECT.run(
                parse_history, answer.document, self._inventory, now_ms, without_allocations=frozenset(self._holders)
            )
            if parsed.workloads or parsed.dropped:
                yield HistoryObserved(
                    source=NAME,
                    at=now_ms,
                    workloads=parsed.workloads,
                    allocations=parsed.allocations,
                    dropped=parsed.dropped,
                )
        if answer is not None:
            yield status_of("accounting", answer, now_ms)

    def _has_unseen_end(self, parsed: ParsedJobs) -> bool:
        """Whether an execution of the last queue is over without an end in this one: requeued, preempted or removed."""
        workloads = {workload.id: workload for workload in parsed.workloads}
        before = self._running
        self._running = {
            workload.id: workload.started_at
            for workload in parsed.workloads
            if workload.state in (WorkloadState.RUNNING, WorkloadState.SUSPENDED)
        }
        gone = before.items() - self._running.items()
        return any(
            job not in workloads or workloads[job].state.is_active or workloads[job].started_at != started_at
            for job, started_at in gone
        )

    def _remember_holders(self, parsed: ParsedJobs, now_ms: UnixMs) -> None:
        """Whose units the queue told: accounting, which knows only whole nodes, is not heard on them."""
        self._holders.update(((held.workload, held.from_at), now_ms) for held in parsed.allocations)
        forgotten = [key for key, seen_ms in self._holders.items() if now_ms - seen_ms > FORGET_HOLDER_MS]
        for key in forgotten:
            del self._holders[key]


async def _see_priorities(
    parts: Awaitable[Mapping[str, Mapping[str, int]] | None], at: UnixMs
) -> AsyncIterator[Observation]:
    """What priorities are made of, where that is told. The queue stands without it, so a failure is no failure of Slurm."""
    try:
        found = await parts
    except SourceError:
        return
    if found is not None:
        yield PrioritiesObserved(source=NAME, at=at, parts=found)
