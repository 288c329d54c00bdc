"""The cluster at a past minute: who held what, what waited, and the picture of it.

What the stores do not keep is not invented: waiting reasons of the past are null, and so are node states from before they were
noted; every unit that nobody held then counts as free. Of a node in service, its GPUs tell whether it was idle or busy.
Nodes and units are those known now; other fields are as last known.
"""

import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from clusterscape.errors import QueryError
from clusterscape.model import (
    Allocation,
    NodeId,
    NodeState,
    NodeTurn,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)
from clusterscape.query.answers import UnitState
from clusterscape.query.cache import SameObjects
from clusterscape.query.context import QueryContext
from clusterscape.query.picture import build_picture, encode_strings
from clusterscape.query.placement import Demand, mark_free_use, read_demand
from clusterscape.store.records.contract import WorkloadFilter

MINUTE_MS = 60_000
SETTLED_MS = 600_000
"""What is older than this hardly changes any more: schedulers are asked every minute or so."""

KEPT_PICTURES = 8
"""Pictures kept in memory; at 100,000 units one takes some 20 MB. Responses are kept longer, by ``serve/response_cache.py``."""

STRETCH_MS = 1_800_000
KEPT_STRETCHES = 4
"""Records are read for half an hour at once: who looks at one minute looks at its neighbors next."""

_EVERY_WORKLOAD = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Stretch:
    """All workloads and allocations that counted at some time of half an hour.

    ``holders`` were not submitted yet, or of no known time, but held units all the same: they count only while they do.
    """

    workloads: Sequence[Workload]
    holders: Mapping[WorkloadId, Workload]
    allocations: Sequence[Allocation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """All units at one moment. ``workloads`` are those that waited or ran then, as they were then."""

    at: UnixMs
    version: int
    table: pl.DataFrame
    workloads: Sequence[Workload]
    demand: Demand
    turns: Mapping[NodeId, NodeTurn]  # how each node last turned before then, as far as it was noted


class PastPictures:
    """Pictures of past minutes. ``places``: units and nodes as known now (see ``build_places``)."""

    def __init__(self, context: QueryContext, places: Callable[[], pl.DataFrame]) -> None:
        self._context = context
        self._places = places
        self._shots = context.new_cache("past pictures", KEPT_PICTURES)
        self._stretches = context.new_cache("past stretches", KEPT_STRETCHES)

    def minute(self, at_ms: int) -> UnixMs:
        """``at_ms`` rounded down to a whole minute, so that scrubbing asks for few different pictures."""
        now = self._context.clock()
        at = at_ms // MINUTE_MS * MINUTE_MS
        if at < 0 or at > now:
            raise QueryError(
                f"at must be a time between 1970 and now in Unix ms, not {at_ms}",
                hint=f"Now is {now}; leave `at` out to see the present.",
            )
        return UnixMs(at)

    def validity(self, at: UnixMs) -> Hashable:
        """Changes when the picture of ``at`` may have: while fresh with every change, later with the units or in ten minutes."""
        now = self._context.clock()
        if now - at < SETTLED_MS:
            return f"i{self._context.changes.versions.inventory}"
        return f"s{now // SETTLED_MS}.{self._unit_code()}"

    def _unit_code(self) -> int:
        """Of the units known now, which are the rows of every picture; the store hands out the same list until it changes."""
        units = self._context.records.units()
        return self._context.cache.get("unit code", SameObjects(units), lambda: _code(unit.id for unit in units))

    def shot(self, at_ms: int) -> Shot:
        """Everything at ``at_ms``, rounded down to the minute."""
        at = self.minute(at_ms)
        return self._shots.get(at, self.validity(at), lambda: self._build(at))

    def _build(self, at: UnixMs) -> Shot:
        stretch = self._stretch(at)
        holding = dict.fromkeys(
            held.workload
            for held in stretch.allocations
            if held.workload in stretch.holders and held.from_at <= at and (held.to_at is None or at < held.to_at)
        )
        known = [*stretch.workloads, *(stretch.holders[id] for id in holding)]
        workloads, held = see_at(known, stretch.allocations, at)
        turns = {turn.node: turn for turn in self._context.records.node_states(at_ms=at)}
        table = build_picture(places=self._places_at(turns), workloads=workloads, allocations=held)
        table = tell_service(table)
        demand = read_demand(self._context, workloads, held, at // 1000)
        table = mark_free_use(table, self._context.records.partitions(), demand)
        return Shot(at=at, version=_version(at, table), table=table, workloads=workloads, demand=demand, turns=turns)

    def _places_at(self, turns: Mapping[NodeId, NodeTurn]) -> pl.DataFrame:
        """Units and nodes with the states of then; a silent exporter of then is not known."""
        states = pl.DataFrame(
            {
                "node": list(turns),
                "node_state": [turn.state.value for turn in turns.values()],
                "node_reason": [turn.reason for turn in turns.values()],
            },
            schema={"node": pl.String, "node_state": pl.String, "node_reason": pl.String},
        )
        now = self._places()
        then = now.with_columns(
            pl.col("node").cast(pl.String), is_stale=pl.lit(None, pl.Boolean), is_faulty=pl.lit(None, pl.Boolean)
        ).drop("node_state", "node_reason")
        table = then.join(states, on="node", how="left", maintain_order="left").select(now.columns)
        return encode_strings(table, ["node", "node_state", "node_reason"])

    def _stretch(self, at: UnixMs) -> Stretch:
        start = UnixMs(at // STRETCH_MS * STRETCH_MS)
        end = UnixMs(start + STRETCH_MS)
        newest = UnixMs(min(end, self._context.clock()))
        return self._stretches.get(start, self.validity(newest), lambda: self._read(start, end))

    def _read(self, start: UnixMs, end: UnixMs) -> Stretch:
        records = self._context.records
        found = records.workloads(WorkloadFilter(active_between=(start, end)), limit=_EVERY_WORKLOAD).workloads
        allocations = records.allocations(start_ms=start, end_ms=end)
        known = {workload.id for workload in found}
        # A requeued workload counts as submitted anew.
        missing = dict.fromkeys(held.workload for held in allocations if held.workload not in known)
        holders = {id: holder for id in missing if (holder := records.workload(id)) is not None}
        return Stretch(found, holders, allocations)


def tell_service(table: pl.DataFrame) -> pl.DataFrame:
    """``table`` with idle, mixed or allocated for nodes in service, by their GPUs: turns among these are not kept."""
    held = (pl.col("unit_state") == UnitState.ALLOCATED.value).cast(pl.Int32)
    serving = [state.value for state in NodeState if state.is_available]
    state = (
        pl.when(~pl.col("node_state").cast(pl.String).is_in(serving))
        .then(pl.col("node_state").cast(pl.String))
        .when(pl.col("node_state").is_null())
        .then(None)
        .when(held.sum().over("node") == 0)
        .then(pl.lit(NodeState.IDLE.value))
        .when(held.min().over("node") == 1)
        .then(pl.lit(NodeState.ALLOCATED.value))
        .otherwise(pl.lit(NodeState.MIXED.value))
    )
    return encode_strings(table.with_columns(node_state=state), ["node_state"])


def service_of(turn: NodeTurn | None, held: int, gpu_count: int) -> NodeState:
    """The state of a node whose GPUs were held so; the same as ``tell_service``."""
    if turn is None:
        return NodeState.UNKNOWN
    if not turn.state.is_available:
        return turn.state
    if held == 0:
        return NodeState.IDLE
    return NodeState.ALLOCATED if held >= gpu_count else NodeState.MIXED


def see_at(
    workloads: Iterable[Workload], allocations: Iterable[Allocation], at: UnixMs
) -> tuple[list[Workload], list[Allocation]]:
    """The workloads that waited or ran at ``at``, as they were then, and the allocations that counted.

    An allocation counts in [from_at, to_at) while its workload is known and has not ended. A workload runs while it holds a unit
    or since it started, and waits before that, from the first time known of it. One of no length counts for 1 ms.
    """
    known = {workload.id: workload for workload in workloads}
    going_on = {id for id, workload in known.items() if not _has_ended(workload, at)}
    counted = [
        held
        for held in allocations
        if held.from_at <= at and (held.to_at is None or at < held.to_at) and held.workload in going_on
    ]
    held_since: dict[WorkloadId, UnixMs] = {}
    for held in counted:
        held_since[held.workload] = min(held.from_at, held_since.get(held.workload, held.from_at))
    seen = [state for workload in known.values() if (state := _as_of(workload, held_since, at)) is not None]
    return seen, counted


def _as_of(workload: Workload, held_since: Mapping[WorkloadId, UnixMs], at: UnixMs) -> Workload | None:
    """``workload`` as it was at ``at``; None where it was not there."""
    since = held_since.get(workload.id)
    begun = _begins_at(workload)
    if since is None and ((begun is not None and begun > at) or _has_ended(workload, at)):
        return None
    # What a scheduler calls the start of a waiting workload is its plan.
    started = None if workload.state is WorkloadState.WAITING else workload.started_at
    if started is None or started > at:
        started = since  # of an earlier run, or of one whose start was not told
    is_newest = started is not None and started == workload.started_at
    until = at if started is None else started
    return replace(
        workload,
        state=WorkloadState.WAITING if started is None else WorkloadState.RUNNING,
        started_at=started,
        ended_at=None,
        suspended_s=workload.suspended_s if is_newest else 0,
        suspended_at=None,
        earlier=tuple(each for each in workload.earlier if each.ended_at <= until),
        expected_start_at=None,
        pending_reason=None,
    )


def _begins_at(workload: Workload) -> UnixMs | None:
    """The first time known of it, by the same order as in the record store."""
    known = (workload.submitted_at, workload.eligible_at, workload.started_at, workload.ended_at)
    return next((at for at in known if at is not None), None)


def _has_ended(workload: Workload, at: UnixMs) -> bool:
    begun, ended = _begins_at(workload), workload.ended_at
    if workload.state.is_active or ended is None or begun is None:
        return False
    return max(begun + 1, ended) <= at


def _version(at: UnixMs, table: pl.DataFrame) -> int:
    """``at`` plus a code of the rows below one minute: equal versions have equal rows, as a tick's order needs.

    Versions of the present count seconds and never reach the milliseconds of these.
    """
    return at + _code(table["unit"]) % MINUTE_MS


def _code(names: Iterable[str]) -> int:
    return zlib.crc32("\n".join(names).encode())
