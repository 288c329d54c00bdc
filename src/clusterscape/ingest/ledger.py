"""The current nodes, units, workloads and allocations, and what an observation changes in them.

Pure: takes observations and returns the records to write. Neither stores nor reads a clock.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from clusterscape.ingest.executions import is_settled, merge_history, merge_queued
from clusterscape.ingest.node_merging import NodeMerger
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
from clusterscape.model.runs import is_run_unit

UNCLAIMED_AFTER_MS = 10 * 60_000
"""A node from an earlier run of the server that no source reports within this time is removed."""

CONFLICT_AFTER_MS = 120_000
"""A label that contradicts the scheduler for less than this is ignored: both were read at different times of a job change."""

RECENT_ENDED = 20_000

EXPORTERS = "exporters"
"""The source name under which all exporters claim nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryChange:
    """Inventory records to write and to remove."""

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
    """What exporters report in addition to samples: new or changed hardware, and the jobs that a GPU is labelled with.

    ``missing_units``: units that are no longer reported, for example because their exporter was matched to another node.
    """

    nodes: Sequence[Node] = ()
    units: Sequence[Unit] = ()
    missing_units: Sequence[UnitId] = ()
    missing_nodes: Sequence[NodeId] = ()
    labels: Mapping[UnitId, Sequence[WorkloadId]] = field(default_factory=dict)


AllocationKey = tuple[WorkloadId, UnitId, UnixMs]


def _key(allocation: Allocation) -> AllocationKey:
    return (allocation.workload, allocation.unit, allocation.from_at)


class Ledger:
    """The current state of the cluster."""

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
        """``expires_unclaimed``: remove nodes of an earlier run that no source reports; false if other processes collect, too."""
        self.nodes = {node.id: node for node in nodes}
        self.partitions = {partition.name: partition for partition in partitions}
        self.units = {unit.id: unit for unit in units}
        self.active = {workload.id: workload for workload in workloads}
        self.open = {_key(allocation): allocation for allocation in allocations}
        self._ended: OrderedDict[WorkloadId, Workload] = OrderedDict()
        self._accounted: set[WorkloadId] = set()  # ended workloads that are known from the accounting
        self._estimated_ends: dict[WorkloadId, list[Allocation]] = {}  # closed at the poll that no longer had them
        self._unclaimed = set(self.nodes) if expires_unclaimed else set()
        self._claims: dict[str, set[NodeId]] = {}
        self._places: dict[str, set[UnitId]] = {}  # units without a UUID, by the source that last reported them
        self._instances: dict[str, set[UnitId]] = {}  # MIG instances by the source that last reported them
        self._partition_names: dict[str, set[str]] = {}  # by the source that last reported them
        self._old_partitions = set(self.partitions)  # of an earlier run of the server
        self._aliases: dict[str, Mapping[WorkloadId, WorkloadId]] = {}  # by source
        self._node_merger = NodeMerger()
        self._hardware = {node.id: node for node in self.nodes.values() if node.driver_version is not None}
        self._conflict_since: dict[UnitId, dict[WorkloadId, UnixMs]] = {}
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
        """Replace the state by that of the store, into which other processes write; claims of sources are kept."""
        self.nodes = {node.id: node for node in nodes}
        self.partitions = {partition.name: partition for partition in partitions}
        self.units = {unit.id: unit for unit in units}
        self.active = {workload.id: workload for workload in workloads}
        self.open = {_key(allocation): allocation for allocation in allocations}
        self._unclaimed &= self.nodes.keys()
        self._hardware |= {node.id: node for node in self.nodes.values() if node.driver_version is not None}

    def has_workload(self, workload: WorkloadId) -> bool:
        """Whether a workload is active or ended recently."""
        return workload in self.active or workload in self._ended

    # inventory

    def apply_inventory(self, inventory: InventoryObserved) -> InventoryChange:
        """Apply a scheduler's nodes; hardware facts from exporters are kept."""
        inventory = self._without_duplicates(inventory)
        named = {node.id for node in inventory.nodes}
        self._places[inventory.source] = {unit.id for unit in inventory.units if unit.uuid is None}
        merged = self._node_merger.merge(inventory)
        nodes = [node for node in map(self._with_hardware, merged) if self.nodes.get(node.id) != node]
        partitions = [p for p in inventory.partitions if self.partitions.get(p.name) != p]
        units = self._merge_units(inventory.units)
        moved = self._find_moved(units)
        units = [*self._emptied_places((), moved - {unit.id for unit in units}), *units]
        removed: list[NodeId] = []
        # An empty but "complete" response means a failing scheduler, not a cluster without nodes.
        if inventory.is_complete and named:
            removed = sorted(
                self._claims.get(inventory.source, set()) - named - self._node_merger.nodes_of_others(inventory.source)
            )
        self._claim(inventory.source, named, inventory.at, replace_claims=inventory.is_complete and bool(named))
        removed += self._expire_unclaimed(inventory.at)
        change = self._apply(nodes, partitions, units, removed)
        moved -= self._scheduled_places() | {unit.id for unit in units}
        if not (inventory.is_complete and named):
            return replace(change, removed_units=self._forget_units(lambda unit: unit.id in moved)) if moved else change
        instances = {unit.id for unit in inventory.units if unit.kind is UnitKind.MIG}
        lost = self._instances.get(inventory.source, set()) - instances
        self._instances[inventory.source] = instances
        return replace(
            change,
            removed_partitions=self._forget_partitions(inventory),
            removed_units=self._forget_units(
                lambda unit: self._is_pulled(unit, named) or unit.id in lost or unit.id in moved
            ),
        )

    def apply_hardware(self, facts: ExporterFacts, *, source: str, at: UnixMs) -> InventoryChange:
        """Apply hardware facts from exporters; state, partitions and reason of nodes stay the scheduler's."""
        nodes: list[Node] = []
        for fact in facts.nodes:
            self._hardware[fact.id] = fact
            stored = self.nodes.get(fact.id)
            merged = self._with_hardware(stored) if stored else fact
            if merged != stored:
                nodes.append(merged)
        self._claim(source, {fact.id for fact in facts.nodes}, at, replace_claims=False)
        units = self._merge_units(facts.units)
        moved = self._find_moved(units)
        removed = self._release_nodes(facts.missing_nodes, source)
        change = self._apply(nodes, [], [*self._emptied_places(facts.missing_units, moved), *units], removed)
        lost = ({*facts.missing_units, *moved} - self._scheduled_places()) & self.units.keys()
        return replace(change, removed_units=self._forget_units(lambda unit: unit.id in lost)) if lost else change

    def scheduled_nodes(self) -> list[Node]:
        """The nodes of schedulers, including those of an earlier run."""
        claimed = {node for source, nodes in self._claims.items() if source != EXPORTERS for node in nodes}
        return [
            node
            for node in self.nodes.values()
            if node.id in claimed or node.partitions or node.state is not NodeState.UNKNOWN
        ]

    @property
    def schedulers(self) -> set[str]:
        """Sources, other than exporters, that have reported nodes in this run."""
        return self._claims.keys() - {EXPORTERS}

    def nodes_of(self, sources: Iterable[str]) -> list[Node]:
        """The nodes of these sources."""
        named = set().union(*(self._claims.get(source, set()) for source in sources))
        return [self.nodes[node] for node in sorted(named) if node in self.nodes]

    def uuid_nodes(self) -> dict[GpuUuid, NodeId]:
        """The node of each GPU, for nodes of schedulers."""
        scheduled = {node.id for node in self.scheduled_nodes()}
        return {
            unit.uuid: unit.node
            for unit in self.units.values()
            if unit.uuid is not None and unit.node is not None and unit.node in scheduled
        }

    def _without_duplicates(self, inventory: InventoryObserved) -> InventoryObserved:
        """Drop GPUs that an exporter reports elsewhere, and nodes that have no others: the same host under another name."""
        if all(unit.uuid is None for unit in inventory.units):
            return inventory
        own = {unit.id for unit in inventory.units}
        homes = {
            unit.uuid: unit.id
            for unit in self.units.values()
            if unit.uuid is not None and unit.id not in own and unit.node not in self._unclaimed
        }
        duplicates = {
            unit.id for unit in inventory.units if unit.uuid is not None and homes.get(unit.uuid, unit.id) != unit.id
        }
        if not duplicates:
            return inventory
        units = [unit for unit in inventory.units if unit.id not in duplicates]
        emptied = {unit.node for unit in inventory.units if unit.id in duplicates} - {unit.node for unit in units}
        return replace(inventory, units=units, nodes=[node for node in inventory.nodes if node.id not in emptied])

    def _find_moved(self, units: Sequence[Unit]) -> set[UnitId]:
        """Former places of GPUs that are now reported elsewhere."""
        homes = {unit.uuid: unit.id for unit in units if unit.uuid is not None}
        if not homes:
            return set()
        return {
            unit.id
            for unit in self.units.values()
            if unit.uuid is not None and homes.get(unit.uuid, unit.id) != unit.id
        }

    def _scheduled_places(self) -> set[UnitId]:
        """Units that a scheduler counts, whichever GPU they have."""
        return set().union(*self._places.values())

    def _emptied_places(self, missing_units: Iterable[UnitId], moved: Iterable[UnitId]) -> list[Unit]:
        """Units that remain although their GPU was removed, without its UUID."""
        left = {*missing_units, *moved} & self._scheduled_places() & self.units.keys()
        return [replace(self.units[unit], uuid=None, pci_bus_id=None) for unit in sorted(left)]

    def _release_nodes(self, nodes: Iterable[NodeId], source: str) -> list[NodeId]:
        """Nodes that only exporters reported, and no longer do."""
        released = set(nodes)
        self._claims.get(source, set()).difference_update(released)
        for node in released:
            self._hardware.pop(node, None)
        scheduled = {node.id for node in self.scheduled_nodes()}
        return sorted(released - scheduled)

    def _is_pulled(self, unit: Unit, named: set[NodeId]) -> bool:
        """Whether the scheduler no longer counts this GPU in its node."""
        if unit.kind is not UnitKind.GPU or unit.node not in named or unit.index is None:
            return False
        gpu_count = self.nodes[unit.node].gpu_count
        return 0 < gpu_count <= unit.index

    def _forget_partitions(self, inventory: InventoryObserved) -> list[str]:
        """Remove partitions that no scheduler reports. Those of an earlier run are kept for UNCLAIMED_AFTER_MS."""
        named = {partition.name for partition in inventory.partitions}
        if not named:
            return []
        lost = self._partition_names.get(inventory.source, set()) - named
        self._partition_names[inventory.source] = named
        kept: set[str] = set().union(*self._partition_names.values())
        if self._first_at is not None and inventory.at - self._first_at >= UNCLAIMED_AFTER_MS:
            lost |= self._old_partitions
            self._old_partitions = set()
        removed = sorted((lost - kept) & self.partitions.keys())
        for name in removed:
            del self.partitions[name]
        return removed

    def _forget_units(self, is_gone: Callable[[Unit], bool]) -> list[UnitId]:
        removed = [unit.id for unit in self.units.values() if is_gone(unit)]
        for unit in removed:
            del self.units[unit]
        return removed

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

    def _merge_units(self, units: Iterable[Unit]) -> list[Unit]:
        changed = []
        for unit in units:
            stored = self.units.get(unit.id)
            merged = unit if stored is None else _fill_unit(stored, unit)
            if merged != stored:
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
        expired, self._unclaimed = sorted(self._unclaimed), set()
        return expired

    def _apply(
        self, nodes: list[Node], partitions: list[Partition], units: list[Unit], removed: list[NodeId]
    ) -> InventoryChange:
        self.nodes.update((node.id, node) for node in nodes)
        self.partitions.update((partition.name, partition) for partition in partitions)
        self.units.update((unit.id, unit) for unit in units)
        for node in removed:
            self.nodes.pop(node, None)
            self._hardware.pop(node, None)
        if removed:
            lost = set(removed)
            self.units = {key: unit for key, unit in self.units.items() if unit.node not in lost}
        return InventoryChange(nodes=nodes, partitions=partitions, units=units, removed=removed)

    # queue

    def find_unknown(self, workloads: Iterable[Workload]) -> list[WorkloadId]:
        """Workloads that may only be in the store: they ended long ago, or before the server started."""
        return [workload.id for workload in workloads if not self.has_workload(workload.id)]

    def apply_queue(self, queue: QueueObserved, stored: Mapping[WorkloadId, Workload] | None = None) -> QueueChange:
        """Apply active workloads and their allocations; workloads that a complete response no longer has, have ended.

        ``stored``: stored records of workloads that are unknown here.
        """
        workloads = self._changed(queue, stored or {})
        self._remember(workloads)
        if queue.is_complete:
            workloads += self._end_vanished(queue)
        self._aliases[queue.source] = queue.aliases
        held = {_key(allocation): allocation for allocation in self._place(queue.allocations)}
        allocations = [a for key, a in held.items() if self.open.get(key) != a]
        allocations += self._correct_ends(workloads)
        if queue.is_complete:
            allocations += self._close_missing(held.keys(), queue.source, queue.at)
        self._remember_allocations(allocations)
        renamed = self._accept_renamed(queue)
        self._remember_allocations(renamed)
        allocations += renamed
        ended_claims = self._end_run_claims(allocations)
        self._remember_allocations(ended_claims)
        allocations += ended_claims
        return QueueChange(workloads=workloads, allocations=allocations)

    def _end_run_claims(self, begun: Sequence[Allocation]) -> list[Allocation]:
        """Tracked runs claim their GPUs themselves; a claim ends if another source assigns the unit to another user."""
        holders = {held.unit: held for held in begun if held.to_at is None and not is_run_unit(held.workload)}
        claims = [claim for claim in self.open.values() if claim.unit in holders and is_run_unit(claim.workload)]
        return [
            replace(claim, to_at=max(claim.from_at, holders[claim.unit].from_at))
            for claim in claims
            if self._user_of(claim.workload) != self._user_of(holders[claim.unit].workload)
        ]

    def _user_of(self, workload: WorkloadId) -> str | None:
        record = self.active.get(workload) or self._ended.get(workload)
        return None if record is None else record.user

    def _changed(self, queue: QueueObserved, stored: Mapping[WorkloadId, Workload]) -> list[Workload]:
        changed = []
        for workload in queue.workloads:
            current = self.active.get(workload.id) or self._ended.get(workload.id)
            before = current or stored.get(workload.id)
            if before is not None and workload.id in self._accounted and is_settled(before, workload):
                continue
            merged = merge_queued(before, workload, queue.at)
            if merged != current:
                changed.append(merged)
        return changed

    def _accept_renamed(self, queue: QueueObserved) -> list[Allocation]:
        """Accept labels whose pod the scheduler reports only now, if no other workload holds the unit."""
        aliases = queue.aliases
        waiting = [(unit, name) for unit, names in self._conflict_since.items() for name in names if name in aliases]
        for unit, name in waiting:
            self._forget_conflicts(unit, self._conflict_since[unit].keys() - {name})
        renamed = [a for a in self.open.values() if a.workload in aliases] if aliases else []
        held = {a.unit for a in self.open.values()} if waiting else set()
        changes = [_labelled(aliases[name], unit, queue.at) for unit, name in waiting if unit not in held]
        for allocation in renamed:  # nothing was held under the pod's own name
            changes += [
                replace(allocation, to_at=allocation.from_at),
                replace(allocation, workload=aliases[allocation.workload]),
            ]
        return changes

    def _place(self, allocations: Sequence[Allocation]) -> Iterable[Allocation]:
        """Replace UUIDs by the units where an exporter reports them; allocations of unknown UUIDs are dropped."""
        if all(":" in allocation.unit for allocation in allocations):
            return allocations
        places = {str(unit.uuid): unit.id for unit in self.units.values() if unit.uuid is not None}
        placed = ((places.get(allocation.unit, allocation.unit), allocation) for allocation in allocations)
        return [replace(allocation, unit=unit) for unit, allocation in placed if ":" in unit]

    def apply_history(
        self, history: HistoryObserved, stored: Mapping[WorkloadId, Workload] | None = None
    ) -> QueueChange:
        """Apply ended workloads of the accounting, merged with their records from the queue.

        ``stored``: stored records of workloads that are unknown here.
        """
        workloads = []
        for workload in history.workloads:
            if workload.state.is_active:
                continue
            current = self._ended.get(workload.id) or self.active.get(workload.id) or (stored or {}).get(workload.id)
            merged = merge_history(current, workload)
            if merged != current:
                workloads.append(merged)
            if not merged.state.is_active:
                self._ended[merged.id] = merged
                self._accounted.add(merged.id)
        self._remember(workloads)
        allocations = [*self._correct_ends(history.workloads), *history.allocations]
        self._remember_allocations(allocations)
        return QueueChange(workloads=workloads, allocations=allocations)

    def _correct_ends(self, ended: Iterable[Workload]) -> list[Allocation]:
        """Correct allocations that were closed at a poll to the exact end of their execution, where it is known now."""
        closed = []
        for workload in ended:
            estimated = self._estimated_ends.get(workload.id)
            if not estimated:
                continue
            ends = {
                execution.started_at: execution.ended_at for execution in workload.earlier if not execution.is_estimated
            }
            if not workload.state.is_active and workload.state is not WorkloadState.UNKNOWN and workload.ended_at:
                for held in estimated:
                    if workload.started_at in (None, held.from_at):  # else it has been requeued since
                        ends.setdefault(held.from_at, workload.ended_at)
            exact = [held for held in estimated if held.from_at in ends]
            closed += [replace(held, to_at=max(held.from_at, ends[held.from_at])) for held in exact]
            self._estimated_ends[workload.id] = [held for held in estimated if held.from_at not in ends]
            if not self._estimated_ends[workload.id]:
                del self._estimated_ends[workload.id]
        return closed

    def forget(self, workload: WorkloadId) -> None:
        """Remove a deleted workload."""
        self.active.pop(workload, None)
        self._ended.pop(workload, None)
        self._estimated_ends.pop(workload, None)
        self.open = {key: held for key, held in self.open.items() if held.workload != workload}

    def apply_labels(self, facts: ExporterFacts, at: UnixMs) -> QueueChange:
        """Apply holders by exporter labels: accepted if the scheduler names no holder, else recorded as a conflict."""
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
            accepted = labelled.get(unit, {})
            changes += [
                _labelled(workload, unit, at)
                for workload in sorted(wanted - accepted.keys())
                if self._is_accepted(unit, workload, at, contradicts=contradicts)
            ]
            ended = (held for workload, held in accepted.items() if workload not in wanted)
            changes += [replace(held, to_at=max(held.from_at, at)) for held in ended]  # clocks may go back
            self._forget_conflicts(unit, wanted)
        self._remember_allocations(changes)
        return QueueChange(allocations=changes)

    def _workloads_by_number(self) -> dict[WorkloadId, WorkloadId]:
        """Workloads by the names in labels: the scheduler's raw job number, which ids of array tasks do not contain, or a pod."""
        numbers = {
            WorkloadId(f"{workload.id.partition(':')[0]}:{workload.tags['job_id']}"): workload.id
            for workload in self.active.values()
            if "job_id" in workload.tags
        }
        for aliases in self._aliases.values():
            numbers.update(aliases)
        return numbers

    def _is_accepted(self, unit: UnitId, workload: WorkloadId, at: UnixMs, *, contradicts: bool) -> bool:
        if not contradicts and self.active and workload not in self.active:
            contradicts = True  # the scheduler does not report this job yet: wait for its next response
        if not contradicts:
            return True
        since = self._conflict_since.setdefault(unit, {}).setdefault(workload, at)
        return at - since >= CONFLICT_AFTER_MS

    def _forget_conflicts(self, unit: UnitId, wanted: Collection[WorkloadId]) -> None:
        """Forget the conflicts of a unit, except those with ``wanted`` workloads."""
        left = {name: at for name, at in self._conflict_since.pop(unit, {}).items() if name in wanted}
        if left:
            self._conflict_since[unit] = left

    def _remember(self, workloads: Iterable[Workload]) -> None:
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
            self._estimated_ends.pop(oldest, None)
            self._accounted.discard(oldest)

    def _remember_allocations(self, allocations: Iterable[Allocation]) -> None:
        for allocation in allocations:
            if allocation.to_at is None:
                self.open[_key(allocation)] = allocation
            else:
                self.open.pop(_key(allocation), None)

    def _end_vanished(self, queue: QueueObserved) -> list[Workload]:
        """Workloads that a complete response no longer has; how they ended is unknown, except for tasks of an ended array.

        After the waiting tasks of an array were cancelled, Slurm reports only the array.
        """
        named = {workload.id: workload for workload in queue.workloads}
        ended = []
        for key, workload in self.active.items():
            if key in named or not key.startswith(f"{queue.source}:"):
                continue
            array = named.get(WorkloadId(f"{queue.source}:{workload.tags.get('array_job')}"))
            if workload.state is WorkloadState.WAITING and array is not None and not array.state.is_active:
                ended.append(replace(workload, state=array.state, ended_at=array.ended_at or queue.at))
            else:
                ended_at = max(queue.at, workload.started_at or queue.at)
                ended.append(replace(workload, state=WorkloadState.UNKNOWN, ended_at=ended_at))
        self._remember(ended)
        return ended

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
            to_at = ended.ended_at if ended and ended.ended_at is not None else self._released_at(allocation, at)
            closed.append(replace(allocation, to_at=max(allocation.from_at, to_at)))
            # A workload that still holds units was resized; otherwise it ended, and the exact end follows with the accounting.
            if (ended is None or ended.state is WorkloadState.UNKNOWN) and allocation.workload not in holders:
                self._estimated_ends.setdefault(allocation.workload, []).append(closed[-1])
        return closed

    def _released_at(self, allocation: Allocation, at: UnixMs) -> UnixMs:
        """When a workload that still runs released a unit: by ``at``, and before it started again."""
        workload = self.active.get(allocation.workload)
        started_at = None if workload is None else workload.started_at
        return at if started_at is None or started_at <= allocation.from_at else min(at, started_at)

    @property
    def conflicts(self) -> int:
        """Number of units whose label names another workload than the scheduler."""
        scheduled = {a.unit for a in self.open.values() if a.source is not AllocationSource.EXPORTER_LABEL}
        return len(
            {a.unit for a in self.open.values() if a.source is AllocationSource.EXPORTER_LABEL and a.unit in scheduled}
        )


def _labelled(workload: WorkloadId, unit: UnitId, at: UnixMs) -> Allocation:
    return Allocation(workload=workload, unit=unit, from_at=at, source=AllocationSource.EXPORTER_LABEL, confidence=0.9)


def _fill_unit(unit: Unit, observed: Unit) -> Unit:
    """``unit`` updated with the non-empty fields of ``observed``."""
    values = {f.name: value for f in fields(Unit) if (value := getattr(observed, f.name)) is not None}
    return replace(unit, **values)
