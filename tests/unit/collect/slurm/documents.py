"""Small responses of Slurm in the shapes of old and new versions, describing the same cluster and jobs.

``OLD`` is what 21.08 to 22.05 print (plain numbers, words), ``NEW`` what 24.05 and later do (set/infinite/number, arrays).
"""

import copy
from typing import cast

Entry = dict[str, object]
Document = dict[str, object]

SUBMIT_S, START_S, END_S = 1_700_000_000, 1_700_000_060, 1_700_003_660


def number(value: int | None) -> Entry:
    """A number as newer versions print it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def ended(code: int = 0, signal: int = 0) -> Entry:
    """An exit code as newer versions print it."""
    status = "SIGNALED" if signal else "ERROR" if code else "SUCCESS"
    return {
        "status": [status],
        "return_code": number(None if signal else code),
        "signal": {"id": number(signal or None), "name": ""},
    }


def old_job(job_id: int, state: str = "RUNNING", /, **changes: object) -> Entry:
    """A job as ``squeue --json`` of 22.05 prints it."""
    job: Entry = {
        "job_id": job_id,
        "job_state": state,
        "name": "train-01",
        "user_name": "alice",
        "account": "nlp",
        "partition": "a100",
        "qos": "normal",
        "priority": 12,
        "batch_flag": True,
        "array_job_id": 0,
        "array_task_id": None,
        "array_task_string": "",
        "het_job_id": 0,
        "het_job_offset": 0,
        "gres_detail": [],
        "job_resources": {},
        "nodes": "",
        "node_count": 1,
        "tasks": 1,
        "tres_req_str": "cpu=1,mem=1G,node=1,billing=1",
        "tres_alloc_str": "",
        "tres_per_job": "gres:gpu:2",
        "tres_per_node": "",
        "submit_time": SUBMIT_S,
        "eligible_time": SUBMIT_S,
        "start_time": START_S,
        "end_time": END_S,
        "time_limit": 60,
        "state_reason": "None",
        "state_description": "",
        "exit_code": 0,
        "restart_cnt": 0,
        "comment": "",
        "wckey": "",
        "features": "",
        "resv_name": "",
    }
    return job | changes


def new_job(job_id: int, /, *states: str, **changes: object) -> Entry:
    """A job as slurmrestd of 24.05 and later prints it."""
    job = old_job(job_id)
    for key in ("priority", "array_job_id", "het_job_id", "het_job_offset", "node_count", "tasks", "submit_time"):
        job[key] = number(cast(int, job[key]))
    for key in ("eligible_time", "start_time", "end_time", "time_limit"):
        job[key] = number(cast(int, job[key]))
    job |= {
        "job_state": list(states or ("RUNNING",)),
        "array_task_id": number(None),
        "exit_code": ended(),
        "tres_per_job": "gres/gpu:2",
        "job_resources": None,
    }
    return job | changes


def old_place(*nodes: str) -> Entry:
    """``job_resources`` of 22.05."""
    return {"nodes": ",".join(nodes), "allocated_nodes": [{"nodename": node} for node in nodes]}


def new_place(*nodes: str) -> Entry:
    """``job_resources`` of 24.05 and later."""
    allocation = [{"index": index, "name": node} for index, node in enumerate(nodes)]
    return {"select_type": ["CORE"], "nodes": {"count": len(nodes), "list": ",".join(nodes), "allocation": allocation}}


def node(name: str, gres: str = "gpu:a100:8", state: object = "idle", **changes: object) -> Entry:
    """A node; its keys are the same in all versions."""
    return {
        "name": name,
        "state": state,
        "gres": gres,
        "gres_used": "gpu:a100:0(IDX:N/A)" if gres else "",
        "partitions": ["a100", "all"],
        "features": "a100,nvlink",
        "active_features": "a100,nvlink",
        "cpus": 64,
        "real_memory": 512_000,
        "reason": "",
    } | changes


def history_job(job_id: int, state: object = "COMPLETED", /, **changes: object) -> Entry:
    """A job as ``sacct --json`` prints it."""
    return {
        "job_id": job_id,
        "state": {"current": state, "reason": "None"},
        "name": "train-01",
        "user": "alice",
        "account": "nlp",
        "partition": "a100",
        "qos": "normal",
        "nodes": "gpu01",
        "allocation_nodes": 1,
        "array": {"job_id": 0, "task_id": None, "task": None},
        "het": {"job_id": 0, "job_offset": None},
        "time": {"submission": SUBMIT_S, "eligible": SUBMIT_S, "start": START_S, "end": END_S, "limit": 60},
        "exit_code": {"status": "SUCCESS", "return_code": 0},
        "tres": {"requested": tres(gpu=8), "allocated": tres(gpu=8, a100=8)},
        "wckey": {"wckey": "", "flags": []},
        "comment": {"administrator": None, "job": None, "system": None},
        "submit_line": "sbatch train.sh",
    } | changes


def tres(gpu: int = 0, a100: int = 0) -> list[Entry]:
    """Trackable resources of the accounting."""
    entries: list[Entry] = [
        {"type": "cpu", "name": None, "id": 1, "count": 4},
        {"type": "energy", "name": None, "count": -2},
    ]
    if gpu:
        entries.append({"type": "gres", "name": "gpu", "id": 1001, "count": gpu})
    if a100:
        entries.append({"type": "gres", "name": "gpu:a100", "id": 1002, "count": a100})
    return entries


NODES: Document = {
    "meta": {"Slurm": {"release": "22.05.8"}},
    "errors": [],
    "nodes": [
        node("gpu01"),
        node("gpu02", state="mixed"),
        node("v1", gres="gpu:v100:4", features="v100", active_features="v100", partitions=["v100", "all"]),
        node("cpu1", gres="", partitions=["all"]),
    ],
}
OLD_JOBS: Document = {
    "errors": [],
    "jobs": [
        old_job(
            10,
            gres_detail=["gpu:a100:2(IDX:4-5)", "gpu:a100:1(IDX:0)"],
            job_resources=old_place("gpu01", "gpu02"),
            nodes="gpu[01-02]",
            node_count=2,
            tres_per_job="gres:gpu:3",
        ),
        old_job(11, "PENDING", state_reason="Resources"),
        old_job(12, "FAILED", nodes="gpu01", exit_code=768),
    ],
}
NEW_JOBS: Document = {
    "errors": [],
    "jobs": [
        new_job(
            10,
            "RUNNING",
            gres_detail=["gpu:a100:2(IDX:4-5)", "gpu:a100:1(IDX:0)"],
            job_resources=new_place("gpu01", "gpu02"),
            nodes="gpu[01-02]",
            node_count=number(2),
            tres_per_job="gres/gpu:3",
        ),
        new_job(11, "PENDING", state_reason="Resources"),
        new_job(12, "FAILED", nodes="gpu01", exit_code=ended(3)),
    ],
}
PARTITIONS: Document = {
    "errors": [],
    "partitions": [
        {"name": "a100", "nodes": "gpu[01-02]", "state": "UP", "flags": ["default"], "max_time_limit": 10_080},
        {
            "name": "v100",
            "nodes": {"configured": "v1", "total": 1},
            "partition": {"state": ["DRAIN"]},
            "maximums": {"time": {"set": False, "infinite": True, "number": 0}},
        },
    ],
}
HISTORY: Document = {"errors": [], "jobs": [history_job(20), history_job(21, ["TIMEOUT"])]}


def jobs(*entries: object) -> Document:
    """A queue or accounting response with these entries."""
    return {"errors": [], "jobs": list(entries)}


def nodes(*entries: object) -> Document:
    """A nodes response with these entries."""
    return {"errors": [], "nodes": list(entries)}


def copy_of(document: Document) -> Document:
    """A deep copy, to be modified."""
    return copy.deepcopy(document)
