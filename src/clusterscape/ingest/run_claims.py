"""Which of the GPUs that a tracked run says it was given count as held by it.

Whoever sends a run writes its host and devices, so this is a claim, not a fact. A unit that the site knows is held only while no
other source says that somebody else has it; a unit that nobody else reports is held in the run's own namespace.
"""

from collections.abc import Callable, Iterator

from clusterscape.ingest.run_records import allocation_of, claimed_units
from clusterscape.model import Allocation, UnitId, UnixMs
from clusterscape.model.run_units import is_run_unit, measured_unit
from clusterscape.model.runs import StoredRun
from clusterscape.store.records.contract import RecordStore


class RunClaims:
    """Decides by what the record store knows of others. ``has_unit``: whether the site's inventory names a unit."""

    def __init__(self, records: RecordStore, has_unit: Callable[[UnitId], bool], *, most: int) -> None:
        self._records = records
        self._has_unit = has_unit
        self._most = most

    def allocations(self, run: StoredRun, now: UnixMs) -> list[Allocation]:
        """What the run holds, from when it ran to its end or until somebody else got the unit."""
        begin = run.summary.moments.running
        if begin is None:
            return []
        holds = run.detail.holds = run.detail.holds or {}
        units = claimed_units(run)[: self._most]
        return [held for unit in units for held in self._decide(run, holds, unit, UnixMs(begin), now)]

    def _decide(
        self, run: StoredRun, holds: dict[str, str], unit: UnitId, begin: UnixMs, now: UnixMs
    ) -> Iterator[Allocation]:
        # Decided once: an allocation under another name would stay open beside the first.
        held = holds.get(unit) or (unit if self._has_unit(unit) else measured_unit(run.run, unit))
        ended = run.summary.moments.ended
        end = None if ended is None else UnixMs(max(ended, begin))
        if not is_run_unit(held):
            end = self._end_of_claim(run, unit, begin, end, now)
        if unit in holds or end is None or end > begin:
            holds[unit] = held
            yield allocation_of(run, UnitId(held), begin, end)

    def _end_of_claim(
        self, run: StoredRun, unit: UnitId, begin: UnixMs, end: UnixMs | None, now: UnixMs
    ) -> UnixMs | None:
        """``end``, or when somebody else's workload got the unit, whichever is first."""
        until = UnixMs(max(begin, now) + 1 if end is None else max(begin + 1, end))
        others = self._records.allocations(unit=unit, start_ms=begin, end_ms=until)
        starts = [held.from_at for held in others if not is_run_unit(held.workload) and self._is_foreign(held, run)]
        return UnixMs(max(begin, min(starts))) if starts else end

    def _is_foreign(self, held: Allocation, run: StoredRun) -> bool:
        workload = self._records.workload(held.workload)
        return workload is None or workload.user is None or workload.user != run.record.owned_by
