"""How much sources may name: units, nodes, holders of units, workloads. What is known stays; beyond, new things are refused.

Pure: it is told what was seen and what is known, and answers with what is accepted. It neither stores nor reads a clock.
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
from clusterscape.settings.limits import SourceLimits

DAY_MS = 86_400_000
LOOK_AGAIN_MS = 60_000
"""How often units that are gone make room for others."""

Record = TypeVar("Record")
_TEXTS = ("name", "user", "project", "experiment", "partition", "resource_type", "qos", "pending_reason")
"""Texts of a workload that others choose."""


class DailyLimit:
    """So many new things within a day of UTC."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._day = -1
        self._taken = 0

    def has_room(self, now_ms: UnixMs) -> bool:
        """Whether one more is accepted."""
        if now_ms // DAY_MS != self._day:
            self._day, self._taken = now_ms // DAY_MS, 0
        return self._taken < self._most

    def take(self) -> None:
        """One more was accepted."""
        self._taken += 1


class UnitBounds:
    """Which GPUs and MIG instances exporters may name. ``known``: those that ingest believes in now."""

    def __init__(self, limits: SourceLimits, known: Callable[[], Iterable[Unit]] = lambda: ()) -> None:
        self._limits = limits
        self._known = known
        self._units: set[UnitId] = set()
        self._per_node: Counter[NodeId] = Counter()
        self._daily = DailyLimit(limits.new_units_per_day)
        self._round = 0
        self._looked_at: UnixMs | None = None
        self._now = UnixMs(0)

    def begin_round(self, now_ms: UnixMs) -> None:
        """Before units of a round are admitted; what earlier rounds told is known by now, or gone."""
        self._round, self._now = 0, now_ms
        if self._looked_at is None or not 0 <= now_ms - self._looked_at < LOOK_AGAIN_MS:
            self._looked_at = now_ms
            known = list(self._known())
            self._units = {unit.id for unit in known}
            self._per_node = Counter(unit.node for unit in known if unit.node is not None)

    @property
    def has_room(self) -> bool:
        """Whether a unit that was refused may be admitted now."""
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


class HolderBounds:
    """Which jobs and pods labels of exporters may name as holders of units."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._daily = DailyLimit(limits.new_holders_per_day)
        self._new: Counter[UnitId] = Counter()  # of this day
        self._day = -1

    def limit(
        self, unit: UnitId, named: Sequence[WorkloadId], told: Collection[WorkloadId], now_ms: UnixMs
    ) -> tuple[WorkloadId, ...]:
        """Those of ``named`` that are believed; those that were ``told`` before come first."""
        if now_ms // DAY_MS != self._day:
            self._day = now_ms // DAY_MS
            self._new.clear()
        kept = [holder for holder in named if holder in told]
        for holder in named:
            if holder not in told and self._admit(unit, len(kept), now_ms):
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


class SchedulerBounds:
    """Cuts what schedulers say to the limits. ``notes``: which limits each source is beyond, by its last words."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._daily: dict[str, DailyLimit] = {}
        self.notes: dict[str, dict[str, set[str]]] = {}

    def limit_inventory(self, seen: InventoryObserved, ledger: Ledger) -> InventoryObserved:
        """Known nodes, units and partitions first."""
        limits, dropped = self._limits, Counter(seen.dropped)
        beyond: set[str] = set()
        nodes = self._cut(seen.nodes, limits.nodes, lambda node: node.id in ledger.nodes)
        named = {node.id for node in nodes}
        units = [unit for unit in seen.units if unit.node is None or unit.node in named]
        units = self._cut_per_node(units, ledger)
        units = list(self._cut(units, limits.units, lambda unit: unit.id in ledger.units))
        partitions = self._cut(seen.partitions, limits.partitions, lambda each: each.name in ledger.partitions)
        for what, reason, lost in (
            ("nodes", LimitReason.NODES, len(seen.nodes) - len(nodes)),
            ("units", DropReason.TOO_MANY_UNITS, len(seen.units) - len(units)),
            ("partitions", LimitReason.PARTITIONS, len(seen.partitions) - len(partitions)),
        ):
            if lost:
                dropped[reason] += lost
                beyond.add(what)
        self._note(seen.source, "inventory", beyond)
        if not beyond:
            return seen
        return replace(seen, nodes=nodes, units=units, partitions=partitions, dropped=dropped)

    def limit_queue(self, seen: QueueObserved, ledger: Ledger) -> QueueObserved:
        """Known workloads first; allocations of those that are dropped go with them."""
        limits, dropped = self._limits, Counter(seen.dropped)
        workloads = [each for each in map(self._shorten, seen.workloads) if each is not None]
        beyond: set[str] = {"label_length"} if len(workloads) < len(seen.workloads) else set()
        dropped[LimitReason.LONG_ID] += len(seen.workloads) - len(workloads)
        kept = self._cut(workloads, limits.workloads, lambda each: ledger.knows(each.id))
        kept = self._admit_new(seen, kept, ledger)
        if len(kept) < len(workloads):
            dropped[LimitReason.WORKLOADS] += len(workloads) - len(kept)
            beyond.add("workloads")
        self._note(seen.source, "queue", beyond)
        names = {each.id for each in kept} if beyond else frozenset[WorkloadId]()
        allocations = [each for each in seen.allocations if each.workload in names] if beyond else seen.allocations
        return replace(seen, workloads=kept, allocations=allocations, dropped=+dropped)

    def limit_history(self, seen: HistoryObserved) -> HistoryObserved:
        """The first of them, where one answer holds too many."""
        workloads = [each for each in map(self._shorten, seen.workloads) if each is not None]
        kept = workloads[: self._limits.workloads]
        lost = len(seen.workloads) - len(kept)
        self._note(seen.source, "history", {"workloads"} if lost else set())
        if not lost:
            return replace(seen, workloads=kept)
        names = {each.id for each in kept}
        allocations = [each for each in seen.allocations if each.workload in names]
        dropped = Counter(seen.dropped) + Counter({LimitReason.WORKLOADS: lost})
        return replace(seen, workloads=kept, allocations=allocations, dropped=dropped)

    def status(self, source: str, at: UnixMs) -> SourceStatus | None:
        """What to say of a source that is, or was, beyond a limit."""
        noted = self.notes.get(source)
        if noted is None:
            return None
        beyond = sorted(set().union(*noted.values()))
        message = f"it names more {', '.join(beyond)} than are accepted: new ones are dropped" if beyond else None
        hint = f"Raise {', '.join(f'limits.sources.{each}' for each in beyond)}." if beyond else None
        return SourceStatus(source=f"{source} limits", kind=source, is_ok=True, at=at, message=message, hint=hint)

    def _note(self, source: str, part: str, beyond: set[str]) -> None:
        if beyond or source in self.notes:
            self.notes.setdefault(source, {})[part] = beyond

    def _admit_new(self, seen: QueueObserved, workloads: Sequence[Workload], ledger: Ledger) -> list[Workload]:
        daily = self._daily.setdefault(seen.source, DailyLimit(self._limits.new_workloads_per_day))
        kept = []
        for workload in workloads:
            if not ledger.knows(workload.id):
                if not daily.has_room(seen.at):
                    continue
                daily.take()
            kept.append(workload)
        return kept

    def _shorten(self, workload: Workload) -> Workload | None:
        """With texts of at most ``label_length``; None where its id is longer."""
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
        crowded = {node for node, count in counts.items() if count > most and node is not None}
        if not crowded:
            return list(units)
        kept = [unit for unit in units if unit.node not in crowded]
        for node in crowded:
            own = [unit for unit in units if unit.node == node]
            kept += self._cut(own, most, lambda unit: unit.id in ledger.units)
        return kept

    @staticmethod
    def _cut(records: Sequence[Record], most: int, is_known: Callable[[Record], bool]) -> Sequence[Record]:
        if len(records) <= most:
            return records
        known = [record for record in records if is_known(record)]
        new = [record for record in records if not is_known(record)]
        return [*known[:most], *new[: max(0, most - len(known))]]


_EXPORTER_NOTES: Mapping[str, tuple[str, str]] = {
    DropReason.TOO_MANY_UNITS: (
        "it names more GPUs than are accepted: new ones are dropped",
        "Look at its labels, or raise limits.sources.units, units_per_node or new_units_per_day.",
    ),
    NoteReason.TOO_MANY_HOLDERS: (
        "it labels GPUs with more jobs or pods than are accepted: new ones are left out",
        "Look at its labels, or raise limits.sources.holders_per_unit or new_holders_per_unit_per_day.",
    ),
}


def add_note(status: SourceStatus, beyond: Iterable[str]) -> SourceStatus:
    """A status that names the limit which an exporter's words are beyond; a failure says more."""
    reason = min(beyond, default=None)
    if reason is None or not status.is_ok or status.hint is not None:
        return status
    message, hint = _EXPORTER_NOTES[reason]
    return replace(status, message=message, hint=hint)
