"""Compiled functions for the nodes of a GPU cluster: their load, what fits where, when a node will have room, its fragmentation.

Importing this imports numba. A job is its row, a node its index; a pod is the part of a job on one node. Times are whole
seconds. Callers own all arrays. Python calls functions with a ``books`` argument only through `pass_kernels.step`.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET
from clusterscape.simulate.placing import UNITS_PER_GPU

NOBODY = -1


def _table(**fields: str) -> np.dtype[np.void]:
    return np.dtype(list(fields.items()), align=True)


NODE = _table(
    gpus="i8",
    model="i8",
    partition="i8",
    slices="i8",
    free_units="i8",
    cpu="i8",
    memory="i8",
    closed="i8",
    version="i8",
    first_pod="i8",
    ready="i8",
    ready_version="i8",
    fragment="f8",
)
"""A node. ``slices``: parts a shared GPU is cut into (MIG: 7), 0: any. ``cpu``, ``memory``, ``free_units``: free now.
``closed``: number of faults that keep it out of service. ``version`` grows with each change. ``ready``: when the head's demand
fits, as of ``ready_version``. ``fragment``: FGD's fragmentation, in units."""

DEMAND = _table(
    gpus="i8",
    units="i8",
    cpu="i8",
    memory="i8",
    models="i8",
    hosting="i8",
    without_extra="i8",
    without_nodes="i8",
    popularity="f8",
)
"""A distinct request of jobs on each of their nodes. ``hosting``: number of nodes that can take one such pod now.
``without_extra``: the pass in which no extra room next to the promise was found, for jobs of ``without_nodes`` nodes or more.
``popularity``: its share of the jobs that count in fragmentation."""

JOB = _table(
    submit="i8",
    run="i8",
    estimate="i8",
    demand="i8",
    nodes="i8",
    partition="i8",
    user="i8",
    priority="i8",
    rank="i8",
    first_pod="i8",
    start="i8",
    end="i8",
    began="i8",
    promise="i8",
    done="i8",
    lost="i8",
    attempts="i8",
    sequence="i8",
    request="i8",
    corrections="i8",
)
"""A job. ``rank``: its rank in the queue; ``first_pod``: index of the first of its ``nodes`` pods. ``start``: first start,
``began``: last start; ``done``: seconds of work saved by checkpoints, ``lost``: not saved. A predicted ``estimate`` is at most
the ``request`` and grows by ``corrections`` when it is exceeded."""

POD = _table(job="i8", node="i8", gpus="i8", next="i8", previous="i8")
"""The part of a job on one node. ``gpus``: a bit mask. ``next`` and ``previous``: pods on the same node."""

PART = _table(
    first_node="i8",
    end_node="i8",
    first_demand="i8",
    end_demand="i8",
    first_queue="i8",
    queued="i8",
    touched="i8",
    free_units="i8",
    blocked_units="i8",
    ready_demand="i8",
    head="i8",
    queue_at_block="i8",
    user_units="i8",
)
"""A partition: its ranges in ``members``, ``demands`` and ``queue``. ``touched``: a scheduling pass is due. ``head``: the job
that last got a promise. ``user_units``: limit of one user, 0: none."""

USER = _table(usage="f8", usage_at="i8", last_run="i8", former_run="i8")
"""A user's usage in GPU-seconds, decayed up to ``usage_at``; the run times of the last two ended jobs, 0: none."""

OUTAGE_STEP = _table(time="i8", kind="i8", node="i8")
"""A node leaves service or returns."""


class ClusterBooks(NamedTuple):
    """The whole state: tables of records (whose fields numpy cannot type) and arrays.

    ``hosts[w, n]``: node n can take a pod of demand w now. ``members``: nodes by partition.
    ``held_by_gpus[n, g]``: number of jobs with g whole GPUs of node n, [n, 0] with a share. ``candidates``: nodes to choose from;
    ``harmful``: those that would delay the promise. ``end_*`` and ``over_*``: heaps of ends and of exceeded predictions.
    """

    nodes: Any
    demands: Any
    jobs: Any
    pods: Any
    partitions: Any
    users: Any
    outages: Any
    gpu_units: Int64s
    held_by_gpus: Int64s
    held_by_user: Int64s
    hosts: Bools
    members: Int64s
    queue: Int64s
    end_times: Int64s
    end_jobs: Int64s
    over_times: Int64s
    over_jobs: Int64s
    candidates: Int64s
    harmful: Bools
    sums: Float64s
    state: Int64s


@njit(cache=True, nogil=True)
def units_on(units: int, slices: int) -> int:
    """Units that a share takes of a GPU with ``slices``: rounded up to whole slices."""
    if slices == 0 or units >= UNITS_PER_GPU:
        return units
    slice_units = UNITS_PER_GPU // slices
    return -(-units // slice_units) * slice_units


@njit(cache=True, nogil=True)
def fits(demand: Any, node: Any, row: Int64s, cpu: int, memory: int) -> bool:
    """Whether one pod fits on a node with these free resources (``row``: by GPU). Takes records: passing ``books`` is slow."""
    if cpu < demand.cpu or memory < demand.memory:
        return False
    missing = demand.gpus
    if missing == 0:
        return True
    if demand.models != 0 and (demand.models >> node.model) & 1 == 0:
        return False
    units = units_on(demand.units, node.slices)
    for gpu in range(node.gpus):
        if row[gpu] >= units:
            missing -= 1
            if missing == 0:
                return True
    return False


@njit(cache=True, nogil=True)
def measure_fragment(node: Any, row: Int64s, free: int, cpu: int, demands: Any) -> float:
    """FGD's fragmentation of a node (Weng et al. 2023): idle units that a typical job cannot use, weighted by popularity.

    ``demands``: those of the node's partition.
    """
    if free == 0:
        return 0.0
    total = 0.0
    for at in range(demands.size):
        demand = demands[at]
        if demand.popularity == 0.0:
            continue
        count, unusable = demand.gpus, free
        is_wrong = demand.models != 0 and (demand.models >> node.model) & 1 == 0
        if count > 0 and cpu >= demand.cpu and not is_wrong:
            units = units_on(demand.units, node.slices)
            small = 0
            for gpu in range(node.gpus):
                if row[gpu] >= units:
                    count -= 1
                else:
                    small += row[gpu]
            if count <= 0:
                unusable = small
        total += demand.popularity * unusable
    return total


@njit(cache=True, nogil=True)
def demands_at(node: int, books: ClusterBooks) -> Any:
    """The demands of a node's partition."""
    part = books.partitions[books.nodes[node].partition]
    return books.demands[part.first_demand : part.end_demand]


@njit(cache=True, nogil=True)
def refresh(node: int, books: ClusterBooks) -> None:
    """Update the derived values of a node after a change."""
    record = books.nodes[node]
    record.version += 1
    part = books.partitions[record.partition]
    row = books.gpu_units[node]
    for demand in range(part.first_demand, part.end_demand):
        can = record.closed == 0 and fits(books.demands[demand], record, row, record.cpu, record.memory)
        if can != books.hosts[demand, node]:
            books.hosts[demand, node] = can
            books.demands[demand].hosting += 1 if can else -1
    amount = 0.0
    if record.closed == 0:
        amount = measure_fragment(record, row, record.free_units, record.cpu, demands_at(node, books))
    books.sums[0] += amount - record.fragment
    record.fragment = amount


@njit(cache=True, nogil=True)
def pick_gpus(demand: int, node: int, chosen: int, books: ClusterBooks) -> int:
    """The GPUs of a pod as a bit mask: the chosen one, or the tightest fit for a share, or the first free ones."""
    count, units = books.demands[demand].gpus, units_on(books.demands[demand].units, books.nodes[node].slices)
    row = books.gpu_units[node]
    if chosen >= 0:
        return int(1 << chosen)
    if count == 1 and units < UNITS_PER_GPU:
        best = NOBODY
        for gpu in range(books.nodes[node].gpus):
            if row[gpu] >= units and (best == NOBODY or row[gpu] < row[best]):
                best = gpu
        return int(1 << best)
    mask = 0
    for gpu in range(books.nodes[node].gpus):
        if count > 0 and row[gpu] >= units:
            mask |= 1 << gpu
            count -= 1
    return int(mask)


@njit(cache=True, nogil=True)
def change_node(pod: int, sign: int, books: ClusterBooks) -> None:
    """Allocate a pod's resources on its node (sign −1) or release them (+1)."""
    job, node = books.pods[pod].job, books.pods[pod].node
    demand = books.jobs[job].demand
    units = units_on(books.demands[demand].units, books.nodes[node].slices)
    for gpu in range(books.nodes[node].gpus):
        if (books.pods[pod].gpus >> gpu) & 1:
            books.gpu_units[node, gpu] += sign * units
    change = sign * units * books.demands[demand].gpus
    books.nodes[node].free_units += change
    if books.nodes[node].closed == 0:
        books.partitions[books.nodes[node].partition].free_units += change
    books.nodes[node].cpu += sign * books.demands[demand].cpu
    books.nodes[node].memory += sign * books.demands[demand].memory
    if books.demands[demand].gpus > 0:
        is_share = books.demands[demand].gpus == 1 and books.demands[demand].units < UNITS_PER_GPU
        books.held_by_gpus[node, 0 if is_share else books.demands[demand].gpus] -= sign


@njit(cache=True, nogil=True)
def link(pod: int, node: int, books: ClusterBooks) -> None:
    """Add a pod to its node's list."""
    after = books.nodes[node].first_pod
    books.pods[pod].node = node
    books.pods[pod].next, books.pods[pod].previous = after, NOBODY
    if after != NOBODY:
        books.pods[after].previous = pod
    books.nodes[node].first_pod = pod


@njit(cache=True, nogil=True)
def unlink(pod: int, books: ClusterBooks) -> None:
    """Remove a pod from its node's list."""
    before, after = books.pods[pod].previous, books.pods[pod].next
    if before == NOBODY:
        books.nodes[books.pods[pod].node].first_pod = after
    else:
        books.pods[before].next = after
    if after != NOBODY:
        books.pods[after].previous = before


@njit(cache=True, nogil=True)
def free_at(node: int, time: int, row: Int64s, books: ClusterBooks) -> tuple[int, int]:
    """Processors and memory free on a node at ``time`` by the estimates; writes its free GPU units to ``row``."""
    cpu, memory = books.nodes[node].cpu, books.nodes[node].memory
    row[:] = books.gpu_units[node]
    pod = books.nodes[node].first_pod
    while pod != NOBODY:
        job = books.pods[pod].job
        if books.jobs[job].began + books.jobs[job].estimate - books.jobs[job].done <= time:
            demand = books.jobs[job].demand
            cpu += books.demands[demand].cpu
            memory += books.demands[demand].memory
            units = units_on(books.demands[demand].units, books.nodes[node].slices)
            for gpu in range(books.nodes[node].gpus):
                if (books.pods[pod].gpus >> gpu) & 1:
                    row[gpu] += units
        pod = books.pods[pod].next
    return cpu, memory


@njit(cache=True, nogil=True)
def find_ready(demand: int, node: int, row: Int64s, books: ClusterBooks) -> int:
    """When one pod of that demand fits on the node if nothing new starts there; NOT_YET: now; NEVER: not at all."""
    if books.nodes[node].closed > 0:
        return NEVER
    if books.hosts[demand, node]:
        return NOT_YET
    last = NOT_YET
    while True:
        # The next estimated end after the last one tried.
        following = NEVER
        pod = books.nodes[node].first_pod
        while pod != NOBODY:
            job = books.pods[pod].job
            end = books.jobs[job].began + books.jobs[job].estimate - books.jobs[job].done
            if last < end < following:
                following = end
            pod = books.pods[pod].next
        if following == NEVER:
            return NEVER
        cpu, memory = free_at(node, following, row, books)
        if fits(books.demands[demand], books.nodes[node], row, cpu, memory):
            return int(following)
        last = following


@njit(cache=True, nogil=True)
def fill_fragment_growth(
    demand: int, candidates: Int64s, growth: Float64s, best_gpu: Int64s, scored_at: Int64s, books: ClusterBooks
) -> None:
    """Update, for stale rows, the growth of each candidate's fragmentation by one pod, and the best GPU for a share."""
    row = np.empty(books.gpu_units.shape[1], np.int64)
    demands = demands_at(candidates[0], books)
    for node in candidates:
        if scored_at[node] == books.nodes[node].version:
            continue
        scored_at[node] = books.nodes[node].version
        free, cpu = books.nodes[node].free_units, books.nodes[node].cpu
        row[:] = books.gpu_units[node]
        before = books.nodes[node].fragment
        count, units = books.demands[demand].gpus, units_on(books.demands[demand].units, books.nodes[node].slices)
        after_cpu, after_free = cpu - books.demands[demand].cpu, free - count * units
        best_gpu[node] = NOBODY
        if count == 1 and units < UNITS_PER_GPU:
            growth[node] = np.inf
            for gpu in range(books.nodes[node].gpus):
                if row[gpu] < units:
                    continue
                row[gpu] -= units
                grown = measure_fragment(books.nodes[node], row, after_free, after_cpu, demands) - before
                row[gpu] += units
                if grown < growth[node]:
                    growth[node], best_gpu[node] = grown, gpu
            continue
        for gpu in range(books.nodes[node].gpus):
            if count > 0 and row[gpu] >= units:
                row[gpu] -= units
                count -= 1
        growth[node] = measure_fragment(books.nodes[node], row, after_free, after_cpu, demands) - before
