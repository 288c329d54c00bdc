"""An operator graph made ready to be drawn as an execution flow: blocks cut at sends and receives and put in the order they can
run, classes of edges, and the namespace every operator is drawn in. Which of it is shown is decided in ``flow.py``.
"""

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl

EdgeClass = Literal[
    "data", "activation_gradient", "update_state", "load", "depend", "hub", "send_receive", "sequence"
]  # fmt: skip

ORDERING = frozenset({"UpdateState", "Depend", "Load", "MakeTuple", "TupleGetItem"})
"""Operators that compute nothing: they hand on, or say what comes first."""
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
    """``operators`` has the columns of ``model/operators.py``; blocks and their order are found once."""

    def __init__(self, operators: pl.DataFrame) -> None:
        self.operators = operators
        self.stage: list[int | None] = operators["stage"].to_list()
        self.types: list[str] = operators["type"].to_list()
        self.inputs: list[list[int]] = operators["inputs"].fill_null([]).to_list()
        self.message: list[str | None] = operators["message"].to_list()
        self.home = _find_homes(self.types, operators["namespace"].to_list(), self.inputs)
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
        shards = self.operators["shards"].to_list()
        spaces = self.operators["namespace"].to_list()
        is_timed = self.operators["span"].is_not_null().to_list()
        taken: dict[int, int] = defaultdict(int)
        for inputs in self.inputs:
            for source in inputs:
                taken[source] += 1
        found = []
        for target, inputs in enumerate(self.inputs):
            own = shards[target] or []
            for place, source in enumerate(inputs):
                kind: EdgeClass
                if is_timed[target]:
                    kind = "sequence"
                else:
                    is_hub = taken[source] >= HUB_EDGES or len(inputs) >= HUB_EDGES
                    kind = _classify(self.types[source], self.types[target], spaces[source], spaces[target], is_hub)
                found.append(Edge(source, target, kind, tuple(own[place]) or None if place < len(own) else None))
        for send, receive in self.messages:
            if self.block[send] < self.block[receive]:
                own = shards[receive] or []
                found.append(Edge(send, receive, "send_receive", tuple(own[0]) or None if own else None))
        return tuple(found)


def _classify(source: str, target: str, source_space: str, target_space: str, is_hub: bool) -> EdgeClass:
    if "UpdateState" in (source, target):
        return "update_state"
    if source == "Load":
        return "load"
    if "Depend" in (source, target):
        return "depend"
    if target_space.startswith("Gradients") and not source_space.startswith("Gradients"):
        return "activation_gradient"
    return "hub" if is_hub else "data"


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
