"""How Slurm's API v0.0.40 (Slurm 23.11) writes things down: optional numbers, exit codes, host lists, GPU texts, the envelope."""

import re
from collections.abc import Sequence
from itertools import pairwise

from clusterscape.demo.lives import Life
from clusterscape.demo.records import exit_of
from clusterscape.demo.work import DemoJob
from clusterscape.model import WorkloadState

API_VERSION = "v0.0.40"
RELEASE = {"version": {"major": "23", "minor": "11", "micro": "10"}, "release": "23.11.10", "cluster": "demo"}
MEMORY_MIB_PER_CPU = 7800

Json = dict[str, object]

_STATES = {
    WorkloadState.WAITING: "PENDING",
    WorkloadState.RUNNING: "RUNNING",
    WorkloadState.COMPLETED: "COMPLETED",
    WorkloadState.FAILED: "FAILED",
    WorkloadState.CANCELLED: "CANCELLED",
    WorkloadState.TIMEOUT: "TIMEOUT",
    WorkloadState.OUT_OF_MEMORY: "OUT_OF_MEMORY",
    WorkloadState.NODE_FAILED: "NODE_FAIL",
}


def number(value: float | None) -> Json:
    """An optional number."""
    return {"set": value is not None, "infinite": False, "number": 0 if value is None else value}


def envelope(key: str, content: Sequence[object], plugin: str) -> Json:
    """A whole answer."""
    return {
        key: content,
        "meta": {
            "plugin": {
                "type": f"openapi/{plugin}",
                "name": f"Slurm OpenAPI {plugin}",
                "data_parser": f"data_parser/{API_VERSION}",
            },
            "command": [],
            "slurm": RELEASE,
        },
        "errors": [],
        "warnings": [],
    }


def state_words(state: WorkloadState) -> list[str]:
    """A job's state."""
    return [_STATES[state]]


def exit_code(life: Life, state: WorkloadState) -> Json:
    """How a job ended; success for one that has not."""
    code, signal = exit_of(life, state)
    status = "SIGNALED" if signal else "ERROR" if code else "SUCCESS"
    return {
        "status": [status],
        "return_code": number(code or 0),
        "signal": {"id": number(signal), "name": {15: "Terminated"}.get(signal or 0, "")},
    }


def host_list(names: Sequence[str]) -> str:
    """``gpu-[001-003,007]``; names are numbered with leading zeros and in order."""
    if len(names) < 2:
        return "".join(names)
    pieces = [re.fullmatch(r"(.*?)(\d+)", name) for name in names]
    numbers = [piece[2] for piece in pieces if piece]
    prefix = pieces[0][1] if pieces[0] else ""
    return f"{prefix}[{_ranges(numbers)}]"


def index_list(indices: Sequence[int]) -> str:
    """``0-3,7``."""
    return _ranges([str(index) for index in indices])


def _ranges(numbers: Sequence[str]) -> str:
    """Rising numbers, runs drawn together."""
    if not numbers:
        return ""
    runs = [[numbers[0]]]
    for before, after in pairwise(numbers):
        if int(after) == int(before) + 1:
            runs[-1].append(after)
        else:
            runs.append([after])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def tres_text(demo: DemoJob, gres_type: str) -> str:
    """What a job asks for and gets, in all."""
    job = demo.job
    cpus = demo.cpus_per_node * job.nodes
    memory_gib = cpus * MEMORY_MIB_PER_CPU // 1024
    return (
        f"cpu={cpus},mem={memory_gib}G,node={job.nodes},billing={cpus},"
        f"gres/gpu={job.gpus},gres/gpu:{gres_type}={job.gpus}"
    )


def tres_items(demo: DemoJob, gres_type: str) -> list[Json]:
    """The same as accounting lists it."""
    job = demo.job
    cpus = demo.cpus_per_node * job.nodes
    return [
        {"type": "cpu", "name": "", "id": 1, "count": cpus},
        {"type": "mem", "name": "", "id": 2, "count": cpus * MEMORY_MIB_PER_CPU},
        {"type": "node", "name": "", "id": 4, "count": job.nodes},
        {"type": "billing", "name": "", "id": 5, "count": cpus},
        {"type": "gres", "name": "gpu", "id": 1001, "count": job.gpus},
        {"type": "gres", "name": f"gpu:{gres_type}", "id": 1002, "count": job.gpus},
    ]
