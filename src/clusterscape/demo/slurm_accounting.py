"""Speaks as slurmrestd's ``/slurmdb/…/jobs``: accounting of jobs that were active in a window of time."""

from clusterscape.demo.hardware import MACHINE_OF_PARTITION
from clusterscape.demo.lives import Life
from clusterscape.demo.scenario import Scenario
from clusterscape.demo.slurm_values import Json, envelope, exit_code, host_list, number, state_words, tres_items
from clusterscape.model import WorkloadKind, WorkloadState


def parse_time(text: str | None, default_s: int) -> int:
    """``1794700000`` or ``uts1794700000``; ``default_s`` where nothing is given. Raises ValueError otherwise."""
    return int(text.removeprefix("uts")) if text else default_s


def accounting_answer(scenario: Scenario, start_s: int, end_s: int, now_s: int) -> Json:
    """The answer to ``jobs``: whatever waited or ran in [start, end), as it stands at ``now_s``."""
    scenario.advance(now_s * 1000)
    entries = []
    for life in scenario.lives.values():
        ended_s = life.ended_s
        if life.demo.job.submit_s >= min(end_s, now_s + 1) or (ended_s is not None and ended_s < start_s):
            continue
        state = life.state_at(now_s)
        if state is not None:
            entries.append(_job(life, state, now_s))
    return envelope("jobs", entries, "slurmdbd")


def _job(life: Life, state: WorkloadState, now_s: int) -> Json:
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
