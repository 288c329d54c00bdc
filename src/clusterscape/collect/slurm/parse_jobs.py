"""Parses active workloads and their allocations from Slurm's queue in JSON, by its structure, not its version.

Malformed entries are counted, never raised. Ended jobs that the queue still shows are included, without allocations.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.collect.slurm.facts import JobFacts, allocations_of, read_notes, workloads_of
from clusterscape.collect.slurm.gres import MAX_GPUS, NO_GPUS, GpuCount, Gres, parse_gpu_count, parse_gres, sum_gpus
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, iter_entries
from clusterscape.collect.slurm.states import exit_state, job_state
from clusterscape.collect.slurm.values import (
    as_list,
    as_object,
    expand_hostlist,
    read_int,
    read_minutes,
    read_names,
    read_text,
    read_time,
    read_tres_bytes,
    read_tres_count,
    read_words,
)
from clusterscape.model import Allocation, NodeId, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.job_usage import JobUsage


@dataclass(frozen=True)
class ParsedJobs:
    """The jobs of a response. ``is_complete`` is False if an entry was dropped: a job that is not listed may still be active."""

    workloads: tuple[Workload, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    is_complete: bool = True
    usages: Mapping[WorkloadId, JobUsage] = field(default_factory=dict)
    """What ended jobs used, from the summaries of jobstats."""


class UnreadableEntryError(ValueError):
    """An entry that cannot be parsed; the message is the reason that is counted."""


def parse_jobs(
    document: Mapping[str, object], inventory: SlurmInventory, now_ms: UnixMs, max_workloads: int = sys.maxsize
) -> ParsedJobs:
    """Parse a ``jobs`` response (slurmrestd, ``squeue --json``), up to ``max_workloads`` workloads.

    An entry may be an array of thousands of tasks. Entries are in submit order, so the newest are dropped.
    """
    dropped: Counter[str] = Counter()
    workloads: dict[str, Workload] = {}
    allocations: list[Allocation] = []
    for entry in iter_entries(document, "jobs", dropped):
        try:
            job = read_queue_entry(entry, dropped)
        except UnreadableEntryError as reason:
            dropped[str(reason)] += 1
            continue
        if len(workloads) >= max_workloads:
            dropped["jobs: too many workloads"] += 1
            continue
        job_workloads = workloads_of(job, inventory)
        workloads.update((workload.id, workload) for workload in job_workloads)
        if job.state.is_active and len(job_workloads) == 1:
            allocations.extend(allocations_of(job, job_workloads[0].id, inventory, now_ms))
    dropped_jobs = (
        sum(dropped.values()) - dropped[_GRES_MISMATCH] - dropped[_GRES_UNREADABLE] - dropped[_REQUEST_UNREADABLE]
    )
    return ParsedJobs(
        tuple(workloads.values()),
        tuple(allocations),
        dict(+dropped),
        dropped_jobs == 0 and not as_list(document.get("errors")),
    )


_GRES_MISMATCH = "jobs: gres_detail does not fit the nodes"
_GRES_UNREADABLE = "jobs: unreadable gres_detail"
_REQUEST_UNREADABLE = "jobs: unreadable request for GPUs"


def read_queue_entry(entry: dict[str, object], dropped: Counter[str]) -> JobFacts:
    """Parse one job. Raises UnreadableEntryError if it has no id or state; other malformed parts are counted and skipped."""
    job_id = read_int(entry.get("job_id"))
    if not job_id:
        raise UnreadableEntryError("jobs: no job id")
    state_words = read_words(entry.get("job_state"))
    state = job_state(state_words)
    if state is None:
        raise UnreadableEntryError("jobs: unknown state")
    nodes = _read_nodes(entry)
    node_gres = _read_node_gres(entry, nodes, dropped)
    allocated = sum_gpus(gres for entries in node_gres or () for gres in entries)
    if not allocated.count:
        allocated = _read_gpu_count(entry.get("tres_alloc_str"), dropped)
    exit_code, exit_signal = exit_state(entry.get("exit_code"), state)
    derived_code, derived_signal = exit_state(entry.get("derived_exit_code"), state)
    suspended_s, suspended_at = _read_suspension(entry, state)
    alloc_tres, req_tres = read_text(entry.get("tres_alloc_str")) or "", read_text(entry.get("tres_req_str")) or ""
    return JobFacts(
        job_id=job_id,
        state=state,
        state_words=state_words,
        array_job=read_int(entry.get("array_job_id")),
        array_task=read_int(entry.get("array_task_id")),
        array_tasks=read_text(entry.get("array_task_string")),
        het_job=read_int(entry.get("het_job_id")),
        het_offset=read_int(entry.get("het_job_offset")),
        name=read_text(entry.get("name")),
        user=read_text(entry.get("user_name")),
        account=read_text(entry.get("account")),
        wckey=read_text(entry.get("wckey")),
        notes=read_notes(read_text(entry.get(key)) for key in ("comment", "admin_comment", "extra")),
        partitions=read_names(entry.get("partition")),
        qos=read_text(entry.get("qos")),
        priority=read_int(entry.get("priority")),
        is_interactive=entry.get("batch_flag") is False,
        requested=_read_request(entry, dropped),
        allocated=allocated,
        node_count=read_int(entry.get("node_count")),
        cpus=read_tres_count(alloc_tres, "cpu")
        or read_tres_count(req_tres, "cpu")
        or read_int(entry.get("cpus"))
        or None,
        memory_requested_bytes=read_tres_bytes(req_tres),
        sluid=read_text(entry.get("sluid")),
        time_limit_s=read_minutes(entry.get("time_limit")),
        submitted_at=read_time(entry.get("submit_time")),
        eligible_at=read_time(entry.get("eligible_time")),
        start_at=read_time(entry.get("start_time")),
        end_at=read_time(entry.get("end_time")),
        reason=read_text(entry.get("state_reason")),
        reason_detail=read_text(entry.get("state_description")),
        exit_code=exit_code,
        exit_signal=exit_signal,
        derived_exit_code=derived_code or None,
        derived_exit_signal=derived_signal,
        suspended_s=suspended_s,
        suspended_at=suspended_at,
        restarts=read_int(entry.get("restart_cnt")) or 0,
        nodes=nodes,
        node_gres=node_gres,
        constraint=read_text(entry.get("features")),
        reservation=read_text(entry.get("resv_name")),
        dependency=read_text(entry.get("dependency")),
    )


def _read_suspension(entry: dict[str, object], state: WorkloadState) -> tuple[int, UnixMs | None]:
    """(Seconds in past suspensions, start of the current one).

    ``suspend_time`` is when the job was last suspended or resumed, ``pre_sus_time`` how long it had run until then.
    """
    changed_at, start_at = read_time(entry.get("suspend_time")), read_time(entry.get("start_time"))
    if changed_at is None or start_at is None or state is WorkloadState.WAITING:
        return 0, None
    ran_s = read_int(entry.get("pre_sus_time")) or 0
    suspended_s = max(0, (changed_at - start_at) // 1000 - ran_s)
    return suspended_s, changed_at if state is WorkloadState.SUSPENDED else None


def _read_nodes(entry: dict[str, object]) -> tuple[NodeId, ...]:
    """The job's nodes in the order of ``gres_detail``: from the list of the allocation, else from a hostlist."""
    resources = as_object(entry.get("job_resources"))
    inner = as_object(resources.get("nodes"))
    for node_list, key in ((inner.get("allocation"), "name"), (resources.get("allocated_nodes"), "nodename")):
        names = [read_text(as_object(node).get(key)) for node in as_list(node_list)]
        if names and None not in names:
            return tuple(NodeId(name) for name in names if name)
    for text in (resources.get("nodes"), inner.get("list"), entry.get("nodes")):
        hosts = read_text(text)
        if hosts:
            return read_hosts(hosts)
    return ()


def read_hosts(text: str | None) -> tuple[NodeId, ...]:
    """Expand a hostlist. Raises UnreadableEntryError if it is malformed."""
    try:
        return tuple(NodeId(name) for name in expand_hostlist(text or ""))
    except ValueError:
        raise UnreadableEntryError("jobs: unreadable nodes") from None


def _read_node_gres(
    entry: dict[str, object], nodes: Sequence[NodeId], dropped: Counter[str]
) -> tuple[tuple[Gres, ...], ...] | None:
    details = as_list(entry.get("gres_detail"))
    if not details:
        return None
    if len(details) != len(nodes):
        dropped[_GRES_MISMATCH] += 1
        return None
    try:
        return tuple(tuple(parse_gres(read_text(detail) or "")) for detail in details)
    except ValueError:
        dropped[_GRES_UNREADABLE] += 1
        return None


def _read_request(entry: dict[str, object], dropped: Counter[str]) -> GpuCount:
    """Requested GPUs: the total if Slurm gives it, else the largest of the per-job, -node, -task and -socket requests."""
    total = _read_gpu_count(entry.get("tres_req_str"), dropped)
    nodes = read_int(entry.get("node_count")) or 1
    sockets = (read_int(entry.get("sockets_per_node")) or 1) * nodes
    multipliers = {"job": 1, "node": nodes, "task": read_int(entry.get("tasks")) or 1, "socket": sockets}
    largest = NO_GPUS
    for unit, count in multipliers.items():
        request = _read_gpu_count(entry.get(f"tres_per_{unit}"), dropped)
        if request.count * count > largest.count:
            largest = GpuCount(min(request.count * count, MAX_GPUS), request.type)
    return GpuCount(total.count or largest.count, total.type or largest.type)


def _read_gpu_count(text: object, dropped: Counter[str]) -> GpuCount:
    try:
        return parse_gpu_count(read_text(text) or "")
    except ValueError:
        dropped[_REQUEST_UNREADABLE] += 1
        return NO_GPUS
