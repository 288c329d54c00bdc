"""Placements and the recent starts: which placement the scheduler uses, and what another one would have left free.

A start is evidence if several nodes had room for it: the chosen node is compared with those that each placement prefers.
`infer_placement` and `replay_starts` are pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.model import UnixMs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, QueueNode, find_node_table, find_unplaced
from clusterscape.query.scheduling.queue_answers import PlacementEvidence
from clusterscape.query.scheduling.whatif_answers import RoomChange
from clusterscape.simulate.placements import PLACEMENT_FILES, find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest, choose_nodes

ASSUMED_PLACEMENT = "most-allocated"
"""Without evidence: the fullest node that fits."""

READ_EVERY_MS = 60_000
REPLAYED_H = 72
WINDOWS_H = (24, 7 * 24)
"""The second is read if the first has fewer than MIN_STARTS starts."""
MIN_STARTS, MAX_STARTS = 20, 400

SURE, LIKELY = 0.99, 0.8
"""The least probability of a placement, compared with all others."""

NOISE: Float64s = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5])
"""Shares of starts that something else decides (reservations, affinities, nodes out of service), equally likely beforehand."""

RANDOM = "random"
CANDIDATES = (ASSUMED_PLACEMENT, "least-allocated", "first-fit", RANDOM)
"""What schedulers in use do: Kubernetes and Slurm fill nodes, spread jobs, or take nodes in order. Others are only simulated."""

BY_FREE_GPUS = frozenset({*CANDIDATES, "best-fit", "dot-product"})
"""Placements that can be replayed: the free GPUs of nodes are known of the past."""


@dataclass(frozen=True, slots=True)
class StartChoice:
    """A start on one node: the nodes that had room for it, their loads before, and which one was chosen."""

    candidates: Int64s
    chosen: int  # index into candidates
    loads: NodeLoads
    request: PodRequest


def read_placement(context: QueryContext) -> PlacementEvidence:
    """The placement inferred from recent allocations, cached for READ_EVERY_MS."""
    return context.cache.get("placement-evidence", context.clock() // READ_EVERY_MS, lambda: _read_placement(context))


def _read_placement(context: QueryContext) -> PlacementEvidence:
    table, records, now = find_node_table(context), context.records, context.clock()
    unknown = {node for _, node in find_unplaced(records.active_workloads(), records.open_allocations())}
    nodes = [node for node in table.nodes.values() if node.is_open and node.name not in unknown]
    evidence = _assume(None)
    for hours in WINDOWS_H:
        since = UnixMs(now - hours * 3_600_000)
        spans = records.allocation_spans(start_ms=since, end_ms=UnixMs(now))
        evidence = infer_placement(spans, nodes, table.node_of_gpu, since_ms=since)
        if evidence.starts >= MIN_STARTS:
            break
    return evidence


def read_room(context: QueryContext, queue: LiveQueue, placement: str) -> list[RoomChange]:
    """The room for waiting requests now, and if the starts of the last REPLAYED_H hours had used ``placement``.

    Empty for placements that consider more than the free GPUs of nodes.
    """
    if placement not in BY_FREE_GPUS:
        return []
    table, now = find_node_table(context), context.clock()
    since = UnixMs(now - REPLAYED_H * 3_600_000)
    nodes = [node for node in table.nodes.values() if node.is_open]

    def replay() -> dict[str, int]:
        spans = context.records.allocation_spans(start_ms=since, end_ms=now)
        return replay_starts(spans, nodes, table.node_of_gpu, find_placement(placement), since_ms=since)

    moved = context.cache.get(("replayed-starts", placement), now // READ_EVERY_MS, replay)
    free = queue.free_by_node()
    # Holdings of unknown units stay where they are.
    then = {node.name: min(node.gpus, max(0, free[node.name] + moved.get(node.name, 0))) for node in nodes}
    rows = []
    for request, jobs in _group_requests(queue).items():
        partition, nodes_asked, gpus = request
        places = [node.name for node in queue.usable_nodes(jobs[0])]
        now_fit, then_fit = (_count_fitting(state, places, gpus, nodes_asked, len(jobs)) for state in (free, then))
        rows.append(
            RoomChange(
                partition=partition,
                gpus=nodes_asked * gpus,
                nodes=nodes_asked,
                waiting=len(jobs),
                now=now_fit,
                changed=then_fit,
                since=since,
            )
        )
    return sorted(rows, key=lambda row: (row.now - row.changed, -row.waiting, row.partition, row.gpus))


def _group_requests(queue: LiveQueue) -> dict[tuple[str, int, int], list[QueueJob]]:
    groups: dict[tuple[str, int, int], list[QueueJob]] = {}
    for job in queue.planned():
        groups.setdefault((job.partition, job.nodes, job.gpus), []).append(job)
    return groups


def _count_fitting(free: Mapping[str, int], places: Iterable[str], gpus: int, nodes: int, waiting: int) -> int:
    """How many workloads that request ``gpus`` on each of ``nodes`` nodes have room at once; a node may host several."""
    slots = sorted(free.get(name, 0) // gpus for name in places)
    # k gangs fit if every node gives at most k slots and these make up k × nodes.
    return max((k for k in range(waiting + 1) if sum(min(count, k) for count in slots) >= k * nodes), default=0)


def replay_starts(
    spans: pl.DataFrame,
    nodes: Sequence[QueueNode],
    node_of_gpu: Mapping[str, str],
    placement: Placement,
    *,
    since_ms: int,
) -> dict[str, int]:
    """By node, the additional free GPUs (negative: fewer) if ``placement`` had chosen the nodes since ``since_ms``.

    Every start is placed again among like nodes, at the same time and for as long; where too few have room, on its own nodes.
    What started before stays. A node that would hold more than it has takes GPUs of the emptiest like nodes instead, so that the
    sum is that of the real allocations. ``spans``: see ``infer_placement``.
    """
    units, node_of, kind_of, capacity = _index(nodes, node_of_gpu)
    free, actual, holders = capacity.copy(), capacity.copy(), np.zeros(len(node_of), np.int64)
    places: dict[tuple[str, int, int], tuple[Int64s, Int64s]] = {}
    for at_s, is_start, key, rows in _list_events(spans, units, since_ms):
        fresh = rows[holders[rows] == (0 if is_start else 1)]
        holders[rows] += 1 if is_start else -1
        np.add.at(actual, node_of[fresh], -1 if is_start else 1)
        if is_start:
            own, gpus = np.unique(node_of[fresh], return_counts=True)
            chosen = own
            if own.size and at_s * 1000 >= since_ms and (gpus == gpus[0]).all():
                candidates = np.flatnonzero((kind_of == kind_of[own[0]]) & (free >= gpus[0]))
                loads = NodeLoads(free * UNITS_PER_GPU, capacity)
                best = choose_nodes(placement, loads, candidates, len(own), PodRequest(int(gpus[0])))
                chosen = own if best is None else best
            places[key] = chosen, gpus
            free[chosen] -= gpus
        else:
            chosen, gpus = places.pop(key)
            free[chosen] += gpus
    for kind in np.unique(kind_of[free < 0]):
        like = np.flatnonzero(kind_of == kind)
        missing = -int(np.minimum(free[like], 0).sum())
        free[like] = np.maximum(free[like], 0)
        for node in like[np.argsort(-free[like], kind="stable")]:
            count = min(missing, int(free[node]))
            free[node] -= count
            missing -= count
    return {node.name: int(free[at] - actual[at]) for at, node in enumerate(nodes)}


def infer_placement(
    spans: pl.DataFrame, nodes: Sequence[QueueNode], node_of_gpu: Mapping[str, str], *, since_ms: int
) -> PlacementEvidence:
    """The most probable placement. ``spans``: columns ``workload``, ``unit``, ``from_at``, ``to_at`` (Unix ms; null: open).

    Compares by the likelihood of the chosen nodes: a placement chooses uniformly among its best nodes, except for a share of
    noise, in which any node with room is chosen. All placements are equally probable beforehand. The cost grows with the number
    of allocations, and with MAX_STARTS × nodes × placements.
    """
    placements = [find_placement(name) for name in CANDIDATES if name != RANDOM]
    choices = _list_choices(spans, nodes, node_of_gpu, since_ms)
    compared = [_compare(choice, placements) for choice in choices]
    if not compared:
        return _assume(since_ms)
    room = np.array([row.room for row in compared], float)
    # A random placement chooses any node with room. Rows: candidates; columns: starts.
    is_best = np.vstack([np.array([row.is_best for row in compared]).T, np.ones(len(room), bool)])
    best_counts = np.vstack([np.array([row.best_counts for row in compared], float).T, room])
    chance = is_best / best_counts
    by_noise = np.log((1 - NOISE[:, None, None]) * chance + NOISE[:, None, None] / room).sum(axis=2)
    likelihood = np.logaddexp.reduce(by_noise, axis=0)
    best = int(likelihood.argmax())
    return _describe(
        CANDIDATES[best],
        1.0 / float(np.exp(likelihood - likelihood[best]).sum()),
        starts=len(room),
        fitting=int(is_best[best].sum()),
        by_chance=float((best_counts[best] / room).sum()),
        since_ms=since_ms,
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """One start: by placement, whether the chosen node was among the best, and how many those were; nodes with room."""

    is_best: list[bool]
    best_counts: list[int]
    room: int


def _compare(choice: StartChoice, placements: Sequence[Placement]) -> _Compared:
    is_best, counts = [], []
    for placement in placements:
        scores = placement.score(choice.loads, choice.candidates, choice.request)
        best = scores == scores.min()
        is_best.append(bool(best[choice.chosen]))
        counts.append(int(best.sum()))
    return _Compared(is_best, counts, len(choice.candidates))


def _list_choices(
    spans: pl.DataFrame, nodes: Sequence[QueueNode], node_of_gpu: Mapping[str, str], since_ms: int
) -> Iterator[StartChoice]:
    """The last MAX_STARTS starts on one node since ``since_ms``, except those at the same moment as another one on like nodes.

    Like nodes have the same machine type and partitions: others may have been closed to the workload.
    """
    units, node_of, kind_of, capacity = _index(nodes, node_of_gpu)
    events = _list_events(spans, units, since_ms)
    shown = _find_evidence(events, node_of, kind_of, since_ms)
    holders, free = np.zeros(len(node_of), np.int64), capacity.copy()
    for at, (_, is_start, _, rows) in enumerate(events):
        if at in shown and not holders[rows].any():
            node = int(node_of[rows[0]])
            candidates = np.flatnonzero((kind_of == kind_of[node]) & (free >= len(rows)))
            if len(candidates) > 1:
                loads = NodeLoads(free * UNITS_PER_GPU, capacity)
                yield StartChoice(candidates, int(np.searchsorted(candidates, node)), loads, PodRequest(len(rows)))
        if is_start:
            np.subtract.at(free, node_of[rows[holders[rows] == 0]], 1)
            holders[rows] += 1
        else:
            holders[rows] -= 1
            np.add.at(free, node_of[rows[holders[rows] == 0]], 1)


_Event = tuple[int, bool, tuple[str, int, int], Int64s]
"""Unix seconds, whether it is a start, what identifies the allocation (workload, start, end), and its units."""


def _index(nodes: Sequence[QueueNode], node_of_gpu: Mapping[str, str]) -> tuple[list[str], Int64s, Int64s, Int64s]:
    """The units of these nodes and the index of each one's node; by node, its kind (like nodes) and its GPUs."""
    place = {node.name: at for at, node in enumerate(nodes)}
    units = {unit: place[node] for unit, node in node_of_gpu.items() if node in place}
    kinds = {kind: at for at, kind in enumerate(dict.fromkeys((node.machine_type, node.partitions) for node in nodes))}
    kind_of = np.array([kinds[node.machine_type, node.partitions] for node in nodes], np.int64)
    capacity = np.array([node.gpus for node in nodes], np.int64)
    return list(units), np.array(list(units.values()), np.int64), kind_of, capacity


def _list_events(spans: pl.DataFrame, units: Sequence[str], since_ms: int) -> list[_Event]:
    """Starts and ends by time, at the same second ends first. What began before ``since_ms`` begins just before it."""
    codes = pl.DataFrame({"unit": units, "code": range(len(units))}, {"unit": pl.String, "code": pl.Int64})
    allocated = spans.select(
        pl.col("workload").cast(pl.String),
        pl.col("unit").cast(pl.String),
        from_s=pl.col("from_at").clip(lower_bound=since_ms - 1_000) // 1000,
        to_s=pl.col("to_at") // 1000,
    ).join(codes, on="unit")
    events: list[_Event] = []
    for workload, from_s, to_s, rows in (
        allocated.group_by("workload", "from_s", "to_s").agg(pl.col("code")).iter_rows()
    ):
        held, key = np.array(rows, np.int64), (workload, from_s, -1 if to_s is None else to_s)
        if to_s is None or to_s > from_s:
            events.append((from_s, True, key, held))
            if to_s is not None:
                events.append((to_s, False, key, held))
    return sorted(events, key=lambda event: event[:3])


def _find_evidence(events: Sequence[_Event], node_of: Int64s, kind_of: Int64s, since_ms: int) -> frozenset[int]:
    """Indices of the last MAX_STARTS starts on one node, each the only start of its second on like nodes."""
    starts = [
        (at, at_s, np.unique(node_of[rows]))
        for at, (at_s, is_start, _, rows) in enumerate(events)
        if is_start and len(rows)
    ]
    crowd = Counter((at_s, kind) for _, at_s, on in starts for kind in np.unique(kind_of[on]).tolist())
    alone = [
        at
        for at, at_s, on in starts
        if len(on) == 1 and at_s * 1000 >= since_ms and crowd[at_s, int(kind_of[on[0]])] == 1
    ]
    return frozenset(alone[-MAX_STARTS:])


def _assume(since_ms: int | None, starts: int = 0) -> PlacementEvidence:
    title = _title(ASSUMED_PLACEMENT)
    shows = f"{_count(starts)} {'does' if starts == 1 else 'do'} not show" if starts else "no recent start shows"
    return PlacementEvidence(
        placement=ASSUMED_PLACEMENT,
        title=title,
        certainty="assumed",
        starts=starts,
        fitting=0,
        by_chance=0.0,
        since=since_ms,
        text=f"{title}: assumed, because {shows} how the scheduler chooses among nodes.",
    )


def _describe(
    name: str, probability: float, *, starts: int, fitting: int, by_chance: float, since_ms: int
) -> PlacementEvidence:
    if probability < LIKELY:
        return _assume(since_ms, starts)
    title = _title(name)
    is_sure = probability >= SURE and starts >= MIN_STARTS
    if name == RANDOM:
        reason = f"{_count(starts)} with a choice of nodes follow no other placement that is known here"
    else:
        reason = f"{fitting:,} of {_count(starts)} with a choice of nodes chose so, {by_chance:,.0f} would by chance"
    return PlacementEvidence(
        placement=name,
        title=title,
        certainty="sure" if is_sure else "likely",
        starts=starts,
        fitting=fitting,
        by_chance=by_chance,
        since=since_ms,
        text=f"{title}: {'inferred' if is_sure else 'probably'}; {reason}.",
    )


def _count(starts: int) -> str:
    return "1 recent start" if starts == 1 else f"{starts:,} recent starts"


def _title(name: str) -> str:
    return next(choice.title for choice in PLACEMENT_FILES.describe() if choice.name == name)
