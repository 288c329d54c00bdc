"""The GPUs of one partition: who holds which, what is free now and when more will be. Knows nothing of queues or policies."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from clusterscape.demo.scheduler.events import Grant, Job, SimNode

NEVER_S = 2**62
"""A time after every other: "not as long as the nodes now out of service stay so"."""

Ints = NDArray[np.int64]


class Pool:
    """Free GPUs by node, kept up to date on every change so that a question costs little.

    ``free[n]`` counts the GPUs of node n that a job may have now (0 where the node is out of service). ``ready_s[n, g]`` is the
    earliest time at which node n has g GPUs free if nothing new starts and running jobs use up their limits.
    """

    def __init__(self, nodes: Sequence[SimNode]) -> None:
        self.names = [node.name for node in nodes]
        self.index = {name: place for place, name in enumerate(self.names)}
        capacity = [node.gpus for node in nodes]
        self.capacity: Ints = np.array(capacity, np.int64)
        self._largest = max(capacity)
        self._masks = [(1 << gpus) - 1 for gpus in capacity]  # bit i set: GPU i is free
        self._holds: list[dict[int, tuple[int, int]]] = [{} for _ in nodes]  # job id -> (mask, planned end)
        self._closed = [0] * len(nodes)
        self._places: dict[int, list[int]] = {}
        self.free: Ints = np.array(capacity, np.int64)
        self.ready_s: Ints = np.full((len(nodes), self._largest + 1), NEVER_S, np.int64)
        self._at_least = [0] * (self._largest + 2)  # [g]: nodes with g or more free
        for node, gpus in enumerate(capacity):
            self.ready_s[node, : gpus + 1] = 0
            for level in range(1, gpus + 1):
                self._at_least[level] += 1
        self._ever_at_least = tuple(self._at_least)

    def can_ever_hold(self, job: Job) -> bool:
        """Whether the job fits on the empty partition with every node in service."""
        return job.gpus_per_node <= self._largest and self._ever_at_least[job.gpus_per_node] >= job.nodes

    def fits(self, job: Job) -> bool:
        """Whether the job could start now."""
        return job.gpus_per_node <= self._largest and self._at_least[job.gpus_per_node] >= job.nodes

    def earliest_s(self, job: Job) -> int:
        """When the job can start at the latest by the limits of running jobs; NEVER_S while too few nodes are in service."""
        column = self.ready_s[:, job.gpus_per_node]
        return int(np.partition(column, job.nodes - 1)[job.nodes - 1])

    def take(self, job: Job, nodes: Iterable[int], until_s: int) -> tuple[Grant, ...]:
        """Give the job its GPUs on ``nodes``, the lowest free indices of each; ``until_s`` is its planned end."""
        places = sorted(nodes)
        self._places[job.id] = places
        grants = []
        for node in places:
            indices = _lowest_bits(self._masks[node], job.gpus_per_node)
            mask = sum(1 << index for index in indices)
            self._masks[node] &= ~mask
            self._holds[node][job.id] = (mask, until_s)
            self._refresh(node)
            grants.append(Grant(self.names[node], indices))
        return tuple(grants)

    def release(self, job_id: int) -> None:
        """Take back everything the job holds."""
        for node in self._places.pop(job_id):
            mask, _ = self._holds[node].pop(job_id)
            self._masks[node] |= mask
            self._refresh(node)

    def close(self, node: int) -> None:
        """Take a node out of service; its jobs are the caller's affair. Closed twice, it must be opened twice."""
        self._closed[node] += 1
        self._refresh(node)

    def open(self, node: int) -> bool:
        """Put a node back into service; False where another fault still keeps it out."""
        self._closed[node] -= 1
        self._refresh(node)
        return self._closed[node] == 0

    def jobs_on(self, node: int) -> list[int]:
        """Ids of the jobs that hold GPUs of the node."""
        return list(self._holds[node])

    def _refresh(self, node: int) -> None:
        is_open = self._closed[node] == 0
        unheld = self._masks[node].bit_count()
        self._count_free(node, unheld if is_open else 0)
        row = [NEVER_S] * (self._largest + 1)
        if is_open:
            row[: unheld + 1] = [0] * (unheld + 1)
            for mask, until_s in sorted(self._holds[node].values(), key=_planned_end):
                more = unheld + mask.bit_count()
                row[unheld + 1 : more + 1] = [until_s] * (more - unheld)
                unheld = more
        self.ready_s[node] = row

    def _count_free(self, node: int, now: int) -> None:
        before = int(self.free[node])
        self.free[node] = now
        for level in range(before + 1, now + 1):
            self._at_least[level] += 1
        for level in range(now + 1, before + 1):
            self._at_least[level] -= 1


def _planned_end(hold: tuple[int, int]) -> int:
    return hold[1]


def _lowest_bits(mask: int, count: int) -> tuple[int, ...]:
    indices = []
    for _ in range(count):
        lowest = mask & -mask
        indices.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(indices)
