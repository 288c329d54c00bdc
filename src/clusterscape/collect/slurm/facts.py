"""One job as Slurm tells it, whichever answer it came from, and the workloads that follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.collect.slurm.gres import NO_GPUS, SHARED_NAMES, GpuAsk, Gres
from clusterscape.collect.slurm.labels import MAX_TAG_CHARS, expand_tasks, experiment_of, workload_id
from clusterscape.collect.slurm.machines import name_machine_type
from clusterscape.collect.slurm.parse_nodes import Inventory
from clusterscape.model import NodeId, UnixMs, Workload, WorkloadId, WorkloadKind, WorkloadState


@dataclass(slots=True, kw_only=True)  # not frozen: that doubles the cost of making one, and there are many
class JobFacts:
    """A job, its values read. ``node_gres`` has one list per node of ``nodes``, or is None where Slurm does not tell."""

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
    asked: GpuAsk = NO_GPUS
    held: GpuAsk = NO_GPUS
    node_count: int | None = None
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

    @property
    def started_at(self) -> UnixMs | None:
        """When it started; a job cancelled while waiting carries the time of that as its start, but never had a node."""
        if self.state is WorkloadState.WAITING or (not self.state.is_active and not self.nodes):
            return None
        return self.start_at


def workloads_of(job: JobFacts, inventory: Inventory) -> list[Workload]:
    """The job's workloads: one, or one for each task that an array has waiting (or had, when it was cancelled)."""
    ids = _workload_ids(job)
    tags = _tags(job, is_whole_array=bool(job.array_tasks) and ids == [workload_id(str(job.array_job))])
    gpus = job.asked.count or job.held.count
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
            gpus_allocated=None if job.started_at is None else job.held.count or None,
            suspended_s=job.suspended_s,
            suspended_at=job.suspended_at,
            derived_exit_code=job.derived_exit_code,
            derived_exit_signal=job.derived_exit_signal,
        )
        for key in ids
    ]


def _workload_ids(job: JobFacts) -> list[WorkloadId]:
    """The native ids as Slurm's own commands write them; an array too large to take apart keeps its own."""
    if job.array_job:
        if job.array_task is not None:
            return [workload_id(f"{job.array_job}_{job.array_task}")]
        tasks = expand_tasks(job.array_tasks or "")
        return [workload_id(f"{job.array_job}_{task}") for task in tasks or ()] or [workload_id(str(job.array_job))]
    if job.het_job and job.het_offset is not None:
        return [workload_id(f"{job.het_job}+{job.het_offset}")]
    return [workload_id(str(job.job_id))]


def _machine_type(job: JobFacts, inventory: Inventory) -> str | None:
    gres_type = job.held.type or job.asked.type
    if gres_type:
        return inventory.type_names.get(gres_type) or name_machine_type(gres_type)
    for node in job.nodes:
        if found := inventory.machine_types.get(node):
            return found
    if len(job.partitions) == 1:
        return inventory.partition_types.get(job.partitions[0])
    return None


def _tags(job: JobFacts, *, is_whole_array: bool) -> dict[str, str]:
    shares = ",".join(f"{gres.name}:{gres.count}" for gres in _all_gres(job) if gres.name in SHARED_NAMES)
    is_part = bool(job.array_job or job.het_job)
    own = {
        # Under this number prologs and exporters know an array task or a component.
        "job_id": str(job.job_id) if is_part and not job.array_tasks else None,
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
    return notes | {key: value[:MAX_TAG_CHARS] for key, value in own.items() if value}


def _is_unusual(job: JobFacts) -> bool:
    """Whether Slurm's words say more than our state."""
    usual = {"PENDING", "RUNNING", "SUSPENDED", job.state.name, "NODE_FAIL"}
    return not set(job.state_words) <= usual


def _all_gres(job: JobFacts) -> Sequence[Gres]:
    return [gres for entries in job.node_gres or () for gres in entries]
