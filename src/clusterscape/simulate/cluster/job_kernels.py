"""Compiled functions for one job on the GPU cluster: it waits, starts on chosen nodes, ends, or is evicted and waits again.

Importing this imports numba. `pass_kernels` decides which job is next.
"""

import numpy as np
from numba import njit

from clusterscape.model.arrays import Int64s
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, charge, is_before, pop, push
from clusterscape.simulate.batch.listed_kernels import CORRECTIONS_S
from clusterscape.simulate.cluster.kernels import (
    NOBODY,
    ClusterBooks,
    change_node,
    fits,
    link,
    pick_gpus,
    refresh,
    units_on,
    unlink,
)
from clusterscape.simulate.placing import UNITS_PER_GPU

# Indices of ClusterBooks.sums, which are totals over time. FRAGMENT is the current fragmentation of the cluster.
FRAGMENT, FRAGMENT_S, IDLE_S, BLOCKED_S, LOST_S = range(5)

# Indices of ClusterBooks.state. JOB: the job that needs nodes; CANDIDATES and SURPLUS belong to it. RESERVED: START is valid for
# HEAD.
(
    NOW,
    PHASE,
    PARTITION,
    CURSOR,
    HEAD,
    RESERVED,
    START,
    JOB,
    CANDIDATES,
    SURPLUS,
    ARRIVED,
    ENDING,
    STARTED,
    OUTAGE,
    PASS,
    TRIED,
    IS_EXTRA,
    OVERS,
) = range(18)

# The order in which candidates are tried.
BY_QUEUE, BY_ESTIMATE, BY_AREA, BY_SIZE = range(4)


@njit(cache=True, nogil=True)
def enqueue(job: int, books: ClusterBooks) -> None:
    """Add a job to its queue by its rank."""
    partition = books.jobs[job].partition
    first, count = books.partitions[partition].first_queue, books.partitions[partition].queued
    place = first + count
    while place > first and books.jobs[books.queue[place - 1]].rank > books.jobs[job].rank:
        books.queue[place] = books.queue[place - 1]
        place -= 1
    books.queue[place] = job
    books.partitions[partition].queued += 1
    books.partitions[partition].touched = True


@njit(cache=True, nogil=True)
def dequeue(job: int, books: ClusterBooks) -> None:
    """Remove a job from its queue. The search starts at the cursor, where the job that starts is."""
    partition = books.jobs[job].partition
    first, count = books.partitions[partition].first_queue, books.partitions[partition].queued
    place = first + books.state[CURSOR]
    while books.queue[place] != job:
        place += 1
    for at in range(place, first + count - 1):
        books.queue[at] = books.queue[at + 1]
    books.partitions[partition].queued -= 1


@njit(cache=True, nogil=True)
def total_units(job: int, books: ClusterBooks) -> int:
    """Requested GPU units over all nodes."""
    demand = books.jobs[job].demand
    return int(books.jobs[job].nodes * books.demands[demand].gpus * books.demands[demand].units)


@njit(cache=True, nogil=True)
def sort_queue(first: int, end: int, tries_by: int, books: ClusterBooks) -> None:
    """Sort a part of the queue in the order in which candidates are tried (stable); BY_QUEUE sorts by rank."""
    keys = np.empty(end - first, np.int64)
    for at in range(first, end):
        job = books.queue[at]
        left = books.jobs[job].estimate - books.jobs[job].done
        if tries_by == BY_ESTIMATE:
            keys[at - first] = left
        elif tries_by == BY_AREA:
            keys[at - first] = left * total_units(job, books)
        elif tries_by == BY_SIZE:
            keys[at - first] = total_units(job, books)
        else:
            keys[at - first] = books.jobs[job].rank
    books.queue[first:end] = books.queue[first:end][np.argsort(keys, kind="mergesort")]


@njit(cache=True, nogil=True)
def predict(job: int, books: ClusterBooks) -> None:
    """Predict the run time of an arriving job as the mean of its user's last two, at most its request."""
    user = books.users[books.jobs[job].user]
    books.jobs[job].estimate = books.jobs[job].request
    if user.former_run > 0:
        books.jobs[job].estimate = max(1, min(books.jobs[job].request, (user.last_run + user.former_run) // 2))


@njit(cache=True, nogil=True)
def record_run(job: int, books: ClusterBooks) -> None:
    """Record the run time of an ended job, for predictions of its user's next jobs."""
    user = books.jobs[job].user
    books.users[user].former_run = books.users[user].last_run
    books.users[user].last_run = books.jobs[job].run


@njit(cache=True, nogil=True)
def grow_estimate(job: int, books: ClusterBooks) -> None:
    """Extend an exceeded prediction by one step, up to the request."""
    step = min(books.jobs[job].corrections, CORRECTIONS_S.size - 2)
    books.jobs[job].corrections = step + 1
    grown = books.jobs[job].estimate - CORRECTIONS_S[step] + CORRECTIONS_S[step + 1]
    books.jobs[job].estimate = min(grown, books.jobs[job].request)


@njit(cache=True, nogil=True)
def watch_estimate(job: int, books: ClusterBooks) -> None:
    """Schedule the time at which a running job exceeds its estimate, if it does. Only predictions can be exceeded."""
    row = books.jobs[job]
    if row.estimate < row.run:
        books.state[OVERS] = push(
            books.over_times,
            books.over_jobs,
            books.jobs.sequence,
            books.state[OVERS],
            row.began + row.estimate - row.done,
            job,
        )


@njit(cache=True, nogil=True)
def correct(books: ClusterBooks, half_life: float) -> None:
    """Extend the estimate of the first job that exceeds it; its nodes become ready later than expected."""
    now, job = books.over_times[0], books.over_jobs[0]
    books.state[OVERS] = pop(books.over_times, books.over_jobs, books.jobs.sequence, books.state[OVERS])
    old_estimate = books.jobs[job].estimate
    grow_estimate(job, books)
    for pod in range(books.jobs[job].first_pod, books.jobs[job].first_pod + books.jobs[job].nodes):
        books.nodes[books.pods[pod].node].version += 1
    gpus = total_units(job, books) / UNITS_PER_GPU
    amount = (books.jobs[job].estimate - old_estimate) * gpus
    charge(books.users.usage, books.users.usage_at, half_life, books.jobs[job].user, amount, now)
    watch_estimate(job, books)


@njit(cache=True, nogil=True)
def start_job(job: int, chosen: Int64s, gpus: Int64s, books: ClusterBooks, half_life: float) -> None:
    """Start a waiting job on the chosen nodes. ``gpus``: the GPU to share, −1: any."""
    state, now = books.state, books.state[NOW]
    dequeue(job, books)
    for at in range(chosen.size):
        pod, node = books.jobs[job].first_pod + at, chosen[at]
        books.pods[pod].gpus = pick_gpus(books.jobs[job].demand, node, gpus[at], books)
        link(pod, node, books)
        change_node(pod, -1, books)
        refresh(node, books)
    if books.jobs[job].start == NOT_YET:
        books.jobs[job].start = now
    books.jobs[job].began = now
    books.jobs[job].attempts += 1
    books.jobs[job].sequence = state[STARTED]
    state[STARTED] += 1
    books.jobs[job].end = now + books.jobs[job].run - books.jobs[job].done
    state[ENDING] = push(books.end_times, books.end_jobs, books.jobs.sequence, state[ENDING], books.jobs[job].end, job)
    while books.jobs[job].estimate <= books.jobs[job].done:
        grow_estimate(job, books)
    watch_estimate(job, books)
    units = total_units(job, books)
    books.held_by_user[books.jobs[job].partition, books.jobs[job].user] += units
    left = books.jobs[job].estimate - books.jobs[job].done
    charge(
        books.users.usage, books.users.usage_at, half_life, books.jobs[job].user, left * (units / UNITS_PER_GPU), now
    )


@njit(cache=True, nogil=True)
def leave_nodes(job: int, books: ClusterBooks, half_life: float) -> None:
    """Release the resources of a running job."""
    now = books.state[NOW]
    for pod in range(books.jobs[job].first_pod, books.jobs[job].first_pod + books.jobs[job].nodes):
        node = books.pods[pod].node
        unlink(pod, books)
        change_node(pod, 1, books)
        refresh(node, books)
    units = total_units(job, books)
    books.held_by_user[books.jobs[job].partition, books.jobs[job].user] -= units
    unused = books.jobs[job].estimate - books.jobs[job].done - (now - books.jobs[job].began)
    charge(
        books.users.usage, books.users.usage_at, half_life, books.jobs[job].user, -unused * (units / UNITS_PER_GPU), now
    )
    books.partitions[books.jobs[job].partition].touched = True


@njit(cache=True, nogil=True)
def drop(times: Int64s, jobs: Int64s, size: int, job: int, books: ClusterBooks) -> int:
    """Remove a job from a heap; returns the new size. Rare, so the whole heap is searched."""
    place = 0
    while jobs[place] != job:
        place += 1
    # Move it to the top as if it were due first, then pop it.
    while place > 0:
        parent = (place - 1) >> 1
        times[place], jobs[place] = times[parent], jobs[parent]
        place = parent
    times[0], jobs[0] = NOT_YET, job
    return pop(times, jobs, books.jobs.sequence, size)


@njit(cache=True, nogil=True)
def evict(job: int, checkpoint: int, books: ClusterBooks, half_life: float) -> None:
    """Evict a running job: it waits again, and its work since the last checkpoint is lost (0: all of this attempt)."""
    state = books.state
    state[ENDING] = drop(books.end_times, books.end_jobs, state[ENDING], job, books)
    if books.jobs[job].estimate < books.jobs[job].run:
        state[OVERS] = drop(books.over_times, books.over_jobs, state[OVERS], job, books)
    leave_nodes(job, books, half_life)
    elapsed = books.state[NOW] - books.jobs[job].began
    saved = (elapsed // checkpoint) * checkpoint if checkpoint > 0 else 0
    books.jobs[job].done += saved
    books.jobs[job].lost += elapsed - saved
    books.sums[LOST_S] += (elapsed - saved) * float(total_units(job, books))
    books.jobs[job].end = NOT_YET
    enqueue(job, books)


@njit(cache=True, nogil=True)
def find_victim(priority: int, node: int, after: int, books: ClusterBooks) -> int:
    """The next pod on a node to evict after ``after``: lowest priority first, then latest start; NOBODY if there is none."""
    best = NOBODY
    pod = books.nodes[node].first_pod
    while pod != NOBODY:
        job = books.pods[pod].job
        is_lower = books.jobs[job].priority < priority
        is_later = after == NOBODY or _goes_before(books.pods[after].job, job, books)
        if is_lower and is_later and (best == NOBODY or _goes_before(job, books.pods[best].job, books)):
            best = pod
        pod = books.pods[pod].next
    return int(best)


@njit(cache=True, nogil=True)
def _goes_before(job: int, other: int, books: ClusterBooks) -> bool:
    return is_before(
        books.jobs[job].priority, -books.jobs[job].sequence, books.jobs[other].priority, -books.jobs[other].sequence
    )


@njit(cache=True, nogil=True)
def preemption_cost(job: int, node: int, checkpoint: int, row: Int64s, books: ClusterBooks) -> int:
    """GPU-unit-seconds of work lost by making room for one pod of the job on a node; NEVER if that is impossible."""
    demand = books.jobs[job].demand
    if books.nodes[node].closed > 0:
        return NEVER
    cpu, memory = books.nodes[node].cpu, books.nodes[node].memory
    row[:] = books.gpu_units[node]
    cost = 0
    pod = NOBODY
    while not fits(books.demands[demand], books.nodes[node], row, cpu, memory):
        pod = find_victim(books.jobs[job].priority, node, pod, books)
        if pod == NOBODY:
            return NEVER
        victim = books.pods[pod].job
        victim_demand = books.jobs[victim].demand
        cpu += books.demands[victim_demand].cpu
        memory += books.demands[victim_demand].memory
        units = units_on(books.demands[victim_demand].units, books.nodes[node].slices)
        for gpu in range(books.nodes[node].gpus):
            if (books.pods[pod].gpus >> gpu) & 1:
                row[gpu] += units
        elapsed = books.state[NOW] - books.jobs[victim].began
        lost = elapsed % checkpoint if checkpoint > 0 else elapsed
        # One more than the work lost, so that evicting nobody is always cheaper.
        cost += lost * total_units(victim, books) + 1
    return int(cost)
