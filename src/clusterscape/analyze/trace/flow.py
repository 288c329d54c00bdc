"""The execution flow: which operators are drawn by themselves, which as a namespace, which stacked as "×n". Pure.

A namespace that is not opened is drawn once for every stretch of its operators in the order of execution, so that an edge never
points back. Layout is the client's.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from clusterscape.analyze.trace.flow_graph import ORDERING, EdgeClass, FlowGraph
from clusterscape.analyze.trace.flow_modules import paths_of
from clusterscape.analyze.trace.flow_stacks import Stretch, stack_stretches

MOST_NODES = 2000
USUAL_NODES = 200
"""As many nodes the first picture has at most."""
FEW_OPERATORS = (4, 16, 64, 256)
"""So many within another namespace are drawn as part of it: the first at which the flow with everything closed is no larger than
a first picture. Streams of a device mix what several parts of the model do at once.
"""
LONG_NODES = 6
"""An edge that passes over more nodes is a long one."""


@dataclass(frozen=True, slots=True)
class FlowPart:
    """One node: ``operators`` of one block. ``namespace``: the number of a namespace that is not opened, None for an operator;
    ``parent``: that of the namespace around it; ``count``: how many alike are stacked in it.
    """

    operators: tuple[int, ...]
    block: int
    namespace: int | None
    parent: int | None
    count: int


@dataclass(frozen=True, slots=True)
class FlowLink:
    """Edges of one class between two nodes: ``source`` < ``target``, both places in the list of nodes."""

    source: int
    target: int
    edge_class: EdgeClass
    count: int
    shard: tuple[int, ...] | None
    is_long: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """Nodes in the order of execution; ``opened``: namespaces drawn open, ``unstacked``: those whose parts are not stacked."""

    parts: tuple[FlowPart, ...]
    links: tuple[FlowLink, ...]
    opened: tuple[int, ...]
    unstacked: tuple[int, ...]


def draw_flow(
    graph: FlowGraph, opened: Sequence[int] | None = None, unstacked: Collection[int] = (), most: int = MOST_NODES
) -> Flow:
    """The flow with some namespaces open; None: as many as a first picture can have. What would be too many stays closed."""
    wanted = choose_opened(graph) if opened is None else [one for one in opened if 0 <= one < len(graph.namespaces)]
    while True:
        parts = _draw_parts(graph, frozenset(wanted), frozenset(unstacked))
        if len(parts) <= most or not wanted:
            return Flow(tuple(parts), tuple(_link(graph, parts)), tuple(wanted), tuple(sorted(unstacked)))
        wanted = wanted[: len(wanted) // 2]


def choose_opened(graph: FlowGraph, most: int = USUAL_NODES) -> list[int]:
    """Namespaces of namespaces down to the depth at which the picture gets too large, and down to layers. Gradients are as deep
    as what they belong to.
    """
    around = {path.rpartition("/")[0] for path in graph.namespaces}
    around -= {path for path in around if not graph.layers.isdisjoint(paths_of(path))}
    depths = {
        place: path.removeprefix("Gradients/").count("/")
        for place, path in enumerate(graph.namespaces)
        if path in around
    }
    opened: list[int] = []
    for depth in sorted(set(depths.values())):
        deeper = [place for place, own in depths.items() if own <= depth]
        if len(_draw_parts(graph, frozenset(deeper), frozenset())) > most:
            break
        opened = deeper
    return opened


Key = tuple[int | None, int | None]
"""(closed namespace or None for an operator by itself, the open namespace around it or None at the top)."""


def _keys(graph: FlowGraph, opened: frozenset[int], number: dict[str, int]) -> list[Key]:
    known: dict[str, Key] = {"": (None, None)}

    def find(path: str) -> Key:
        if path not in known:
            around = path.rpartition("/")[0]
            own, parent = find(around)
            here = number[path]
            if own is not None:
                known[path] = (own, parent)
            elif here in opened:
                known[path] = (None, here)
            else:
                known[path] = (here, parent)
        return known[path]

    return [find(path) for path in graph.home]


def _find_few(graph: FlowGraph) -> int:
    if graph.few_operators is None:
        for few in FEW_OPERATORS:
            graph.few_operators = few
            if len(_draw_parts(graph, frozenset(), frozenset())) <= USUAL_NODES:
                break
    return graph.few_operators or FEW_OPERATORS[0]


def _draw_parts(graph: FlowGraph, opened: frozenset[int], unstacked: frozenset[int]) -> list[FlowPart]:
    few = _find_few(graph)
    number = {path: place for place, path in enumerate(graph.namespaces)}
    layers = {number[path] for path in graph.layers if path in number}
    keys = _keys(graph, opened, number)
    followers: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        if graph.block[edge.source] == graph.block[edge.target]:
            followers[edge.source].append(edge.target)
    parts: list[FlowPart] = []
    for place, block in enumerate(graph.blocks):
        order = order_operators(block.operators, followers, keys, graph.message)
        stretches = absorb_strangers(list(_stretches(order, keys, graph.types)), few)
        parts += [
            FlowPart(run.operators, place, run.namespace, run.parent, run.count)
            for run in stack_stretches(stretches, graph.types, followers, unstacked, layers)
        ]
    return parts


def order_operators(
    rows: Sequence[int], followers: dict[int, list[int]], keys: Sequence[Key], message: Sequence[str | None]
) -> list[int]:
    """An order of execution that stays in a namespace as long as it can, then in the one around it; a receive comes first
    and a send last.
    """
    inside = set(rows)
    waiting: Counter[int] = Counter()
    for row in rows:
        waiting.update(one for one in followers[row] if one in inside)
    heaps: dict[tuple[str, int | None], list[int]] = defaultdict(list)

    def add(row: int) -> None:
        own, parent = keys[row]
        rank = row + (len(keys) if message[row] == "send" else 0)
        for heap in (heaps["own", own] if own is not None else None, heaps["in", parent], heaps["all", 0]):
            if heap is not None:
                heapq.heappush(heap, rank)

    for row in rows:
        if not waiting[row]:
            add(row)
    done: set[int] = set()
    order: list[int] = []
    own: int | None = None
    parent: int | None = None
    while len(order) < len(rows):
        near = [heaps["own", own]] if own is not None else []
        row = _take([*near, heaps["in", parent], heaps["all", 0]], done, len(keys))
        done.add(row)
        order.append(row)
        own, parent = keys[row]
        for one in followers[row]:
            if one in inside:
                waiting[one] -= 1
                if not waiting[one]:
                    add(one)
    return order


def _take(heaps: Iterable[list[int]], done: set[int], modulus: int) -> int:
    """The lowest that is not done yet, of the first heap that has one; a send only when nothing else is ready."""
    last: int | None = None
    for heap in heaps:
        while heap and heap[0] % modulus in done:
            heapq.heappop(heap)
        if heap and heap[0] < modulus:
            return heapq.heappop(heap)
        if heap:
            last = heap[0] % modulus
    if last is None:
        raise ValueError("operators wait for each other")
    return last


def _stretches(order: Sequence[int], keys: Sequence[Key], types: Sequence[str]) -> Iterable[Stretch]:
    """Operators of a closed namespace, and those that only order others, are one as long as they follow each other."""
    rows: list[int] = []
    for row in order:
        is_alone = keys[row][0] is None and not (types[row] in ORDERING and rows and types[rows[-1]] in ORDERING)
        if rows and (is_alone or keys[rows[-1]] != keys[row]):
            yield Stretch(tuple(rows), *keys[rows[-1]])
            rows = []
        rows.append(row)
    if rows:
        yield Stretch(tuple(rows), *keys[rows[-1]])


def absorb_strangers(stretches: Sequence[Stretch], few: int = FEW_OPERATORS[0]) -> list[Stretch]:
    """A few operators in the midst of a closed namespace are drawn in it, whatever they are named: compilers that join equal
    operators leave one with the name of another layer.
    """
    found: list[Stretch] = []
    for each in stretches:
        at = len(found) - 1
        between = 0
        while each.namespace is not None and at >= 0 and found[at].namespace != each.namespace and between <= few:
            between += len(found[at].operators)
            at -= 1
        if each.namespace is None or at < 0 or found[at].namespace != each.namespace or between > few:
            found.append(each)
            continue
        rows = tuple(row for one in (*found[at:], each) for row in one.operators)
        found[at:] = [Stretch(rows, each.namespace, each.parent)]
    return found


def _link(graph: FlowGraph, parts: Sequence[FlowPart]) -> Iterable[FlowLink]:
    owner = {row: place for place, part in enumerate(parts) for row in part.operators}
    counts: Counter[tuple[int, int, EdgeClass]] = Counter()
    shards: dict[tuple[int, int, EdgeClass], tuple[int, ...]] = {}
    for edge in graph.edges:
        source, target = owner[edge.source], owner[edge.target]
        if source >= target:  # within a node, or from one of a stack to the next
            continue
        key = (source, target, edge.edge_class)
        counts[key] += 1
        if edge.shard is not None and (key not in shards or max(edge.shard) > max(shards[key])):
            shards[key] = edge.shard
    for (source, target, kind), count in counts.items():
        crosses = parts[source].block != parts[target].block
        is_long = kind != "send_receive" and (crosses or target - source > LONG_NODES)
        yield FlowLink(source, target, kind, count, shards.get((source, target, kind)), is_long)
