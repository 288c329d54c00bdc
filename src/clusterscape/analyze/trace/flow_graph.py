"""An operator graph made ready to be drawn as an execution flow: blocks cut at sends and receives and put in the order they can
run, classes of edges, and the namespace every operator is drawn in. Which of it is shown is decided in ``flow.py``.
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
"""Operators that compute nothing: they hand on, or say what comes first."""
HANDING_ON = frozenset({"Depend", "TupleGetItem"})
HUB_EDGES = 12
"""An operator that this many others take from or give to."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Between rows of the operator table; ``shard``: how the tensor on it is split, where that is known."""

    source: int
    target: int
    edge_class: EdgeClass
    shard: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Operators of one stage between two messages. ``after``: blocks that must have run, all of lower number."""

    stage: int | None
    operators: tuple[int, ...]
    after: tuple[int, ...]


class FlowGraph:
    """``operators`` has the columns of ``model/operators.py``; blocks and their order are found once. ``layers``: namespaces
    known to be layers of one kind, which are drawn closed and stacked at first.
    """

    def __init__(self, operators: pl.DataFrame, layers: Collection[str] = ()) -> None:
        self.operators = operators
        self.layers = frozenset(layers)
        self.few_operators: int | None = None
        """How many strangers a namespace takes in; found when first drawn (``flow.py``)."""
        self.stage: list[int | None] = operators["stage"].to_list()
        self.types: list[str] = operators["type"].to_list()
        self.spaces: list[str] = operators["namespace"].to_list()
        self.shapes: list[str | None] = operators["shape"].to_list()
        # Rows are in the order of execution: what would come later is no input of this step.
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
        """Every namespace operators are drawn in, and those around them; its place is its number."""
        found: set[str] = set()
        for path in set(self.home):
            parts = path.split("/") if path else []
            found.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
        return tuple(sorted(found))

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """What depends on what; never from a later block to an earlier one."""
        shards = self._find_shards()
        is_timed = self.operators["span"].is_not_null().to_list()
        taken = Counter(source for inputs in self.inputs for source in inputs)
        hubs = {row for row, count in taken.items() if count >= HUB_EDGES}
        hubs |= {row for row, inputs in enumerate(self.inputs) if len(inputs) >= HUB_EDGES}
        found = [
            Edge(
                source,
                target,
                "sequence" if is_timed[target] else self._classify(source, target, source in hubs or target in hubs),
                shards.get((target, place)),
            )
            for target, inputs in enumerate(self.inputs)
            for place, source in enumerate(inputs)
        ]
        found += [
            Edge(send, receive, "send_receive", shards.get((receive, 0)))
            for send, receive in self.messages
            if self.block[send] < self.block[receive]
        ]
        return tuple(found)

    def _find_shards(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """By operator and place of its input. What only hands a tensor on takes it as the next one does."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for row, own in enumerate(self.operators["shards"].to_list()):
            found |= {(row, place): tuple(shard) for place, shard in enumerate(own or []) if shard}
        for row in range(len(self.types) - 1, -1, -1):
            for place, source in enumerate(self.inputs[row]):
                if (row, place) in found and self.types[source] in HANDING_ON:
                    found.setdefault((source, 0), found[row, place])
        return found

    def _classify(self, source: int, target: int, is_hub: bool) -> EdgeClass:
        ends = (self.types[source], self.types[target])
        if "UpdateState" in ends:
            return "update_state"
        if ends[0] == "Load":
            return "load"
        if "Depend" in ends and not self._hands_on(source, target):
            return "depend"
        if self.spaces[target].startswith("Gradients") and not self.spaces[source].startswith("Gradients"):
            return "activation_gradient"
        return "hub" if is_hub else "data"

    def _hands_on(self, source: int, target: int) -> bool:
        """Whether the tensor goes through a ``Depend``: into it, where what comes out has the same shape, and out of it, where
        it is not only waited for.
        """
        if self.types[target] == "Depend":
            return self.shapes[source] is not None and self.shapes[source] == self.shapes[target]
        return self.shapes[source] is not None


def _find_homes(types: Sequence[str], spaces: Sequence[str], inputs: Sequence[Sequence[int]]) -> list[str]:
    """What only hands on or orders is drawn where the first that takes from it is; at the end, where it takes from."""
    home = list(spaces)
    taker: dict[int, int] = {}
    for target in range(len(types)):
        for source in inputs[target]:
            taker.setdefault(source, target)
    for row in range(len(types) - 1, -1, -1):
        if types[row] in ORDERING and row in taker:
            home[row] = home[taker[row]]
    for row, own in enumerate(types):
        if own in ORDERING and row not in taker and inputs[row]:
            home[row] = home[inputs[row][-1]]
    return home


def _pair_messages(message: Sequence[str | None], keys: Sequence[str | None]) -> list[tuple[int, int]]:
    """The first send of a key belongs to the first receive of it, and so on."""
    ends: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for row, (kind, key) in enumerate(zip(message, keys, strict=True)):
        if kind is not None and key is not None:
            ends[key][0 if kind == "send" else 1].append(row)
    return [pair for sends, receives in ends.values() for pair in zip(sends, receives, strict=False)]


def _cut_blocks(stages: Sequence[int | None], message: Sequence[str | None], types: Sequence[str]) -> list[list[int]]:
    """A receive begins a block and a send ends one; a block of nothing but ordering operators is none."""
    found: list[list[int]] = []
    open_block: dict[int | None, list[int]] = {}
    for row, stage in enumerate(stages):
        current = open_block.get(stage)
        begins = message[row] == "recv" and current is not None and any(types[one] not in ORDERING for one in current)
        if current is None or begins:
            current = []
            found.append(current)
            open_block[stage] = current
        current.append(row)
        if message[row] == "send":
            del open_block[stage]
    return found


def _order_blocks(
    cut: Sequence[Sequence[int]], stages: Sequence[int | None], messages: Sequence[tuple[int, int]]
) -> tuple[Block, ...]:
    """In an order they can run; a message that would have to come before it is sent is not waited for."""
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
        Block(
            stages[cut[number][0]],
            tuple(cut[number]),
            tuple(sorted(place[one] for one in waits[number] if place[one] < place[number])),
        )
        for number in order
    )


def _sort_blocks(waits: Sequence[set[int]]) -> list[int]:
    left = [len(each) for each in waits]
    followers: dict[int, list[int]] = defaultdict(list)
    for number, each in enumerate(waits):
        for one in each:
            followers[one].append(number)
    ready = [number for number, count in enumerate(left) if not count]
    heapq.heapify(ready)
    done: set[int] = set()
    order: list[int] = []
    while len(order) < len(waits):
        # Messages that wait for each other: the first block left goes ahead.
        number = heapq.heappop(ready) if ready else next(one for one in range(len(waits)) if one not in done)
        if number in done:
            continue
        done.add(number)
        order.append(number)
        for one in followers[number]:
            left[one] -= 1
            if left[one] == 0:
                heapq.heappush(ready, one)
    return order
