"""Value formats of Slurm's API v0.0.40 (Slurm 23.11): optional numbers, exit codes, host lists, GPU texts; and the state of
the scheduler at one moment.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from clusterscape.demo.jobs import Attempt, DemoJob, Life, Outage
from clusterscape.demo.records import exit_of
from clusterscape.demo.scenario import DemoScenario
from clusterscape.model import WorkloadState

REMEMBERED_S = 300
"""How long the queue lists a job after it ended (Slurm's MinJobAge)."""


@dataclass(frozen=True, slots=True)
class ClusterMoment:
    """The scheduler's state at ``time_s``."""

    time_s: int
    running: list[tuple[Life, Attempt]]
    waiting: list[Life]
    ended: list[Life]  # within the last REMEMBERED_S
    outages: dict[int, Outage]  # by node


def look_at_cluster(scenario: DemoScenario, time_s: int) -> ClusterMoment:
    """The state at ``time_s``; the scenario is advanced if needed."""
    scenario.advance(time_s * 1000)
    running: list[tuple[Life, Attempt]] = []
    waiting: list[Life] = []
    ended: list[Life] = []
    for life in scenario.lives.values():
        ended_s = life.ended_s
        if life.demo.job.submit_s > time_s or (ended_s is not None and ended_s <= time_s - REMEMBERED_S):
            continue
        state = life.state_at(time_s)
        if state is WorkloadState.RUNNING:
            running.append((life, life.attempts_by(time_s)[-1]))
        elif state is WorkloadState.WAITING:
            waiting.append(life)
        else:
            ended.append(life)
    outages = {outage.node: outage for outage in scenario.outages if outage.from_s <= time_s < outage.to_s}
    return ClusterMoment(time_s, running, waiting, ended, outages)


API_VERSION = "v0.0.40"
RELEASE = {"version": {"major": "23", "minor": "11", "micro": "10"}, "release": "23.11.10", "cluster": "demo"}

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
    """A complete response."""
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
    """The exit code of a job; success if it has not ended."""
    code, signal = exit_of(life, state)
    status = "SIGNALED" if signal else "ERROR" if code else "SUCCESS"
    return {
        "status": [status],
        "return_code": number(code or 0),
        "signal": {"id": number(signal), "name": {15: "Terminated"}.get(signal or 0, "")},
    }


def host_list(names: Sequence[str]) -> str:
    """``gpu-[001-003,007]``; names have numbers with leading zeros, ascending."""
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
    """Ascending numbers with consecutive ones joined to ranges."""
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
    """The TRES (trackable resources) of a job, in total."""
    job = demo.job
    cpus = demo.cpus
    return (
        f"cpu={cpus},mem={demo.memory_gib}G,node={job.nodes},billing={cpus},"
        f"gres/gpu={job.gpus},gres/gpu:{gres_type}={job.gpus}"
    )


def tres_items(demo: DemoJob, gres_type: str) -> list[Json]:
    """The TRES of a job in the format of accounting."""
    job = demo.job
    cpus = demo.cpus
    return [
        {"type": "cpu", "name": "", "id": 1, "count": cpus},
        {"type": "mem", "name": "", "id": 2, "count": demo.memory_gib * 1024},
        {"type": "node", "name": "", "id": 4, "count": job.nodes},
        {"type": "billing", "name": "", "id": 5, "count": cpus},
        {"type": "gres", "name": "gpu", "id": 1001, "count": job.gpus},
        {"type": "gres", "name": f"gpu:{gres_type}", "id": 1002, "count": job.gpus},
    ]
