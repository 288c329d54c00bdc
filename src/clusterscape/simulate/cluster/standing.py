"""A simulation that begins in the middle: some jobs hold nodes already, others wait since before.

Puts the books into that state; everything after is the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.samples import Int64s
from clusterscape.simulate.cluster.contract import ClusterScenario, ClusterSchedule
from clusterscape.simulate.cluster.engine import drive, make_rules, open_books


@dataclass(frozen=True, slots=True)
class Standing:
    """The moment a simulation begins at. ``job`` and ``node``: rows of one-node jobs that run then, and where.

    Of those ``run_s`` and ``estimate_s`` are what is left; all other jobs submitted until ``now_s`` wait.
    """

    now_s: int
    job: Int64s
    node: Int64s


def simulate_standing(scenario: ClusterScenario, standing: Standing) -> ClusterSchedule:
    """When and where every job runs from now on. Raises QueryError where what runs does not fit on its nodes."""
    from clusterscape.simulate.cluster.job_kernels import ARRIVED, CURSOR, NOW, OUTAGE, enqueue, start_job
    from clusterscape.simulate.cluster.pass_kernels import take_outage

    rules, books = make_rules(scenario), open_books(scenario)
    arrived = int(np.searchsorted(scenario.jobs.submit_s, standing.now_s, side="right"))
    books.state[NOW], books.state[ARRIVED], books.state[CURSOR] = standing.now_s, arrived, 0
    for job, node in zip(standing.job.tolist(), standing.node.tolist(), strict=True):
        if not books.hosts[books.jobs["wish"][job], node]:
            raise QueryError(f"node {scenario.cluster.names[node]} has no room for what runs on it")
        enqueue(job, books)
        start_job(job, np.array([node]), np.array([-1]), books, rules.half_life)
    due = int(np.searchsorted(books.outages["time"], standing.now_s, side="right"))
    while books.state[OUTAGE] < due:
        take_outage(rules, books)
    is_held = np.zeros(len(scenario.jobs), bool)
    is_held[standing.job] = True
    for job in np.flatnonzero(~is_held[:arrived]).tolist():
        enqueue(job, books)
    books.partitions["touched"] = True
    return drive(scenario, rules, books, np.zeros(1, np.int64))
