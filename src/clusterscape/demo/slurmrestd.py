"""Simulates slurmrestd: jobs that are queued, running or just ended, accounting of a time range, nodes, partitions,
reservations and ping.
"""

from itertools import groupby

from clusterscape.demo.hardware import MACHINE_OF_PARTITION, PARTITION_SHARES, SMALL, DemoNode, Hardware
from clusterscape.demo.jobs import MEMORY_MIB_PER_CPU, Attempt, Life, Outage
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.slurm_values import (
    ClusterMoment,
    Json,
    envelope,
    exit_code,
    host_list,
    index_list,
    number,
    state_words,
    tres_items,
    tres_text,
)
from clusterscape.model import WorkloadKind, WorkloadState
from clusterscape.simulate.faults import FaultKind


def jobs_answer(moment: ClusterMoment) -> Json:
    """The response to ``jobs``. As in Slurm, the waiting tasks of an array are one entry."""
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
    """The waiting tasks of an array, as one entry with the array's id."""
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
        # Slurm does not report the GPU indices of ended jobs.
        "gres_detail": [f"gpu:{gres_type}:{len(grant.gpus)}(IDX:{index_list(grant.gpus)})" for grant in grants]
        if is_running
        else [],
        "job_resources": allocated if is_running else {},
    }


def parse_time(text: str | None, default_s: int) -> int:
    """``1794700000`` or ``uts1794700000``; ``default_s`` if empty. Raises ValueError otherwise."""
    return int(text.removeprefix("uts")) if text else default_s


def accounting_answer(scenario: DemoScenario, start_s: int, end_s: int, now_s: int) -> Json:
    """The accounting response to ``jobs``: jobs that waited or ran in [start, end), in their state at ``now_s``."""
    scenario.advance(now_s * 1000)
    entries = []
    for life in scenario.lives.values():
        ended_s = life.ended_s
        if life.demo.job.submit_s >= min(end_s, now_s + 1) or (ended_s is not None and ended_s < start_s):
            continue
        state = life.state_at(now_s)
        if state is not None:
            entries.append(_accounted_job(life, state, now_s))
    return envelope("jobs", entries, "slurmdbd")


def _accounted_job(life: Life, state: WorkloadState, now_s: int) -> Json:
    demo, job = life.demo, life.demo.job
    machine = MACHINE_OF_PARTITION[job.partition]
    begun = life.attempts_by(now_s)
    attempt = begun[-1] if begun and state is not WorkloadState.WAITING else None
    ended_s = None if state.is_active else life.ended_s
    start_s = attempt.start_s if attempt else ended_s
    command = "sbatch train.sh" if demo.kind is not WorkloadKind.SESSION else "salloc --gpus=1"
    return {
        "job_id": job.id,
        "name": demo.name,
        "account": demo.project,
        "user": job.user,
        "group": "research",
        "association": {"account": demo.project, "cluster": "demo", "partition": "", "user": job.user, "id": 1},
        "cluster": "demo",
        "partition": job.partition,
        "qos": demo.qos,
        "wckey": {"wckey": demo.experiment, "flags": []},
        "priority": number(job.priority),
        "array": {
            "job_id": demo.array.array_id if demo.array else 0,
            "task_id": number(demo.array.task_id if demo.array else None),
            "task": "",
            "limits": {"max": {"running": {"tasks": 0}}},
        },
        "het": {"job_id": 0, "job_offset": number(None)},
        "comment": {"administrator": "", "job": "", "system": ""},
        "extra": "",
        "constraints": "",
        "reservation": {"id": 0, "name": ""},
        "allocation_nodes": job.nodes if attempt else 0,
        "nodes": host_list([grant.node for grant in attempt.grants]) if attempt else "None assigned",
        "state": {"current": state_words(state), "reason": "None"},
        "exit_code": exit_code(life, state),
        "derived_exit_code": exit_code(life, state),
        "time": {
            "submission": job.submit_s,
            "eligible": job.queued_s if job.queued_s <= now_s else 0,
            "start": start_s or 0,
            "end": ended_s or 0,
            "elapsed": max(0, (ended_s or now_s) - attempt.start_s) if attempt else 0,
            "suspended": 0,
            "limit": number(job.limit_s // 60),
        },
        "tres": {
            "allocated": tres_items(demo, machine.gres_type) if attempt else [],
            "requested": tres_items(demo, machine.gres_type),
        },
        "submit_line": command,
        "restart_cnt": max(0, len(begun) - 1),
        "steps": [],
    }


MAX_TIME_MINUTES = 5 * 1440
BOOTED_AGO_S = 40 * 86_400


def ping_answer() -> Json:
    """The response to ``ping``."""
    return envelope("pings", [{"hostname": "slurmctl", "pinged": "UP", "latency": 104, "mode": "primary"}], "slurmctld")


def nodes_answer(moment: ClusterMoment, hardware: Hardware) -> Json:
    """The response to ``nodes``."""
    held: dict[str, list[int]] = {}
    cpus: dict[str, int] = {}
    for life, attempt in moment.running:
        for grant in attempt.grants:
            held.setdefault(grant.node, []).extend(grant.gpus)
            cpus[grant.node] = cpus.get(grant.node, 0) + life.demo.cpus_per_node
    entries = [
        _node(node, moment.outages.get(place), sorted(held.get(node.name, ())), cpus.get(node.name, 0), moment.time_s)
        for place, node in enumerate(hardware.nodes)
    ]
    return envelope("nodes", entries, "slurmctld") | {"last_update": number(moment.time_s)}


def _node(node: DemoNode, outage: Outage | None, held_gpus: list[int], cpus: int, time_s: int) -> Json:
    machine = node.machine
    gpus_used = f"gpu:{machine.gres_type}:{len(held_gpus)}(IDX:{index_list(held_gpus) or 'N/A'})"
    is_down = outage is not None and outage.kind is FaultKind.FAIL
    return {
        "name": node.name,
        "hostname": node.name,
        "address": node.name,
        "state": _state(outage, len(held_gpus), node.gpu_count),
        "next_state_after_reboot": ["INVALID"],
        "reason": outage.reason if outage else "",
        "reason_changed_at": number(outage.from_s if outage else 0),
        "reason_set_by_user": ("slurm" if is_down else "ops") if outage else "",
        "partitions": [node.partition],
        "features": [machine.gres_type, f"{machine.gres_type}-{machine.memory_mib // 1024}gb", f"rack-{node.rack}"],
        "active_features": [
            machine.gres_type,
            f"{machine.gres_type}-{machine.memory_mib // 1024}gb",
            f"rack-{node.rack}",
        ],
        "gres": f"gpu:{machine.gres_type}:{node.gpu_count}(S:0-1)",
        "gres_used": gpus_used,
        "gres_drained": "N/A",
        "cpus": machine.cpus,
        "effective_cpus": machine.cpus,
        "alloc_cpus": min(cpus, machine.cpus),
        "alloc_idle_cpus": max(0, machine.cpus - cpus),
        "boards": 1,
        "sockets": 2,
        "cores": machine.cpus // 2,
        "threads": 1,
        "cpu_load": 0 if is_down else 100 * cpus // 2,
        "real_memory": machine.node_memory_mib,
        "free_mem": number(None if is_down else machine.node_memory_mib // 3),
        "tres": f"cpu={machine.cpus},mem={machine.node_memory_mib}M,billing={machine.cpus},gres/gpu={node.gpu_count}",
        "tres_used": f"cpu={cpus},gres/gpu={len(held_gpus)}" if held_gpus else "",
        "architecture": "x86_64",
        "operating_system": "Linux 6.1.0",
        "boot_time": number(time_s - time_s % 86_400 - BOOTED_AGO_S),
        "last_busy": number(time_s),
        "version": "" if is_down else "23.11.10",
        "weight": 1,
        "comment": "",
        "extra": "",
    }


def _state(outage: Outage | None, held: int, gpu_count: int) -> list[str]:
    if outage is not None and outage.kind is FaultKind.FAIL:
        return ["DOWN", "NOT_RESPONDING"] if "responding" in outage.reason else ["DOWN"]
    base = "IDLE" if not held else "ALLOCATED" if held == gpu_count else "MIXED"
    return [base, "DRAIN"] if outage is not None else [base]


def reservations_answer() -> Json:
    """The response to ``reservations``: there are none."""
    return envelope("reservations", [], "slurmctld")


def partitions_answer(hardware: Hardware) -> Json:
    """The response to ``partitions``."""
    return envelope("partitions", [_partition(name, hardware) for name, _ in PARTITION_SHARES], "slurmctld")


def _partition(name: str, hardware: Hardware) -> Json:
    nodes = hardware.partition(name)
    cpus = sum(node.machine.cpus for node in nodes)
    gpus = sum(node.gpu_count for node in nodes)
    return {
        "name": name,
        "alternate": "",
        "cluster": "demo",
        "nodes": {
            "configured": host_list([node.name for node in nodes]),
            "allowed_allocation": "",
            "total": len(nodes),
        },
        "accounts": {"allowed": "", "deny": ""},
        "groups": {"allowed": ""},
        "qos": {"allowed": "", "deny": "", "assigned": ""},
        "tres": {"billing_weights": "", "configured": f"cpu={cpus},node={len(nodes)},billing={cpus},gres/gpu={gpus}"},
        "cpus": {"task_binding": 0, "total": cpus},
        "defaults": {"time": number(60)},
        "maximums": {"time": number(MAX_TIME_MINUTES), "nodes": number(None)},
        "minimums": {"nodes": 1},
        "priority": {"job_factor": 1, "tier": 1},
        "partition": {"state": ["UP"]},
        "flags": ["DEFAULT"] if name == SMALL else [],
    }
