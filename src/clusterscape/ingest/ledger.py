"""What ingest believes now about nodes, units, workloads and allocations, and what an observation changes in it.

Pure: it is told what was seen and answers with the records to write. It neither stores nor reads a clock.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from clusterscape.ingest.executions import carry_over, is_settled, join_history
from clusterscape.ingest.node_words import NodeWords
from clusterscape.model import (
    Allocation,
    AllocationSource,
    GpuUuid,
    HistoryObserved,
    InventoryObserved,
    Node,
    NodeId,
    NodeState,
    Partition,
    QueueObserved,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)
from clusterscape.model.run_units import is_run_unit

UNCLAIMED_AFTER_MS = 10 * 60_000
"""A node from an earlier program run that no source names within this time is gone."""

CONFLICT_AFTER_MS = 120_000
"""An exporter's label that contradicts the scheduler for less than this is a job change seen at two moments."""

RECENT_ENDED = 20_000

EXPORTERS = "exporters"
"""Under which name all exporters claim nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryChange:
    """Inventory records to write and to forget."""

    nodes: Sequence[Node] = ()
    partitions: Sequence[Partition] = ()
    units: Sequence[Unit] = ()
    removed: Sequence[NodeId] = ()
    removed_partitions: Sequence[str] = ()
    removed_units: Sequence[UnitId] = ()

    def __bool__(self) -> bool:
        return bool(
            self.nodes or self.partitions or self.units or self.removed or self.removed_partitions or self.removed_units
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """Workloads and allocations to write."""

    workloads: Sequence[Workload] = ()
    allocations: Sequence[Allocation] = ()

    def __bool__(self) -> bool:
        return bool(self.workloads or self.allocations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterFacts:
    """What exporters say beside samples: new or changed hardware, and which jobs a GPU is labelled with.

    ``gone`` are units that their exporter shows no longer, such as those of an exporter that belongs to another node.
    """

    nodes: Sequence[Node] = ()
    units: Sequence[Unit] = ()
    gone: Sequence[UnitId] = ()
    gone_nodes: Sequence[NodeId] = ()
    labels: Mapping[UnitId, Sequence[WorkloadId]] = field(default_factory=dict)


AllocationKey = tuple[WorkloadId, UnitId, UnixMs]


def _key(allocation: Allocation) -> AllocationKey:
    return (allocation.workload, allocation.unit, allocation.from_at)


class Ledger:
    """The present as ingest knows it."""

    def __init__(
        self,
        *,
        nodes: Iterable[Node] = (),
        partitions: Iterable[Partition] = (),
        units: Iterable[Unit] = (),
        workloads: Iterable[Workload] = (),
        allocations: Iterable[Allocation] = (),
        expires_unclaimed: bool = True,
    ) -> None:
        """``expires_unclaimed``: nodes of an earlier run that no source names are forgotten; others may name them else."""
        self.nodes = {node.id: node for node in nodes}
        self.partitions = {partition.name: partition for partition in partitions}
        self.units = {unit.id: unit for unit in units}
        self.active = {workload.id: workload for workload in workloads}
        self.open = {_key(allocation): allocation for allocation in allocations}
        self._ended: OrderedDict[WorkloadId, Workload] = OrderedDict()
        self._accounted: set[WorkloadId] = set()  # those of the ended that the accounting has told
        self._guessed: dict[WorkloadId, list[Allocation]] = {}  # closed at the look that missed them
        self._unclaimed = set(self.nodes) if expires_unclaimed else set()
        self._claims: dict[str, set[NodeId]] = {}
        self._places: dict[str, set[UnitId]] = {}  # units by the source that last named them, but for those with a UUID
        self._instances: dict[str, set[UnitId]] = {}  # MIG instances by the source that last named them
        self._partition_names: dict[str, set[str]] = {}  # by the source that last named them
        self._old_partitions = set(self.partitions)  # of an earlier program run
        self._aliases: dict[str, Mapping[WorkloadId, WorkloadId]] = {}  # by source
        self._words = NodeWords()
        self._hardware = {node.id: node for node in self.nodes.values() if node.driver_version is not None}
        self._disagree_since: dict[UnitId, dict[WorkloadId, UnixMs]] = {}
        self._first_at: UnixMs | None = None

    def absorb(
        self,
        *,
        nodes: Iterable[Node],
        partitions: Iterable[Partition],
        units: Iterable[Unit],
        workloads: Iterable[Workload],
        allocations: Iterable[Allocation],
    ) -> None:
        """Believe the store, into which others write as well; who claims what stays as it is."""
        self.nodes = {node.id: node for node in nodes}
        self.partitions = {partition.name: partition for partition in partitions}
        self.units = {unit.id: unit for unit in units}
        self.active = {workload.id: workload for workload in workloads}
        self.open = {_key(allocation): allocation for allocation in allocations}
        self._unclaimed &= self.nodes.keys()
        self._hardware |= {node.id: node for node in self.nodes.values() if node.driver_version is not None}

    def knows(self, workload: WorkloadId) -> bool:
        """Whether a workload is active, or ended a while ago."""
        return workload in self.active or workload in self._ended

    # inventory

    def see_inventory(self, seen: InventoryObserved) -> InventoryChange:
        """The scheduler's word on nodes; hardware facts an exporter told earlier are kept."""
        seen = self._without_twins(seen)
        named = {node.id for node in seen.nodes}
        self._places[seen.source] = {unit.id for unit in seen.units if unit.uuid is None}
        heard = self._words.hear(seen)
        nodes = [node for node in map(self._with_hardware, heard) if self.nodes.get(node.id) != node]
        partitions = [p for p in seen.partitions if self.partitions.get(p.name) != p]
        units = self._merge_units(seen.units)
        moved = self._find_moved(units)
        units = [*self._bare_places((), moved - {unit.id for unit in units}), *units]
        removed: list[NodeId] = []
        # An empty but "complete" answer is a scheduler in trouble, not a cluster without nodes.
        if seen.is_complete and named:
            removed = sorted(self._claims.get(seen.source, set()) - named - self._words.named_by_others(seen.source))
        self._claim(seen.source, named, seen.at, replace_claims=seen.is_complete and bool(named))
        removed += self._expire_unclaimed(seen.at)
        change = self._apply(nodes, partitions, units, removed)
        moved -= self._scheduled_places() | {unit.id for unit in units}
        if not (seen.is_complete and named):
            return replace(change, removed_units=self._forget_units(lambda unit: unit.id in moved)) if moved else change
        instances = {unit.id for unit in seen.units if unit.kind is UnitKind.MIG}
        lost = self._instances.get(seen.source, set()) - instances
        self._instances[seen.source] = instances
        return replace(
            change,
            removed_partitions=self._forget_partitions(seen),
            removed_units=self._forget_units(
                lambda unit: self._is_pulled(unit, named) or unit.id in lost or unit.id in moved
            ),
        )

    def see_hardware(self, facts: ExporterFacts, *, source: str, at: UnixMs) -> InventoryChange:
        """An exporter's word on hardware; state, partitions and reason stay the scheduler's."""
        nodes: list[Node] = []
        for fact in facts.nodes:
            self._hardware[fact.id] = fact
            known = self.nodes.get(fact.id)
            merged = self._with_hardware(known) if known else fact
            if merged != known:
                nodes.append(merged)
        self._claim(source, {fact.id for fact in facts.nodes}, at, replace_claims=False)
        units = self._merge_units(facts.units)
        moved = self._find_moved(units)
        removed = self._release_nodes(facts.gone_nodes, source)
        change = self._apply(nodes, [], [*self._bare_places(facts.gone, moved), *units], removed)
        lost = ({*facts.gone, *moved} - self._scheduled_places()) & self.units.keys()
        return replace(change, removed_units=self._forget_units(lambda unit: unit.id in lost)) if lost else change

    def scheduled_nodes(self) -> list[Node]:
        """The nodes that a scheduler names, or did in an earlier run."""
        claimed = {node for source, nodes in self._claims.items() if source != EXPORTERS for node in nodes}
        return [
            node
            for node in self.nodes.values()
            if node.id in claimed or node.partitions or node.state is not NodeState.UNKNOWN
        ]

    @property
    def schedulers(self) -> set[str]:
        """Sources that have named nodes in this run, but for exporters."""
        return self._claims.keys() - {EXPORTERS}

    def nodes_of(self, sources: Iterable[str]) -> list[Node]:
        """The nodes that these sources name."""
        named = set().union(*(self._claims.get(source, set()) for source in sources))
        return [self.nodes[node] for node in sorted(named) if node in self.nodes]

    def uuid_nodes(self) -> dict[GpuUuid, NodeId]:
        """Where GPUs were last seen, of scheduled nodes."""
        scheduled = {node.id for node in self.scheduled_nodes()}
        return {
            unit.uuid: unit.node
            for unit in self.units.values()
            if unit.uuid is not None and unit.node is not None and unit.node in scheduled
        }

    def _without_twins(self, seen: InventoryObserved) -> InventoryObserved:
        """Without the GPUs that an exporter shows elsewhere, and without nodes that have no others: a host under another name."""
        if all(unit.uuid is None for unit in seen.units):
            return seen
        own = {unit.id for unit in seen.units}
        homes = {
            unit.uuid: unit.id
            for unit in self.units.values()
            if unit.uuid is not None and unit.id not in own and unit.node not in self._unclaimed
        }
        twins = {unit.id for unit in seen.units if unit.uuid is not None and homes.get(unit.uuid, unit.id) != unit.id}
        if not twins:
            return seen
        units = [unit for unit in seen.units if unit.id not in twins]
        emptied = {unit.node for unit in seen.units if unit.id in twins} - {unit.node for unit in units}
        return replace(seen, units=units, nodes=[node for node in seen.nodes if node.id not in emptied])

    def _find_moved(self, units: Sequence[Unit]) -> set[UnitId]:
        """Former places of GPUs that were seen elsewhere now."""
        homes = {unit.uuid: unit.id for unit in units if unit.uuid is not None}
        if not homes:
            return set()
        return {
            unit.id
            for unit in self.units.values()
            if unit.uuid is not None and homes.get(unit.uuid, unit.id) != unit.id
        }

    def _scheduled_places(self) -> set[UnitId]:
        """Units that a scheduler counts, whichever GPU is there."""
        return set().union(*self._places.values())

    def _bare_places(self, gone: Iterable[UnitId], moved: Iterable[UnitId]) -> list[Unit]:
        """Places that stay though their GPU is not there any more."""
        left = {*gone, *moved} & self._scheduled_places() & self.units.keys()
        return [replace(self.units[unit], uuid=None, pci_bus_id=None) for unit in sorted(left)]

    def _release_nodes(self, nodes: Iterable[NodeId], source: str) -> list[NodeId]:
        """Nodes that exporters alone have named, and name no longer."""
        released = set(nodes)
        self._claims.get(source, set()).difference_update(released)
        for node in released:
            self._hardware.pop(node, None)
        scheduled = {node.id for node in self.scheduled_nodes()}
        return sorted(released - scheduled)

    def _is_pulled(self, unit: Unit, named: set[NodeId]) -> bool:
        """Whether the scheduler no longer counts this GPU to its node."""
        if unit.kind is not UnitKind.GPU or unit.node not in named or unit.index is None:
            return False
        gpu_count = self.nodes[unit.node].gpu_count
        return 0 < gpu_count <= unit.index

    def _forget_partitions(self, seen: InventoryObserved) -> list[str]:
        """Those that no scheduler names any more. One of an earlier program run may be another scheduler's: it waits."""
        named = {partition.name for partition in seen.partitions}
        if not named:
            return []
        lost = self._partition_names.get(seen.source, set()) - named
        self._partition_names[seen.source] = named
        kept: set[str] = set().union(*self._partition_names.values())
        if self._first_at is not None and seen.at - self._first_at >= UNCLAIMED_AFTER_MS:
            lost |= self._old_partitions
            self._old_partitions = set()
        gone = sorted((lost - kept) & self.partitions.keys())
        for name in gone:
            del self.partitions[name]
        return gone

    def _forget_units(self, is_gone: Callable[[Unit], bool]) -> list[UnitId]:
        gone = [unit.id for unit in self.units.values() if is_gone(unit)]
        for unit in gone:
            del self.units[unit]
        return gone

    def _with_hardware(self, node: Node) -> Node:
        fact = self._hardware.get(node.id)
        if fact is None:
            return node
        return replace(
            node,
            machine_type=fact.machine_type or node.machine_type,
            driver_version=fact.driver_version or node.driver_version,
            gpu_count=node.gpu_count or fact.gpu_count,
        )

    def _merge_units(self, seen: Iterable[Unit]) -> list[Unit]:
        changed = []
        for unit in seen:
            known = self.units.get(unit.id)
            merged = unit if known is None else _fill_unit(known, unit)
            if merged != known:
                changed.append(merged)
        return changed

    def _claim(self, source: str, named: set[NodeId], at: UnixMs, *, replace_claims: bool) -> None:
        self._first_at = at if self._first_at is None else self._first_at
        self._unclaimed -= named
        if replace_claims:
            self._claims[source] = named
        else:
            self._claims.setdefault(source, set()).update(named)

    def _expire_unclaimed(self, at: UnixMs) -> list[NodeId]:
        if not self._unclaimed or self._first_at is None or at - self._first_at < UNCLAIMED_AFTER_MS:
            return []
        gone, self._unclaimed = sorted(self._unclaimed), set()
        return gone

    def _apply(
        self, nodes: list[Node], partitions: list[Partition], units: list[Unit], removed: list[NodeId]
    ) -> InventoryChange:
        self.nodes.update((node.id, node) for node in nodes)
        self.partitions.update((partition.name, partition) for partition in partitions)
        self.units.update((unit.id, unit) for unit in units)
        for gone in removed:
            self.nodes.pop(gone, None)
            self._hardware.pop(gone, None)
        if removed:
            lost = set(removed)
            self.units = {key: unit for key, unit in self.units.items() if unit.node not in lost}
        return InventoryChange(nodes=nodes, partitions=partitions, units=units, removed=removed)

    # queue

    def unfamiliar(self, workloads: Iterable[Workload]) -> list[WorkloadId]:
        """Those of which only the store may know: they ended long ago, or before this program began."""
        return [each.id for each in workloads if each.id not in self.active and each.id not in self._ended]

    def see_queue(self, seen: QueueObserved, stored: Mapping[WorkloadId, Workload] | None = None) -> QueueChange:
        """Active workloads and who holds what now; what a complete answer no longer names has ended.

        ``stored``: what the store knows of workloads that are unfamiliar here.
        """
        workloads = self._changed(seen, stored or {})
        self._note(workloads)
        if seen.is_complete:
            workloads += self._end_vanished(seen)
        self._aliases[seen.source] = seen.aliases
        held = {_key(allocation): allocation for allocation in self._place(seen.allocations)}
        allocations = [a for key, a in held.items() if self.open.get(key) != a]
        allocations += self._close_truly(workloads)
        if seen.is_complete:
            allocations += self._close_missing(held.keys(), seen.source, seen.at)
        self._note_allocations(allocations)
        named = self._believe_named(seen)
        self._note_allocations(named)
        allocations += named
        refuted = self._end_run_claims(allocations)
        self._note_allocations(refuted)
        allocations += refuted
        return QueueChange(workloads=workloads, allocations=allocations)

    def _end_run_claims(self, begun: Sequence[Allocation]) -> list[Allocation]:
        """Tracked runs name their GPUs themselves; a claim ends where another source gives the unit to somebody else."""
        holders = {held.unit: held for held in begun if held.to_at is None and not is_run_unit(held.workload)}
        claims = [claim for claim in self.open.values() if claim.unit in holders and is_run_unit(claim.workload)]
        return [
            replace(claim, to_at=max(claim.from_at, holders[claim.unit].from_at))
            for claim in claims
            if self._user_of(claim.workload) != self._user_of(holders[claim.unit].workload)
        ]

    def _user_of(self, workload: WorkloadId) -> str | None:
        known = self.active.get(workload) or self._ended.get(workload)
        return None if known is None else known.user

    def _changed(self, seen: QueueObserved, stored: Mapping[WorkloadId, Workload]) -> list[Workload]:
        changed = []
        for workload in seen.workloads:
            known = self.active.get(workload.id) or self._ended.get(workload.id)
            before = known or stored.get(workload.id)
            if before is not None and workload.id in self._accounted and is_settled(before, workload):
                continue
            merged = carry_over(before, workload, seen.at)
            if merged != known:
                changed.append(merged)
        return changed

    def _believe_named(self, seen: QueueObserved) -> list[Allocation]:
        """What exporters said before the scheduler told whose pod it is: believed now, where nobody else holds the unit."""
        aliases = seen.aliases
        waiting = [(unit, name) for unit, names in self._disagree_since.items() for name in names if name in aliases]
        for unit, name in waiting:
            self._forget_disagreements(unit, self._disagree_since[unit].keys() - {name})
        renamed = [a for a in self.open.values() if a.workload in aliases] if aliases else []
        held = {a.unit for a in self.open.values()} if waiting else set()
        changes = [_labelled(aliases[name], unit, seen.at) for unit, name in waiting if unit not in held]
        for allocation in renamed:  # under the pod's own name nothing was held
            changes += [
                replace(allocation, to_at=allocation.from_at),
                replace(allocation, workload=aliases[allocation.workload]),
            ]
        return changes

    def _place(self, allocations: Sequence[Allocation]) -> Iterable[Allocation]:
        """Units that a source knows only by UUID, at the place where an exporter or a driver has seen it; unseen: left out."""
        if all(":" in allocation.unit for allocation in allocations):
            return allocations
        places = {str(unit.uuid): unit.id for unit in self.units.values() if unit.uuid is not None}
        found = ((places.get(allocation.unit, allocation.unit), allocation) for allocation in allocations)
        return [replace(allocation, unit=unit) for unit, allocation in found if ":" in unit]

    def see_history(self, seen: HistoryObserved, stored: Mapping[WorkloadId, Workload] | None = None) -> QueueChange:
        """The accounting's word on ended workloads: it knows how they ended, the queue knew what they waited for.

        ``stored``: what the store knows of workloads that are unfamiliar here.
        """
        workloads = []
        for workload in seen.workloads:
            if workload.state.is_active:
                continue
            known = self._ended.get(workload.id) or self.active.get(workload.id) or (stored or {}).get(workload.id)
            merged = join_history(known, workload)
            if merged != known:
                workloads.append(merged)
            if not merged.state.is_active:
                self._ended[merged.id] = merged
                self._accounted.add(merged.id)
        self._note(workloads)
        allocations = [*self._close_truly(seen.workloads), *seen.allocations]
        self._note_allocations(allocations)
        return QueueChange(workloads=workloads, allocations=allocations)

    def _close_truly(self, ended: Iterable[Workload]) -> list[Allocation]:
        """What was missed at a look was held until its execution's end, where that is told, not until the look."""
        closed = []
        for workload in ended:
            guessed = self._guessed.get(workload.id)
            if not guessed:
                continue
            ends = {each.started_at: each.ended_at for each in workload.earlier if not each.is_estimated}
            if not workload.state.is_active and workload.state is not WorkloadState.UNKNOWN and workload.ended_at:
                for held in guessed:
                    if workload.started_at in (None, held.from_at):  # else it has been requeued since
                        ends.setdefault(held.from_at, workload.ended_at)
            told = [held for held in guessed if held.from_at in ends]
            closed += [replace(held, to_at=max(held.from_at, ends[held.from_at])) for held in told]
            self._guessed[workload.id] = [held for held in guessed if held.from_at not in ends]
            if not self._guessed[workload.id]:
                del self._guessed[workload.id]
        return closed

    def forget(self, workload: WorkloadId) -> None:
        """A workload was deleted: it is neither there nor has it been."""
        self.active.pop(workload, None)
        self._ended.pop(workload, None)
        self._guessed.pop(workload, None)
        self.open = {key: held for key, held in self.open.items() if held.workload != workload}

    def see_labels(self, facts: ExporterFacts, at: UnixMs) -> QueueChange:
        """Who exporters say holds a unit: believed where the scheduler is silent, kept as a conflict where it disagrees."""
        scheduled: dict[UnitId, set[WorkloadId]] = {}
        labelled: dict[UnitId, dict[WorkloadId, Allocation]] = {}
        for allocation in self.open.values():
            if allocation.source is AllocationSource.EXPORTER_LABEL:
                labelled.setdefault(allocation.unit, {})[allocation.workload] = allocation
            else:
                scheduled.setdefault(allocation.unit, set()).add(allocation.workload)
        numbered = self._workloads_by_number()
        changes: list[Allocation] = []
        for unit, jobs in facts.labels.items():
            wanted = {numbered.get(job, job) for job in jobs} - scheduled.get(unit, set())
            contradicts = bool(scheduled.get(unit))
            known = labelled.get(unit, {})
            changes += [
                _labelled(workload, unit, at)
                for workload in sorted(wanted - known.keys())
                if self._believe(unit, workload, at, contradicts=contradicts)
            ]
            ended = (held for workload, held in known.items() if workload not in wanted)
            changes += [replace(held, to_at=max(held.from_at, at)) for held in ended]  # clocks go back at times
            self._forget_disagreements(unit, wanted)
        self._note_allocations(changes)
        return QueueChange(allocations=changes)

    def _workloads_by_number(self) -> dict[WorkloadId, WorkloadId]:
        """An exporter labels with the scheduler's raw job number, which array tasks do not carry in their id, or with a pod."""
        numbers = {
            WorkloadId(f"{workload.id.partition(':')[0]}:{workload.tags['job_id']}"): workload.id
            for workload in self.active.values()
            if "job_id" in workload.tags
        }
        for aliases in self._aliases.values():
            numbers.update(aliases)
        return numbers

    def _believe(self, unit: UnitId, workload: WorkloadId, at: UnixMs, *, contradicts: bool) -> bool:
        if not contradicts and self.active and workload not in self.active:
            contradicts = True  # a scheduler is read and does not know this job: wait, it may be about to tell
        if not contradicts:
            return True
        since = self._disagree_since.setdefault(unit, {}).setdefault(workload, at)
        return at - since >= CONFLICT_AFTER_MS

    def _forget_disagreements(self, unit: UnitId, wanted: Collection[WorkloadId]) -> None:
        """All of a unit but with those who are ``wanted``."""
        left = {name: at for name, at in self._disagree_since.pop(unit, {}).items() if name in wanted}
        if left:
            self._disagree_since[unit] = left

    def _note(self, workloads: Iterable[Workload]) -> None:
        for workload in workloads:
            if workload.state.is_active:
                self.active[workload.id] = workload
                self._ended.pop(workload.id, None)
                self._accounted.discard(workload.id)
            else:
                self.active.pop(workload.id, None)
                self._ended[workload.id] = workload
        while len(self._ended) > RECENT_ENDED:
            oldest = self._ended.popitem(last=False)[0]
            self._guessed.pop(oldest, None)
            self._accounted.discard(oldest)

    def _note_allocations(self, allocations: Iterable[Allocation]) -> None:
        for allocation in allocations:
            if allocation.to_at is None:
                self.open[_key(allocation)] = allocation
            else:
                self.open.pop(_key(allocation), None)

    def _end_vanished(self, seen: QueueObserved) -> list[Workload]:
        """Workloads that a complete answer no longer names; how they ended is unknown, but for tasks of an ended array.

        Slurm names no task of an array whose waiting part was cancelled, only the array.
        """
        named = {workload.id: workload for workload in seen.workloads}
        gone = []
        for key, workload in self.active.items():
            if key in named or not key.startswith(f"{seen.source}:"):
                continue
            array = named.get(WorkloadId(f"{seen.source}:{workload.tags.get('array_job')}"))
            if workload.state is WorkloadState.WAITING and array is not None and not array.state.is_active:
                gone.append(replace(workload, state=array.state, ended_at=array.ended_at or seen.at))
            else:
                ended_at = max(seen.at, workload.started_at or seen.at)
                gone.append(replace(workload, state=WorkloadState.UNKNOWN, ended_at=ended_at))
        self._note(gone)
        return gone

    def _close_missing(self, held: Iterable[AllocationKey], source: str, at: UnixMs) -> list[Allocation]:
        still = set(held)
        holders = {workload for workload, _, _ in still}
        closed = []
        for key, allocation in self.open.items():
            if (
                key in still
                or allocation.source is AllocationSource.EXPORTER_LABEL
                or not allocation.workload.startswith(f"{source}:")
            ):
                continue
            ended = self._ended.get(allocation.workload)
            to_at = ended.ended_at if ended and ended.ended_at is not None else self._give_back_at(allocation, at)
            closed.append(replace(allocation, to_at=max(allocation.from_at, to_at)))
            # One that holds something still has given a part away; else it ends, and when is told later.
            if (ended is None or ended.state is WorkloadState.UNKNOWN) and allocation.workload not in holders:
                self._guessed.setdefault(allocation.workload, []).append(closed[-1])
        return closed

    def _give_back_at(self, allocation: Allocation, at: UnixMs) -> UnixMs:
        """When a workload that goes on no longer held a unit: by ``at``, and before it started again."""
        workload = self.active.get(allocation.workload)
        started_at = None if workload is None else workload.started_at
        return at if started_at is None or started_at <= allocation.from_at else min(at, started_at)

    @property
    def conflicts(self) -> int:
        """Units that an exporter labels with another workload than the scheduler names."""
        scheduled = {a.unit for a in self.open.values() if a.source is not AllocationSource.EXPORTER_LABEL}
        return len(
            {a.unit for a in self.open.values() if a.source is AllocationSource.EXPORTER_LABEL and a.unit in scheduled}
        )


def _labelled(workload: WorkloadId, unit: UnitId, at: UnixMs) -> Allocation:
    return Allocation(workload=workload, unit=unit, from_at=at, source=AllocationSource.EXPORTER_LABEL, confidence=0.9)


def _fill_unit(known: Unit, seen: Unit) -> Unit:
    """``seen`` over ``known``, but what ``seen`` does not say stays."""
    told = {f.name: value for f in fields(Unit) if (value := getattr(seen, f.name)) is not None}
    return replace(known, **told)
