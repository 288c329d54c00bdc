"""One job of Slurm, from the queue or from accounting: its names, its workloads, and the units that it holds.

Units are known by device index if Slurm gives it, or if the job holds all GPUs of its nodes. Otherwise the job has no
allocations: they are never guessed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from clusterscape.collect.slurm.gres import NO_GPUS, SHARED_NAMES, GpuCount, Gres, name_machine_type
from clusterscape.collect.slurm.job_summaries import PREFIX
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, slurm_unit_id
from clusterscape.model import (
    CONFIDENCE,
    Allocation,
    AllocationSource,
    NodeId,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadKind,
    WorkloadState,
)

MAX_ARRAY_TASKS = 4096
"""Maximum number of waiting array tasks that become separate workloads; a larger array is one workload until tasks start."""

MAX_TAG_CHARS = 200
MAX_NOTE_TAGS = 16

_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_EXTENSION = re.compile(r"\.(sh|py|sbatch|slurm|bash|job)$", re.IGNORECASE)
_NUMBER = re.compile(r"[-_. ](?:seed|run|trial|fold|rep|job|task)?[-_=]?\d+$", re.IGNORECASE)


def workload_id(native: str) -> WorkloadId:
    """``slurm:4711``, ``slurm:4711_3`` (array task), ``slurm:4711+1`` (component of a heterogeneous job)."""
    return WorkloadId(f"slurm:{native}")


def expand_tasks(text: str) -> list[int] | None:
    """Task numbers of ``1,3,5-9:2%4`` or of the bit mask ``0x38``; None if truncated, malformed or too many."""
    text = text.split("%")[0].strip().strip("[]")
    if text.startswith("0x"):
        return _expand_mask(text[2:])
    tasks: list[int] = []
    for piece in text.split(","):
        match = _TASKS.fullmatch(piece.strip())
        if match is None:
            return None
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step == 0 or (last - first) // step + 1 > MAX_ARRAY_TASKS - len(tasks):
            return None
        tasks.extend(range(first, last + 1, step))
    return tasks


def _expand_mask(digits: str) -> list[int] | None:
    if not re.fullmatch(r"[0-9A-Fa-f]{1,4096}", digits, re.ASCII):
        return None
    mask = int(digits, 16)
    if mask.bit_count() > MAX_ARRAY_TASKS:
        return None
    return [task for task in range(mask.bit_length()) if mask >> task & 1]


def experiment_of(name: str | None, wckey: str | None, notes: Mapping[str, str]) -> str | None:
    """The WCKey, else ``experiment`` of a JSON comment, else the job name without extension and trailing numbers."""
    if wckey and wckey.lstrip("*"):
        return wckey.lstrip("*")
    if notes.get("experiment"):
        return notes["experiment"]
    return _stem(name) if name else None


def _stem(name: str) -> str:
    stem = _EXTENSION.sub("", name)
    while (shorter := _NUMBER.sub("", stem)) != stem and shorter:
        stem = shorter
    return stem


def read_notes(comments: Iterable[str | None]) -> dict[str, str]:
    """Scalar values of comments that are JSON objects; a text comment becomes ``comment``. Earlier comments take precedence."""
    notes: dict[str, str] = {}
    for comment in comments:
        if comment and not comment.startswith(PREFIX):
            for key, value in _read_note(comment).items():
                if len(notes) < MAX_NOTE_TAGS:
                    notes.setdefault(key, value)
    return notes


def _read_note(comment: str) -> dict[str, str]:
    if comment.startswith("{"):
        try:
            parsed = orjson.loads(comment)
        except orjson.JSONDecodeError:
            parsed = None
        if isinstance(parsed, dict):
            return {key[:MAX_TAG_CHARS]: _short(value) for key, value in parsed.items() if _is_plain(value)}
    return {"comment": _short(comment)}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool) and value != ""


def _short(value: object) -> str:
    return (value if isinstance(value, str) else orjson.dumps(value).decode())[:MAX_TAG_CHARS]


@dataclass(slots=True, kw_only=True)  # not frozen, which would double the cost of creating these many objects
class JobFacts:
    """The parsed values of a job. ``node_gres`` has one list per node of ``nodes``, or is None if Slurm does not give it."""

    job_id: int
    state: WorkloadState
    state_words: tuple[str, ...] = ()
    array_job: int | None = None
    array_task: int | None = None
    array_tasks: str | None = None
    het_job: int | None = None
    het_offset: int | None = None
    name: str | None = None
    user: str | None = None
    account: str | None = None
    wckey: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    qos: str | None = None
    priority: int | None = None
    is_interactive: bool = False
    requested: GpuCount = NO_GPUS
    allocated: GpuCount = NO_GPUS
    node_count: int | None = None
    cpus: int | None = None
    memory_requested_bytes: int | None = None
    sluid: str | None = None
    time_limit_s: int | None = None
    submitted_at: UnixMs | None = None
    eligible_at: UnixMs | None = None
    start_at: UnixMs | None = None  # planned while waiting
    end_at: UnixMs | None = None  # planned while running
    reason: str | None = None
    reason_detail: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    derived_exit_code: int | None = None
    derived_exit_signal: int | None = None
    restarts: int = 0
    suspended_s: int = 0
    suspended_at: UnixMs | None = None
    nodes: tuple[NodeId, ...] = ()
    node_gres: tuple[tuple[Gres, ...], ...] | None = None
    constraint: str | None = None
    reservation: str | None = None
    dependency: str | None = None
    summary: str | None = None  # that jobstats stored in AdminComment

    @property
    def started_at(self) -> UnixMs | None:
        """When it started. Slurm sets a start also for a job that was cancelled while waiting, which never had a node."""
        if self.state is WorkloadState.WAITING or (not self.state.is_active and not self.nodes):
            return None
        return self.start_at


def workloads_of(job: JobFacts, inventory: SlurmInventory) -> list[Workload]:
    """The job's workloads: one, or one per waiting task of an array (or task that was waiting when it was cancelled)."""
    ids = _workload_ids(job)
    tags = _tags(job, is_whole_array=bool(job.array_tasks) and ids == [workload_id(str(job.array_job))])
    gpus = job.requested.count or job.allocated.count
    machine_type = _machine_type(job, inventory)
    is_waiting = job.state is WorkloadState.WAITING
    return [
        Workload(
            id=key,
            state=job.state,
            kind=WorkloadKind.SESSION if job.is_interactive else WorkloadKind.JOB,
            name=job.name,
            user=job.user,
            project=job.account,
            experiment=experiment_of(job.name, job.wckey, job.notes),
            partition=job.partitions[0] if job.partitions else None,
            resource_type=f"{machine_type}-{gpus}" if machine_type and gpus else None,
            qos=job.qos,
            priority=job.priority,
            gpus_requested=gpus,
            nodes_requested=job.node_count,
            time_limit_s=job.time_limit_s,
            submitted_at=job.submitted_at,
            eligible_at=job.eligible_at,
            started_at=job.started_at,
            ended_at=None if job.state.is_active else job.end_at,
            expected_start_at=job.start_at if is_waiting else None,
            pending_reason=job.reason if is_waiting else None,
            exit_code=job.exit_code,
            exit_signal=job.exit_signal,
            restarts=job.restarts,
            nodes=job.nodes,
            tags=tags,
            gpus_allocated=None if job.started_at is None else job.allocated.count or None,
            suspended_s=job.suspended_s,
            suspended_at=job.suspended_at,
            derived_exit_code=job.derived_exit_code,
            derived_exit_signal=job.derived_exit_signal,
            cpus=job.cpus,
            memory_requested_bytes=job.memory_requested_bytes,
        )
        for key in ids
    ]


def _workload_ids(job: JobFacts) -> list[WorkloadId]:
    """The ids as Slurm's commands print them; an array that is too large to expand keeps the array's id."""
    if job.array_job:
        if job.array_task is not None:
            return [workload_id(f"{job.array_job}_{job.array_task}")]
        tasks = expand_tasks(job.array_tasks or "")
        return [workload_id(f"{job.array_job}_{task}") for task in tasks or ()] or [workload_id(str(job.array_job))]
    if job.het_job and job.het_offset is not None:
        return [workload_id(f"{job.het_job}+{job.het_offset}")]
    return [workload_id(str(job.job_id))]


def _machine_type(job: JobFacts, inventory: SlurmInventory) -> str | None:
    gres_type = job.allocated.type or job.requested.type
    if gres_type:
        return inventory.type_names.get(gres_type) or name_machine_type(gres_type)
    for node in job.nodes:
        if machine_type := inventory.machine_types.get(node):
            return machine_type
    if len(job.partitions) == 1:
        return inventory.partition_types.get(job.partitions[0])
    return None


def _tags(job: JobFacts, *, is_whole_array: bool) -> dict[str, str]:
    shares = ",".join(f"{gres.name}:{gres.count}" for gres in _all_gres(job) if gres.name in SHARED_NAMES)
    is_part = bool(job.array_job or job.het_job)
    tags = {
        # Prologs and exporters use this number for an array task or a component.
        "job_id": str(job.job_id) if is_part and not job.array_tasks else None,
        "sluid": job.sluid,  # names its cgroups from Slurm 26.05
        "array_job": str(job.array_job) if job.array_job else None,
        "array_tasks": job.array_tasks if is_whole_array else None,
        "partitions": ",".join(job.partitions) if len(job.partitions) > 1 else None,
        "constraint": job.constraint,
        "reservation": job.reservation,
        "dependency": job.dependency if job.state is WorkloadState.WAITING else None,
        "shared_gpu": shares,
        "reason_detail": job.reason_detail if job.state is WorkloadState.WAITING else None,
        "slurm_state": "+".join(job.state_words) if _is_unusual(job) else None,
    }
    notes = {key: value for key, value in job.notes.items() if key != "experiment"}
    return notes | {key: value[:MAX_TAG_CHARS] for key, value in tags.items() if value}


def _is_unusual(job: JobFacts) -> bool:
    """Whether Slurm's state has details that our state lacks."""
    usual = {"PENDING", "RUNNING", "SUSPENDED", job.state.name, "NODE_FAIL"}
    return not set(job.state_words) <= usual


def _all_gres(job: JobFacts) -> Sequence[Gres]:
    return [gres for entries in job.node_gres or () for gres in entries]


Holding = tuple[UnitId, AllocationSource]


def allocations_of(job: JobFacts, workload: WorkloadId, inventory: SlurmInventory, now_ms: UnixMs) -> list[Allocation]:
    """The job's allocations, open while it is active. An active job without a start is assumed to have started now."""
    if job.state is WorkloadState.WAITING:
        return []
    from_at, to_at = job.started_at, None if job.state.is_active else job.end_at
    if not job.state.is_active and (from_at is None or to_at is None):
        return []
    # A GPU may be listed twice (a share and the whole GPU) but is held once.
    holdings = dict(_iter_holdings(job, inventory))
    return [
        Allocation(
            workload=workload,
            unit=unit,
            from_at=now_ms if from_at is None else from_at,
            to_at=to_at,
            source=source,
            confidence=CONFIDENCE[source],
        )
        for unit, source in holdings.items()
    ]


def _iter_holdings(job: JobFacts, inventory: SlurmInventory) -> Iterator[Holding]:
    if job.node_gres is not None:
        for node, entries in zip(job.nodes, job.node_gres, strict=True):
            yield from _iter_node_holdings(node, entries, inventory)
    elif "COMPLETING" not in job.state_words:  # in this state Slurm no longer gives the GPUs
        yield from _iter_whole_nodes(job.nodes, job.allocated.count, inventory)


def _iter_node_holdings(node: NodeId, entries: Sequence[Gres], inventory: SlurmInventory) -> Iterator[Holding]:
    units = inventory.node_units.get(node)
    without_index = 0
    for gres in entries:
        if gres.indices:
            if gres.name == "gpu" or gres.name in SHARED_NAMES:
                yield from ((unit, AllocationSource.SCHEDULER_INDEX) for unit in _indexed(node, gres, units))
        elif gres.name == "gpu":
            without_index += gres.count
    if without_index:
        yield from _iter_whole_nodes((node,), without_index, inventory)


def _indexed(node: NodeId, gres: Gres, units: Sequence[UnitId] | None) -> Iterator[UnitId]:
    """The units of a GRES entry's indices; an index that the node does not have is skipped."""
    for index in gres.indices or ():
        if units is None:
            yield slurm_unit_id(node, index, is_mig=gres.mig_profile is not None)
        elif index < len(units):
            yield units[index]


def _iter_whole_nodes(nodes: Sequence[NodeId], gpus: int, inventory: SlurmInventory) -> Iterator[Holding]:
    units = [unit for node in nodes for unit in inventory.node_units.get(node, ())]
    if gpus and gpus == len(units) and all(node in inventory.node_units for node in nodes):
        yield from ((unit, AllocationSource.WHOLE_NODE) for unit in units)
