"""Limits on the units, nodes, holders and workloads that sources may report. Known ones are kept; beyond a limit, new ones are
rejected.

Pure: takes observations and the current state, and returns what is accepted. Neither stores nor reads a clock.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from clusterscape.ingest.drops import DropReason, LimitReason, NoteReason
from clusterscape.ingest.ledger import Ledger
from clusterscape.model import (
    HistoryObserved,
    InventoryObserved,
    NodeId,
    QueueObserved,
    SourceStatus,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
)
from clusterscape.model.durations import DAY_MS
from clusterscape.settings.limits import SourceLimits

RECOUNT_UNITS_MS = 60_000
"""How often removed units make room for new ones."""

Record = TypeVar("Record")
_TEXTS = ("name", "user", "project", "experiment", "partition", "resource_type", "qos", "pending_reason")
"""Texts of a workload that users choose."""


class DailyLimit:
    """A limit of new items per UTC day."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._day = -1
        self._count = 0

    def has_room(self, now_ms: UnixMs) -> bool:
        """Whether another item is accepted."""
        if now_ms // DAY_MS != self._day:
            self._day, self._count = now_ms // DAY_MS, 0
        return self._count < self._most

    def take(self) -> None:
        """Count an accepted item."""
        self._count += 1


class UnitLimiter:
    """Limits the GPUs and MIG instances of exporters. ``list_units``: returns the units of the current inventory."""

    def __init__(self, limits: SourceLimits, list_units: Callable[[], Iterable[Unit]] = lambda: ()) -> None:
        self._limits = limits
        self._list_units = list_units
        self._units: set[UnitId] = set()
        self._per_node: Counter[NodeId] = Counter()
        self._daily = DailyLimit(limits.new_units_per_day)
        self._round = 0
        self._recounted_at: UnixMs | None = None
        self._now = UnixMs(0)

    def begin_round(self, now_ms: UnixMs) -> None:
        """Start a round: reset its count, and reload the current units at an interval."""
        self._round, self._now = 0, now_ms
        if self._recounted_at is None or not 0 <= now_ms - self._recounted_at < RECOUNT_UNITS_MS:
            self._recounted_at = now_ms
            units = list(self._list_units())
            self._units = {unit.id for unit in units}
            self._per_node = Counter(unit.node for unit in units if unit.node is not None)

    @property
    def has_room(self) -> bool:
        """Whether a rejected unit may be admitted now."""
        return (
            len(self._units) < self._limits.units
            and self._round < self._limits.new_units_per_round
            and self._daily.has_room(self._now)
        )

    def admit(self, node: NodeId, unit: UnitId) -> bool:
        """Whether samples of ``unit`` are stored."""
        if unit in self._units:
            return True
        units = self._per_node.get(node, 0)
        is_room_on_node = units < self._limits.units_per_node if units else len(self._per_node) < self._limits.nodes
        if not (is_room_on_node and self.has_room):
            return False
        self._units.add(unit)
        self._per_node[node] += 1
        self._round += 1
        self._daily.take()
        return True


class SubjectLimiter:
    """Limits the whole nodes, and the parts of jobs on nodes, that exporters report samples of."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._nodes: set[NodeId] = set()
        self._jobs: set[UnitId] = set()
        self._new: Counter[NodeId] = Counter()  # today
        self._daily = DailyLimit(limits.new_holders_per_day)
        self._day = -1
        self._now = UnixMs(0)

    def begin_round(self, now_ms: UnixMs) -> None:
        """Start a round; once a day ended jobs make room."""
        self._now = now_ms
        if now_ms // DAY_MS != self._day:
            self._day = now_ms // DAY_MS
            self._new.clear()
            self._jobs.clear()

    def admit(self, node: NodeId, unit: UnitId) -> bool:
        """Whether samples of ``unit``, which is ``node`` or a part of a job there, are stored."""
        if node not in self._nodes:
            if len(self._nodes) >= self._limits.nodes:
                return False
            self._nodes.add(node)
        if str(unit) == node or unit in self._jobs:
            return True
        if self._new[node] >= self._limits.new_holders_per_unit_per_day or not self._daily.has_room(self._now):
            return False
        self._jobs.add(unit)
        self._new[node] += 1
        self._daily.take()
        return True


class HolderLimiter:
    """Limits the jobs and pods that labels of exporters name as holders of units."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._daily = DailyLimit(limits.new_holders_per_day)
        self._new: Counter[UnitId] = Counter()  # today
        self._day = -1

    def limit(
        self, unit: UnitId, labelled: Sequence[WorkloadId], accepted: Collection[WorkloadId], now_ms: UnixMs
    ) -> tuple[WorkloadId, ...]:
        """The accepted part of ``labelled``; those that were ``accepted`` before come first."""
        if now_ms // DAY_MS != self._day:
            self._day = now_ms // DAY_MS
            self._new.clear()
        kept = [holder for holder in labelled if holder in accepted]
        for holder in labelled:
            if holder not in accepted and self._admit(unit, len(kept), now_ms):
                kept.append(holder)
        return tuple(sorted(kept))

    def _admit(self, unit: UnitId, held: int, now_ms: UnixMs) -> bool:
        limits = self._limits
        if (
            held >= limits.holders_per_unit
            or self._new[unit] >= limits.new_holders_per_unit_per_day
            or not self._daily.has_room(now_ms)
        ):
            return False
        self._new[unit] += 1
        self._daily.take()
        return True


class SchedulerLimiter:
    """Limits the observations of schedulers. ``notes``: the limits that each source exceeds, by part (queue, inventory …)."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._daily: dict[str, DailyLimit] = {}
        self.notes: dict[str, dict[str, set[str]]] = {}

    def limit_inventory(self, observed: InventoryObserved, ledger: Ledger) -> InventoryObserved:
        """Known nodes, units and partitions first."""
        limits, dropped = self._limits, Counter(observed.dropped)
        exceeded: set[str] = set()
        nodes = self._cut(observed.nodes, limits.nodes, lambda node: node.id in ledger.nodes)
        named = {node.id for node in nodes}
        units = [unit for unit in observed.units if unit.node is None or unit.node in named]
        units = self._cut_per_node(units, ledger)
        units = list(self._cut(units, limits.units, lambda unit: unit.id in ledger.units))
        partitions = self._cut(
            observed.partitions, limits.partitions, lambda partition: partition.name in ledger.partitions
        )
        for what, reason, lost in (
            ("nodes", LimitReason.NODES, len(observed.nodes) - len(nodes)),
            ("units", DropReason.TOO_MANY_UNITS, len(observed.units) - len(units)),
            ("partitions", LimitReason.PARTITIONS, len(observed.partitions) - len(partitions)),
        ):
            if lost:
                dropped[reason] += lost
                exceeded.add(what)
        self._note(observed.source, "inventory", exceeded)
        if not exceeded:
            return observed
        return replace(observed, nodes=nodes, units=units, partitions=partitions, dropped=dropped)

    def limit_queue(self, observed: QueueObserved, ledger: Ledger) -> QueueObserved:
        """Known workloads first; allocations of dropped workloads are dropped too."""
        limits, dropped = self._limits, Counter(observed.dropped)
        workloads = [workload for workload in map(self._shorten, observed.workloads) if workload is not None]
        exceeded: set[str] = {"label_length"} if len(workloads) < len(observed.workloads) else set()
        dropped[LimitReason.LONG_ID] += len(observed.workloads) - len(workloads)
        kept = self._cut(workloads, limits.workloads, lambda workload: ledger.has_workload(workload.id))
        kept = self._admit_new(observed, kept, ledger)
        if len(kept) < len(workloads):
            dropped[LimitReason.WORKLOADS] += len(workloads) - len(kept)
            exceeded.add("workloads")
        self._note(observed.source, "queue", exceeded)
        ids = {workload.id for workload in kept} if exceeded else frozenset[WorkloadId]()
        allocations = (
            [allocation for allocation in observed.allocations if allocation.workload in ids]
            if exceeded
            else observed.allocations
        )
        return replace(observed, workloads=kept, allocations=allocations, dropped=+dropped)

    def limit_history(self, observed: HistoryObserved) -> HistoryObserved:
        """The first workloads, if the observation has too many."""
        workloads = [workload for workload in map(self._shorten, observed.workloads) if workload is not None]
        kept = workloads[: self._limits.workloads]
        lost = len(observed.workloads) - len(kept)
        self._note(observed.source, "history", {"workloads"} if lost else set())
        if not lost:
            return replace(observed, workloads=kept)
        ids = {workload.id for workload in kept}
        allocations = [allocation for allocation in observed.allocations if allocation.workload in ids]
        dropped = Counter(observed.dropped) + Counter({LimitReason.WORKLOADS: lost})
        return replace(observed, workloads=kept, allocations=allocations, dropped=dropped)

    def status(self, source: str, at: UnixMs) -> SourceStatus | None:
        """The status of a source that exceeds, or exceeded, a limit."""
        noted = self.notes.get(source)
        if noted is None:
            return None
        exceeded = sorted(set().union(*noted.values()))
        message = f"more {', '.join(exceeded)} than are accepted: new ones are dropped" if exceeded else None
        hint = f"Raise {', '.join(f'limits.sources.{name}' for name in exceeded)}." if exceeded else None
        return SourceStatus(source=f"{source} limits", kind=source, is_ok=True, at=at, message=message, hint=hint)

    def _note(self, source: str, part: str, exceeded: set[str]) -> None:
        if exceeded or source in self.notes:
            self.notes.setdefault(source, {})[part] = exceeded

    def _admit_new(self, observed: QueueObserved, workloads: Sequence[Workload], ledger: Ledger) -> list[Workload]:
        daily = self._daily.setdefault(observed.source, DailyLimit(self._limits.new_workloads_per_day))
        kept = []
        for workload in workloads:
            if not ledger.has_workload(workload.id):
                if not daily.has_room(observed.at):
                    continue
                daily.take()
            kept.append(workload)
        return kept

    def _shorten(self, workload: Workload) -> Workload | None:
        """The workload with texts cut to ``label_length``; None if its id is longer."""
        most = self._limits.label_length
        if len(workload.id) > most:
            return None
        long: dict[str, Any] = {
            name: text[:most] for name in _TEXTS if len(text := getattr(workload, name) or "") > most
        }
        return replace(workload, **long) if long else workload

    def _cut_per_node(self, units: Sequence[Unit], ledger: Ledger) -> list[Unit]:
        most = self._limits.units_per_node
        counts = Counter(unit.node for unit in units)
        full_nodes = {node for node, count in counts.items() if count > most and node is not None}
        if not full_nodes:
            return list(units)
        kept = [unit for unit in units if unit.node not in full_nodes]
        for node in full_nodes:
            own = [unit for unit in units if unit.node == node]
            kept += self._cut(own, most, lambda unit: unit.id in ledger.units)
        return kept

    @staticmethod
    def _cut(records: Sequence[Record], most: int, is_known: Callable[[Record], bool]) -> Sequence[Record]:
        if len(records) <= most:
            return records
        existing = [record for record in records if is_known(record)]
        new = [record for record in records if not is_known(record)]
        return [*existing[:most], *new[: max(0, most - len(existing))]]


_EXPORTER_NOTES: Mapping[str, tuple[str, str]] = {
    DropReason.TOO_MANY_UNITS: (
        "more GPUs than are accepted: new ones are dropped",
        "Check its labels, or raise limits.sources.units, units_per_node or new_units_per_day.",
    ),
    NoteReason.TOO_MANY_HOLDERS: (
        "GPUs labelled with more jobs or pods than are accepted: new ones are ignored",
        "Check its labels, or raise limits.sources.holders_per_unit or new_holders_per_unit_per_day.",
    ),
}


def add_note(status: SourceStatus, exceeded: Iterable[str]) -> SourceStatus:
    """An exporter's status with the limit that it exceeds; a failure takes precedence."""
    reason = min(exceeded, default=None)
    if reason is None or not status.is_ok or status.hint is not None:
        return status
    message, hint = _EXPORTER_NOTES[reason]
    return replace(status, message=message, hint=hint)
