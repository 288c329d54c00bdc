"""The execution flow: which operators are drawn alone, which as a namespace, which stacked as "×n". Pure.

A closed namespace is drawn as one node per consecutive stretch of its operators in execution order, so that no edge points
backward. The client does the layout.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterscape.analyze.trace.flow_graph import ORDERING, EdgeClass, FlowGraph
from clusterscape.analyze.trace.flow_spans import paths_of

MIN_REPEATS = 5
MIN_LAYERS = 2
"""Minimum repeats of a namespace that is known to be a layer."""
MAX_PATTERN = 12


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive operators drawn as one node, see ``FlowPart``."""

    operators: tuple[int, ...]
    namespace: int | None
    parent: int | None
    count: int = 1


def stack_stretches(
    stretches: Sequence[Stretch],
    types: Sequence[str],
    followers: Mapping[int, Sequence[int]],
    unstacked: Collection[int],
    layers: Collection[int] = (),
) -> Iterator[Stretch]:
    """The stretches in the same order, repeats joined to stacks, except in the namespaces ``unstacked`` (−1: the top level).
    ``layers``: namespaces known to be layers.
    """
    signatures = [_signature(stretch, types) for stretch in stretches]
    distances = _input_distances(stretches, followers)
    at = 0
    while at < len(stretches):
        pattern, repeats = 1, 1
        parent = stretches[at].parent
        min_repeats = MIN_LAYERS if stretches[at].namespace in layers else MIN_REPEATS
        if (-1 if parent is None else parent) not in unstacked:
            pattern, repeats = _find_longest_pattern(at, stretches, signatures, distances, min_repeats)
        if repeats < min_repeats:
            yield stretches[at]
            at += 1
            continue
        for offset in range(pattern):
            repeated = [stretches[at + offset + pattern * repeat] for repeat in range(repeats)]
            rows = tuple(row for stretch in repeated for row in stretch.operators)
            yield Stretch(rows, repeated[0].namespace, repeated[0].parent, repeats)
        at += pattern * repeats


Signature = tuple[bool, int | None, tuple[tuple[str, int], ...]]


def _signature(stretch: Stretch, types: Sequence[str]) -> Signature:
    inside = tuple(sorted(Counter(types[row] for row in stretch.operators).items()))
    return stretch.namespace is None, stretch.parent, inside


def _input_distances(stretches: Sequence[Stretch], followers: Mapping[int, Sequence[int]]) -> list[frozenset[int]]:
    """For each node, how many nodes back its inputs are, up to the length of a pattern."""
    owner = {row: place for place, stretch in enumerate(stretches) for row in stretch.operators}
    distances: list[set[int]] = [set() for _ in stretches]
    for row, place in owner.items():
        for follower in followers.get(row, ()):
            distance = owner.get(follower, place) - place
            if 0 < distance < MAX_PATTERN:
                distances[owner[follower]].add(distance)
    return [frozenset(node_distances) for node_distances in distances]


def _find_longest_pattern(
    at: int,
    stretches: Sequence[Stretch],
    signatures: Sequence[Signature],
    distances: Sequence[frozenset[int]],
    min_repeats: int,
) -> tuple[int, int]:
    """The pattern starting at ``at`` that covers the most nodes: its length and its number of repeats."""
    best = (1, 1)
    for pattern in range(1, MAX_PATTERN + 1):
        if (
            at + pattern * min_repeats > len(stretches)
            or len({signature[1] for signature in signatures[at : at + pattern]}) > 1
        ):
            break
        first = _pattern_signature(at, pattern, signatures, distances)
        repeats = 1
        while (
            at + pattern * (repeats + 1) <= len(stretches)
            and _pattern_signature(at + pattern * repeats, pattern, signatures, distances) == first
        ):
            repeats += 1
        if repeats >= min_repeats and pattern * repeats > best[0] * best[1]:
            best = (pattern, repeats)
    return best


def _pattern_signature(
    at: int, pattern: int, signatures: Sequence[Signature], distances: Sequence[frozenset[int]]
) -> list[tuple[Signature, frozenset[int]]]:
    """Signatures of the nodes and edges within the pattern."""
    return [
        (signatures[at + offset], frozenset(distance for distance in distances[at + offset] if distance <= offset))
        for offset in range(pattern)
    ]


MOST_NODES = 2000
USUAL_NODES = 200
"""Maximum number of nodes when the flow is first shown."""
ABSORB_LIMITS = (4, 16, 64, 256)
"""Candidates for the number of foreign operators that a namespace absorbs: the first with which the flow, all namespaces closed,
has at most ``USUAL_NODES`` nodes. Device streams interleave operators of several parts of the model.
"""
LONG_NODES = 6
"""An edge that spans more nodes than this is long."""


@dataclass(frozen=True, slots=True)
class FlowPart:
    """One node: ``operators`` of one block. ``namespace``: the number of a closed namespace, None for an operator; ``parent``:
    the number of the enclosing namespace; ``count``: how many repeats are stacked in it.
    """

    operators: tuple[int, ...]
    block: int
    namespace: int | None
    parent: int | None
    count: int


@dataclass(frozen=True, slots=True)
class FlowLink:
    """Edges of one class between two nodes, given by index: ``source`` < ``target``."""

    source: int
    target: int
    edge_class: EdgeClass
    count: int
    shard: tuple[int, ...] | None
    is_long: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """Nodes in execution order; ``opened``: open namespaces; ``unstacked``: namespaces whose repeats are not stacked."""

    parts: tuple[FlowPart, ...]
    links: tuple[FlowLink, ...]
    opened: tuple[int, ...]
    unstacked: tuple[int, ...]


def draw_flow(
    graph: FlowGraph, opened: Sequence[int] | None = None, unstacked: Collection[int] = (), most: int = MOST_NODES
) -> Flow:
    """The flow with the namespaces ``opened`` (None: chosen to fit the first view). Namespaces stay closed if nodes exceed
    ``most``.
    """
    wanted = (
        choose_opened(graph) if opened is None else [number for number in opened if 0 <= number < len(graph.namespaces)]
    )
    while True:
        parts = _draw_parts(graph, frozenset(wanted), frozenset(unstacked))
        if len(parts) <= most or not wanted:
            return Flow(tuple(parts), tuple(_link_parts(graph, parts)), tuple(wanted), tuple(sorted(unstacked)))
        wanted = wanted[: len(wanted) // 2]


def choose_opened(graph: FlowGraph, most: int = USUAL_NODES) -> list[int]:
    """Namespaces to open at first: those that contain namespaces, down to layers or to the depth at which there are too many
    nodes. Gradients have the depth of the module that they belong to.
    """
    containers = {path.rpartition("/")[0] for path in graph.namespaces}
    containers -= {path for path in containers if not graph.layers.isdisjoint(paths_of(path))}
    depths = {
        place: path.removeprefix("Gradients/").count("/")
        for place, path in enumerate(graph.namespaces)
        if path in containers
    }
    opened: list[int] = []
    for depth in sorted(set(depths.values())):
        deeper = [place for place, path_depth in depths.items() if path_depth <= depth]
        if len(_draw_parts(graph, frozenset(deeper), frozenset())) > most:
            break
        opened = deeper
    return opened


Key = tuple[int | None, int | None]
"""(closed namespace or None for an operator drawn alone, the enclosing open namespace or None at the top level)."""


def _find_keys(graph: FlowGraph, opened: frozenset[int], number: dict[str, int]) -> list[Key]:
    cached: dict[str, Key] = {"": (None, None)}

    def find(path: str) -> Key:
        if path not in cached:
            enclosing = path.rpartition("/")[0]
            closed, parent = find(enclosing)
            own_number = number[path]
            if closed is not None:
                cached[path] = (closed, parent)
            elif own_number in opened:
                cached[path] = (None, own_number)
            else:
                cached[path] = (own_number, parent)
        return cached[path]

    return [find(path) for path in graph.home]


def _choose_absorb_limit(graph: FlowGraph) -> int:
    if graph.absorb_limit is None:
        for limit in ABSORB_LIMITS:
            graph.absorb_limit = limit
            if len(_draw_parts(graph, frozenset(), frozenset())) <= USUAL_NODES:
                break
    return graph.absorb_limit or ABSORB_LIMITS[0]


def _draw_parts(graph: FlowGraph, opened: frozenset[int], unstacked: frozenset[int]) -> list[FlowPart]:
    limit = _choose_absorb_limit(graph)
    number = {path: place for place, path in enumerate(graph.namespaces)}
    layers = {number[path] for path in graph.layers if path in number}
    keys = _find_keys(graph, opened, number)
    followers: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        if graph.block[edge.source] == graph.block[edge.target]:
            followers[edge.source].append(edge.target)
    parts: list[FlowPart] = []
    for place, block in enumerate(graph.blocks):
        order = order_operators(block.operators, followers, keys, graph.message)
        stretches = absorb_foreign_operators(list(_split_stretches(order, keys, graph.types)), limit)
        parts += [
            FlowPart(run.operators, place, run.namespace, run.parent, run.count)
            for run in stack_stretches(stretches, graph.types, followers, unstacked, layers)
        ]
    return parts


def order_operators(
    rows: Sequence[int], followers: dict[int, list[int]], keys: Sequence[Key], message: Sequence[str | None]
) -> list[int]:
    """An execution order that stays in a namespace as long as possible, then in the enclosing one; receives come first and sends
    last.
    """
    inside = set(rows)
    waiting: Counter[int] = Counter()
    for row in rows:
        waiting.update(follower for follower in followers[row] if follower in inside)
    heaps: dict[tuple[str, int | None], list[int]] = defaultdict(list)

    def add(row: int) -> None:
        namespace, parent = keys[row]
        rank = row + (len(keys) if message[row] == "send" else 0)
        for heap in (heaps["own", namespace] if namespace is not None else None, heaps["in", parent], heaps["all", 0]):
            if heap is not None:
                heapq.heappush(heap, rank)

    for row in rows:
        if not waiting[row]:
            add(row)
    done: set[int] = set()
    order: list[int] = []
    namespace: int | None = None
    parent: int | None = None
    while len(order) < len(rows):
        same_namespace = [heaps["own", namespace]] if namespace is not None else []
        row = _pop_ready([*same_namespace, heaps["in", parent], heaps["all", 0]], done, len(keys))
        done.add(row)
        order.append(row)
        namespace, parent = keys[row]
        for follower in followers[row]:
            if follower in inside:
                waiting[follower] -= 1
                if not waiting[follower]:
                    add(follower)
    return order


def _pop_ready(heaps: Iterable[list[int]], done: set[int], modulus: int) -> int:
    """The lowest operator that is not done, from the first heap that has one; a send only if nothing else is ready."""
    send: int | None = None
    for heap in heaps:
        while heap and heap[0] % modulus in done:
            heapq.heappop(heap)
        if heap and heap[0] < modulus:
            return heapq.heappop(heap)
        if heap:
            send = heap[0] % modulus
    if send is None:
        raise ValueError("the operator graph has a cycle")
    return send


def _split_stretches(order: Sequence[int], keys: Sequence[Key], types: Sequence[str]) -> Iterable[Stretch]:
    """Consecutive operators of the same closed namespace, or consecutive ordering operators, form one stretch."""
    rows: list[int] = []
    for row in order:
        is_alone = keys[row][0] is None and not (types[row] in ORDERING and rows and types[rows[-1]] in ORDERING)
        if rows and (is_alone or keys[rows[-1]] != keys[row]):
            yield Stretch(tuple(rows), *keys[rows[-1]])
            rows = []
        rows.append(row)
    if rows:
        yield Stretch(tuple(rows), *keys[rows[-1]])


def absorb_foreign_operators(stretches: Sequence[Stretch], limit: int = ABSORB_LIMITS[0]) -> list[Stretch]:
    """Join stretches of the same closed namespace if at most ``limit`` operators of others lie between them; these are drawn as
    part of it. Compilers that deduplicate operators keep one with the name of another layer.
    """
    joined: list[Stretch] = []
    for stretch in stretches:
        at = len(joined) - 1
        between = 0
        while (
            stretch.namespace is not None and at >= 0 and joined[at].namespace != stretch.namespace and between <= limit
        ):
            between += len(joined[at].operators)
            at -= 1
        if stretch.namespace is None or at < 0 or joined[at].namespace != stretch.namespace or between > limit:
            joined.append(stretch)
            continue
        rows = tuple(row for part in (*joined[at:], stretch) for row in part.operators)
        joined[at:] = [Stretch(rows, stretch.namespace, stretch.parent)]
    return joined


def _link_parts(graph: FlowGraph, parts: Sequence[FlowPart]) -> Iterable[FlowLink]:
    owner = {row: place for place, part in enumerate(parts) for row in part.operators}
    counts: Counter[tuple[int, int, EdgeClass]] = Counter()
    shards: dict[tuple[int, int, EdgeClass], tuple[int, ...]] = {}
    for edge in graph.edges:
        source, target = owner[edge.source], owner[edge.target]
        if source >= target:  # within a node, or between repeats of a stack
            continue
        key = (source, target, edge.edge_class)
        counts[key] += 1
        if edge.shard is not None and (key not in shards or max(edge.shard) > max(shards[key])):
            shards[key] = edge.shard
    for (source, target, kind), count in counts.items():
        crosses = parts[source].block != parts[target].block
        is_long = kind != "send_receive" and (crosses or target - source > LONG_NODES)
        yield FlowLink(source, target, kind, count, shards.get((source, target, kind)), is_long)
