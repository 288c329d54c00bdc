"""Plans a queue on GPU nodes: conservative backfilling by time limits, from the current allocations. Jobs come in queue order.

Counts whole GPUs by node; ignores CPUs and memory.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.model.arrays import Int64s

NEVER_S = -1
"""Start of a job that never fits."""

MOST_STEPS = 96
"""Maximum number of changes of free GPUs per node; a node with more accepts no further jobs in the plan."""


@dataclass(frozen=True, slots=True)
class PlanNodes:
    """Nodes, one row each. ``pool``: nodes that share a queue; ``model``: bit of ``PlanJobs.models``; ``gpus`` 0: closed."""

    gpus: Int64s
    pool: Int64s
    model: Int64s

    def __len__(self) -> int:
        return len(self.gpus)


@dataclass(frozen=True, slots=True)
class PlanOccupied:
    """GPUs of a node that are held or reserved during [start_s, end_s), by class of jobs. Not for closed nodes."""

    job_class: Int64s
    node: Int64s
    gpus: Int64s
    start_s: Int64s
    end_s: Int64s


@dataclass(frozen=True, slots=True)
class PlanJobs:
    """Waiting jobs in queue order: ``gpus`` on each of ``nodes`` different nodes of a pool for ``limit_s``.

    ``ready_s``: earliest start. ``models``: bit m set if nodes of model m are allowed. ``job_class``: jobs with the same
    preemption and reservation rights; 0 if there is one class. A job starts where its whole limit fits and holds its GPUs for
    ``hold_s`` (None: the limit). ``is_probe``: jobs that are planned but take no GPUs (None: none).
    """

    pool: Int64s
    models: Int64s
    nodes: Int64s
    gpus: Int64s
    limit_s: Int64s
    ready_s: Int64s
    job_class: Int64s
    hold_s: Int64s | None = None
    is_probe: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.pool)


@dataclass(frozen=True, slots=True)
class Plan:
    """``start_s`` of each job (NEVER_S: none), and its nodes: ``nodes[first[j] : first[j] + jobs.nodes[j]]``, −1: none."""

    start_s: Int64s
    nodes: Int64s
    first: Int64s


def plan_starts(
    now_s: int, nodes: PlanNodes, occupied: PlanOccupied, jobs: PlanJobs, loses: NDArray[np.bool_] | None = None
) -> Plan:
    """Give each job in order the earliest start at which enough nodes have room for its whole limit; earlier jobs never move.

    ``loses[d, c]``: GPUs given to a job of class c are not available to class d; by default there is one class. Time grows with
    jobs × nodes × changes of free GPUs on a node, memory with nodes × classes.
    """
    from clusterscape.simulate.plan_kernels import plan_all

    first = np.cumsum(jobs.nodes) - jobs.nodes
    chosen = np.full(int(jobs.nodes.sum()), -1, np.int64)
    start = np.full(len(jobs), NEVER_S, np.int64)
    if len(jobs) and len(nodes):
        members = np.argsort(nodes.pool, kind="stable")
        pools = int(max(nodes.pool.max(), jobs.pool.max())) + 1
        ends = np.searchsorted(nodes.pool[members], np.arange(pools + 1))
        hold = jobs.limit_s if jobs.hold_s is None else jobs.hold_s
        probe = np.zeros(len(jobs), np.int64) if jobs.is_probe is None else jobs.is_probe.astype(np.int64)
        requests = np.stack(
            (jobs.pool, jobs.models, jobs.nodes, jobs.gpus, jobs.limit_s, jobs.ready_s, jobs.job_class, hold, probe),
            axis=1,
        )
        rows = occupied.job_class * len(nodes) + occupied.node
        plan_all(
            now_s,
            nodes.gpus,
            nodes.model,
            np.stack((rows, occupied.gpus, occupied.start_s, occupied.end_s), axis=1),
            np.ones((1, 1), np.bool_) if loses is None else loses,
            np.ascontiguousarray(requests, np.int64),
            members,
            ends.astype(np.int64),
            first.astype(np.int64),
            start,
            chosen,
            MOST_STEPS,
        )
    return Plan(start, chosen, first)
