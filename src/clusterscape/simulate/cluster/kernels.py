"""Compiled pieces of the GPU cluster: what nodes hold, what fits where, when a node will have room, how fragmented it is.

Importing this imports numba. A job is its row, a node its index; a pod is the part of a job on one node. Times are whole
seconds. Callers own all arrays. What takes Books is not called from Python but through `pass_kernels.step`.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, Bools
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
``closed``: faults that keep it out of service. ``version`` grows with each change. ``ready``: when the head's wish
finds room, as of ``ready_version``. ``fragment``: FGD's fragmentation, in units."""

WISH = _table(
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
"""What jobs ask for on each of their nodes. ``hosting``: nodes that can take one such pod now. ``without_extra``: the look at
the queue at which no room beside the promise was found, for jobs of ``without_nodes`` nodes or more. ``popularity``: its part
of the jobs that count in fragmentation."""

JOB = _table(
    submit="i8",
    run="i8",
    estimate="i8",
    wish="i8",
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
"""A job. ``rank``: its place in the queue; ``first_pod``: where its ``nodes`` pods begin. ``start`` is the first one, ``began``
the last; ``done``: seconds of work saved by checkpoints, ``lost``: not saved. A predicted ``estimate`` is at most the ``request``
and grows by ``corrections`` when it is exceeded."""

POD = _table(job="i8", node="i8", gpus="i8", next="i8", previous="i8")
"""The part of a job on one node. ``gpus``: bits. ``next`` and ``previous`` on the same node."""

PART = _table(
    first_node="i8",
    end_node="i8",
    first_wish="i8",
    end_wish="i8",
    first_queue="i8",
    queued="i8",
    touched="i8",
    free_units="i8",
    blocked_units="i8",
    ready_wish="i8",
    head="i8",
    queue_at_block="i8",
    user_units="i8",
)
"""A partition: its ranges in ``members``, ``wishes`` and ``queue``. ``touched``: its queue is due a look. ``head``: who was
promised a start last. ``user_units``: what one user may hold, 0: any."""

USER = _table(usage="f8", usage_at="i8", last_run="i8", former_run="i8")
"""What a user has been charged, GPU-seconds decayed up to ``usage_at``; the two runs that ended last, 0: there was none."""

OUTAGE_STEP = _table(time="i8", kind="i8", node="i8")
"""A node leaves service or returns."""


class Books(NamedTuple):
    """All there is: tables of records (whose fields numpy cannot type) and arrays.

    ``hosts[w, n]``: node n can take a pod of wish w now. ``members``: nodes by partition.
    ``held_by_gpus[n, g]``: jobs with g whole GPUs of node n, [n, 0] with a share. ``candidates``: nodes to choose from, and which
    of them are ``harmful`` to the promise. ``end_*`` and ``over_*`` are heaps: when jobs end, and exceed what was predicted.
    """

    nodes: Any
    wishes: Any
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
    """What a share takes of a GPU that is cut into ``slices``: whole slices."""
    if slices == 0 or units >= UNITS_PER_GPU:
        return units
    slice_units = UNITS_PER_GPU // slices
    return -(-units // slice_units) * slice_units


@njit(cache=True, nogil=True)
def fits(wish: Any, node: Any, row: Int64s, cpu: int, memory: int) -> bool:
    """Whether one pod finds room on a node with that much free (``row``: by GPU). Takes records: handing over Books is dear."""
    if cpu < wish.cpu or memory < wish.memory:
        return False
    missing = wish.gpus
    if missing == 0:
        return True
    if wish.models != 0 and (wish.models >> node.model) & 1 == 0:
        return False
    units = units_on(wish.units, node.slices)
    for gpu in range(node.gpus):
        if row[gpu] >= units:
            missing -= 1
            if missing == 0:
                return True
    return False


@njit(cache=True, nogil=True)
def measure_fragment(node: Any, row: Int64s, free: int, cpu: int, wishes: Any) -> float:
    """FGD's fragmentation of a node (Weng et al. 2023): idle units that a typical job cannot use, over the jobs' popularity.

    ``wishes`` are those of the node's partition.
    """
    if free == 0:
        return 0.0
    total = 0.0
    for at in range(wishes.size):
        wish = wishes[at]
        if wish.popularity == 0.0:
            continue
        count, unusable = wish.gpus, free
        is_wrong = wish.models != 0 and (wish.models >> node.model) & 1 == 0
        if count > 0 and cpu >= wish.cpu and not is_wrong:
            units = units_on(wish.units, node.slices)
            small = 0
            for gpu in range(node.gpus):
                if row[gpu] >= units:
                    count -= 1
                else:
                    small += row[gpu]
            if count <= 0:
                unusable = small
        total += wish.popularity * unusable
    return total


@njit(cache=True, nogil=True)
def wishes_at(node: int, books: Books) -> Any:
    """The wishes of a node's partition."""
    part = books.partitions[books.nodes[node].partition]
    return books.wishes[part.first_wish : part.end_wish]


@njit(cache=True, nogil=True)
def refresh(node: int, books: Books) -> None:
    """Bring up to date what is known of a node after a change."""
    here = books.nodes[node]
    here.version += 1
    part = books.partitions[here.partition]
    row = books.gpu_units[node]
    for wish in range(part.first_wish, part.end_wish):
        can = here.closed == 0 and fits(books.wishes[wish], here, row, here.cpu, here.memory)
        if can != books.hosts[wish, node]:
            books.hosts[wish, node] = can
            books.wishes[wish].hosting += 1 if can else -1
    amount = 0.0
    if here.closed == 0:
        amount = measure_fragment(here, row, here.free_units, here.cpu, wishes_at(node, books))
    books.sums[0] += amount - here.fragment
    here.fragment = amount


@njit(cache=True, nogil=True)
def pick_gpus(wish: int, node: int, chosen: int, books: Books) -> int:
    """The GPUs a pod gets, as bits: the chosen one, or the tightest that fits a share, or the lowest free ones."""
    count, units = books.wishes[wish].gpus, units_on(books.wishes[wish].units, books.nodes[node].slices)
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
def change_node(pod: int, sign: int, books: Books) -> None:
    """Take a pod's resources from its node (sign −1) or give them back (+1)."""
    job, node = books.pods[pod].job, books.pods[pod].node
    wish = books.jobs[job].wish
    units = units_on(books.wishes[wish].units, books.nodes[node].slices)
    for gpu in range(books.nodes[node].gpus):
        if (books.pods[pod].gpus >> gpu) & 1:
            books.gpu_units[node, gpu] += sign * units
    taken = sign * units * books.wishes[wish].gpus
    books.nodes[node].free_units += taken
    if books.nodes[node].closed == 0:
        books.partitions[books.nodes[node].partition].free_units += taken
    books.nodes[node].cpu += sign * books.wishes[wish].cpu
    books.nodes[node].memory += sign * books.wishes[wish].memory
    if books.wishes[wish].gpus > 0:
        is_share = books.wishes[wish].gpus == 1 and books.wishes[wish].units < UNITS_PER_GPU
        books.held_by_gpus[node, 0 if is_share else books.wishes[wish].gpus] -= sign


@njit(cache=True, nogil=True)
def link(pod: int, node: int, books: Books) -> None:
    """Put a pod into its node's list."""
    after = books.nodes[node].first_pod
    books.pods[pod].node = node
    books.pods[pod].next, books.pods[pod].previous = after, NOBODY
    if after != NOBODY:
        books.pods[after].previous = pod
    books.nodes[node].first_pod = pod


@njit(cache=True, nogil=True)
def unlink(pod: int, books: Books) -> None:
    """Take a pod out of its node's list."""
    before, after = books.pods[pod].previous, books.pods[pod].next
    if before == NOBODY:
        books.nodes[books.pods[pod].node].first_pod = after
    else:
        books.pods[before].next = after
    if after != NOBODY:
        books.pods[after].previous = before


@njit(cache=True, nogil=True)
def free_at(node: int, time: int, row: Int64s, books: Books) -> tuple[int, int]:
    """Processors and memory free on a node at ``time`` by the estimates; ``row`` gets its GPUs."""
    cpu, memory = books.nodes[node].cpu, books.nodes[node].memory
    row[:] = books.gpu_units[node]
    pod = books.nodes[node].first_pod
    while pod != NOBODY:
        job = books.pods[pod].job
        if books.jobs[job].began + books.jobs[job].estimate - books.jobs[job].done <= time:
            wish = books.jobs[job].wish
            cpu += books.wishes[wish].cpu
            memory += books.wishes[wish].memory
            units = units_on(books.wishes[wish].units, books.nodes[node].slices)
            for gpu in range(books.nodes[node].gpus):
                if (books.pods[pod].gpus >> gpu) & 1:
                    row[gpu] += units
        pod = books.pods[pod].next
    return cpu, memory


@njit(cache=True, nogil=True)
def find_ready(wish: int, node: int, row: Int64s, books: Books) -> int:
    """When one pod of that wish finds room on the node if nothing new starts there; NOT_YET: now; NEVER: not at all."""
    if books.nodes[node].closed > 0:
        return NEVER
    if books.hosts[wish, node]:
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
        if fits(books.wishes[wish], books.nodes[node], row, cpu, memory):
            return int(following)
        last = following


@njit(cache=True, nogil=True)
def fill_scores_of_fragments(
    wish: int, candidates: Int64s, growth: Float64s, best_gpu: Int64s, known_at: Int64s, books: Books
) -> None:
    """How much each candidate's fragmentation would grow by one pod, and on which GPU a share does least; stale rows only."""
    row = np.empty(books.gpu_units.shape[1], np.int64)
    wishes = wishes_at(candidates[0], books)
    for node in candidates:
        if known_at[node] == books.nodes[node].version:
            continue
        known_at[node] = books.nodes[node].version
        free, cpu = books.nodes[node].free_units, books.nodes[node].cpu
        row[:] = books.gpu_units[node]
        before = books.nodes[node].fragment
        count, units = books.wishes[wish].gpus, units_on(books.wishes[wish].units, books.nodes[node].slices)
        after_cpu, after_free = cpu - books.wishes[wish].cpu, free - count * units
        best_gpu[node] = NOBODY
        if count == 1 and units < UNITS_PER_GPU:
            growth[node] = np.inf
            for gpu in range(books.nodes[node].gpus):
                if row[gpu] < units:
                    continue
                row[gpu] -= units
                grown = measure_fragment(books.nodes[node], row, after_free, after_cpu, wishes) - before
                row[gpu] += units
                if grown < growth[node]:
                    growth[node], best_gpu[node] = grown, gpu
            continue
        for gpu in range(books.nodes[node].gpus):
            if count > 0 and row[gpu] >= units:
                row[gpu] -= units
                count -= 1
        growth[node] = measure_fragment(books.nodes[node], row, after_free, after_cpu, wishes) - before
