"""Speaks as slurmrestd's ``/slurm/…/jobs``: everything queued or running, and what ended in the last minutes."""

from itertools import groupby

from clusterscape.demo.hardware import MACHINE_OF_PARTITION
from clusterscape.demo.lives import Attempt, Life
from clusterscape.demo.moment import Moment
from clusterscape.demo.slurm_values import (
    MEMORY_MIB_PER_CPU,
    Json,
    envelope,
    exit_code,
    host_list,
    index_list,
    number,
    state_words,
    tres_text,
)
from clusterscape.model import WorkloadKind, WorkloadState


def jobs_answer(moment: Moment) -> Json:
    """The answer to ``jobs``. The waiting tasks of an array are one entry, as Slurm has it."""
    entries = [_job(life, attempt, WorkloadState.RUNNING, moment.time_s) for life, attempt in moment.running]
    for array_id, group in groupby(moment.waiting, key=_array_id):
        lives = list(group)
        if array_id is None:
            entries += [_job(life, None, WorkloadState.WAITING, moment.time_s) for life in lives]
        else:
            entries.append(_waiting_array(lives, moment.time_s))
    for life in moment.ended:
        state = life.state_at(moment.time_s)
        assert state is not None
        begun = life.attempts_by(moment.time_s)
        entries.append(_job(life, begun[-1] if begun else None, state, moment.time_s))
    answer = envelope("jobs", entries, "slurmctld")
    return answer | {"last_update": number(moment.time_s), "last_backfill": number(moment.time_s - moment.time_s % 30)}


def _array_id(life: Life) -> int | None:
    return life.demo.array.array_id if life.demo.array else None


def _waiting_array(lives: list[Life], time_s: int) -> Json:
    """The tasks of an array that wait, as one entry under the array's own id."""
    first = lives[0].demo.array
    assert first is not None
    tasks = index_list([life.demo.array.task_id for life in lives if life.demo.array])
    entry = _job(lives[0], None, WorkloadState.WAITING, time_s)
    return entry | {"job_id": first.array_id, "array_task_id": number(None), "array_task_string": tasks}


def _job(life: Life, attempt: Attempt | None, state: WorkloadState, time_s: int) -> Json:
    return _identity(life, state) | _times(life, attempt, state, time_s) | _resources(life, attempt, state)


def _identity(life: Life, state: WorkloadState) -> Json:
    demo, job = life.demo, life.demo.job
    is_batch = demo.kind is not WorkloadKind.SESSION
    home = f"/home/{job.user}"
    output = f"{home}/slurm-{demo.native_id}.out" if is_batch else ""
    return {
        "job_id": job.id,
        "name": demo.name,
        "account": demo.project,
        "user_id": 20_000 + sum(job.user.encode()) % 997,
        "user_name": job.user,
        "group_id": 20_000,
        "group_name": "research",
        "cluster": "demo",
        "partition": job.partition,
        "qos": demo.qos,
        "wckey": demo.experiment,
        "priority": number(job.priority),
        "nice": 0,
        "hold": False,
        "job_state": state_words(state),
        "derived_exit_code": exit_code(life, state),
        "exit_code": exit_code(life, state),
        "array_job_id": number(demo.array.array_id if demo.array else 0),
        "array_task_id": number(demo.array.task_id if demo.array else None),
        "array_max_tasks": number(0),
        "array_task_string": "",
        "het_job_id": number(0),
        "het_job_offset": number(0),
        "batch_flag": is_batch,
        "comment": "",
        "admin_comment": "",
        "system_comment": "",
        "extra": "",
        "command": f"{home}/{demo.experiment}/train.sh" if is_batch else "",
        "current_working_directory": f"{home}/{demo.experiment}",
        "standard_error": output,
        "standard_output": output,
        "dependency": "afterany:previous"
        if demo.hold_reason == "Dependency" and state is WorkloadState.WAITING
        else "",
        "features": "",
        "resv_name": "",
        "requeue": job.is_requeued,
    }


def _times(life: Life, attempt: Attempt | None, state: WorkloadState, time_s: int) -> Json:
    job = life.demo.job
    ended_s = None if state.is_active else life.ended_s
    start_s = attempt.start_s if attempt else ended_s
    planned_end_s = attempt.start_s + job.limit_s if attempt and state is WorkloadState.RUNNING else ended_s
    is_waiting = state is WorkloadState.WAITING
    return {
        "submit_time": number(job.submit_s),
        "eligible_time": number(job.queued_s if job.queued_s <= time_s else 0),
        "accrue_time": number(job.queued_s if job.queued_s <= time_s else 0),
        "start_time": number(start_s or 0),
        "end_time": number(planned_end_s or 0),
        "suspend_time": number(0),
        "preempt_time": number(0),
        "last_sched_evaluation": number(time_s - time_s % 30 if is_waiting else start_s),
        "time_limit": number(job.limit_s // 60),
        "state_reason": (life.reason_at(time_s) or "None") if is_waiting else "None",
        "state_description": "",
        "restart_cnt": max(0, len(life.attempts_by(time_s)) - 1),
    }


def _resources(life: Life, attempt: Attempt | None, state: WorkloadState) -> Json:
    demo, job = life.demo, life.demo.job
    gres_type = MACHINE_OF_PARTITION[job.partition].gres_type
    grants = attempt.grants if attempt and state is not WorkloadState.WAITING else ()
    nodes = [grant.node for grant in grants]
    is_running = state is WorkloadState.RUNNING
    memory_mib = demo.cpus_per_node * MEMORY_MIB_PER_CPU
    allocated: Json = {
        "nodes": host_list(nodes),
        "allocated_cores": demo.cpus_per_node * job.nodes,
        "allocated_cpus": 0,
        "allocated_hosts": job.nodes,
        "allocated_nodes": [
            {"nodename": node, "cpus_used": 0, "memory_used": 0, "memory_allocated": memory_mib} for node in nodes
        ],
    }
    return {
        "nodes": host_list(nodes),
        "batch_host": nodes[0] if nodes else "",
        "node_count": number(job.nodes),
        "cpus": number(demo.cpus_per_node * job.nodes),
        "tasks": number(job.gpus),
        "cpus_per_task": number(demo.cpus_per_node // job.gpus_per_node),
        "memory_per_cpu": number(MEMORY_MIB_PER_CPU),
        "memory_per_node": number(None),
        "tres_per_node": f"gres:gpu:{gres_type}:{job.gpus_per_node}",
        "tres_per_job": "",
        "tres_req_str": tres_text(demo, gres_type),
        "tres_alloc_str": tres_text(demo, gres_type) if grants else "",
        # Slurm forgets which GPUs a job had as soon as it has ended.
        "gres_detail": [f"gpu:{gres_type}:{len(grant.gpus)}(IDX:{index_list(grant.gpus)})" for grant in grants]
        if is_running
        else [],
        "job_resources": allocated if is_running else {},
    }
