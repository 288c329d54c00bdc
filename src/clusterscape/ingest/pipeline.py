"""Stores the observations of collectors: the only writer of the stores.

``accept`` is called by one thread at a time. Invalid data never makes it raise; rows that cannot be stored are counted.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import msgspec

from clusterscape.errors import StoreError
from clusterscape.ingest.drops import DropCount, Drops
from clusterscape.ingest.exporter_matching import ExporterMatcher
from clusterscape.ingest.hardware_state import HardwareState, add_hardware_xids
from clusterscape.ingest.ledger import EXPORTERS, ExporterFacts, InventoryChange, Ledger, QueueChange
from clusterscape.ingest.name_questions import MatchRecords
from clusterscape.ingest.normalize import Normalizer
from clusterscape.ingest.source_limits import SchedulerLimiter, add_note
from clusterscape.model import (
    Allocation,
    HistoryObserved,
    InventoryObserved,
    NodeId,
    NodeStateChange,
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
from clusterscape.model.job_summaries import SummarySource, summarize
from clusterscape.model.observations import PRIORITY_PARTS, SCHEDULER_RULES
from clusterscape.settings.limits import SourceLimits
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore

log = logging.getLogger(__name__)

FORGET_SOURCE_AFTER_MS = 30 * 60_000
"""Far longer than the longest backoff between two attempts at a failing source."""

SILENT_AFTER_MS = 3 * 60_000
"""An exporter that a Prometheus scrapes, mostly every 15 to 60 s, is silent after this long without a sample."""

PAST_AFTER_MS = 2 * 60_000
"""Samples of a tracked run that are older than this were spooled while the server was unreachable."""


RUN_NOTIFY_INTERVAL_MS = 5_000
"""Clients refetch when notified, but tracked runs send continuously and change little: so notifications are rate-limited."""


class IngestListener(Protocol):
    """Called on the writer's thread after data was stored."""

    def on_samples(self, batch: SampleBatch) -> None:
        """Samples of a scrape were stored."""
        ...

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        """Samples of the past, which were not scraped, were stored."""
        ...

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Allocations started or ended; ``open_allocations`` are all open ones."""
        ...

    def on_units(self, units: Iterable[Unit]) -> None:
        """Units were added or changed."""
        ...


class Ingest:
    """The only writer of the stores."""

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
        """``is_alone``: no other process collects into these stores; otherwise call ``absorb`` after others wrote.

        ``node_names``: nodes by address or name of exporters, from the settings; ``shard``: the shard of this collector.
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
        self._matcher = ExporterMatcher(node_names)
        self._match_records = MatchRecords(records, shard)
        self._names_version = (0, 0)
        self._hardware = HardwareState()
        self._normalizer = Normalizer(
            self.drops,
            matcher=self._matcher,
            uuid_nodes=lambda: self._ledger.uuid_nodes(),
            limits=limits,
            known_units=lambda: self._ledger.units.values(),
        )
        self._limiter = SchedulerLimiter(limits)
        self._statuses: dict[str, SourceStatus] = {}
        self._pending_kinds: set[str] = set()
        self._scheduler_rules: dict[str, bytes] = {}  # as last written, by source
        self._expired_sources_at = UnixMs(0)
        self._ticked_for_runs_at = self._changed_by_runs_at = 0
        self._is_minor = self._owes_inventory = False
        self._is_alone = is_alone
        if is_alone:
            # Sources of an earlier run may no longer be configured; configured ones report soon.
            records.remove_sources([status.source for status in records.sources()])
            self._match_records.forget_others()
        self._ledger = self._load_ledger()
        self._matcher.set_previous(self._match_records.read_matches())
        self._update_nodes(self._match_records.read_host_names())
        self._must_reload = False

    @property
    def statuses(self) -> Sequence[SourceStatus]:
        """The latest status of every source; those stored by another process if that collects."""
        return tuple(self._statuses.values()) or tuple(self._records.sources())

    def expect(self, kinds: Iterable[str]) -> None:
        """Announce kinds of sources; they are pending until the first response or failure."""
        self._pending_kinds |= set(kinds)

    def awaited(self) -> list[str]:
        """Kinds of sources that have neither responded nor failed since the start."""
        return sorted(self._pending_kinds)

    def drop_table(self) -> list[DropCount]:
        """Dropped and irregular rows, by kind and reason."""
        return self.drops.table()

    def note_run(self) -> None:
        """Notify clients that a tracked run was stored."""
        self._changes.bump_runs()

    def forget_workload(self, workload: WorkloadId) -> None:
        """Remove a workload from the store and the ledger; store errors are raised."""
        self._records.remove_workload(workload)
        self._ledger.forget(workload)
        self._notify_allocations(self._clock())
        self._changes.bump_inventory()

    def has_unit(self, unit: UnitId) -> bool:
        """Whether the inventory has a unit."""
        return unit in self._ledger.units

    @property
    def conflicts(self) -> int:
        """Number of units for which two sources name different holders."""
        return self._ledger.conflicts

    def absorb(self) -> None:
        """Reload what other processes wrote, which ``records`` already has. Call it on the thread of ``accept``."""
        records = self._records
        self._ledger.absorb(
            nodes=records.nodes(),
            partitions=records.partitions(),
            units=records.units(),
            workloads=records.active_workloads(),
            allocations=records.open_allocations(),
        )
        self._update_nodes(self._match_records.read_host_names())
        self._notify(lambda listener: listener.on_units(records.units()))
        self._notify_allocations(self._clock())

    def take_over(self, *, forgets_sources: bool) -> None:
        """Start to collect in place of another process. ``forgets_sources``: no other process has sources."""
        self._statuses.clear()
        if forgets_sources:
            self._records.remove_sources([status.source for status in self._records.sources()])
        self.absorb()

    def accept(self, observation: Observation) -> None:
        """Store one observation. If the store is full or fails, ingest pauses, logs it once, and resumes by itself."""
        try:
            if self._must_reload:
                self._ledger, self._must_reload = self._load_ledger(), False
                self._notify_allocations(self._clock())
            self._store(observation)
            self._sample_hardware(self._clock())
        except StoreError as error:
            # The ledger may contain changes that were not written, so it is reloaded from the store.
            self._must_reload = True
            self._pause(error)
        else:
            if self._changes.versions.paused is not None:
                log.warning("the store accepts writes again, ingest resumes")
                self._changes.pause(None)

    def accept_run(self, workload: Workload, allocations: Sequence[Allocation], *, is_state_change: bool) -> None:
        """Store a tracked run as a workload. ``is_state_change``: started, ended or other units; notify clients at once."""
        now = self._clock()
        self._is_minor = not is_state_change
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
        if self._owes_inventory and now - self._changed_by_runs_at >= RUN_NOTIFY_INTERVAL_MS:
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
        node_state_changes: Sequence[NodeStateChange] = (),
    ) -> None:
        """Store data of the past, which was not scraped (demo, import); store errors are raised."""
        now = self._clock()
        if node_state_changes:
            self._records.write_node_states(node_state_changes)
        if workloads or allocations:
            history = HistoryObserved(source="history", at=now, workloads=workloads, allocations=allocations)
            self._write_queue(self._apply_history(history), now)
        if batches:
            self._metrics.append_history(batches)
            self.samples_total += sum(map(len, batches))
            self._notify(lambda listener: listener.on_history(batches))
            self._changes.bump_history(now)
            self._changes.bump_tick(UnixMs(max(int(batch.time_ms.max()) for batch in batches if len(batch))))

    def accept_samples(self, batch: SampleBatch) -> None:
        """Store samples of a tracked run, which need no normalization and belong to its own units; store errors are raised."""
        if not len(batch):
            return
        self._metrics.append(batch)
        self.samples_total += len(batch)
        now = self._clock()
        is_past = int(batch.time_ms.min()) < now - PAST_AFTER_MS
        # Old samples make statistics and rules of the past be computed again: expensive but rare.
        self._notify(lambda listener: listener.on_history([batch]) if is_past else listener.on_samples(batch))
        if now - self._ticked_for_runs_at >= RUN_NOTIFY_INTERVAL_MS:
            self._ticked_for_runs_at = now
            # A run's clock may be ahead; the page's latest time must not be.
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
        reason = f"{error.public_message} {error.public_hint or ''}".strip()
        if self._changes.versions.paused != reason:
            log.error("ingest paused: %s %s", error.message, error.hint or "")
            self._changes.pause(reason)

    def _store(self, observation: Observation) -> None:
        match observation:
            case ScrapeObserved():
                self._store_scrape(observation)
            case InventoryObserved():
                observation = self._limiter.limit_inventory(observation, self._ledger)
                self._note_dropped(observation)
                self._store_inventory(observation)
            case QueueObserved():
                observation = self._limiter.limit_queue(observation, self._ledger)
                self._note_dropped(observation)
                stored = self._read_unknown(observation.workloads)
                self._write_queue(self._ledger.apply_queue(observation, stored), observation.at)
            case HistoryObserved():
                observation = self._limiter.limit_history(observation)
                self._note_dropped(observation)
                self._write_queue(self._apply_history(observation), observation.at)
                self._write_summaries(observation)
            case PrioritiesObserved():
                # Written as one document per poll: they change every second, and no history is needed.
                body = {"parts": {job: dict(parts) for job, parts in observation.parts.items()}}
                self._records.write_document(PRIORITY_PARTS, observation.source, body, at_ms=observation.at)
            case SchedulerRulesObserved():
                self._write_scheduler_rules(observation)
            case SourceStatus():
                self._note_statuses([observation])

    def _apply_history(self, history: HistoryObserved) -> QueueChange:
        return self._ledger.apply_history(history, self._read_unknown(history.workloads))

    def _write_summaries(self, history: HistoryObserved) -> None:
        """Write what the accounting says that jobs used; of others, samples are summarized later."""
        if not history.usages:
            return
        jobs = self._records.find_workloads(history.usages)
        summaries = (summarize(job, history.usages[job.id], source=SummarySource.JOBSTATS) for job in jobs)
        self._records.write_summaries(summary for summary in summaries if summary is not None)

    def _read_unknown(self, workloads: Iterable[Workload]) -> dict[WorkloadId, Workload]:
        """Stored records of workloads that the ledger does not have, so that earlier executions survive a restart."""
        unknown = self._ledger.find_unknown(workloads)
        return {workload.id: workload for workload in self._records.find_workloads(unknown)} if unknown else {}

    def _note_dropped(self, observation: InventoryObserved | QueueObserved | HistoryObserved) -> None:
        self.drops.add_all(observation.source, observation.dropped)
        status = self._limiter.status(observation.source, observation.at)
        if status is not None:
            self._note_statuses([status])

    def _write_scheduler_rules(self, rules: SchedulerRulesObserved) -> None:
        """Write reservations and preemption rules only if changed, because plans are recomputed then."""
        body = {"reservations": list(rules.reservations), "preemption": rules.preemption}
        encoded = msgspec.json.encode(body)
        if self._scheduler_rules.get(rules.source) == encoded:
            return
        self._records.write_document(SCHEDULER_RULES, rules.source, msgspec.json.decode(encoded), at_ms=rules.at)
        self._scheduler_rules[rules.source] = encoded
        self._changes.bump_inventory()

    def _store_inventory(self, inventory: InventoryObserved) -> None:
        self._write_inventory(self._ledger.apply_inventory(inventory), inventory.at)
        self._match_records.write_host_names(inventory.source, inventory.host_names, inventory.at)
        self._update_nodes(inventory.host_names)
        self._write_facts(self._normalizer.settle(self._clock()), inventory.at)
        if self._note_names(inventory.at):
            self._note_statuses(self._with_nodes(list(self._statuses.values())))

    def _update_nodes(self, host_names: Mapping[NodeId, Sequence[str]]) -> None:
        """Update the nodes to which exporters are matched."""
        self._matcher.update_nodes(self._ledger.scheduled_nodes(), host_names)

    def _note_names(self, at: UnixMs) -> bool:
        """Write ties and questions where they may have changed; returns whether anything was settled."""
        version = self._normalizer.names_version
        if version == self._names_version:
            return False
        self._names_version = version
        if self._match_records.write_matches(self._matcher, self._normalizer.find_questions(), at):
            self._changes.bump_inventory()
        return True

    def _with_nodes(self, statuses: Sequence[SourceStatus]) -> list[SourceStatus]:
        """Statuses with the matched nodes of exporters, where the settings do not name them."""
        return [
            status
            if status.address is None or status.is_named
            else replace(status, node=self._matcher.node_of_address(status.address))
            for status in statuses
        ]

    def _find_silent_exporters(self, scrape: ScrapeObserved) -> list[SourceStatus]:
        """Statuses of exporters that a Prometheus scrapes: Prometheus itself responds even if one of them is silent."""
        own = [status for status in scrape.statuses if status.node is None and status.address is None]
        if not own:
            return []
        kind, statuses = own[0].kind, []
        for node, heard_at in self._normalizer.indirect_nodes().items():
            silent_ms = scrape.at - heard_at
            source = f"{kind} exporter of {node}"
            if silent_ms > SILENT_AFTER_MS and node in self._ledger.nodes:
                statuses.append(
                    SourceStatus(
                        source=source,
                        kind=kind,
                        is_ok=False,
                        at=scrape.at,
                        node=node,
                        message=f"no sample for more than {SILENT_AFTER_MS // 60_000} minutes",
                        hint=f"Check the target of {node} in {kind}, and dcgm-exporter on the node.",
                    )
                )
            elif source in self._statuses:
                statuses.append(SourceStatus(source=source, kind=kind, is_ok=True, at=scrape.at, node=node))
        return statuses

    def _sample_hardware(self, now_ms: UnixMs) -> None:
        """Store samples of the hardware state. They do not count as a new scrape for clients."""
        if not self._hardware.is_due(now_ms):
            return
        statuses = list(self._statuses.values())
        batch = self._hardware.sample(
            now_ms,
            nodes=self._ledger.nodes_of(self._find_readable(statuses)),
            units=self._ledger.units.values(),
            statuses=statuses,
            indirect_nodes=self._normalizer.indirect_nodes(),
            last_seen=self._normalizer.all_last_seen,
        )
        if len(batch):
            self._metrics.append(batch)

    def _find_readable(self, statuses: Iterable[SourceStatus]) -> set[str]:
        """Schedulers whose nodes could be read at the last poll."""
        silent = {status.source for status in statuses if not status.is_ok}
        return {source for source in self._ledger.schedulers if f"{source} nodes" not in silent}

    def _write_facts(self, facts: ExporterFacts | None, at: UnixMs) -> None:
        if facts is not None:
            self._write_inventory(self._ledger.apply_hardware(facts, source=EXPORTERS, at=at), at)
            self._write_queue(self._ledger.apply_labels(facts, at), at)

    def _store_scrape(self, scrape: ScrapeObserved) -> None:
        for status in scrape.statuses:
            if status.address is not None:
                self._matcher.add_target(status.address, status.node if status.is_named else None)
        kind = scrape.statuses[0].kind if scrape.statuses else "exporter"
        if not scrape.scrapes:
            self._note_statuses([*self._with_nodes(scrape.statuses), *self._find_silent_exporters(scrape)])
            return
        normalized = self._normalizer.normalize(scrape.scrapes, now_ms=self._clock(), kind=kind)
        statuses = _with_notes(scrape.statuses, normalized.exceeded)
        self._note_statuses([*self._with_nodes(statuses), *self._find_silent_exporters(scrape)])
        self._note_names(scrape.at)
        self._write_facts(normalized.facts, scrape.at)
        if len(normalized.batch):
            batch = add_hardware_xids(normalized.batch)
            self._metrics.append(batch)
            self.samples_total += len(batch)
            self.last_scrape_at = scrape.at
            self._notify(lambda listener: listener.on_samples(batch))
            self._changes.bump_tick(UnixMs(int(batch.time_ms.max())))

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
            self._notify(lambda listener: listener.on_units(change.units))
        self._changes.bump_inventory()

    def _write_queue(self, change: QueueChange, at: UnixMs) -> None:
        if not change:
            return
        if change.workloads:
            self._records.write_workloads(change.workloads, at_ms=at)
        if change.allocations:
            self._records.write_allocations(change.allocations)
            self._notify_allocations(at)
        self._bump_inventory()

    def _notify_allocations(self, at: UnixMs) -> None:
        self._notify(lambda listener: listener.on_allocations(self._ledger.open.values(), at))

    def _notify(self, notify: Callable[[IngestListener], None]) -> None:
        """Call all listeners; a failing listener does not stop ingest."""
        for listener in self._listeners:
            try:
                notify(listener)
            except Exception:
                log.exception("%s failed to process stored data", type(listener).__name__)

    def _note_statuses(self, statuses: Sequence[SourceStatus]) -> None:
        """Remember every status, but write and log only changes of health."""
        changed, failed, recovered = [], [], []
        for status in statuses:
            self._pending_kinds.discard(status.kind)
            before = self._statuses.get(status.source)
            self._statuses[status.source] = status
            if before is None or _differ(before, status):
                changed.append(status)
                if not status.is_ok and (before is None or before.is_ok or before.message != status.message):
                    failed.append(status)
                if before is not None and not before.is_ok and status.is_ok:
                    recovered.append(status)
        _log_changes(failed, recovered)
        expired = self._expire_sources(statuses)
        if expired:
            self._records.remove_sources(expired)
        if changed:
            self._records.write_sources(changed)
        if changed or expired:
            # Units of a silent exporter become stale, which the overview shows.
            self._changes.bump_inventory()

    def _expire_sources(self, statuses: Sequence[SourceStatus]) -> list[str]:
        """Forget sources without a status for long, whose targets were removed from the settings. Checked once a minute."""
        now = max((status.at for status in statuses), default=UnixMs(0))
        if now - self._expired_sources_at < 60_000:
            return []
        self._expired_sources_at = now
        expired = [name for name, status in self._statuses.items() if now - status.at > FORGET_SOURCE_AFTER_MS]
        addresses = [self._statuses.pop(name).address for name in expired]
        self._matcher.remove_targets(address for address in addresses if address is not None)
        return expired


def _differ(before: SourceStatus, after: SourceStatus) -> bool:
    return (before.is_ok, before.message, before.node) != (after.is_ok, after.message, after.node)


def _with_notes(statuses: Sequence[SourceStatus], exceeded: Mapping[str, frozenset[str]]) -> Sequence[SourceStatus]:
    """Statuses of exporters with the limits that they exceed; ``source`` of a status is its kind and address."""
    if not exceeded:
        return statuses
    return [
        add_note(status, exceeded.get(status.source) or exceeded.get(status.source.partition(" ")[2]) or ())
        for status in statuses
    ]


MAX_SINGLE_LINES = 3


def _log_changes(failed: Sequence[SourceStatus], recovered: Sequence[SourceStatus]) -> None:
    """One line per source, or one line for all if many change at once, as when a switch fails."""
    if len(failed) > MAX_SINGLE_LINES:
        log.warning("%d sources failed: %s; first error: %s", len(failed), _name_some(failed), failed[0].message)
    else:
        for status in failed:
            log.warning("%s: %s. %s", status.source, status.message, status.hint or "")
    if len(recovered) > MAX_SINGLE_LINES:
        log.warning("%d sources respond again: %s", len(recovered), _name_some(recovered))
    else:
        for status in recovered:
            log.warning("%s responds again", status.source)


def _name_some(statuses: Sequence[SourceStatus]) -> str:
    names = [status.node or status.source for status in statuses]
    more = f" and {len(names) - MAX_SINGLE_LINES} more" if len(names) > MAX_SINGLE_LINES else ""
    return ", ".join(names[:MAX_SINGLE_LINES]) + more
