"""The picture behind a verdict: ranks by kinds of process groups, and how each rank stands to its group's pending call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.analyze.hang.stalls import Stall, find_stalls, run_ranks
from clusterscape.analyze.hang.verdict import judge_hang
from clusterscape.model.hangs import GroupRow, HangLook, HangReport, HangSource, HangVerdict, RankState

MOST_RANKS = 16_384
MOST_ROWS = 24
MOST_TRIED_ROWS = 64
"""Rows of one kind. What fits in none is not drawn: groups with a pending call come first."""
"""The most kinds of groups; those with most ranks in pending calls stay."""
STATES = tuple(RankState)
_PLACES = {state: place for place, state in enumerate(STATES)}


@dataclass(slots=True)
class _Group:
    """One process group. ``progress``: enqueued and completed calls by rank."""

    name: str
    kind: str
    members: frozenset[int]
    progress: Mapping[int, tuple[int | None, int | None]]
    stall: Stall | None = None
    ended: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Row:
    name: str
    groups: list[_Group] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)


def report_hang(looks: Sequence[HangLook]) -> HangReport:
    """The verdict on one look, or on the last two of several, with its picture. Grows with ranks × kept calls."""
    now = looks[-1]
    ranks = sorted({*now.ranks, *range(min(now.world_size or 0, MOST_RANKS))})[:MOST_RANKS]
    groups = _list_groups(now)
    if not ranks:
        ranks = sorted({rank for group in groups for rank in group.members})[:MOST_RANKS]
    verdict = judge_hang(looks)
    return HangReport(
        verdict=verdict,
        ranks=tuple(ranks),
        states=STATES,
        rows=tuple(_write_row(row, ranks) for row in _order_rows(_arrange(groups), verdict)),
        looks=min(len(looks), 2),
        taken_ms=now.taken_ms,
        is_partial=now.is_partial,
        sources=_count_sources(now),
    )


def _count_sources(look: HangLook) -> tuple[HangSource, ...]:
    ranks = look.ranks.values()
    counts = (
        ("Flight Recorder", sum(rank.has_recorder for rank in ranks)),
        ("stacks", sum(bool(rank.stacks) for rank in ranks)),
        ("processes", sum(rank.process is not None for rank in ranks)),
        ("communicators in NCCL RAS", len(look.communicators)),
    )
    return tuple(HangSource(name=name, count=count) for name, count in counts if count)


def _list_groups(look: HangLook) -> list[_Group]:
    """All groups by the recorder, else by RAS, largest first."""
    ended = frozenset(rank for rank, about in look.ranks.items() if about.process and about.process.state in ("X", "Z"))
    stalls: dict[tuple[str, frozenset[int]], Stall] = {}
    for stall in find_stalls(look):
        stalls.setdefault((stall.group, stall.members), stall)
    progress_of: dict[tuple[str, tuple[int, ...] | None], dict[int, tuple[int | None, int | None]]] = {}
    kinds: dict[tuple[str, tuple[int, ...] | None], str] = {}
    for rank, about in look.ranks.items():
        for name, progress in about.groups.items():
            key = (name, progress.members)
            progress_of.setdefault(key, {})[rank] = (progress.enqueued, progress.completed)
            kinds[key] = progress.description or name
    groups = [
        _Group(key[0], kinds[key], frozenset(key[1] or ()) | frozenset(progress), progress)
        for key, progress in progress_of.items()
    ]
    if not groups:
        groups = _list_communicators(look)
    by_name: dict[str, list[tuple[frozenset[int], Stall]]] = {}
    for (name, members), stall in stalls.items():
        by_name.setdefault(name, []).append((members, stall))
    for group in groups:
        group.ended = ended & group.members
        group.stall = stalls.get((group.name, group.members)) or next(
            (stall for members, stall in by_name.get(group.name, ()) if group.members <= members), None
        )
        if group.stall is not None:
            group.members |= group.stall.members
    return sorted(groups, key=lambda group: (-len(group.members), min(group.members, default=0), group.name))


def _list_communicators(look: HangLook) -> list[_Group]:
    places = run_ranks(look.communicators)
    groups = []
    for communicator in look.communicators:
        to_run = places[communicator.name]
        progress = {to_run[rank]: (sum(counts.values()), None) for rank, counts in communicator.counts.items()}
        kind = f"communicators of {communicator.size}" if communicator.size else "communicators"
        groups.append(_Group(communicator.name, kind, frozenset(to_run.values()), progress))
    return groups


def _arrange(groups: Sequence[_Group]) -> list[_Row]:
    """Groups of one kind share a row as long as no rank is in two of them."""
    rows: dict[str, list[_Row]] = {}
    for group in sorted(groups, key=lambda group: group.stall is None):
        alike = rows.setdefault(group.kind, [])
        row = next((row for row in alike if row.ranks.isdisjoint(group.members)), None)
        if row is None:
            if len(alike) >= MOST_TRIED_ROWS:
                continue
            row = _Row(group.kind if not alike else f"{group.kind} ({len(alike) + 1})")
            alike.append(row)
        row.groups.append(group)
        row.ranks |= group.members
    every = [row for alike in rows.values() for row in alike]
    if len(every) > MOST_ROWS:
        pending = {id(row): sum(len(group.members) for group in row.groups if group.stall) for row in every}
        kept = {id(row) for row in sorted(every, key=lambda row: -pending[id(row)])[:MOST_ROWS]}
        every = [row for row in every if id(row) in kept]
    return every


def _order_rows(rows: Sequence[_Row], verdict: HangVerdict) -> list[_Row]:
    """The kind of groups of the verdict first, then those with pending calls."""

    def key(row: _Row) -> tuple[bool, bool]:
        is_first = any(group.name == verdict.group and group.stall is not None for group in row.groups)
        return (not is_first, all(group.stall is None for group in row.groups))

    return sorted(rows, key=key)


def _write_row(row: _Row, ranks: Sequence[int]) -> GroupRow:
    group_of = {rank: place for place, group in enumerate(row.groups) for rank in group.members}
    place, state, enqueued, completed = [], [], [], []
    for rank in ranks:
        at = group_of.get(rank)
        group = None if at is None else row.groups[at]
        place.append(at)
        state.append(None if group is None else _PLACES[_state_of(rank, group)])
        reached = (None, None) if group is None else group.progress.get(rank, (None, None))
        enqueued.append(reached[0])
        completed.append(reached[1])
    return GroupRow(
        name=row.name,
        groups=tuple(group.name for group in row.groups),
        group=tuple(place),
        state=tuple(state),
        enqueued=tuple(enqueued),
        completed=tuple(completed),
    )


def _state_of(rank: int, group: _Group) -> RankState:
    stall = group.stall
    for state, ranks in (
        (RankState.DEAD, stall.dead | group.ended if stall else group.ended),
        (RankState.ODD, stall.odd if stall else ()),
        (RankState.ABSENT, stall.absent if stall else ()),
        (RankState.UNSTARTED, stall.unstarted if stall else ()),
        (RankState.UNKNOWN, stall.missing if stall else ()),
        (RankState.WAITING, stall.waiting if stall else ()),
    ):
        if rank in ranks:
            return state
    return RankState.CLEAR if rank in group.progress else RankState.UNKNOWN
