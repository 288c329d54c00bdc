"""Active workloads and their allocations from Slurm's JSON queue, by shape and not by version.

Damaged entries are counted, never raised. Ended jobs that the queue still shows are read too, without allocations.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.collect.slurm.facts import JobFacts, workloads_of
from clusterscape.collect.slurm.gres import MAX_GPUS, NO_GPUS, GpuAsk, Gres, parse_gpu_ask, parse_gres, sum_gpus
from clusterscape.collect.slurm.holdings import allocations_of
from clusterscape.collect.slurm.hostlist import expand_hostlist
from clusterscape.collect.slurm.labels import read_notes
from clusterscape.collect.slurm.parse_nodes import Inventory, iter_entries
from clusterscape.collect.slurm.states import exit_state, job_state
from clusterscape.collect.slurm.values import (
    as_list,
    as_object,
    read_int,
    read_minutes,
    read_names,
    read_text,
    read_time,
    read_words,
)
from clusterscape.model import Allocation, NodeId, UnixMs, Workload, WorkloadState


@dataclass(frozen=True)
class ParsedJobs:
    """What an answer says. ``is_complete`` is False where an entry was lost: a job not named may then still be active."""

    workloads: tuple[Workload, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    is_complete: bool = True


class UnreadableEntryError(ValueError):
    """An entry that cannot be taken in; its text is the reason that is counted."""


def parse_jobs(
    document: Mapping[str, object], inventory: Inventory, now_ms: UnixMs, most_workloads: int = sys.maxsize
) -> ParsedJobs:
    """The jobs of a ``jobs`` answer (slurmrestd, ``squeue --json``), the first ``most_workloads`` of them.

    An entry may be an array of thousands of tasks. Entries are in the order of submission: the newest are left out.
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
        if len(workloads) >= most_workloads:
            dropped["jobs: too many workloads"] += 1
            continue
        found = workloads_of(job, inventory)
        workloads.update((workload.id, workload) for workload in found)
        if job.state.is_active and len(found) == 1:
            allocations.extend(allocations_of(job, found[0].id, inventory, now_ms))
    lost = sum(dropped.values()) - dropped[_GRES_MISMATCH] - dropped[_GRES_UNREADABLE] - dropped[_ASK_UNREADABLE]
    return ParsedJobs(
        tuple(workloads.values()), tuple(allocations), dict(+dropped), lost == 0 and not as_list(document.get("errors"))
    )


_GRES_MISMATCH = "jobs: gres_detail does not fit the nodes"
_GRES_UNREADABLE = "jobs: unreadable gres_detail"
_ASK_UNREADABLE = "jobs: unreadable request for GPUs"


def read_queue_entry(entry: dict[str, object], dropped: Counter[str]) -> JobFacts:
    """One job; raises UnreadableEntryError without id or state. Parts that cannot be read are counted and left out."""
    job_id = read_int(entry.get("job_id"))
    if not job_id:
        raise UnreadableEntryError("jobs: no job id")
    words = read_words(entry.get("job_state"))
    state = job_state(words)
    if state is None:
        raise UnreadableEntryError("jobs: unknown state")
    nodes = _read_nodes(entry)
    node_gres = _read_node_gres(entry, nodes, dropped)
    held = sum_gpus(gres for entries in node_gres or () for gres in entries)
    if not held.count:
        held = _read_ask(entry.get("tres_alloc_str"), dropped)
    exit_code, exit_signal = exit_state(entry.get("exit_code"), state)
    derived_code, derived_signal = exit_state(entry.get("derived_exit_code"), state)
    suspended_s, suspended_at = _read_suspension(entry, state)
    return JobFacts(
        job_id=job_id,
        state=state,
        state_words=words,
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
        asked=_read_request(entry, dropped),
        held=held,
        node_count=read_int(entry.get("node_count")),
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
    """(Seconds in suspensions that are over, begin of the present one).

    ``suspend_time`` is when the job was last suspended or resumed, ``pre_sus_time`` how long it had run until then.
    """
    turned_at, start_at = read_time(entry.get("suspend_time")), read_time(entry.get("start_time"))
    if turned_at is None or start_at is None or state is WorkloadState.WAITING:
        return 0, None
    ran_s = read_int(entry.get("pre_sus_time")) or 0
    suspended_s = max(0, (turned_at - start_at) // 1000 - ran_s)
    return suspended_s, turned_at if state is WorkloadState.SUSPENDED else None


def _read_nodes(entry: dict[str, object]) -> tuple[NodeId, ...]:
    """The job's nodes in the order of ``gres_detail``: from the allocation's own list, else from a hostlist."""
    resources = as_object(entry.get("job_resources"))
    inner = as_object(resources.get("nodes"))
    for listed, key in ((inner.get("allocation"), "name"), (resources.get("allocated_nodes"), "nodename")):
        names = [read_text(as_object(node).get(key)) for node in as_list(listed)]
        if names and None not in names:
            return tuple(NodeId(name) for name in names if name)
    for text in (resources.get("nodes"), inner.get("list"), entry.get("nodes")):
        hosts = read_text(text)
        if hosts:
            return read_hosts(hosts)
    return ()


def read_hosts(text: str | None) -> tuple[NodeId, ...]:
    """A hostlist's nodes; raises UnreadableEntryError where it is malformed."""
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


def _read_request(entry: dict[str, object], dropped: Counter[str]) -> GpuAsk:
    """GPUs asked for: the total where Slurm states it, else the largest of the per-job, -node, -task and -socket requests."""
    stated = _read_ask(entry.get("tres_req_str"), dropped)
    nodes = read_int(entry.get("node_count")) or 1
    sockets = (read_int(entry.get("sockets_per_node")) or 1) * nodes
    times = {"job": 1, "node": nodes, "task": read_int(entry.get("tasks")) or 1, "socket": sockets}
    best = NO_GPUS
    for unit, count in times.items():
        ask = _read_ask(entry.get(f"tres_per_{unit}"), dropped)
        if ask.count * count > best.count:
            best = GpuAsk(min(ask.count * count, MAX_GPUS), ask.type)
    return GpuAsk(stated.count or best.count, stated.type or best.type)


def _read_ask(text: object, dropped: Counter[str]) -> GpuAsk:
    try:
        return parse_gpu_ask(read_text(text) or "")
    except ValueError:
        dropped[_ASK_UNREADABLE] += 1
        return NO_GPUS
