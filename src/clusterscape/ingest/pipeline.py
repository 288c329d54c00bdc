"""Takes in what collectors observe and writes it: the only writer of the stores.

``accept`` is called by one thread at a time. Nothing a source says makes it raise; what cannot be stored is counted.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import msgspec

from clusterscape.errors import StoreError
from clusterscape.ingest.drops import DropCount, Drops
from clusterscape.ingest.hardware_state import HardwareState
from clusterscape.ingest.ledger import EXPORTERS, ExporterFacts, InventoryChange, Ledger, QueueChange
from clusterscape.ingest.node_ties import NodeTies
from clusterscape.ingest.normalize import Normalizer
from clusterscape.ingest.source_bounds import SchedulerBounds, add_note
from clusterscape.ingest.tie_records import TieRecords
from clusterscape.model import (
    Allocation,
    HistoryObserved,
    InventoryObserved,
    NodeId,
    NodeTurn,
    Observation,
    PrioritiesObserved,
    QueueObserved,
    SampleBatch,
    SchedulerRulesObserved,
    ScrapeObserved,
    SourceStatus,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
)
from clusterscape.model.observations import PRIORITY_PARTS, SCHEDULER_RULES
from clusterscape.settings.limits import SourceLimits
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore

log = logging.getLogger(__name__)

FORGET_SOURCE_AFTER_MS = 30 * 60_000
"""Far more than the longest pause between two attempts at a dead source."""

UNHEARD_AFTER_MS = 3 * 60_000
"""An exporter that somebody else asks, mostly every 15 to 60 s, counts as silent after so long without a sample."""

PAST_AFTER_MS = 2 * 60_000
"""Samples of a tracked run that are older than this were spooled while no server could be reached."""


RUNS_TOLD_EVERY_MS = 5_000
"""Pages ask again when they are told of a change. What trackers send changes little of what they show, and comes all the time."""


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
        node_names: Mapping[str, str] | None = None,
        shard: str = "1/1",
        limits: SourceLimits | None = None,
    ) -> None:
        """``is_alone``: no other process collects into these stores; else ``absorb`` is called after others wrote.

        ``node_names``: nodes of exporters by address or name, as the settings say; ``shard``: which collector of several this is.
        """
        self.drops = Drops()
        self.samples_total = 0
        self.last_scrape_at: UnixMs | None = None
        self._metrics = metrics
        self._records = records
        self._changes = changes
        self._clock = clock
        self._listeners = listeners
        limits = limits or SourceLimits()
        self._ties = NodeTies(node_names)
        self._tie_records = TieRecords(records, shard)
        self._names_version = (0, 0)
        self._hardware = HardwareState()
        self._normalizer = Normalizer(
            self.drops,
            ties=self._ties,
            uuid_nodes=lambda: self._ledger.uuid_nodes(),
            limits=limits,
            known_units=lambda: self._ledger.units.values(),
        )
        self._bounds = SchedulerBounds(limits)
        self._statuses: dict[str, SourceStatus] = {}
        self._unheard: set[str] = set()
        self._scheduler_rules: dict[str, bytes] = {}  # as last written, by source
        self._looked_for_silent_at = UnixMs(0)
        self._ticked_for_runs_at = self._changed_by_runs_at = 0
        self._is_minor = self._owes_inventory = False
        self._is_alone = is_alone
        if is_alone:
            # The sources of an earlier run may not be configured any more; those that are report at once.
            records.remove_sources([status.source for status in records.sources()])
            self._tie_records.forget_others()
        self._ledger = self._load_ledger()
        self._ties.learn_former(self._tie_records.read_former_ties())
        self._learn_nodes(self._tie_records.read_host_names())
        self._must_reload = False

    @property
    def statuses(self) -> Sequence[SourceStatus]:
        """The last known state of every source; where another process collects, what it wrote."""
        return tuple(self._statuses.values()) or tuple(self._records.sources())

    def expect(self, kinds: Iterable[str]) -> None:
        """Sources of these kinds will be asked; until one answers or fails, what it would say is not known."""
        self._unheard |= set(kinds)

    def awaited(self) -> list[str]:
        """Kinds of sources that have neither answered nor failed since the start."""
        return sorted(self._unheard)

    def drop_table(self) -> list[DropCount]:
        """What was not stored, or stored though odd, by kind and reason."""
        return self.drops.table()

    def note_run(self) -> None:
        """What is known of a tracked run was stored."""
        self._changes.bump_runs()

    def forget_workload(self, workload: WorkloadId) -> None:
        """Remove a workload from the store and from what is believed; raises what the store raises."""
        self._records.remove_workload(workload)
        self._ledger.forget(workload)
        self._tell_allocations(self._clock())
        self._changes.bump_inventory()

    def has_unit(self, unit: UnitId) -> bool:
        """Whether the inventory names a unit."""
        return unit in self._ledger.units

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
        self._learn_nodes(self._tie_records.read_host_names())
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
            self._sample_hardware(self._clock())
        except StoreError as error:
            # The ledger may believe what was not written; the store tells what is true.
            self._must_reload = True
            self._pause(error)
        else:
            if self._changes.versions.paused is not None:
                log.warning("the store takes data again")
                self._changes.pause(None)

    def accept_run(self, workload: Workload, allocations: Sequence[Allocation], *, is_turn: bool) -> None:
        """Store a tracked run as a workload. ``is_turn``: it began or ended, or holds something else; pages are told at once."""
        now = self._clock()
        self._is_minor = not is_turn
        try:
            if workload.state.is_active:
                self.accept(
                    QueueObserved(
                        source="run", at=now, workloads=[workload], allocations=allocations, is_complete=False
                    )
                )
            else:
                self.accept(HistoryObserved(source="run", at=now, workloads=[workload], allocations=allocations))
        finally:
            self._is_minor = False
        if self._owes_inventory and now - self._changed_by_runs_at >= RUNS_TOLD_EVERY_MS:
            self._changed_by_runs_at = now
            self._bump_inventory()

    def _bump_inventory(self) -> None:
        self._owes_inventory = self._is_minor
        if not self._is_minor:
            self._changes.bump_inventory()

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
            seen = HistoryObserved(source="history", at=now, workloads=workloads, allocations=allocations)
            self._write_queue(self._see_history(seen), now)
        if batches:
            self._metrics.append_history(batches)
            self.samples_total += sum(map(len, batches))
            self._tell(lambda listener: listener.on_history(batches))
            self._changes.bump_history(now)
            self._changes.bump_tick(UnixMs(max(int(batch.time_ms.max()) for batch in batches if len(batch))))

    def accept_samples(self, batch: SampleBatch) -> None:
        """Store samples of a tracked run, which need no normalizing and lie in units of its own; raises what the store raises."""
        if not len(batch):
            return
        self._metrics.append(batch)
        self.samples_total += len(batch)
        now = self._clock()
        is_past = int(batch.time_ms.min()) < now - PAST_AFTER_MS
        # Statistics of lives that old samples fall into are made anew, and rules judged again: expensive, and rare.
        self._tell(lambda listener: listener.on_history([batch]) if is_past else listener.on_samples(batch))
        if now - self._ticked_for_runs_at >= RUNS_TOLD_EVERY_MS:
            self._ticked_for_runs_at = now
            # A run's clock may be ahead: what is newest to the page is not.
            self._changes.bump_tick(UnixMs(min(int(batch.time_ms.max()), now)))

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
        why = f"{error.public_message} {error.public_hint or ''}".strip()
        if self._changes.versions.paused != why:
            log.error("ingest pauses: %s %s", error.message, error.hint or "")
            self._changes.pause(why)

    def _store(self, seen: Observation) -> None:
        match seen:
            case ScrapeObserved():
                self._store_scrape(seen)
            case InventoryObserved():
                seen = self._bounds.limit_inventory(seen, self._ledger)
                self._note_dropped(seen)
                self._store_inventory(seen)
            case QueueObserved():
                seen = self._bounds.limit_queue(seen, self._ledger)
                self._note_dropped(seen)
                stored = self._read_unfamiliar(seen.workloads)
                self._write_queue(self._ledger.see_queue(seen, stored), seen.at)
            case HistoryObserved():
                seen = self._bounds.limit_history(seen)
                self._note_dropped(seen)
                self._write_queue(self._see_history(seen), seen.at)
            case PrioritiesObserved():
                # Once a poll, all at once: they change with every second of age, and nobody asks for former ones.
                body = {"parts": {job: dict(parts) for job, parts in seen.parts.items()}}
                self._records.write_document(PRIORITY_PARTS, seen.source, body, at_ms=seen.at)
            case SchedulerRulesObserved():
                self._write_scheduler_rules(seen)
            case SourceStatus():
                self._note_statuses([seen])

    def _see_history(self, seen: HistoryObserved) -> QueueChange:
        return self._ledger.see_history(seen, self._read_unfamiliar(seen.workloads))

    def _read_unfamiliar(self, workloads: Iterable[Workload]) -> dict[WorkloadId, Workload]:
        """Earlier executions of a workload are kept over a restart of this program."""
        unfamiliar = self._ledger.unfamiliar(workloads)
        return {each.id: each for each in self._records.find_workloads(unfamiliar)} if unfamiliar else {}

    def _note_dropped(self, seen: InventoryObserved | QueueObserved | HistoryObserved) -> None:
        self.drops.add_all(seen.source, seen.dropped)
        status = self._bounds.status(seen.source, seen.at)
        if status is not None:
            self._note_statuses([status])

    def _write_scheduler_rules(self, seen: SchedulerRulesObserved) -> None:
        """Written where they changed: plans are made anew then."""
        body = {"reservations": list(seen.reservations), "preemption": seen.preemption}
        encoded = msgspec.json.encode(body)
        if self._scheduler_rules.get(seen.source) == encoded:
            return
        self._records.write_document(SCHEDULER_RULES, seen.source, msgspec.json.decode(encoded), at_ms=seen.at)
        self._scheduler_rules[seen.source] = encoded
        self._changes.bump_inventory()

    def _store_inventory(self, seen: InventoryObserved) -> None:
        self._write_inventory(self._ledger.see_inventory(seen), seen.at)
        self._tie_records.write_host_names(seen.source, seen.host_names, seen.at)
        self._learn_nodes(seen.host_names)
        self._write_facts(self._normalizer.settle(self._clock()), seen.at)
        if self._note_names(seen.at):
            self._note_statuses(self._with_nodes(list(self._statuses.values())))

    def _learn_nodes(self, host_names: Mapping[NodeId, Sequence[str]]) -> None:
        """What exporters are tied to."""
        self._ties.learn_nodes(self._ledger.scheduled_nodes(), host_names)

    def _note_names(self, at: UnixMs) -> bool:
        """Write ties and questions where they may have changed; returns whether anything was settled."""
        version = self._normalizer.names_version
        if version == self._names_version:
            return False
        self._names_version = version
        if self._tie_records.write_ties(self._ties, self._normalizer.find_questions(), at):
            self._changes.bump_inventory()
        return True

    def _with_nodes(self, statuses: Sequence[SourceStatus]) -> list[SourceStatus]:
        """With the nodes of exporters, which only their ties tell where the settings do not."""
        return [
            status
            if status.address is None or status.is_named
            else replace(status, node=self._ties.node_of_address(status.address))
            for status in statuses
        ]

    def _find_unheard(self, seen: ScrapeObserved) -> list[SourceStatus]:
        """How exporters are that a Prometheus asks for us: it answers well while one of them is silent."""
        own = [status for status in seen.statuses if status.node is None and status.address is None]
        if not own:
            return []
        kind, found = own[0].kind, []
        for node, heard_at in self._normalizer.heard_nodes().items():
            silent_ms = seen.at - heard_at
            source = f"{kind} exporter of {node}"
            if silent_ms > UNHEARD_AFTER_MS and node in self._ledger.nodes:
                found.append(
                    SourceStatus(
                        source=source,
                        kind=kind,
                        is_ok=False,
                        at=seen.at,
                        node=node,
                        message=f"no sample for more than {UNHEARD_AFTER_MS // 60_000} minutes",
                        hint=f"Look at the target of {node} in {kind} and at dcgm-exporter there.",
                    )
                )
            elif source in self._statuses:
                found.append(SourceStatus(source=source, kind=kind, is_ok=True, at=seen.at, node=node))
        return found

    def _sample_hardware(self, now_ms: UnixMs) -> None:
        """Store what is found out of GPUs, nodes and sources. The page's newest sample stays that of the last scrape."""
        if not self._hardware.is_due(now_ms):
            return
        statuses = list(self._statuses.values())
        batch = self._hardware.sample(
            now_ms,
            nodes=self._ledger.nodes_of(self._find_readable(statuses)),
            units=self._ledger.units.values(),
            statuses=statuses,
            heard_nodes=self._normalizer.heard_nodes(),
            last_seen=self._normalizer.all_last_seen,
        )
        if len(batch):
            self._metrics.append(batch)

    def _find_readable(self, statuses: Iterable[SourceStatus]) -> set[str]:
        """Schedulers whose last word on nodes is of now."""
        silent = {status.source for status in statuses if not status.is_ok}
        return {source for source in self._ledger.schedulers if f"{source} nodes" not in silent}

    def _write_facts(self, facts: ExporterFacts | None, at: UnixMs) -> None:
        if facts is not None:
            self._write_inventory(self._ledger.see_hardware(facts, source=EXPORTERS, at=at), at)
            self._write_queue(self._ledger.see_labels(facts, at), at)

    def _store_scrape(self, seen: ScrapeObserved) -> None:
        for status in seen.statuses:
            if status.address is not None:
                self._ties.note_asked(status.address, status.node if status.is_named else None)
        kind = seen.statuses[0].kind if seen.statuses else "exporter"
        if not seen.scrapes:
            self._note_statuses([*self._with_nodes(seen.statuses), *self._find_unheard(seen)])
            return
        normalized = self._normalizer.normalize(seen.scrapes, now_ms=self._clock(), kind=kind)
        statuses = _with_notes(seen.statuses, normalized.beyond)
        self._note_statuses([*self._with_nodes(statuses), *self._find_unheard(seen)])
        self._note_names(seen.at)
        self._write_facts(normalized.facts, seen.at)
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
        self._bump_inventory()

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
        turned, failed, recovered = [], [], []
        for status in statuses:
            self._unheard.discard(status.kind)
            before = self._statuses.get(status.source)
            self._statuses[status.source] = status
            if before is None or _differ(before, status):
                turned.append(status)
                if not status.is_ok and (before is None or before.is_ok or before.message != status.message):
                    failed.append(status)
                if before is not None and not before.is_ok and status.is_ok:
                    recovered.append(status)
        _log_turns(failed, recovered)
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
        lost = [self._statuses.pop(name).address for name in gone]
        self._ties.forget_asked(address for address in lost if address is not None)
        return gone


def _differ(before: SourceStatus, after: SourceStatus) -> bool:
    return (before.is_ok, before.message, before.node) != (after.is_ok, after.message, after.node)


def _with_notes(statuses: Sequence[SourceStatus], beyond: Mapping[str, frozenset[str]]) -> Sequence[SourceStatus]:
    """Statuses of exporters with the limits that their words are beyond; a status has its kind before the address."""
    if not beyond:
        return statuses
    return [
        add_note(each, beyond.get(each.source) or beyond.get(each.source.partition(" ")[2]) or ()) for each in statuses
    ]


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
