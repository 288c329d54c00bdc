"""Process groups with a pending call: which ranks wait, which are missing, and which group waits for which.

Only ranks of one group can wait for each other directly. A missing rank that itself waits in another group is a victim there:
so groups are the nodes of a graph, and the first cause is where its arrows end.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from clusterscape.analyze.hang.history import predict_next
from clusterscape.model.hangs import CollectiveCall, CommunicatorLook, GroupProgress, HangLook, RankLook

DEFAULT_GROUP = "0"
MISMATCHES_BACK = 64
"""How many completed calls before the pending one are compared."""
NEWEST_CALLS = 24
"""How many calls before the pending one are compared with the pattern of a rank's calls."""
FREE_SIZES = (
    "all_to_all",
    "alltoall",
    "scatter",
    "gather",
    "_v",
    "barrier",
    "coalesced",
    "split",
    "send",
    "recv",
    "unknown",
)
"""Parts of names of operations whose sizes may differ between ranks."""
SAME_SIZES = ("reduce_scatter", "all_gather", "allgather")
"""Operations whose names contain a word of ``FREE_SIZES``, and whose sizes must be equal nevertheless."""
MOST_CAUSES = 64
"""Stalls that one stall is said to wait for."""
_P2P = re.compile(r"(send|recv) ([0-9]{1,9})(?:->|<-)([0-9]{1,9})")

GroupKey = tuple[str, tuple[int, ...] | None]


@dataclass(slots=True)
class Stall:
    """A pending call of a group. ``calls``: by rank, also of ranks that have completed it.

    ``absent``: have not made the call. ``unstarted``: have made it, but their GPU has not started it, unlike others.
    ``missing``: members of whom nothing is known in this source. ``odd``: ranks whose call does not fit the others'.
    """

    group: str
    description: str | None
    members: frozenset[int]
    sequence: int | None
    calls: Mapping[int, Sequence[CollectiveCall]]
    waiting: frozenset[int]
    absent: frozenset[int] = frozenset()
    unstarted: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    dead: frozenset[int] = frozenset()
    odd: frozenset[int] = frozenset()
    mismatch: str | None = None
    operation: str | None = None
    since_ns: int | None = None
    is_started: bool = False
    has_starts: bool = True
    """Whether its backend records starts; gloo does not."""
    source: str = "recorder"
    victim_of: list["Stall"] = field(default_factory=list)

    @property
    def laggards(self) -> frozenset[int]:
        """The ranks that the others wait for."""
        return self.odd or self.absent | self.unstarted | self.dead

    @property
    def is_running(self) -> bool:
        """Whether ranks are in the call now, and have not only queued it behind another one."""
        return self.source == "recorder" and (self.is_started or not self.has_starts)

    @property
    def key(self) -> tuple[str, int | None]:
        """What identifies the call in another look."""
        return (self.group, self.sequence)


def find_stalls(look: HangLook) -> list[Stall]:
    """All groups with a pending call, by the recorder, else by RAS. Grows with ranks × kept calls."""
    recorded = {rank: about for rank, about in look.ranks.items() if about.has_recorder}
    stalls = _collective_stalls(recorded, look) + _p2p_stalls(recorded) if recorded else []
    if not any(stall.laggards or stall.missing for stall in stalls):
        launched = find_launch_stalls(look.communicators)
        if any(stall.laggards for stall in launched) or not stalls:
            stalls = launched
    return stalls


def _collective_stalls(ranks: Mapping[int, RankLook], look: HangLook) -> list[Stall]:
    groups: dict[GroupKey, dict[int, GroupProgress]] = {}
    for rank, about in ranks.items():
        for name, progress in about.groups.items():
            groups.setdefault((name, progress.members), {})[rank] = progress
    calls: dict[GroupKey, dict[int, list[CollectiveCall]]] = {}
    for rank, about in ranks.items():
        for call in about.calls:
            if not call.is_p2p:
                key = (call.group, about.groups[call.group].members)
                calls.setdefault(key, {}).setdefault(rank, []).append(call)
    stalls = []
    for key, by_rank in calls.items():
        pending = {rank: next((call for call in own if not call.is_done), None) for rank, own in by_rank.items()}
        first = min((call.sequence for call in pending.values() if call is not None), default=None)
        if first is not None:
            stalls.append(_stall_of(key, first, groups.get(key, {}), by_rank, ranks, look))
    return stalls


def _stall_of(
    key: GroupKey,
    sequence: int,
    progress: Mapping[int, GroupProgress],
    calls: Mapping[int, Sequence[CollectiveCall]],
    ranks: Mapping[int, RankLook],
    look: HangLook,
) -> Stall:
    name, listed = key
    members = frozenset(listed) if listed else frozenset(progress)
    is_world = name == DEFAULT_GROUP or any(about.description == "default_pg" for about in progress.values())
    if is_world and not listed:
        members |= frozenset(look.ranks) | frozenset(range(look.world_size or 0))
    here = {rank: [call for call in own if call.sequence == sequence] for rank, own in calls.items()}
    here = {rank: own for rank, own in here.items() if own}
    waiting = frozenset(rank for rank, own in here.items() if not all(call.is_done for call in own))
    reached = {rank: about.enqueued or 0 for rank, about in progress.items()}
    absent = frozenset(rank for rank in members & ranks.keys() if reached.get(rank, 0) < sequence and rank not in here)
    started = frozenset(rank for rank in waiting if any(call.state == "started" for call in here[rank]))
    finished = frozenset(here) - waiting
    is_behind = not absent and (bool(started) or (bool(finished) and _has_states(here)))
    unstarted = waiting - started if is_behind else frozenset()
    times = [call.created_ns for rank in waiting for call in here[rank] if call.created_ns]
    stall = Stall(
        group=name,
        description=next((about.description for about in progress.values() if about.description), None),
        members=members,
        sequence=sequence,
        calls=here,
        waiting=waiting,
        absent=absent,
        unstarted=unstarted,
        missing=members - ranks.keys(),
        operation=Counter(call.operation for rank in waiting for call in here[rank]).most_common(1)[0][0],
        since_ns=min(times, default=None),
        is_started=bool(started),
        has_starts=any(ranks[rank].backend != "gloo" for rank in waiting),
    )
    _find_mismatch(stall, calls, ranks)
    return stall


def _has_states(calls: Mapping[int, Sequence[CollectiveCall]]) -> bool:
    """Whether the backend reports starts; gloo does not."""
    return any(call.state != "scheduled" for own in calls.values() for call in own)


def signature(calls: Sequence[CollectiveCall]) -> tuple[object, ...]:
    """What must be equal on all ranks: operation, and for most operations elements and type. Shapes may differ."""
    return tuple(sorted(_signature_of(call) for call in calls))


def _signature_of(call: CollectiveCall) -> tuple[str, int, str]:
    name = call.operation.lower()
    is_free = any(word in name for word in FREE_SIZES) and not (
        any(word in name for word in SAME_SIZES) and not name.endswith(("_v", "_coalesced"))
    )
    if is_free:
        return (call.operation, 0, "")
    return (call.operation, sum(prod(shape) for shape in call.input_sizes), "+".join(sorted(set(call.types))))


def _find_mismatch(stall: Stall, calls: Mapping[int, Sequence[CollectiveCall]], ranks: Mapping[int, RankLook]) -> None:
    """Compare the calls of the pending number, and of those before it, which ranks may have completed with wrong results."""
    assert stall.sequence is not None
    by_number: dict[int, dict[int, list[CollectiveCall]]] = {}
    for rank, own in calls.items():
        for call in own:
            if stall.sequence - MISMATCHES_BACK <= call.sequence <= stall.sequence:
                by_number.setdefault(call.sequence, {}).setdefault(rank, []).append(call)
    for number in sorted(by_number):
        here = by_number[number]
        kinds = {rank: signature(own) for rank, own in here.items()}
        counts = Counter(kinds.values())
        if len(counts) < 2:
            continue
        (usual, most), (_, second) = counts.most_common(2)
        if most > second:
            odd = frozenset(rank for rank, kind in kinds.items() if kind != usual)
        else:
            odd = frozenset(rank for rank in here if is_unexpected(ranks[rank], here[rank][0])) or frozenset(here)
        stall.odd = odd
        stall.calls = here
        stall.sequence = number
        usual_rank = next((rank for rank in here if rank not in odd), None)
        other = min(odd)
        if usual_rank is None:
            usual_rank = max(here)
        stall.mismatch = f"rank {other} calls {_written(here[other])}, rank {usual_rank} {_written(here[usual_rank])}"
        stall.operation = here[usual_rank][0].operation
        times = [call.created_ns for own in here.values() for call in own if call.created_ns]
        stall.since_ns = min(times, default=stall.since_ns)
        return


def _written(calls: Sequence[CollectiveCall]) -> str:
    return ", ".join(
        f"{call.operation} of {sum(prod(shape) for shape in call.input_sizes):,} {'+'.join(sorted(set(call.types))) or 'values'}"
        if call.input_sizes
        else call.operation
        for call in calls[:3]
    )


def is_unexpected(rank: RankLook, call: CollectiveCall) -> bool:
    """Whether a rank's own past predicts another call than this one."""
    past = [(before.group, *_signature_of(before)) for before in rank.calls if before.order < call.order]
    predicted = predict_next(past)
    return predicted is not None and predicted != (call.group, *_signature_of(call))


def breaks_pattern(rank: RankLook) -> bool:
    """Whether one of a rank's newest calls, up to its first pending one, is not what its own past predicts."""
    pending = next((place for place, call in enumerate(rank.calls) if not call.is_done), len(rank.calls) - 1)
    return any(is_unexpected(rank, call) for call in rank.calls[max(0, pending - NEWEST_CALLS) : pending + 1])


def _p2p_stalls(ranks: Mapping[int, RankLook]) -> list[Stall]:
    """Pending sends and receives: one stall for each rank and peer."""
    pending: dict[tuple[str, str, int, int], tuple[int, CollectiveCall]] = {}
    for rank, about in ranks.items():
        for call in about.calls:
            match = _P2P.fullmatch(call.operation)
            if call.is_done or match is None:
                continue
            ends = (int(match[2]), int(match[3]))
            source, target = ends if match[1] == "send" else ends[::-1]
            members = sorted(about.groups[call.group].members or ())
            if members and max(source, target) < len(members):
                source, target = members[source], members[target]
            pending.setdefault((call.group, match[1], source, target), (rank, call))
    stalls = []
    for (group, kind, source, target), (rank, call) in pending.items():
        peer = target if kind == "send" else source
        other = pending.get((group, "recv" if kind == "send" else "send", source, target))
        if other is not None and rank > peer:
            continue  # the peer's side stands for both
        started = {place for place, own in ((rank, call), *([other] if other else [])) if own.state == "started"}
        is_there = other is not None
        both = frozenset({rank, peer}) if is_there else frozenset({rank})
        stalls.append(
            Stall(
                group=group,
                description=ranks[rank].groups[group].description,
                members=frozenset({rank, peer}),
                sequence=call.sequence,
                calls={rank: [call]} | ({other[0]: [other[1]]} if other else {}),
                waiting=both,
                absent=frozenset() if is_there or peer not in ranks else frozenset({peer}),
                unstarted=both - started if is_there and started else frozenset(),
                missing=frozenset() if peer in ranks else frozenset({peer}),
                operation=f"{kind} {source}->{target}",
                since_ns=call.created_ns,
                is_started=bool(started),
            )
        )
    return stalls


def run_ranks(communicators: Sequence[CommunicatorLook]) -> dict[str, dict[int, int]]:
    """Ranks of the run by communicator and its own ranks: processes are numbered as in the largest communicator."""
    if not communicators:
        return {}
    largest = max(communicators, key=lambda communicator: communicator.size or 0)
    ranks = {place: rank for rank, place in largest.processes.items()}
    return {
        communicator.name: {
            rank: ranks.get(communicator.processes[rank], rank) if rank in communicator.processes else rank
            for rank in {*communicator.counts, *communicator.unresponsive, *communicator.dead}
        }
        for communicator in communicators
    }


def find_launch_stalls(communicators: Sequence[CommunicatorLook]) -> list[Stall]:
    """Communicators whose ranks launched different numbers of operations, or do not answer, by NCCL RAS."""
    places = run_ranks(communicators)
    return [_launch_stall(communicator, places[communicator.name]) for communicator in communicators]


def _launch_stall(communicator: CommunicatorLook, to_run: Mapping[int, int]) -> Stall:
    totals = {to_run[rank]: sum(counts.values()) for rank, counts in communicator.counts.items()}
    kinds = {to_run[rank]: tuple(sorted(counts.items())) for rank, counts in communicator.counts.items()}
    least, most = min(totals.values(), default=0), max(totals.values(), default=0)
    low = frozenset(rank for rank, total in totals.items() if total == least) if least < most else frozenset()
    counted = Counter(kinds.values()).most_common(2)
    odd: frozenset[int] = frozenset()
    mismatch = None
    if least == most and len(counted) == 2:
        is_clear = counted[0][1] > counted[1][1]
        odd = frozenset(rank for rank, kind in kinds.items() if kind != counted[0][0] or not is_clear)
        differing = sorted(
            {
                name
                for kind in set(kinds.values())
                for name, _ in kind
                if len({dict(other).get(name) for other in kinds.values()}) > 1
            }
        )
        mismatch = f"ranks launched different numbers of {' and '.join(differing)}"
    dead = frozenset(to_run[rank] for rank in communicator.dead)
    return Stall(
        group=communicator.name,
        description=f"communicator of {communicator.size}" if communicator.size else None,
        members=frozenset(to_run.values()),
        sequence=most or None,
        calls={},
        waiting=frozenset(totals) - low,
        absent=low,
        missing=frozenset(to_run[rank] for rank in communicator.unresponsive) | dead,
        dead=dead,
        odd=odd,
        mismatch=mismatch,
        source="RAS",
    )


def order_stalls(stalls: Sequence[Stall]) -> tuple[list[Stall], list[Stall]]:
    """The stalls that wait for no other, and those of a circle if there is one; earliest first. Sets ``victim_of``.

    A stall waits for another one if a rank that it misses waits there. Grows with stalls × members.
    """
    waits_in: dict[int, list[Stall]] = {}
    for stall in stalls:
        for rank in stall.waiting - stall.laggards:
            waits_in.setdefault(rank, []).append(stall)
    for stall in stalls:
        if stall.odd:
            continue  # a wrong call explains itself
        stall.victim_of = list(_find_causes(stall, waits_in))
    roots = [stall for stall in stalls if not stall.victim_of]
    with_cause = [stall for stall in roots if stall.laggards or stall.missing]
    circle: list[Stall] = []
    if not with_cause:
        circle = _find_circle(stalls)
    return sorted(with_cause or roots, key=_age), sorted(circle, key=_age)


def _find_causes(stall: Stall, waits_in: Mapping[int, Sequence[Stall]]) -> Iterable[Stall]:
    causes: dict[int, Stall] = {}
    for rank in stall.laggards:
        for other in waits_in.get(rank, ()):
            if other is not stall and (other.laggards or other.missing or other.is_running):
                causes[id(other)] = other
                if len(causes) == MOST_CAUSES:
                    return causes.values()
    return causes.values()


def _age(stall: Stall) -> tuple[bool, int, int]:
    return (not stall.laggards, stall.since_ns or 2**63, -len(stall.members))


def _find_circle(stalls: Sequence[Stall]) -> list[Stall]:
    """Follow the arrows until a stall comes again."""
    start = next((stall for stall in stalls if stall.victim_of), None)
    path: list[Stall] = []
    places: dict[int, int] = {}
    while start is not None and id(start) not in places:
        places[id(start)] = len(path)
        path.append(start)
        start = start.victim_of[0] if start.victim_of else None
    return path[places[id(start)] :] if start is not None else []
