"""Parses ended workloads from Slurm's accounting JSON (``sacct --json``, ``slurmdb/jobs``), by its structure, not its version.

A job has one record per execution: the newest becomes the workload, the others its earlier executions. Accounting has no device
indices, so allocations are known only if a job held whole nodes.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from clusterscape.collect.slurm.facts import JobFacts, allocations_of, read_notes, workloads_of
from clusterscape.collect.slurm.gres import MAX_GPUS, GpuCount
from clusterscape.collect.slurm.job_summaries import PREFIX, parse_job_summary
from clusterscape.collect.slurm.parse_jobs import ParsedJobs, UnreadableEntryError, read_hosts
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, iter_entries
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
from clusterscape.model import Allocation, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.job_usage import JobUsage

_SUPERSEDED = frozenset({"REQUEUED", "RESIZING"})
"""States of records that ended while the job continues in another record."""


def parse_history(
    document: Mapping[str, object],
    inventory: SlurmInventory,
    now_ms: UnixMs,
    *,
    without_allocations: Collection[tuple[WorkloadId, UnixMs]] = frozenset(),
) -> ParsedJobs:
    """Parse the ended jobs of an accounting response. ``without_allocations``: executions (by start) whose units are known."""
    dropped: Counter[str] = Counter()
    records: dict[WorkloadId, list[Record]] = {}
    allocations: list[Allocation] = []
    summaries: dict[WorkloadId, str] = {}
    for entry in iter_entries(document, "jobs", dropped):
        try:
            job = read_history_entry(entry)
        except UnreadableEntryError as reason:
            dropped[str(reason)] += 1
            continue
        if job.state.is_active:
            continue
        job_workloads = workloads_of(job, inventory)
        superseded_by = next((superseded_by for superseded_by in job.state_words if superseded_by in _SUPERSEDED), None)
        for workload in job_workloads:
            records.setdefault(workload.id, []).append((workload, superseded_by))
            if job.summary is not None:
                summaries[workload.id] = job.summary
        if len(job_workloads) == 1 and (job_workloads[0].id, job_workloads[0].started_at) not in without_allocations:
            allocations.extend(allocations_of(job, job_workloads[0].id, inventory, now_ms))
    workloads = tuple(map(join_records, records.values()))
    usages = {
        workload.id: usage
        for workload in workloads
        if (usage := _read_usage(workload, summaries.get(workload.id))) is not None
    }
    return ParsedJobs(workloads, tuple(allocations), dict(dropped), not dropped, usages)


def _read_usage(workload: Workload, summary: str | None) -> JobUsage | None:
    if summary is None or workload.ended_at is None:
        return None
    run_s = workload.run_s(workload.ended_at)
    return None if run_s is None else parse_job_summary(summary, run_s=run_s, gpu_count=workload.gpus_held)


Record = tuple[Workload, str | None]
"""One record of a job, and Slurm's state (``REQUEUED``) if the job continues in another record."""


def join_records(records: Sequence[Record]) -> Workload:
    """Join the records of one job. If none of them is its end, the final state is unknown."""
    ordered = sorted(records, key=lambda record: (record[0].submitted_at or 0, record[0].started_at or 0))
    last, superseded_by = ordered[-1]
    former = ordered[:-1] if superseded_by is None else ordered
    earlier = tuple(
        execution for workload, reason in former if (execution := workload.ended_execution(word=reason)) is not None
    )
    if superseded_by is None:
        return replace(last, earlier=earlier)
    return replace(last, started_at=None, gpus_allocated=None, suspended_s=0, earlier=earlier)


def read_history_entry(entry: dict[str, object]) -> JobFacts:
    """Parse one accounting record. Raises UnreadableEntryError if it has no id or state."""
    job_id = read_int(entry.get("job_id"))
    if not job_id:
        raise UnreadableEntryError("history: no job id")
    state_object = as_object(entry.get("state"))
    state_words = read_words(state_object.get("current", entry.get("state")))
    state = WorkloadState.UNKNOWN if _is_superseded(entry, state_words) else job_state(state_words)
    if state is None:
        raise UnreadableEntryError("history: unknown state")
    times, array, het = as_object(entry.get("time")), as_object(entry.get("array")), as_object(entry.get("het"))
    comments, tres = as_object(entry.get("comment")), as_object(entry.get("tres"))
    requested_mib = _find_tres(tres.get("requested"), "mem")
    wckey = entry.get("wckey")
    exit_code, exit_signal = exit_state(entry.get("exit_code"), state)
    derived_code, derived_signal = exit_state(entry.get("derived_exit_code"), state)
    return JobFacts(
        job_id=job_id,
        state=state,
        state_words=state_words,
        array_job=read_int(array.get("job_id")),
        array_task=read_int(array.get("task_id")),
        array_tasks=read_text(array.get("task")),
        het_job=read_int(het.get("job_id")),
        het_offset=read_int(het.get("job_offset")),
        name=read_text(entry.get("name")),
        user=read_text(entry.get("user")) or read_text(as_object(entry.get("association")).get("user")),
        account=read_text(entry.get("account")),
        wckey=read_text(as_object(wckey).get("wckey", wckey)),
        notes=read_notes(
            [*(read_text(comments.get(key)) for key in ("job", "administrator")), read_text(entry.get("extra"))]
        ),
        partitions=read_names(entry.get("partition")),
        qos=read_text(entry.get("qos")),
        priority=read_int(entry.get("priority")),
        is_interactive=(read_text(entry.get("submit_line")) or "").startswith(("salloc", "srun")),
        requested=_read_tres(tres.get("requested")),
        allocated=_read_tres(tres.get("allocated")),
        node_count=read_int(entry.get("allocation_nodes")) or None,
        cpus=_find_tres(tres.get("allocated"), "cpu") or _find_tres(tres.get("requested"), "cpu"),
        memory_requested_bytes=None if requested_mib is None else requested_mib * 2**20,
        sluid=read_text(entry.get("sluid")),
        time_limit_s=read_minutes(times.get("limit")),
        submitted_at=read_time(times.get("submission")),
        eligible_at=read_time(times.get("eligible")),
        start_at=read_time(times.get("start")),
        end_at=read_time(times.get("end")),
        exit_code=exit_code,
        exit_signal=exit_signal,
        derived_exit_code=derived_code or None,
        derived_exit_signal=derived_signal,
        suspended_s=_read_suspended(times),
        restarts=read_int(entry.get("restart_cnt")) or 0,
        nodes=read_hosts(read_text(entry.get("nodes"))),
        constraint=read_text(entry.get("constraints")),
        reservation=read_text(as_object(entry.get("reservation")).get("name")),
        summary=comment if (comment := read_text(comments.get("administrator")) or "").startswith(PREFIX) else None,
    )


def _is_superseded(entry: dict[str, object], state_words: Sequence[str]) -> bool:
    return bool(_SUPERSEDED & set(state_words)) and read_time(as_object(entry.get("time")).get("end")) is not None


def _read_suspended(times: Mapping[str, object]) -> int:
    """Seconds between start and end that Slurm does not count as elapsed."""
    start, end, elapsed = (read_int(times.get(key)) for key in ("start", "end", "elapsed"))
    if not start or not end or elapsed is None:
        return read_int(times.get("suspended")) or 0
    return max(0, end - start - elapsed)


def _find_tres(value: object, kind: str) -> int | None:
    """The count of ``cpu``, or of ``mem`` in MiB."""
    counts = (read_int(item.get("count")) for item in map(as_object, as_list(value)) if item.get("type") == kind)
    return next((count for count in counts if count), None)


def _read_tres(value: object) -> GpuCount:
    """Parse GPUs from ``[{"type": "gres", "name": "gpu", "count": 8}, {"type": "gres", "name": "gpu:a100", …}]``."""
    total = typed = 0
    types: set[str] = set()
    for item in map(as_object, as_list(value)):
        name = read_text(item.get("name")) or ""
        count = read_int(item.get("count")) or 0
        if item.get("type") != "gres" or not (name == "gpu" or name.startswith("gpu:")):
            continue
        if name == "gpu":
            total += count
        else:
            typed += count
            types.add(name.removeprefix("gpu:"))
    return GpuCount(min(total or typed, MAX_GPUS), types.pop() if len(types) == 1 else None)
