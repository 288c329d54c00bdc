"""Several processes over the same PostgreSQL: leader election of the collector, and following changes of the other processes.

Without PostgreSQL there is only one process, and this is not used.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from clusterscape import executors
from clusterscape.collect.contract import Collector
from clusterscape.collect.schedule import run_collectors
from clusterscape.collect.targets import Shard, parse_shard
from clusterscape.errors import ClusterScapeError, ConfigError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import Observation, UnixMs
from clusterscape.settings import Settings
from clusterscape.store.changes import Changes, Versions
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.advisory_locks import Fence, Leadership
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.mirror import MirroredRecordStore
from clusterscape.store.records.relay import ChangeRelay
from clusterscape.supervision import BackgroundLoops, cancel_and_wait
from clusterscape.watch.watcher import Watch

log = logging.getLogger(__name__)

CHECK_LOCK_EVERY_S = 1.0
"""How often a standby tries to acquire the lock, and the collector checks that it still holds it."""
OVERLAP_MS = 60_000
"""Samples of other processes are read again this far back: servers return some of them late. Duplicates count once."""
READ_EVERY_S = 5.0


def is_replicated(settings: Settings) -> bool:
    """Whether other processes may work over the same records."""
    return settings.storage.records.startswith("postgresql")


def check_roles(settings: Settings) -> None:
    """Raise ConfigError if this role or shard requires stores that several processes can share."""
    shard = parse_shard(settings.collect.shard)
    if settings.server.role == "all" and shard.count == 1:
        return
    subject = f"role {settings.server.role}" if settings.server.role != "all" else f"shard {shard}"
    if not is_replicated(settings) or settings.storage.metrics == "embedded":
        raise ConfigError(
            f"{subject} requires stores that several processes can share",
            hint="Set storage.records to PostgreSQL and storage.metrics to a server; `clusterscape migrate` moves a site.",
        )


class Replica:
    """One of several processes. ``collects`` and ``decides`` are thread-safe."""

    def __init__(self, settings: Settings, fence: Fence, loops: BackgroundLoops) -> None:
        self._loops = loops
        self.shard: Shard = parse_shard(settings.collect.shard)
        self.may_collect = settings.server.role != "web"
        self._engine = record_engine(settings.storage)
        self._leadership = Leadership(self._engine, f"collector {self.shard}", fence)
        self._relay: ChangeRelay | None = None

    @property
    def collects(self) -> bool:
        """Whether this process is the collector of its shard."""
        return self._leadership.is_held

    @property
    def decides(self) -> bool:
        """Whether this process stores violations, promises and forecasts and sends alerts: only one process does."""
        return self._leadership.is_held and self.shard.is_first

    def join(self, changes: Changes, on_remote: Callable[[frozenset[str], Versions], None]) -> None:
        """Start exchanging changes with the other processes."""
        self._relay = ChangeRelay(self._engine, changes, on_remote, collects=lambda: self.collects, loops=self._loops)
        self._relay.start()

    def leave(self) -> None:
        """Stop exchanging changes."""
        if self._relay is not None:
            self._relay.close()

    def close(self) -> None:
        """Release the lock and close all connections."""
        self.leave()
        self._leadership.release()
        self._engine.dispose()

    async def collect_when_elected(
        self,
        build: Callable[[], Sequence[Collector]],
        sink: Callable[[Observation], Awaitable[None]],
        clock: Callable[[], UnixMs],
        *,
        take_over: Callable[[], None],
        writer: ThreadPoolExecutor,
    ) -> None:
        """Collect while this process holds its shard's lock, else wait for the lock; until cancelled."""
        loop = asyncio.get_running_loop()
        logged: str | None = None
        while True:
            if not await executors.UPKEEP.run(self._leadership.try_acquire):
                status = (
                    self._leadership.trouble or f"another process collects shard {self.shard}; this one is on standby"
                )
                if status != logged:
                    log.log(logging.WARNING if self._leadership.trouble else logging.INFO, "%s", status)
                    logged = status
                await asyncio.sleep(CHECK_LOCK_EVERY_S)
                continue
            logged = None
            try:
                await loop.run_in_executor(writer, take_over)
                log.info("this process collects shard %s", self.shard)
                await self._collect(build, sink, clock)
                log.warning("this process stopped collecting: it lost its connection to PostgreSQL")
            except ClusterScapeError as error:
                log.warning("this process cannot collect: %s %s", error.message, error.hint or "")
                await asyncio.sleep(CHECK_LOCK_EVERY_S)
            finally:
                # Wait for the writer, so that pending writes happen before the lock is released.
                with suppress(RuntimeError):
                    await asyncio.shield(loop.run_in_executor(writer, lambda: None))
                await executors.UPKEEP.run(self._leadership.release)

    async def _collect(
        self,
        build: Callable[[], Sequence[Collector]],
        sink: Callable[[Observation], Awaitable[None]],
        clock: Callable[[], UnixMs],
    ) -> None:
        collecting = asyncio.create_task(run_collectors(build(), sink, clock, self._loops), name="collect")
        checking: asyncio.Future[bool] | None = None
        try:
            while True:
                checking = asyncio.ensure_future(executors.UPKEEP.run(self._leadership.wait, CHECK_LOCK_EVERY_S))
                if not await asyncio.shield(checking):
                    return
        finally:
            await cancel_and_wait(collecting)
            with suppress(asyncio.CancelledError):
                await collecting
            if checking is not None and not checking.done():  # the lock's connection is in use until then
                await checking


class Follower:
    """Applies changes of other processes to the mirror, the ledger, the statistics and the rules of this process."""

    def __init__(
        self,
        *,
        records: MirroredRecordStore,
        metrics: MetricStore,
        ingest: Ingest,
        watch: Watch,
        writer: ThreadPoolExecutor,
        clock: Callable[[], UnixMs],
        loops: BackgroundLoops,
    ) -> None:
        self._records = records
        self._metrics = metrics
        self._ingest = ingest
        self._watch = watch
        self._writer = writer
        self._clock = clock
        self._read_at = 0.0
        self._loop = loops.loop(
            "follower",
            log,
            fails="reading changes of other processes failed",
            works="reading changes of other processes works again",
        )

    def apply(self, changed: frozenset[str], versions: Versions) -> None:
        """Read what changed, so that queries are at least as new as ``versions``."""
        with self._loop:
            if changed & {"inventory", "rules"}:
                self._records.refresh()
            if "runs" in changed:
                self._records.refresh_runs()
            if "inventory" in changed:
                self._on_writer(self._ingest.absorb)
            if changed & {"tick", "history"}:
                self._read_samples(versions.newest_sample_at)
            if "rules" in changed:
                self._watch.on_rules_elsewhere()

    def _read_samples(self, newest_at: UnixMs | None) -> None:
        metrics = self._watch.watched_metrics
        units = [unit.id for unit in self._records.units()]
        if not metrics or not units or newest_at is None or time.monotonic() - self._read_at < READ_EVERY_S:
            return
        from clusterscape.watch.catching_up import read_batch  # imports numba

        self._read_at = time.monotonic()
        batch = read_batch(self._metrics, metrics, units, newest_at - OVERLAP_MS, newest_at + 1)
        if len(batch):
            self._on_writer(lambda: self._watch.on_samples(batch))

    def _on_writer(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the writer is shut down
            self._writer.submit(work).result()


class QueueUpkeep:
    """Updates promises and forecasts of the queue in the deciding process; reads them in the others."""

    def __init__(
        self,
        *,
        decides: Callable[[], bool],
        update: Callable[[], None],
        follow: Callable[[], None],
        loops: BackgroundLoops,
    ) -> None:
        self._loop = loops.loop("queue", log, fails="updating the queue failed", works="updating the queue works again")
        self._decides = decides
        self._update = update
        self._follow = follow
        self._stopped = threading.Event()

    def run(self, every_s: float) -> None:
        """Run every ``every_s`` until ``stop``."""
        while not self._stopped.wait(every_s):
            with self._loop:
                (self._update if self._decides() else self._follow)()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()
