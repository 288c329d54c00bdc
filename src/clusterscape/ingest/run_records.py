"""Derives records from a stored run: its workload, device type, the units that it claims, and its allocations.

Host and devices are sent by the client, so they are claims, not facts. A unit of the inventory is held only while no other
source assigns it to another user; a unit that is not in the inventory is held in the run's own namespace.
"""

import re
from collections.abc import Callable, Iterator

from clusterscape.ingest.run_figures import compute_figures
from clusterscape.model import (
    CONFIDENCE,
    Allocation,
    AllocationSource,
    NodeId,
    UnitId,
    UnixMs,
    Workload,
    WorkloadKind,
    WorkloadState,
    gpu_unit_id,
    mig_unit_id,
)
from clusterscape.model.runs import StoredRun, cluster_unit, is_run_unit, measured_unit
from clusterscape.store.records.contract import RecordStore

DEVICE_CHARS = 200
MOST_GPUS = 1024
_TAGGED_PARAM = "param."
_INDEX = re.compile(r"[0-9]{1,4}")


def summarize(run: StoredRun) -> None:
    """Update the summary from the detail, before the run is stored."""
    summary, detail = run.summary, run.detail
    run.record.series_count = len(detail.series)
    summary.device_type = device_type_of(run)
    summary.figures = compute_figures(detail.series, detail.steps, summary.params, summary.moments, run=run.run)


def workload_of(run: StoredRun) -> Workload:
    """The run as a workload."""
    summary, about = run.summary, run.summary.about
    return Workload(
        id=run.record.workload,
        kind=WorkloadKind.RUN,
        state=_state_of(run),
        name=about.name,
        user=run.record.owned_by,
        project=about.workload,
        experiment=about.experiment,
        gpus_requested=len(gpus_of(run)),
        nodes_requested=1,
        submitted_at=_time(about.queued_at),
        eligible_at=_time(about.queued_at),
        started_at=_time(summary.moments.running),
        ended_at=_time(summary.moments.ended),
        exit_code=summary.end.exit_code,
        exit_signal=summary.end.exit_signal,
        nodes=(NodeId(about.host),) if about.host else (),
        tags=_tags(run),
    )


def claimed_units(run: StoredRun) -> list[UnitId]:
    """The GPUs or MIG instances of its host that the run claims; empty before it runs."""
    host = run.summary.about.host
    if run.summary.moments.running is None or not host:
        return []
    node, instances = NodeId(host), run.summary.about.mig
    if instances:
        return list(dict.fromkeys(mig_unit_id(node, part.gpu, part.instance) for part in instances))
    return [gpu_unit_id(node, index) for index in gpus_of(run)]


def allocation_of(run: StoredRun, unit: UnitId, from_at: UnixMs, to_at: UnixMs | None) -> Allocation:
    """The allocation of ``unit`` to the run."""
    return Allocation(
        workload=run.record.workload,
        unit=unit,
        from_at=from_at,
        to_at=to_at,
        source=AllocationSource.PROCESS,
        confidence=CONFIDENCE[AllocationSource.PROCESS],
    )


def gpus_of(run: StoredRun) -> list[int]:
    """Indices of its GPUs: its devices, or else those of its samples."""
    about = run.summary.about
    if about.devices:
        return sorted({int(device) for device in about.devices if _INDEX.fullmatch(device)})[:MOST_GPUS]
    series = run.detail.series.items()
    units = {cluster_unit(key.partition(" ")[0]) for key, figures in series if figures.scope == "device"}
    places = [unit.removeprefix(f"{about.host}:") for unit in units if unit.startswith(f"{about.host}:")]
    return sorted(int(place) for place in places if _INDEX.fullmatch(place))[:MOST_GPUS]


def device_type_of(run: StoredRun) -> str | None:
    """The device that it ran on, for fair comparisons: the names of its GPUs, or of the CPU if it had none."""
    environment = run.detail.environment
    gpus = gpus_of(run)
    if gpus:
        names = gpu_names(environment.get("driver"))
        return _cut(" + ".join(sorted({names[index] for index in gpus if index < len(names)})))
    cpu = environment.get("cpu")
    return _cut(cpu) if isinstance(cpu, str) else None


def gpu_names(driver: object) -> list[str]:
    """GPU names by index, from the output of ``nvidia-smi --query-gpu=name,…``."""
    lines = driver.splitlines()[1:] if isinstance(driver, str) else []
    return [line.split(",")[0].strip() for line in lines if line.strip()]


def _state_of(run: StoredRun) -> WorkloadState:
    state = run.summary.state
    return WorkloadState(state) if state in set(WorkloadState) else WorkloadState.UNKNOWN


def _tags(run: StoredRun) -> dict[str, str]:
    """Its tags and params, its letter, collocation and workload, and the cause of its end."""
    summary, about = run.summary, run.summary.about
    tags = dict(summary.tags) | {f"{_TAGGED_PARAM}{name}": value for name, value in summary.params.items()}
    others = {
        "letter": about.letter,
        "collocation": about.collocation,
        "workload": about.workload,
        "cause": summary.end.cause,
    }
    return tags | {name: value for name, value in others.items() if value is not None}


def _cut(text: str) -> str | None:
    if len(text) > DEVICE_CHARS:
        return f"{text[:DEVICE_CHARS]}…"
    return text or None


def _time(at: int | None) -> UnixMs | None:
    return None if at is None else UnixMs(at)


class RunClaims:
    """Decides which claimed units a run holds. ``has_unit``: whether the inventory has a unit; ``most``: limit of units."""

    def __init__(self, records: RecordStore, has_unit: Callable[[UnitId], bool], *, most: int) -> None:
        self._records = records
        self._has_unit = has_unit
        self._most = most

    def allocations(self, run: StoredRun, now: UnixMs) -> list[Allocation]:
        """The run's allocations, from its start to its end or until the unit is allocated to another user."""
        begin = run.summary.moments.running
        if begin is None:
            return []
        holds = run.detail.holds = run.detail.holds or {}
        units = claimed_units(run)[: self._most]
        return [held for unit in units for held in self._decide(run, holds, unit, UnixMs(begin), now)]

    def _decide(
        self, run: StoredRun, holds: dict[str, str], unit: UnitId, begin: UnixMs, now: UnixMs
    ) -> Iterator[Allocation]:
        # Decided once: under another unit, a second allocation would stay open.
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
        """``end``, or the start of another user's allocation of the unit, whichever is first."""
        until = UnixMs(max(begin, now) + 1 if end is None else max(begin + 1, end))
        others = self._records.allocations(unit=unit, start_ms=begin, end_ms=until)
        starts = [held.from_at for held in others if not is_run_unit(held.workload) and self._is_foreign(held, run)]
        return UnixMs(max(begin, min(starts))) if starts else end

    def _is_foreign(self, held: Allocation, run: StoredRun) -> bool:
        workload = self._records.workload(held.workload)
        return workload is None or workload.user is None or workload.user != run.record.owned_by
