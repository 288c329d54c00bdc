"""Prepares an operator graph to be drawn as an execution flow: blocks between sends and receives in a valid execution order,
classes of edges, and the namespace in which every operator is drawn. ``flow.py`` decides what is shown.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl

EdgeClass = Literal[
    "data", "activation_gradient", "update_state", "load", "depend", "hub", "send_receive", "sequence"
]  # fmt: skip

ORDERING = frozenset({"UpdateState", "Depend", "Load", "MakeTuple", "TupleGetItem"})
"""Operators that compute nothing: they pass a tensor on, or impose an order."""
PASS_THROUGH = frozenset({"Depend", "TupleGetItem"})
HUB_EDGES = 12
"""An operator with at least this many consumers or inputs is a hub."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between rows of the operator table; ``shard``: how its tensor is split, None if unknown."""

    source: int
    target: int
    edge_class: EdgeClass
    shard: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class GraphBlock:
    """Operators of one stage between two messages. ``after``: blocks that must run before, all with lower numbers."""

    stage: int | None
    operators: tuple[int, ...]
    after: tuple[int, ...]


class FlowGraph:
    """An operator graph with its blocks and namespaces. ``operators`` has the columns of ``model/spans.py``; ``layers``:
    namespaces known to be layers of one kind, which are closed and stacked at first.
    """

    def __init__(self, operators: pl.DataFrame, layers: Collection[str] = ()) -> None:
        self.operators = operators
        self.layers = frozenset(layers)
        self.absorb_limit: int | None = None
        """How many foreign operators a namespace absorbs; chosen when first drawn (``flow.py``)."""
        self.stage: list[int | None] = operators["stage"].to_list()
        self.types: list[str] = operators["type"].to_list()
        self.spaces: list[str] = operators["namespace"].to_list()
        self.shapes: list[str | None] = operators["shape"].to_list()
        # Rows are in execution order: a later row cannot be an input within this step.
        self.inputs = [
            [source for source in inputs or [] if source < row]
            for row, inputs in enumerate(operators["inputs"].to_list())
        ]
        self.message: list[str | None] = operators["message"].to_list()
        self.home = _find_homes(self.types, self.spaces, self.inputs)
        self.messages = _pair_messages(self.message, operators["message_key"].to_list())
        cut = _cut_blocks(self.stage, self.message, self.types)
        self.blocks = _order_blocks(cut, self.stage, self.messages)
        self.block = [0] * len(self.stage)
        for number, block in enumerate(self.blocks):
            for row in block.operators:
                self.block[row] = number

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """Every namespace in which operators are drawn, and its ancestors; the index is its number."""
        paths: set[str] = set()
        for path in set(self.home):
            parts = path.split("/") if path else []
            paths.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
        return tuple(sorted(paths))

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Dependencies between operators; never from a later block to an earlier one."""
        shards = self._find_shards()
        is_timed = self.operators["span"].is_not_null().to_list()
        consumers = Counter(source for inputs in self.inputs for source in inputs)
        hubs = {row for row, count in consumers.items() if count >= HUB_EDGES}
        hubs |= {row for row, inputs in enumerate(self.inputs) if len(inputs) >= HUB_EDGES}
        edges = [
            Edge(
                source,
                target,
                "sequence" if is_timed[target] else self._classify(source, target, source in hubs or target in hubs),
                shards.get((target, place)),
            )
            for target, inputs in enumerate(self.inputs)
            for place, source in enumerate(inputs)
        ]
        edges += [
            Edge(send, receive, "send_receive", shards.get((receive, 0)))
            for send, receive in self.messages
            if self.block[send] < self.block[receive]
        ]
        return tuple(edges)

    def _find_shards(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Shards by (operator, index of its input). A pass-through operator gets the shards of its consumer."""
        shards_of: dict[tuple[int, int], tuple[int, ...]] = {}
        for row, row_shards in enumerate(self.operators["shards"].to_list()):
            shards_of |= {(row, place): tuple(shard) for place, shard in enumerate(row_shards or []) if shard}
        for row in range(len(self.types) - 1, -1, -1):
            for place, source in enumerate(self.inputs[row]):
                if (row, place) in shards_of and self.types[source] in PASS_THROUGH:
                    shards_of.setdefault((source, 0), shards_of[row, place])
        return shards_of

    def _classify(self, source: int, target: int, is_hub: bool) -> EdgeClass:
        ends = (self.types[source], self.types[target])
        if "UpdateState" in ends:
            return "update_state"
        if ends[0] == "Load":
            return "load"
        if "Depend" in ends and not self._passes_tensor(source, target):
            return "depend"
        if self.spaces[target].startswith("Gradients") and not self.spaces[source].startswith("Gradients"):
            return "activation_gradient"
        return "hub" if is_hub else "data"

    def _passes_tensor(self, source: int, target: int) -> bool:
        """Whether the edge into or out of a ``Depend`` carries the tensor: into it, if the output has the same shape; out of it,
        if it has a shape at all. Else it only imposes an order.
        """
        if self.types[target] == "Depend":
            return self.shapes[source] is not None and self.shapes[source] == self.shapes[target]
        return self.shapes[source] is not None


def _find_homes(types: Sequence[str], spaces: Sequence[str], inputs: Sequence[Sequence[int]]) -> list[str]:
    """The namespace in which each operator is drawn: for an ordering operator, that of its first consumer, else of its last
    input.
    """
    home = list(spaces)
    consumer: dict[int, int] = {}
    for target in range(len(types)):
        for source in inputs[target]:
            consumer.setdefault(source, target)
    for row in range(len(types) - 1, -1, -1):
        if types[row] in ORDERING and row in consumer:
            home[row] = home[consumer[row]]
    for row, operator_type in enumerate(types):
        if operator_type in ORDERING and row not in consumer and inputs[row]:
            home[row] = home[inputs[row][-1]]
    return home


def _pair_messages(message: Sequence[str | None], keys: Sequence[str | None]) -> list[tuple[int, int]]:
    """Pair the n-th send of a key with its n-th receive."""
    ends: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for row, (kind, key) in enumerate(zip(message, keys, strict=True)):
        if kind is not None and key is not None:
            ends[key][0 if kind == "send" else 1].append(row)
    return [pair for sends, receives in ends.values() for pair in zip(sends, receives, strict=False)]


def _cut_blocks(stages: Sequence[int | None], message: Sequence[str | None], types: Sequence[str]) -> list[list[int]]:
    """A receive starts a block and a send ends one; a block must not consist of ordering operators only."""
    blocks: list[list[int]] = []
    open_block: dict[int | None, list[int]] = {}
    for row, stage in enumerate(stages):
        current = open_block.get(stage)
        begins = (
            message[row] == "recv"
            and current is not None
            and any(types[operator] not in ORDERING for operator in current)
        )
        if current is None or begins:
            current = []
            blocks.append(current)
            open_block[stage] = current
        current.append(row)
        if message[row] == "send":
            del open_block[stage]
    return blocks


def _order_blocks(
    cut: Sequence[Sequence[int]], stages: Sequence[int | None], messages: Sequence[tuple[int, int]]
) -> tuple[GraphBlock, ...]:
    """Blocks in a valid execution order; a message that would create a cycle is not waited for."""
    owner = {row: number for number, rows in enumerate(cut) for row in rows}
    waits: list[set[int]] = [set() for _ in cut]
    before: dict[int | None, int] = {}
    for number, rows in enumerate(cut):
        stage = stages[rows[0]]
        if stage in before:
            waits[number].add(before[stage])
        before[stage] = number
    for send, receive in messages:
        if owner[send] != owner[receive]:
            waits[owner[receive]].add(owner[send])
    order = _sort_blocks(waits)
    place = {number: at for at, number in enumerate(order)}
    return tuple(
        GraphBlock(
            stages[cut[number][0]],
            tuple(cut[number]),
            tuple(sorted(place[other] for other in waits[number] if place[other] < place[number])),
        )
        for number in order
    )


def _sort_blocks(waits: Sequence[set[int]]) -> list[int]:
    remaining = [len(blocking) for blocking in waits]
    followers: dict[int, list[int]] = defaultdict(list)
    for number, blocking in enumerate(waits):
        for other in blocking:
            followers[other].append(number)
    ready = [number for number, count in enumerate(remaining) if not count]
    heapq.heapify(ready)
    done: set[int] = set()
    order: list[int] = []
    while len(order) < len(waits):
        # If blocks wait for each other, the first remaining one goes ahead.
        number = heapq.heappop(ready) if ready else next(other for other in range(len(waits)) if other not in done)
        if number in done:
            continue
        done.add(number)
        order.append(number)
        for follower in followers[number]:
            remaining[follower] -= 1
            if remaining[follower] == 0:
                heapq.heappush(ready, follower)
    return order
