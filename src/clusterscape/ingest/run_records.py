"""What follows from what is known of a run: its workload, the units that it claims, what it ran on. Pure."""

import re

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
from clusterscape.model.run_units import cluster_unit
from clusterscape.model.runs import StoredRun

DEVICE_CHARS = 200
MOST_GPUS = 1024
_TAGGED_PARAM = "param."
_INDEX = re.compile(r"[0-9]{1,4}")


def summarize(run: StoredRun) -> None:
    """Bring what lists show up to date with the detail, before the run is stored."""
    summary, detail = run.summary, run.detail
    run.record.series_count = len(detail.series)
    summary.device_type = device_type_of(run)
    summary.figures = compute_figures(detail.series, detail.steps, summary.params, summary.moments, run=run.run)


def workload_of(run: StoredRun) -> Workload:
    """The run as a workload like any other."""
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
    """The GPUs or MIG instances that it says it was given, of its host; empty before it runs."""
    host = run.summary.about.host
    if run.summary.moments.running is None or not host:
        return []
    node, instances = NodeId(host), run.summary.about.mig
    if instances:
        return list(dict.fromkeys(mig_unit_id(node, part.gpu, part.instance) for part in instances))
    return [gpu_unit_id(node, index) for index in gpus_of(run)]


def allocation_of(run: StoredRun, unit: UnitId, from_at: UnixMs, to_at: UnixMs | None) -> Allocation:
    """The run holds ``unit`` from when it ran until ``to_at``."""
    return Allocation(
        workload=run.record.workload,
        unit=unit,
        from_at=from_at,
        to_at=to_at,
        source=AllocationSource.PROCESS,
        confidence=CONFIDENCE[AllocationSource.PROCESS],
    )


def gpus_of(run: StoredRun) -> list[int]:
    """Indices of its GPUs: those it was given, else those its samples name."""
    about = run.summary.about
    if about.devices:
        return sorted({int(device) for device in about.devices if _INDEX.fullmatch(device)})[:MOST_GPUS]
    series = run.detail.series.items()
    units = {cluster_unit(key.partition(" ")[0]) for key, figures in series if figures.scope == "device"}
    places = [unit.removeprefix(f"{about.host}:") for unit in units if unit.startswith(f"{about.host}:")]
    return sorted(int(place) for place in places if _INDEX.fullmatch(place))[:MOST_GPUS]


def device_type_of(run: StoredRun) -> str | None:
    """What it ran on, so that like is compared with like: the GPUs' name, or the processor's where it had no GPU."""
    environment = run.detail.environment
    gpus = gpus_of(run)
    if gpus:
        names = gpu_names(environment.get("driver"))
        return _cut(" + ".join(sorted({names[index] for index in gpus if index < len(names)})))
    cpu = environment.get("cpu")
    return _cut(cpu) if isinstance(cpu, str) else None


def gpu_names(driver: object) -> list[str]:
    """By index, from the table that ``nvidia-smi --query-gpu=name,…`` gave."""
    lines = driver.splitlines()[1:] if isinstance(driver, str) else []
    return [line.split(",")[0].strip() for line in lines if line.strip()]


def _state_of(run: StoredRun) -> WorkloadState:
    state = run.summary.state
    return WorkloadState(state) if state in set(WorkloadState) else WorkloadState.UNKNOWN


def _tags(run: StoredRun) -> dict[str, str]:
    """Its own tags and params, how it ended and where it belongs."""
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
