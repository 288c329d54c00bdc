"""The GPUs that a workload held and when, in a fixed order, with their nodes, ranks and hardware."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby

import numpy as np
from numpy.typing import NDArray

from clusterscape.errors import QueryError
from clusterscape.model import Allocation, Node, NodeId, Unit, UnitId, Workload
from clusterscape.model.durations import MINUTE_MS
from clusterscape.model.runs import cluster_unit
from clusterscape.query.bounds import parse_count
from clusterscape.query.context import QueryContext

LAYOUT_TAGS = {"tp": "tensor-parallel rank", "dp": "data-parallel rank", "pp": "pipeline stage"}
"""Tags with parallelism sizes, fastest varying first, as Megatron-LM orders ranks by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUnit:
    """One GPU and when it was held: ``spans`` are disjoint [from, to), by time. ``is_open``: it is still held."""

    unit: UnitId
    node: NodeId | None
    index: int | None
    spans: tuple[tuple[int, int], ...]
    is_open: bool
    global_rank: int | None
    local_rank: int | None

    def clip(self, start: int, end: int) -> list[tuple[int, int]]:
        """The spans within [start, end)."""
        clipped = [(max(begin, start), min(stop, end)) for begin, stop in self.spans]
        return [(begin, stop) for begin, stop in clipped if begin < stop]


@dataclass(frozen=True, slots=True)
class WorkloadHolding:
    """The units that a workload held within the window [start, end), by node and index.

    A running workload's window ends at the next whole minute, so that concurrent queries have the same window.
    """

    workload: Workload
    units: tuple[HeldUnit, ...]
    life: tuple[int, int] | None
    window: tuple[int, int] | None
    now: int

    @property
    def names(self) -> list[UnitId]:
        """The units' ids."""
        return [held.unit for held in self.units]

    @property
    def key(self) -> tuple[object, ...]:
        """A cache key of its samples."""
        return (self.workload.id, self.window, tuple((held.unit, held.spans) for held in self.units))

    def spans(self) -> list[list[tuple[int, int]]]:
        """When each unit was held within the window."""
        start, end = self.window or (0, 0)
        return [held.clip(start, end) for held in self.units]

    def gpu_hours(self) -> float:
        """GPU-hours held within the window until now."""
        return sum(self.held_ms(spans) for spans in self.spans()) / 3_600_000

    def held_ms(self, spans: Sequence[tuple[int, int]]) -> int:
        """The length of ``spans`` until now."""
        return sum(max(0, min(stop, self.now) - begin) for begin, stop in spans)

    def mask(self, times_ms: NDArray[np.int64], *, step_ms: int = 0) -> NDArray[np.bool_]:
        """(time × unit): whether the unit was held at that time, or with ``step_ms`` at any time of that step."""
        held = np.zeros((times_ms.size, len(self.units)), np.bool_)
        for column, spans in enumerate(self.spans()):
            for begin, stop in spans:
                first = np.searchsorted(times_ms, begin - step_ms, side="right" if step_ms else "left")
                held[first : np.searchsorted(times_ms, stop, side="left"), column] = True
        return held


def find_holding(context: QueryContext, workload: Workload, start: int | None, end: int | None) -> WorkloadHolding:
    """The units that ``workload`` held in [start, end) of its life; raises QueryError for a window outside of its life."""
    now = context.clock()
    until = workload.ended_at if workload.ended_at is not None else -(-now // MINUTE_MS) * MINUTE_MS
    spans: dict[UnitId, list[tuple[int, int]]] = {}
    open_units: set[UnitId] = set()
    for allocation in context.records.allocations(workload=workload.id):
        stop = min(allocation.to_at if allocation.to_at is not None else until, until)
        if allocation.from_at < stop:
            spans.setdefault(allocation.unit, []).append((allocation.from_at, stop))
        if _is_open(allocation, workload):
            open_units.add(allocation.unit)
    if not spans:
        return WorkloadHolding(workload, (), None, None, now)
    all_spans = [span for unit_spans in spans.values() for span in unit_spans]
    life = (min(begin for begin, _ in all_spans), max(stop for _, stop in all_spans))
    window = (max(life[0], start if start is not None else life[0]), min(life[1], end if end is not None else life[1]))
    if window[0] >= window[1]:
        raise QueryError(
            "the window is outside of the workload's life, or its end is not after its start",
            hint=f"It held GPUs from {life[0]} to {life[1]} (Unix ms).",
        )
    records = {unit.id: unit for unit in context.records.units() if unit.id in spans}
    merged = {unit: _merge(unit_spans) for unit, unit_spans in spans.items()}
    units = _assign_ranks(merged, records, workload.nodes, open_units)
    return WorkloadHolding(workload, tuple(held for held in units if held.clip(*window)), life, window, now)


def expand_units(holding: WorkloadHolding, named: Sequence[str]) -> list[int]:
    """The indices of the named units in the holding; ``node:*`` names all units of a node. Unknown names are ignored."""
    nodes = {name.removesuffix(":*") for name in named if name.endswith(":*")}
    names = set(named)
    return [index for index, held in enumerate(holding.units) if held.unit in names or held.node in nodes]


def _is_open(allocation: Allocation, workload: Workload) -> bool:
    return allocation.to_at is None and workload.ended_at is None


def _merge(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for begin, stop in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((begin, stop))
    return tuple(merged)


def _assign_ranks(
    spans: Mapping[UnitId, tuple[tuple[int, int], ...]],
    units: Mapping[UnitId, Unit],
    nodes: Sequence[str],
    open_units: set[UnitId],
) -> list[HeldUnit]:
    """Units by node and index. Ranks follow the scheduler's order of nodes; units that are added later get the free ranks."""
    order = {name: position for position, name in enumerate(nodes)}

    def rank_order(unit: UnitId) -> tuple[int, str, int, str]:
        node, index = _find_location(unit, units)
        return (order.get(node or "", len(order)), node or "", -1 if index is None else index, unit)

    global_ranks: dict[UnitId, int] = {}
    local_ranks: dict[UnitId, int] = {}
    ordered = sorted(spans, key=lambda unit: (spans[unit][0][0], rank_order(unit)))
    for at, added in groupby(ordered, key=lambda unit: spans[unit][0][0]):
        concurrent = [other for other in global_ranks if any(a <= at < b for a, b in spans[other])]
        free = _free_ranks({global_ranks[other] for other in concurrent})
        used_locally: dict[str, set[int]] = {}
        for other in concurrent:
            used_locally.setdefault(rank_order(other)[1], set()).add(local_ranks[other])
        free_locally: dict[str, Iterator[int]] = {}
        for unit in added:
            node = rank_order(unit)[1]
            global_ranks[unit] = next(free)
            local_ranks[unit] = next(free_locally.setdefault(node, _free_ranks(used_locally.get(node, set()))))
    held_units = []
    for unit in sorted(spans, key=lambda unit: rank_order(unit)[1:]):
        at_node, index = _find_location(unit, units)
        held_units.append(
            HeldUnit(
                unit=unit,
                node=at_node,
                index=index,
                spans=spans[unit],
                is_open=unit in open_units,
                global_rank=global_ranks[unit],
                local_rank=local_ranks[unit],
            )
        )
    return held_units


def _free_ranks(used: set[int]) -> Iterator[int]:
    return (rank for rank in count() if rank not in used)


def _find_location(unit: UnitId, units: Mapping[UnitId, Unit]) -> tuple[NodeId | None, int | None]:
    """The node and index from the inventory, or from the id of a unit that no longer exists."""
    record = units.get(unit)
    if record is not None and record.node is not None:
        return record.node, record.index
    node, _, index = cluster_unit(unit).rpartition(":")
    return (NodeId(node) if node else None), parse_count(index.partition("/")[0])


def read_layout(workload: Workload, gpus: int) -> dict[str, int]:
    """Sizes of the parallel layout from the workload's tags; empty if their product is not its number of GPUs."""
    tags = {tag: parse_count(workload.tags.get(tag, "")) for tag in LAYOUT_TAGS}
    sizes = {tag: size for tag, size in tags.items() if size is not None}
    return sizes if sizes and math.prod(sizes.values()) == gpus else {}


def describe_units(
    holding: WorkloadHolding, nodes: Mapping[NodeId, Node], units: Mapping[UnitId, Unit]
) -> dict[str, list[str | int | None]]:
    """Attributes of each unit for the explanation, preferred names first."""
    held_units = holding.units
    node_of = [nodes.get(held.node) if held.node else None for held in held_units]
    unit_of = [units.get(held.unit) for held in held_units]
    return {
        "local rank": [held.local_rank for held in held_units],
        "GPU index": [held.index for held in held_units],
        "node": [held.node for held in held_units],
        "rack": [node.rack if node else None for node in node_of],
        "machine type": [
            (unit.machine_type if unit else None) or (node.machine_type if node else None)
            for unit, node in zip(unit_of, node_of, strict=True)
        ],
        "driver": [node.driver_version if node else None for node in node_of],
        "partition": [", ".join(node.partitions) or None if node else None for node in node_of],
        "PCI bus": [_pci_bus(unit) for unit in unit_of],
        "global rank": [held.global_rank for held in held_units],
        **_split_ranks(holding),
    }


def drop_constant(attributes: Mapping[str, Sequence[str | int | None]]) -> dict[str, Sequence[str | int | None]]:
    """Attributes that differ between units; every tested attribute makes the test of the explanation stricter."""
    return {name: values for name, values in attributes.items() if len({*values} - {None}) > 1}


def _pci_bus(unit: Unit | None) -> str | None:
    """``0000:07`` of ``00000000:07:00.0``."""
    parts = unit.pci_bus_id.lower().split(":") if unit and unit.pci_bus_id else []
    return f"{parts[-3][-4:]}:{parts[-2]}" if len(parts) >= 3 else None


def _split_ranks(holding: WorkloadHolding) -> dict[str, list[str | int | None]]:
    """The rank of each unit in each parallel dimension."""
    columns: dict[str, list[str | int | None]] = {}
    stride = 1
    for tag, size in read_layout(holding.workload, holding.workload.gpus_requested).items():
        columns[LAYOUT_TAGS[tag]] = [
            None if held.global_rank is None else held.global_rank // stride % size for held in holding.units
        ]
        stride *= size
    return columns
