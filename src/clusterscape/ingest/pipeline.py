"""Takes in what collectors observe and writes it: the only writer of the stores.

``accept`` is called by one thread at a time. Nothing a source says makes it raise; what cannot be stored is counted.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from clusterscape.errors import StoreError
from clusterscape.ingest.drops import DropCount, Drops
from clusterscape.ingest.ledger import InventoryChange, Ledger, QueueChange
from clusterscape.ingest.normalize import Normalizer
from clusterscape.model import (
    Allocation,
    HistoryObserved,
    InventoryObserved,
    NodeTurn,
    Observation,
    PrioritiesObserved,
    QueueObserved,
    SampleBatch,
    ScrapeObserved,
    SourceStatus,
    Unit,
    UnixMs,
    Workload,
)
from clusterscape.model.observations import PRIORITY_PARTS
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore

log = logging.getLogger(__name__)

FORGET_SOURCE_AFTER_MS = 30 * 60_000
"""Far more than the longest pause between two attempts at a dead source."""

PAST_AFTER_MS = 2 * 60_000
"""Samples of a tracked run that are older than this were spooled while no server could be reached."""


class IngestListener(Protocol):
    """Who is told what was stored, on the writer's thread, after the store took it."""

    def on_samples(self, batch: SampleBatch) -> None:
        """A scrape."""
        ...

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        """A past that was not scraped."""
        ...

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Allocations began or ended; these are all that are open."""
        ...

    def on_units(self, units: Iterable[Unit]) -> None:
        """Units are new or changed."""
        ...


class Ingest:
    """The one way into the stores."""

    def __init__(
        self,
        metrics: MetricStore,
        records: RecordStore,
        changes: Changes,
        *,
        clock: Callable[[], UnixMs],
        listeners: Sequence[IngestListener] = (),
        is_alone: bool = True,
    ) -> None:
        """``is_alone``: no other process collects into these stores; else ``absorb`` is called after others wrote."""
        self.drops = Drops()
        self.samples_total = 0
        self.last_scrape_at: UnixMs | None = None
        self._metrics = metrics
        self._records = records
        self._changes = changes
        self._clock = clock
        self._listeners = listeners
        self._normalizer = Normalizer(self.drops)
        self._statuses: dict[str, SourceStatus] = {}
        self._looked_for_silent_at = UnixMs(0)
        self._is_alone = is_alone
        if is_alone:
            # The sources of an earlier run may not be configured any more; those that are report at once.
            records.remove_sources([status.source for status in records.sources()])
        self._ledger = self._load_ledger()
        self._must_reload = False

    @property
    def statuses(self) -> Sequence[SourceStatus]:
        """The last known state of every source; where another process collects, what it wrote."""
        return tuple(self._statuses.values()) or tuple(self._records.sources())

    def drop_table(self) -> list[DropCount]:
        """What was not stored, or stored though odd, by kind and reason."""
        return self.drops.table()

    def note_run(self) -> None:
        """What is known of a tracked run was stored."""
        self._changes.bump_runs()

    @property
    def conflicts(self) -> int:
        """Units whose holder two sources name differently."""
        return self._ledger.conflicts

    def absorb(self) -> None:
        """Take up what other processes wrote; ``records`` shows it already. By the thread that calls ``accept``."""
        records = self._records
        self._ledger.absorb(
            nodes=records.nodes(),
            partitions=records.partitions(),
            units=records.units(),
            workloads=records.active_workloads(),
            allocations=records.open_allocations(),
        )
        self._tell(lambda listener: listener.on_units(records.units()))
        self._tell_allocations(self._clock())

    def take_over(self, *, forgets_sources: bool) -> None:
        """Begin to collect where another process did. ``forgets_sources``: nobody else has any."""
        self._statuses.clear()
        if forgets_sources:
            self._records.remove_sources([status.source for status in self._records.sources()])
        self.absorb()

    def accept(self, seen: Observation) -> None:
        """Store one observation. A full or failing store pauses ingest, says so once, and goes on by itself later."""
        try:
            if self._must_reload:
                self._ledger, self._must_reload = self._load_ledger(), False
                self._tell_allocations(self._clock())
            self._store(seen)
        except StoreError as error:
            # The ledger may believe what was not written; the store tells what is true.
            self._must_reload = True
            self._pause(error)
        else:
            if self._changes.versions.paused is not None:
                log.warning("the store takes data again")
                self._changes.pause(None)

    def accept_history(
        self,
        batches: Sequence[SampleBatch],
        workloads: Sequence[Workload],
        allocations: Sequence[Allocation],
        node_turns: Sequence[NodeTurn] = (),
    ) -> None:
        """Store a past that was not scraped (the demo's, an import); raises what the store raises."""
        now = self._clock()
        if node_turns:
            self._records.write_node_states(node_turns)
        if workloads or allocations:
            change = self._ledger.see_history(
                HistoryObserved(source="history", at=now, workloads=workloads, allocations=allocations)
            )
            self._write_queue(change, now)
        if batches:
            self._metrics.append_history(batches)
            self.samples_total += sum(map(len, batches))
            self._tell(lambda listener: listener.on_history(batches))
            self._changes.bump_history(now)
            self._changes.bump_tick(UnixMs(max(int(batch.time_ms.max()) for batch in batches if len(batch))))

    def accept_samples(self, batch: SampleBatch) -> None:
        """Store canonical samples that need no normalizing (a tracked run's); raises what the store raises."""
        if not len(batch):
            return
        self._metrics.append(batch)
        self.samples_total += len(batch)
        is_past = int(batch.time_ms.min()) < self._clock() - PAST_AFTER_MS
        # Statistics of lives that old samples fall into are made anew, and rules judged again: dear, and rare.
        self._tell(lambda listener: listener.on_history([batch]) if is_past else listener.on_samples(batch))
        if is_past:
            self._changes.bump_history(self._clock())
        self._changes.bump_tick(UnixMs(int(batch.time_ms.max())))

    def _load_ledger(self) -> Ledger:
        records = self._records
        return Ledger(
            nodes=records.nodes(),
            partitions=records.partitions(),
            units=records.units(),
            workloads=records.active_workloads(),
            allocations=records.open_allocations(),
            expires_unclaimed=self._is_alone,
        )

    def _pause(self, error: StoreError) -> None:
        why = f"{error.message} {error.hint or ''}".strip()
        if self._changes.versions.paused != why:
            log.error("ingest pauses: %s", why)
            self._changes.pause(why)

    def _store(self, seen: Observation) -> None:
        match seen:
            case ScrapeObserved():
                self._store_scrape(seen)
            case InventoryObserved():
                self.drops.add_all(seen.source, seen.dropped)
                self._write_inventory(self._ledger.see_inventory(seen), seen.at)
            case QueueObserved():
                self.drops.add_all(seen.source, seen.dropped)
                self._write_queue(self._ledger.see_queue(seen), seen.at)
            case HistoryObserved():
                self.drops.add_all(seen.source, seen.dropped)
                self._write_queue(self._ledger.see_history(seen), seen.at)
            case PrioritiesObserved():
                # Once a poll, all at once: they change with every second of age, and nobody asks for former ones.
                body = {"parts": {job: dict(parts) for job, parts in seen.parts.items()}}
                self._records.write_document(PRIORITY_PARTS, seen.source, body, at_ms=seen.at)
            case SourceStatus():
                self._note_statuses([seen])

    def _store_scrape(self, seen: ScrapeObserved) -> None:
        self._note_statuses(seen.statuses)
        if not seen.scrapes:
            return
        kind = seen.statuses[0].kind if seen.statuses else "exporter"
        normalized = self._normalizer.normalize(seen.scrapes, now_ms=self._clock(), kind=kind)
        if normalized.facts is not None:
            facts = normalized.facts
            self._write_inventory(self._ledger.see_hardware(facts, source="exporters", at=seen.at), seen.at)
            self._write_queue(self._ledger.see_labels(facts, seen.at), seen.at)
        if len(normalized.batch):
            self._metrics.append(normalized.batch)
            self.samples_total += len(normalized.batch)
            self.last_scrape_at = seen.at
            self._tell(lambda listener: listener.on_samples(normalized.batch))
            self._changes.bump_tick(UnixMs(int(normalized.batch.time_ms.max())))

    def _write_inventory(self, change: InventoryChange, at: UnixMs) -> None:
        if not change:
            return
        self._records.write_inventory(nodes=change.nodes, partitions=change.partitions, units=change.units, at_ms=at)
        if change.removed:
            self._records.remove_nodes(change.removed)
        if change.removed_partitions:
            self._records.remove_partitions(change.removed_partitions)
        if change.removed_units:
            self._records.remove_units(change.removed_units)
        if change.units:
            self._tell(lambda listener: listener.on_units(change.units))
        self._changes.bump_inventory()

    def _write_queue(self, change: QueueChange, at: UnixMs) -> None:
        if not change:
            return
        if change.workloads:
            self._records.write_workloads(change.workloads, at_ms=at)
        if change.allocations:
            self._records.write_allocations(change.allocations)
            self._tell_allocations(at)
        self._changes.bump_inventory()

    def _tell_allocations(self, at: UnixMs) -> None:
        self._tell(lambda listener: listener.on_allocations(self._ledger.open.values(), at))

    def _tell(self, tell: Callable[[IngestListener], None]) -> None:
        """What a listener gets wrong is its own affair: storing goes on."""
        for listener in self._listeners:
            try:
                tell(listener)
            except Exception:
                log.exception("%s failed on what was stored", type(listener).__name__)

    def _note_statuses(self, statuses: Sequence[SourceStatus]) -> None:
        """Keep every state, but write and log only where a source turned well or ill."""
        turned, recovered = [], []
        for status in statuses:
            before = self._statuses.get(status.source)
            self._statuses[status.source] = status
            if before is None or before.is_ok != status.is_ok or before.message != status.message:
                turned.append(status)
                if before is not None and not before.is_ok and status.is_ok:
                    recovered.append(status)
        _log_turns([status for status in turned if not status.is_ok], recovered)
        gone = self._find_silent(statuses)
        if gone:
            self._records.remove_sources(gone)
        if turned:
            self._records.write_sources(turned)
        if turned or gone:
            # A silent exporter makes its node's units stale, which the picture of the cluster shows.
            self._changes.bump_inventory()

    def _find_silent(self, statuses: Sequence[SourceStatus]) -> list[str]:
        """Sources that nobody has reported on for long: targets taken out of the configuration. Looked for once a minute."""
        now = max((status.at for status in statuses), default=UnixMs(0))
        if now - self._looked_for_silent_at < 60_000:
            return []
        self._looked_for_silent_at = now
        gone = [name for name, status in self._statuses.items() if now - status.at > FORGET_SOURCE_AFTER_MS]
        for name in gone:
            del self._statuses[name]
        return gone


LOGGED_ONE_BY_ONE = 3


def _log_turns(failed: Sequence[SourceStatus], recovered: Sequence[SourceStatus]) -> None:
    """One line for each, or one for all where many turn at once, as when a switch fails."""
    if len(failed) > LOGGED_ONE_BY_ONE:
        log.warning("%d sources fail: %s; the first: %s", len(failed), _name_some(failed), failed[0].message)
    else:
        for status in failed:
            log.warning("%s: %s. %s", status.source, status.message, status.hint or "")
    if len(recovered) > LOGGED_ONE_BY_ONE:
        log.warning("%d sources answer again: %s", len(recovered), _name_some(recovered))
    else:
        for status in recovered:
            log.warning("%s answers again", status.source)


def _name_some(statuses: Sequence[SourceStatus]) -> str:
    names = [status.node or status.source for status in statuses]
    more = f" and {len(names) - LOGGED_ONE_BY_ONE} more" if len(names) > LOGGED_ONE_BY_ONE else ""
    return ", ".join(names[:LOGGED_ONE_BY_ONE]) + more
