"""The cluster at a past minute: allocations, waiting workloads, and the picture of all units.

What the stores do not keep is null: past waiting reasons, and node states from before they were recorded. Every unit without a
holder counts as free. Whether a node in service was idle or busy follows from its GPUs. Nodes and units are the current ones;
other fields have their latest values.
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
    NodeStateChange,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)
from clusterscape.model.durations import MINUTE_MS
from clusterscape.query.answers import UnitState
from clusterscape.query.cache import SameObjects
from clusterscape.query.context import QueryContext
from clusterscape.query.picture import build_picture, encode_strings
from clusterscape.query.summary import Demand, mark_free_use, read_demand
from clusterscape.store.records.contract import WorkloadFilter

SETTLED_MS = 600_000
"""Data older than this hardly changes any more: schedulers are polled about every minute."""

KEPT_PICTURES = 8
"""Pictures in memory; at 100,000 units one takes about 20 MB. Responses are cached longer, by ``serve/response_cache.py``."""

WINDOW_MS = 1_800_000
KEPT_WINDOWS = 4
"""Records are read half an hour at a time: a viewer of one minute usually views its neighbors next."""

_EVERY_WORKLOAD = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PastWindow:
    """All workloads and allocations that were active within one half hour.

    ``holders``: workloads that by their own times were not active, but held units; they count only while they hold units.
    """

    workloads: Sequence[Workload]
    holders: Mapping[WorkloadId, Workload]
    allocations: Sequence[Allocation]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSnapshot:
    """All units at one past minute. ``workloads`` are those that waited or ran then, in their state of then."""

    at: UnixMs
    version: int
    table: pl.DataFrame
    workloads: Sequence[Workload]
    demand: Demand
    turns: Mapping[NodeId, NodeStateChange]  # the last recorded state change of each node before then


class PastPictures:
    """Pictures of past minutes. ``places``: the current units and nodes (see ``build_places``)."""

    def __init__(self, context: QueryContext, places: Callable[[], pl.DataFrame]) -> None:
        self._context = context
        self._places = places
        self._snapshots = context.new_cache("past pictures", KEPT_PICTURES)
        self._windows = context.new_cache("past windows", KEPT_WINDOWS)

    def minute(self, at_ms: int) -> UnixMs:
        """``at_ms`` rounded down to a whole minute, so that scrubbing requests few different pictures."""
        now = self._context.clock()
        at = at_ms // MINUTE_MS * MINUTE_MS
        if at < 0 or at > now:
            raise QueryError(
                f"at must be a time between 1970 and now in Unix ms, not {at_ms}",
                hint=f"Now is {now}; leave `at` out to see the present.",
            )
        return UnixMs(at)

    def validity(self, at: UnixMs) -> Hashable:
        """Cache version of the picture of ``at``: new with every change if recent, else with new units or every ten minutes."""
        now = self._context.clock()
        if now - at < SETTLED_MS:
            return f"i{self._context.changes.versions.inventory}"
        return f"s{now // SETTLED_MS}.{self._unit_code()}"

    def _unit_code(self) -> int:
        """A checksum of the current units, which are the rows of every picture."""
        units = self._context.records.units()
        return self._context.cache.get("unit code", SameObjects(units), lambda: _checksum(unit.id for unit in units))

    def snapshot(self, at_ms: int) -> PastSnapshot:
        """The picture at ``at_ms``, rounded down to the minute."""
        at = self.minute(at_ms)
        return self._snapshots.get(at, self.validity(at), lambda: self._build(at))

    def records_at(self, at: UnixMs) -> tuple[list[Workload], list[Allocation]]:
        """What waited or ran at a past moment, in its state of then, and what it held."""
        window = self._window(at)
        return reconstruct_at([*window.workloads, *window.holders.values()], window.allocations, at)

    def _build(self, at: UnixMs) -> PastSnapshot:
        window = self._window(at)
        current_holders = dict.fromkeys(
            allocation.workload
            for allocation in window.allocations
            if allocation.workload in window.holders and _covers(allocation, at)
        )
        candidates = [*window.workloads, *(window.holders[id] for id in current_holders)]
        workloads, allocations = reconstruct_at(candidates, window.allocations, at)
        turns = {turn.node: turn for turn in self._context.records.node_states(at_ms=at)}
        table = build_picture(places=self._places_at(turns), workloads=workloads, allocations=allocations)
        table = derive_node_states(table)
        demand = read_demand(self._context, workloads, allocations, at // 1000)
        table = mark_free_use(table, self._context.records.partitions(), demand)
        return PastSnapshot(
            at=at, version=_version(at, table), table=table, workloads=workloads, demand=demand, turns=turns
        )

    def _places_at(self, turns: Mapping[NodeId, NodeStateChange]) -> pl.DataFrame:
        """Units and nodes with past node states; whether exporters responded then is unknown."""
        states = pl.DataFrame(
            {
                "node": list(turns),
                "node_state": [turn.state.value for turn in turns.values()],
                "node_reason": [turn.reason for turn in turns.values()],
            },
            schema={"node": pl.String, "node_state": pl.String, "node_reason": pl.String},
        )
        current = self._places()
        past = current.with_columns(
            pl.col("node").cast(pl.String), is_stale=pl.lit(None, pl.Boolean), is_faulty=pl.lit(None, pl.Boolean)
        ).drop("node_state", "node_reason")
        table = past.join(states, on="node", how="left", maintain_order="left").select(current.columns)
        return encode_strings(table, ["node", "node_state", "node_reason"])

    def _window(self, at: UnixMs) -> PastWindow:
        start = UnixMs(at // WINDOW_MS * WINDOW_MS)
        end = UnixMs(start + WINDOW_MS)
        newest = UnixMs(min(end, self._context.clock()))
        return self._windows.get(start, self.validity(newest), lambda: self._read(start, end))

    def _read(self, start: UnixMs, end: UnixMs) -> PastWindow:
        records = self._context.records
        active = records.workloads(WorkloadFilter(active_between=(start, end)), limit=_EVERY_WORKLOAD).workloads
        allocations = records.allocations(start_ms=start, end_ms=end)
        active_ids = {workload.id for workload in active}
        # A requeued workload has a new submission time, which may be later than its earlier allocations.
        missing = dict.fromkeys(
            allocation.workload for allocation in allocations if allocation.workload not in active_ids
        )
        holders = {id: holder for id in missing if (holder := records.workload(id)) is not None}
        return PastWindow(active, holders, allocations)


def derive_node_states(table: pl.DataFrame) -> pl.DataFrame:
    """Sets the state of nodes in service to idle, mixed or allocated by their GPUs, since changes among these are not stored."""
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


def derive_node_state(turn: NodeStateChange | None, held: int, gpu_count: int) -> NodeState:
    """The past state of one node of which ``held`` GPUs were held; the same rule as ``derive_node_states``."""
    if turn is None:
        return NodeState.UNKNOWN
    if not turn.state.is_available:
        return turn.state
    if held == 0:
        return NodeState.IDLE
    return NodeState.ALLOCATED if held >= gpu_count else NodeState.MIXED


def reconstruct_at(
    workloads: Iterable[Workload], allocations: Iterable[Allocation], at: UnixMs
) -> tuple[list[Workload], list[Allocation]]:
    """The workloads that waited or ran at ``at``, in their state of then, and the allocations that counted.

    An allocation counts in [from_at, to_at) while its workload is in ``workloads`` and has not ended. A workload runs from its
    start, or while it holds a unit, and waits before that, from its earliest time. A workload of no length counts for 1 ms.
    """
    by_id = {workload.id: workload for workload in workloads}
    ongoing = {id for id, workload in by_id.items() if not _has_ended(workload, at)}
    counted = [allocation for allocation in allocations if _covers(allocation, at) and allocation.workload in ongoing]
    held_since: dict[WorkloadId, UnixMs] = {}
    for allocation in counted:
        since = held_since.get(allocation.workload, allocation.from_at)
        held_since[allocation.workload] = min(allocation.from_at, since)
    past = [state for workload in by_id.values() if (state := _as_of(workload, held_since, at)) is not None]
    return past, counted


def _covers(allocation: Allocation, at: UnixMs) -> bool:
    return allocation.from_at <= at and (allocation.to_at is None or at < allocation.to_at)


def _as_of(workload: Workload, held_since: Mapping[WorkloadId, UnixMs], at: UnixMs) -> Workload | None:
    """``workload`` as it was at ``at``; None if it did not exist then."""
    since = held_since.get(workload.id)
    begun = _begins_at(workload)
    if since is None and ((begun is not None and begun > at) or _has_ended(workload, at)):
        return None
    # The start time that a scheduler reports for a waiting workload is only planned.
    started = None if workload.state is WorkloadState.WAITING else workload.started_at
    if started is None or started > at:
        started = since  # of an earlier execution, or of one whose start was not reported
    is_newest = started is not None and started == workload.started_at
    until = at if started is None else started
    return replace(
        workload,
        state=WorkloadState.WAITING if started is None else WorkloadState.RUNNING,
        started_at=started,
        ended_at=None,
        suspended_s=workload.suspended_s if is_newest else 0,
        suspended_at=None,
        earlier=tuple(execution for execution in workload.earlier if execution.ended_at <= until),
        expected_start_at=None,
        pending_reason=None,
    )


def _begins_at(workload: Workload) -> UnixMs | None:
    """Its earliest time, by the same order of fields as in the record store."""
    times = (workload.submitted_at, workload.eligible_at, workload.started_at, workload.ended_at)
    return next((at for at in times if at is not None), None)


def _has_ended(workload: Workload, at: UnixMs) -> bool:
    begun, ended = _begins_at(workload), workload.ended_at
    if workload.state.is_active or ended is None or begun is None:
        return False
    return max(begun + 1, ended) <= at


def _version(at: UnixMs, table: pl.DataFrame) -> int:
    """``at`` plus a checksum of the rows, less than one minute: equal versions have equal rows, which ticks rely on.

    Current versions are in seconds, so they never collide with these, which are in milliseconds.
    """
    return at + _checksum(table["unit"]) % MINUTE_MS


def _checksum(names: Iterable[str]) -> int:
    return zlib.crc32("\n".join(names).encode())
