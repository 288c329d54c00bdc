"""Plans a queue on GPU nodes: conservative backfilling by limits, from what is held now. Knows no policy: jobs come in order.

Whole GPUs are counted by node; CPUs and memory are not known here.
"""

from dataclasses import dataclass

import numpy as np

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
class PlanHeld:
    """What is held now: GPUs of a node until ``end_s``. Not for closed nodes."""

    node: Int64s
    gpus: Int64s
    end_s: Int64s


@dataclass(frozen=True, slots=True)
class PlanJobs:
    """Waiting jobs in the order of their queues: ``gpus`` on each of ``nodes`` different nodes of a pool for ``limit_s``.

    ``ready_s``: not before. ``models``: bit m set where nodes of model m will do.
    """

    pool: Int64s
    models: Int64s
    nodes: Int64s
    gpus: Int64s
    limit_s: Int64s
    ready_s: Int64s

    def __len__(self) -> int:
        return len(self.pool)


@dataclass(frozen=True, slots=True)
class Plan:
    """``start_s`` of each job (NEVER_S: none), and its nodes: ``nodes[first[j] : first[j] + jobs.nodes[j]]``, −1 where none."""

    start_s: Int64s
    nodes: Int64s
    first: Int64s


def plan_starts(now_s: int, nodes: PlanNodes, held: PlanHeld, jobs: PlanJobs) -> Plan:
    """Each job in turn gets the earliest start at which enough nodes have room for its whole limit; nobody before it moves."""
    from clusterscape.simulate.plan.kernels import plan_all

    first = np.cumsum(jobs.nodes) - jobs.nodes
    chosen = np.full(int(jobs.nodes.sum()), -1, np.int64)
    start = np.full(len(jobs), NEVER_S, np.int64)
    if len(jobs) and len(nodes):
        members = np.argsort(nodes.pool, kind="stable")
        pools = int(max(nodes.pool.max(), jobs.pool.max())) + 1
        ends = np.searchsorted(nodes.pool[members], np.arange(pools + 1))
        asked = np.stack((jobs.pool, jobs.models, jobs.nodes, jobs.gpus, jobs.limit_s, jobs.ready_s), axis=1)
        plan_all(
            now_s,
            nodes.gpus,
            nodes.model,
            held.node,
            held.gpus,
            held.end_s,
            np.ascontiguousarray(asked, np.int64),
            members,
            ends.astype(np.int64),
            first.astype(np.int64),
            start,
            chosen,
            MOST_STEPS,
        )
    return Plan(start, chosen, first)
