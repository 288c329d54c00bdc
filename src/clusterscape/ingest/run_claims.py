"""Which of the GPUs that a tracked run says it was given count as held by it.

Whoever sends a run writes its host and devices, so this is a claim, not a fact. A unit that the site knows is held only while no
other source says that somebody else has it; a unit that nobody else reports is held in the run's own namespace.
"""

from collections.abc import Callable, Iterator

from clusterscape.ingest.run_records import RunState, allocation_of, claimed_units
from clusterscape.model import Allocation, UnitId, UnixMs
from clusterscape.model.run_units import is_run_unit, measured_unit
from clusterscape.store.records.contract import RecordStore


class RunClaims:
    """Decides by what the record store knows of others. ``has_unit``: whether the site's inventory names a unit."""

    def __init__(self, records: RecordStore, has_unit: Callable[[UnitId], bool], *, most: int) -> None:
        self._records = records
        self._has_unit = has_unit
        self._most = most

    def allocations(self, state: RunState, now: UnixMs) -> list[Allocation]:
        """What the run holds, from when it ran to its end or until somebody else got the unit."""
        return [held for unit in claimed_units(state)[: self._most] for held in self._decide(state, unit, now)]

    def _decide(self, state: RunState, unit: UnitId, now: UnixMs) -> Iterator[Allocation]:
        # Decided once: an allocation under another name would stay open beside the first.
        holds = state.holds.get(unit) or (unit if self._has_unit(unit) else measured_unit(state.run, unit))
        ended = state.moments.get("ended")
        end = None if ended is None else UnixMs(max(ended, state.moments["running"]))
        if not is_run_unit(holds):
            end = self._end_of_claim(state, unit, end, now)
        if unit in state.holds or end is None or end > state.moments["running"]:
            state.holds[unit] = holds
            yield allocation_of(state, UnitId(holds), end)

    def _end_of_claim(self, state: RunState, unit: UnitId, end: UnixMs | None, now: UnixMs) -> UnixMs | None:
        """``end``, or when somebody else's workload got the unit, whichever is first."""
        begin = UnixMs(state.moments["running"])
        until = UnixMs(max(begin, now) + 1 if end is None else max(begin + 1, end))
        others = self._records.allocations(unit=unit, start_ms=begin, end_ms=until)
        starts = [held.from_at for held in others if not is_run_unit(held.workload) and self._is_foreign(held, state)]
        return UnixMs(max(begin, min(starts))) if starts else end

    def _is_foreign(self, held: Allocation, state: RunState) -> bool:
        workload = self._records.workload(held.workload)
        return workload is None or workload.user is None or workload.user != state.owned_by
