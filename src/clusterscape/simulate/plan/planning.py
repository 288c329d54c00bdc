"""Plans a queue on GPU nodes: conservative backfilling by limits, from what is held now. Knows no policy: jobs come in order.

Whole GPUs are counted by node; CPUs and memory are not known here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.model.samples import Int64s

NEVER_S = -1
"""Start of a job that no plan has room for."""

MOST_STEPS = 96
"""Changes of free GPUs that are kept for one node; a node with more takes nothing further into the plan."""


@dataclass(frozen=True, slots=True)
class PlanNodes:
    """Nodes, one row each. ``pool``: nodes that share a queue; ``model``: bit of ``PlanJobs.models``; ``gpus`` 0: closed."""

    gpus: Int64s
    pool: Int64s
    model: Int64s

    def __len__(self) -> int:
        return len(self.gpus)


@dataclass(frozen=True, slots=True)
class PlanTaken:
    """GPUs of a node that a class of jobs cannot have during [start_s, end_s): held, or reserved. Not for closed nodes."""

    job_class: Int64s
    node: Int64s
    gpus: Int64s
    start_s: Int64s
    end_s: Int64s


@dataclass(frozen=True, slots=True)
class PlanJobs:
    """Waiting jobs in the order of their queues: ``gpus`` on each of ``nodes`` different nodes of a pool for ``limit_s``.

    ``ready_s``: not before. ``models``: bit m set where nodes of model m will do. ``job_class``: jobs that may preempt and use
    the same; 0 where there is one class. A job starts where its whole limit fits and holds its GPUs for ``hold_s`` (None: for
    the limit). ``is_probe``: jobs that are only asked about and take nothing (None: none).
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
    """``start_s`` of each job (NEVER_S: none), and its nodes: ``nodes[first[j] : first[j] + jobs.nodes[j]]``, −1 where none."""

    start_s: Int64s
    nodes: Int64s
    first: Int64s


def plan_starts(
    now_s: int, nodes: PlanNodes, taken: PlanTaken, jobs: PlanJobs, loses: NDArray[np.bool_] | None = None
) -> Plan:
    """Each job in turn gets the earliest start at which enough nodes have room for its whole limit; nobody before it moves.

    ``loses[d, c]``: what a job of class c is given is gone for class d; by default there is one class. Time grows with
    jobs × nodes × changes of free GPUs on a node, memory with nodes × classes.
    """
    from clusterscape.simulate.plan.kernels import plan_all

    first = np.cumsum(jobs.nodes) - jobs.nodes
    chosen = np.full(int(jobs.nodes.sum()), -1, np.int64)
    start = np.full(len(jobs), NEVER_S, np.int64)
    if len(jobs) and len(nodes):
        members = np.argsort(nodes.pool, kind="stable")
        pools = int(max(nodes.pool.max(), jobs.pool.max())) + 1
        ends = np.searchsorted(nodes.pool[members], np.arange(pools + 1))
        hold = jobs.limit_s if jobs.hold_s is None else jobs.hold_s
        probe = np.zeros(len(jobs), np.int64) if jobs.is_probe is None else jobs.is_probe.astype(np.int64)
        asked = np.stack(
            (jobs.pool, jobs.models, jobs.nodes, jobs.gpus, jobs.limit_s, jobs.ready_s, jobs.job_class, hold, probe),
            axis=1,
        )
        rows = taken.job_class * len(nodes) + taken.node
        plan_all(
            now_s,
            nodes.gpus,
            nodes.model,
            np.stack((rows, taken.gpus, taken.start_s, taken.end_s), axis=1),
            np.ones((1, 1), np.bool_) if loses is None else loses,
            np.ascontiguousarray(asked, np.int64),
            members,
            ends.astype(np.int64),
            first.astype(np.int64),
            start,
            chosen,
            MOST_STEPS,
        )
    return Plan(start, chosen, first)
