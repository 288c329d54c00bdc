"""Which GPUs a workload held when, in a fixed order, and what is known of each: its place, its ranks, its hardware."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby

import numpy as np
from numpy.typing import NDArray

from clusterscape.errors import QueryError
from clusterscape.model import Allocation, Node, NodeId, Unit, UnitId, Workload
from clusterscape.model.run_units import cluster_unit
from clusterscape.query.context import QueryContext

LAYOUT_TAGS = {"tp": "tensor-parallel rank", "dp": "data-parallel rank", "pp": "pipeline stage"}
"""Sizes that a workload's tags may give, fastest varying first, as Megatron-LM orders ranks by default."""

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUnit:
    """One GPU and when it was held: ``spans`` are disjoint [from, to), by time. ``is_open``: it still is."""

    unit: UnitId
    node: NodeId | None
    index: int | None
    spans: tuple[tuple[int, int], ...]
    is_open: bool
    global_rank: int | None
    local_rank: int | None

    def clip(self, start: int, end: int) -> list[tuple[int, int]]:
        """The spans within [start, end)."""
        cut = [(max(begin, start), min(stop, end)) for begin, stop in self.spans]
        return [(begin, stop) for begin, stop in cut if begin < stop]


@dataclass(frozen=True, slots=True)
class Holding:
    """The units that a workload held within [start, end), by node and index, cut to that window.

    The end of what goes on is the next whole minute, so that questions asked together see the same window.
    """

    workload: Workload
    units: tuple[HeldUnit, ...]
    life: tuple[int, int] | None
    window: tuple[int, int] | None
    now: int

    @property
    def names(self) -> list[UnitId]:
        """The units' ids."""
        return [each.unit for each in self.units]

    @property
    def key(self) -> tuple[object, ...]:
        """What decides which samples belong to it."""
        return (self.workload.id, self.window, tuple((each.unit, each.spans) for each in self.units))

    def spans(self) -> list[list[tuple[int, int]]]:
        """When each unit was held within the window."""
        start, end = self.window or (0, 0)
        return [each.clip(start, end) for each in self.units]

    def gpu_hours(self) -> float:
        """Held within the window until now."""
        return sum(self.held_ms(spans) for spans in self.spans()) / 3_600_000

    def held_ms(self, spans: Sequence[tuple[int, int]]) -> int:
        """The length of ``spans``, without what is still to come."""
        return sum(max(0, min(stop, self.now) - begin) for begin, stop in spans)

    def mask(self, times_ms: NDArray[np.int64], *, step_ms: int = 0) -> NDArray[np.bool_]:
        """(time × unit): whether the unit was held then; with a step, at some time of the step."""
        held = np.zeros((times_ms.size, len(self.units)), np.bool_)
        for column, spans in enumerate(self.spans()):
            for begin, stop in spans:
                first = np.searchsorted(times_ms, begin - step_ms, side="right" if step_ms else "left")
                held[first : np.searchsorted(times_ms, stop, side="left"), column] = True
        return held


def find_holding(context: QueryContext, workload: Workload, start: int | None, end: int | None) -> Holding:
    """What ``workload`` held, cut to [start, end) of its life; raises QueryError for a window outside of it."""
    now = context.clock()
    until = workload.ended_at if workload.ended_at is not None else -(-now // MINUTE_MS) * MINUTE_MS
    spans: dict[UnitId, list[tuple[int, int]]] = {}
    still: set[UnitId] = set()
    for each in context.records.allocations(workload=workload.id):
        stop = min(each.to_at if each.to_at is not None else until, until)
        if each.from_at < stop:
            spans.setdefault(each.unit, []).append((each.from_at, stop))
        if _is_open(each, workload):
            still.add(each.unit)
    if not spans:
        return Holding(workload, (), None, None, now)
    life = (min(begin for each in spans.values() for begin, _ in each), max(s for e in spans.values() for _, s in e))
    window = (max(life[0], start if start is not None else life[0]), min(life[1], end if end is not None else life[1]))
    if window[0] >= window[1]:
        raise QueryError(
            "the window lies outside of the workload's life, or ends before it begins",
            hint=f"It held GPUs from {life[0]} to {life[1]} (Unix ms).",
        )
    places = {each.id: each for each in context.records.units() if each.id in spans}
    merged = {unit: _merge(each) for unit, each in spans.items()}
    units = _rank(merged, places, workload.nodes, still)
    return Holding(workload, tuple(each for each in units if each.clip(*window)), life, window, now)


def expand_units(holding: Holding, named: Sequence[str]) -> list[int]:
    """The places of the named units among the holding's; ``node:*`` names all of a node. Others' names are left out."""
    whole = {name.removesuffix(":*") for name in named if name.endswith(":*")}
    single = set(named)
    return [place for place, each in enumerate(holding.units) if each.unit in single or each.node in whole]


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


def _rank(
    spans: Mapping[UnitId, tuple[tuple[int, int], ...]],
    places: Mapping[UnitId, Unit],
    nodes: Sequence[str],
    still: set[UnitId],
) -> list[HeldUnit]:
    """Units by node and index. Ranks go in the scheduler's order of nodes; who comes later takes the ranks that are free."""
    order = {name: position for position, name in enumerate(nodes)}

    def place(unit: UnitId) -> tuple[int, str, int, str]:
        node, index = _place_of(unit, places)
        return (order.get(node or "", len(order)), node or "", -1 if index is None else index, unit)

    global_ranks: dict[UnitId, int] = {}
    local_ranks: dict[UnitId, int] = {}
    ordered = sorted(spans, key=lambda each: (spans[each][0][0], place(each)))
    for at, comers in groupby(ordered, key=lambda each: spans[each][0][0]):
        beside = [other for other in global_ranks if any(a <= at < b for a, b in spans[other])]
        free = _free_ranks({global_ranks[other] for other in beside})
        taken_here: dict[str, set[int]] = {}
        for other in beside:
            taken_here.setdefault(place(other)[1], set()).add(local_ranks[other])
        free_here: dict[str, Iterator[int]] = {}
        for unit in comers:
            node = place(unit)[1]
            global_ranks[unit] = next(free)
            local_ranks[unit] = next(free_here.setdefault(node, _free_ranks(taken_here.get(node, set()))))
    found = []
    for unit in sorted(spans, key=lambda each: place(each)[1:]):
        at_node, index = _place_of(unit, places)
        found.append(
            HeldUnit(
                unit=unit,
                node=at_node,
                index=index,
                spans=spans[unit],
                is_open=unit in still,
                global_rank=global_ranks[unit],
                local_rank=local_ranks[unit],
            )
        )
    return found


def _free_ranks(taken: set[int]) -> Iterator[int]:
    return (rank for rank in count() if rank not in taken)


def _place_of(unit: UnitId, places: Mapping[UnitId, Unit]) -> tuple[NodeId | None, int | None]:
    """From the inventory, or from the name of a unit that is gone."""
    known = places.get(unit)
    if known is not None and known.node is not None:
        return known.node, known.index
    node, _, index = cluster_unit(unit).rpartition(":")
    number = index.partition("/")[0]
    return (NodeId(node) if node else None), (int(number) if number.isdigit() else None)


def read_layout(workload: Workload, gpus: int) -> dict[str, int]:
    """Sizes of the parallel layout from the workload's tags; empty where they do not multiply to its GPUs."""
    sizes = {tag: int(workload.tags[tag]) for tag in LAYOUT_TAGS if workload.tags.get(tag, "").isdigit()}
    return sizes if sizes and int(np.prod(list(sizes.values()))) == gpus else {}


def describe_units(
    holding: Holding, nodes: Mapping[NodeId, Node], units: Mapping[UnitId, Unit]
) -> dict[str, list[str | int | None]]:
    """Attributes of each unit for the explanation; the most telling name comes first."""
    held = holding.units
    node_of = [nodes.get(each.node) if each.node else None for each in held]
    unit_of = [units.get(each.unit) for each in held]
    return {
        "local rank": [each.local_rank for each in held],
        "GPU index": [each.index for each in held],
        "node": [each.node for each in held],
        "rack": [node.rack if node else None for node in node_of],
        "machine type": [
            (unit.machine_type if unit else None) or (node.machine_type if node else None)
            for unit, node in zip(unit_of, node_of, strict=True)
        ],
        "driver": [node.driver_version if node else None for node in node_of],
        "partition": [", ".join(node.partitions) or None if node else None for node in node_of],
        "PCI bus": [_pci_bus(unit) for unit in unit_of],
        "global rank": [each.global_rank for each in held],
        **_split_ranks(holding),
    }


def keep_telling(attributes: Mapping[str, Sequence[str | int | None]]) -> dict[str, Sequence[str | int | None]]:
    """Attributes that differ between units; each that is tried makes the explanation's test stricter."""
    return {name: values for name, values in attributes.items() if len({*values} - {None}) > 1}


def _pci_bus(unit: Unit | None) -> str | None:
    """``0000:07`` of ``00000000:07:00.0``."""
    parts = unit.pci_bus_id.lower().split(":") if unit and unit.pci_bus_id else []
    return f"{parts[-3][-4:]}:{parts[-2]}" if len(parts) >= 3 else None


def _split_ranks(holding: Holding) -> dict[str, list[str | int | None]]:
    """A rank's place in each parallel dimension."""
    columns: dict[str, list[str | int | None]] = {}
    stride = 1
    for tag, size in read_layout(holding.workload, holding.workload.gpus_requested).items():
        columns[LAYOUT_TAGS[tag]] = [
            None if each.global_rank is None else each.global_rank // stride % size for each in holding.units
        ]
        stride *= size
    return columns
