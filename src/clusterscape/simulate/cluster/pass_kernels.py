"""Compiled event loop of the GPU cluster: the next events, and scheduling passes over the queues.

`step` runs until nodes must be chosen or a queue must be ordered, which happens in Python: placements and policies are plain
Python files. Importing this imports numba.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from clusterscape.model.arrays import Int64s
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, longest_allowed, pop
from clusterscape.simulate.cluster.job_kernels import (
    ARRIVED,
    BLOCKED_S,
    BY_QUEUE,
    CANDIDATES,
    CURSOR,
    ENDING,
    FRAGMENT,
    FRAGMENT_S,
    HEAD,
    IDLE_S,
    IS_EXTRA,
    JOB,
    NOW,
    OUTAGE,
    OVERS,
    PARTITION,
    PASS,
    PHASE,
    RESERVED,
    START,
    SURPLUS,
    TRIED,
    correct,
    enqueue,
    evict,
    find_victim,
    leave_nodes,
    predict,
    preemption_cost,
    record_run,
    sort_queue,
    start_job,
    total_units,
)
from clusterscape.simulate.cluster.kernels import (
    NOBODY,
    ClusterBooks,
    find_ready,
    fits,
    free_at,
    pick_gpus,
    refresh,
    units_on,
)

# What the caller of `step` must do next.
OVER, CHOOSE, ORDER = range(3)
# Phases of a scheduling pass.
BETWEEN, HEADS, FILLING = range(3)
# ClusterRules.fill: which jobs may overtake the first job that does not fit.
NO_ONE, WHO_FITS, WHO_KEEPS_PROMISE = range(3)
# Kinds of outages, in the order in which those of one second are processed.
FAIL, DRAIN, OPEN = range(3)


class ClusterRules(NamedTuple):
    """The choices of a scenario as numbers; see `Semantics`. ``depth``: candidates tried behind a head, 0: all.

    ``checkpoint``: seconds between checkpoints, 0: none.
    """

    fill: int
    uses_extra: bool
    is_strict: bool
    is_fixed: bool
    base: int
    share: float
    whole_at: float
    is_capped: bool
    is_queue_kept: bool
    is_dynamic: bool
    preempts: bool
    checkpoint: int
    half_life: float
    depth: int
    tries_by: int
    is_predicting: bool


@njit(cache=True, nogil=True)
def process_outage(rules: ClusterRules, books: ClusterBooks) -> None:
    """Take a node out of service or return it. Its jobs are evicted if it fails, and keep running if it drains."""
    at = books.state[OUTAGE]
    books.state[OUTAGE] += 1
    node = books.outages[at].node
    partition = books.nodes[node].partition
    books.partitions[partition].touched = True
    if books.outages[at].kind == OPEN:
        books.nodes[node].closed -= 1
        if books.nodes[node].closed == 0:
            books.partitions[partition].free_units += books.nodes[node].free_units
            refresh(node, books)
        return
    books.nodes[node].closed += 1
    if books.nodes[node].closed == 1:
        books.partitions[partition].free_units -= books.nodes[node].free_units
        refresh(node, books)
    while books.outages[at].kind == FAIL and books.nodes[node].first_pod != NOBODY:
        job = books.pods[books.nodes[node].first_pod].job
        evict(job, rules.checkpoint, books, rules.half_life)


@njit(cache=True, nogil=True)
def process_next_second(rules: ClusterRules, books: ClusterBooks) -> bool:
    """Process all events of the next second: ends, outages, arrivals. False if no event is left."""
    state, count = books.state, books.jobs.size
    now = NEVER
    if state[ENDING] > 0:
        now = min(now, books.end_times[0])
    if state[ARRIVED] < count:
        now = min(now, books.jobs[state[ARRIVED]].submit)
    if state[OUTAGE] < books.outages.size and (
        state[ENDING] > 0 or state[ARRIVED] < count or books.partitions.queued.sum() > 0
    ):
        now = min(now, books.outages[state[OUTAGE]].time)
    if now == NEVER:
        return False
    span = float(now - state[NOW]) if state[NOW] != NOT_YET else 0.0
    books.sums[FRAGMENT_S] += books.sums[FRAGMENT] * span
    books.sums[IDLE_S] += books.partitions.free_units.sum() * span
    books.sums[BLOCKED_S] += books.partitions.blocked_units.sum() * span
    state[NOW] = now
    # Corrections up to this second come first; they do not trigger a scheduling pass.
    while state[OVERS] > 0 and books.over_times[0] <= now:
        correct(books, rules.half_life)
    while state[ENDING] > 0 and books.end_times[0] == now:
        job = books.end_jobs[0]
        state[ENDING] = pop(books.end_times, books.end_jobs, books.jobs.sequence, state[ENDING])
        leave_nodes(job, books, rules.half_life)
        record_run(job, books)
    while state[OUTAGE] < books.outages.size and books.outages[state[OUTAGE]].time <= now:
        process_outage(rules, books)
    while state[ARRIVED] < count and books.jobs[state[ARRIVED]].submit == now:
        if rules.is_predicting:
            predict(state[ARRIVED], books)
        enqueue(state[ARRIVED], books)
        state[ARRIVED] += 1
    return True


@njit(cache=True, nogil=True)
def reserve(head: int, books: ClusterBooks) -> int:
    """When the head can start by the estimates of running jobs; NEVER if too few nodes are in service."""
    demand, partition = books.jobs[head].demand, books.jobs[head].partition
    members = books.members[books.partitions[partition].first_node : books.partitions[partition].end_node]
    is_new = books.partitions[partition].ready_demand != demand
    books.partitions[partition].ready_demand = demand
    row = np.empty(books.gpu_units.shape[1], np.int64)
    times = np.empty(members.size, np.int64)
    for at in range(members.size):
        node = members[at]
        if is_new or books.nodes[node].ready_version != books.nodes[node].version:
            books.nodes[node].ready = find_ready(demand, node, row, books)
            books.nodes[node].ready_version = books.nodes[node].version
        times[at] = books.nodes[node].ready
    needed = books.jobs[head].nodes
    if needed > members.size:
        return NEVER
    return int(max(books.state[NOW], np.partition(times, needed - 1)[needed - 1]))


@njit(cache=True, nogil=True)
def list_candidates(job: int, books: ClusterBooks) -> None:
    """List the nodes that can host a pod of the job now."""
    partition, count = books.jobs[job].partition, 0
    hosts = books.hosts[books.jobs[job].demand]
    for at in range(books.partitions[partition].first_node, books.partitions[partition].end_node):
        node = books.members[at]
        if hosts[node]:
            books.candidates[count] = node
            count += 1
    books.state[CANDIDATES], books.state[JOB], books.state[IS_EXTRA] = count, job, 0


@njit(cache=True, nogil=True)
def mark_harmful(job: int, head: int, start: int, books: ClusterBooks) -> int:
    """Mark candidates that would not be ready for the head at ``start`` with the job on them; returns the number of the others.

    Sets SURPLUS to the number of ready nodes that the head does not need.
    """
    partition, demand = books.jobs[job].partition, books.jobs[head].demand
    ready = 0
    for at in range(books.partitions[partition].first_node, books.partitions[partition].end_node):
        ready += books.nodes[books.members[at]].ready <= start
    books.state[SURPLUS] = ready - books.jobs[head].nodes
    row = np.empty(books.gpu_units.shape[1], np.int64)
    job_demand, harmless = books.jobs[job].demand, 0
    for at in range(books.state[CANDIDATES]):
        node = books.candidates[at]
        books.harmful[at] = False
        if books.nodes[node].ready <= start:
            gpus = pick_gpus(job_demand, node, NOBODY, books)
            cpu, memory = free_at(node, start, row, books)
            units = units_on(books.demands[job_demand].units, books.nodes[node].slices)
            for gpu in range(books.nodes[node].gpus):
                if (gpus >> gpu) & 1:
                    row[gpu] -= units
            cpu, memory = cpu - books.demands[job_demand].cpu, memory - books.demands[job_demand].memory
            books.harmful[at] = not fits(books.demands[demand], books.nodes[node], row, cpu, memory)
        harmless += not books.harmful[at]
    return harmless


@njit(cache=True, nogil=True)
def preempt_for(job: int, rules: ClusterRules, books: ClusterBooks) -> bool:
    """Evict jobs of lower priority so that the job can start, with the least work lost; False if that is not possible."""
    partition = books.jobs[job].partition
    members = books.members[books.partitions[partition].first_node : books.partitions[partition].end_node]
    row = np.empty(books.gpu_units.shape[1], np.int64)
    costs = np.empty(members.size, np.int64)
    for at in range(members.size):
        costs[at] = preemption_cost(job, members[at], rules.checkpoint, row, books)
    needed = books.jobs[job].nodes
    cheapest = np.argsort(costs, kind="mergesort")
    if needed > members.size or costs[cheapest[needed - 1]] == NEVER:
        return False
    for at in range(needed):
        node = members[cheapest[at]]
        while not books.hosts[books.jobs[job].demand, node]:
            victim = find_first_victim(job, node, books)
            evict(victim, rules.checkpoint, books, rules.half_life)
    return True


@njit(cache=True, nogil=True)
def find_first_victim(job: int, node: int, books: ClusterBooks) -> int:
    """The first job on a node to evict for ``job``."""
    return int(books.pods[find_victim(books.jobs[job].priority, node, NOBODY, books)].job)


@njit(cache=True, nogil=True)
def block(head: int, rules: ClusterRules, books: ClusterBooks) -> None:
    """Make the first job that does not fit the head, and give it a promise."""
    state, partition = books.state, books.jobs[head].partition
    state[HEAD], state[RESERVED], state[TRIED] = head, 0, 0
    state[PASS] += 1
    is_new = books.partitions[partition].head != head
    if is_new or not rules.is_queue_kept:
        # Once per pass, as in the batch engines: candidates that start in the same pass do not change it.
        books.partitions[partition].queue_at_block = books.partitions[partition].queued
    if rules.fill != WHO_FITS and is_new:
        books.partitions[partition].head = head
        start = reserve(head, books)
        if books.jobs[head].promise == NOT_YET and start != NEVER:
            books.jobs[head].promise = start


@njit(cache=True, nogil=True)
def find_longest(head: int, rules: ClusterRules, books: ClusterBooks) -> int:
    """The longest run time of a candidate that respects the promise to the head."""
    state, partition = books.state, books.jobs[head].partition
    if state[START] == NEVER:
        return NEVER
    start = books.jobs[head].promise if rules.is_fixed and books.jobs[head].promise != NOT_YET else state[START]
    share = rules.share
    if rules.whole_at > 0.0:
        part = books.partitions[partition].queue_at_block / rules.whole_at
        share *= min(part, 1.0) if rules.is_capped else part
    return longest_allowed(
        start, state[NOW], books.jobs[head].submit, books.jobs[head].estimate, share, rules.base, rules.is_strict
    )


@njit(cache=True, nogil=True)
def mark_without_extra(job: int, books: ClusterBooks) -> None:
    """Record that this pass has no extra room next to the promise for jobs of the same demand with as many nodes or more."""
    demand, nodes = books.jobs[job].demand, books.jobs[job].nodes
    if books.demands[demand].without_extra == books.state[PASS]:
        nodes = min(nodes, books.demands[demand].without_nodes)
    books.demands[demand].without_extra, books.demands[demand].without_nodes = books.state[PASS], nodes


@njit(cache=True, nogil=True)
def may_overtake(job: int, rules: ClusterRules, books: ClusterBooks) -> bool:
    """Whether a candidate that fits may start without breaking the promise; then lists its nodes."""
    state, head = books.state, books.state[HEAD]
    if rules.fill == WHO_KEEPS_PROMISE:
        if state[RESERVED] == 0:
            state[START] = reserve(head, books)
            state[RESERVED] = 1
        if books.jobs[job].estimate - books.jobs[job].done > find_longest(head, rules, books):
            demand = books.demands[books.jobs[job].demand]
            is_tried = demand.without_extra == state[PASS] and books.jobs[job].nodes >= demand.without_nodes
            if not rules.uses_extra or is_tried:
                return False
            reserve(head, books)  # includes jobs that started since the last pass
            list_candidates(job, books)
            harmless = mark_harmful(job, head, state[START], books)
            state[IS_EXTRA] = 1
            if harmless < books.jobs[job].nodes and state[SURPLUS] < 1:
                mark_without_extra(job, books)
                state[JOB] = NOBODY
                return False
            return True
    list_candidates(job, books)
    return True


@njit(cache=True, nogil=True)
def scan_queue(rules: ClusterRules, books: ClusterBooks) -> bool:
    """Continue the pass over a partition's queue; True if a job may start, False when the pass is done."""
    state, part = books.state, books.partitions[books.state[PARTITION]]
    while state[CURSOR] < part.queued:
        job = books.queue[part.first_queue + state[CURSOR]]
        row = books.jobs[job]
        demand = books.demands[row.demand]
        units = row.nodes * demand.gpus * demand.units
        if part.user_units > 0 and books.held_by_user[row.partition, row.user] + units > part.user_units:
            state[CURSOR] += 1  # the user is at the limit: other users' jobs may overtake
            continue
        can_start = demand.hosting >= row.nodes
        if state[PHASE] == HEADS:
            if can_start or (rules.preempts and preempt_for(job, rules, books)):
                list_candidates(job, books)
                return True
            block(job, rules, books)
            if rules.fill == NO_ONE:
                return False
            state[PHASE] = FILLING
            if rules.tries_by != BY_QUEUE:
                sort_queue(part.first_queue + state[CURSOR] + 1, part.first_queue + part.queued, rules.tries_by, books)
        else:
            state[TRIED] += 1
            if 0 < rules.depth < state[TRIED]:
                return False
            if can_start and may_overtake(job, rules, books):
                return True
        state[CURSOR] += 1
    return False


@njit(cache=True, nogil=True)
def step(rules: ClusterRules, books: ClusterBooks, chosen: Int64s, gpus: Int64s, progress: Int64s) -> int:
    """Apply the last choice (no node: the job cannot start), then run until the next choice or the end."""
    state = books.state
    if state[JOB] != NOBODY:
        job, state[JOB] = state[JOB], NOBODY
        if chosen.size:
            start_job(job, chosen, gpus, books, rules.half_life)
        else:
            mark_without_extra(job, books)
            state[CURSOR] += 1
    while True:
        if state[PHASE] == BETWEEN:
            partition = NOBODY
            for at in range(books.partitions.size):
                if books.partitions[at].touched:
                    partition = at
                    break
            if partition == NOBODY:
                progress[0] = state[ARRIVED]
                if not process_next_second(rules, books):
                    return OVER
                continue
            books.partitions[partition].touched = False
            books.partitions[partition].blocked_units = 0
            state[PARTITION], state[CURSOR], state[HEAD], state[PHASE] = partition, 0, NOBODY, HEADS
            if rules.is_dynamic and books.partitions[partition].queued > 1:
                return ORDER
        if scan_queue(rules, books):
            return CHOOSE
        head = state[HEAD]
        if head != NOBODY and rules.tries_by != BY_QUEUE and not rules.is_dynamic:
            part = books.partitions[state[PARTITION]]
            sort_queue(part.first_queue, part.first_queue + part.queued, BY_QUEUE, books)
        if head != NOBODY:
            # Enough GPUs are idle for the head, but on the wrong nodes.
            units = total_units(head, books)
            partition = state[PARTITION]
            books.partitions[partition].blocked_units = (
                units if 0 < units <= books.partitions[partition].free_units else 0
            )
        state[PHASE] = BETWEEN
