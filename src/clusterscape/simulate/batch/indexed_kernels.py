"""The fast simulation: queue orders that do not change with time, backfilling around one reservation (EASY and its relaxations).

Waiting jobs are leaves of a tree in the order of candidates; each node has the smallest size and the shortest estimate below it,
so a long queue need not be traversed. Importing this imports numba. Functions with a ``books`` argument are inlined: passing it
costs more than their work.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from clusterscape.model.arrays import Bools, Int64s
from clusterscape.simulate.batch.kernels import (
    NEVER,
    NOT_YET,
    insert_running,
    longest_allowed,
    njit_without_refcount,
    pop,
    push,
    remove_running,
    reserve,
)


class BatchRows(NamedTuple):
    """The jobs in submit order. ``estimate`` ≥ ``run`` ≥ 1; ``tested``: the run time that backfilling assumes for a candidate.

    ``head_rank``: a job's rank in queue order; ``place``: its rank in the order in which candidates are tried; ``job_at``: the
    inverse of ``place``.
    """

    submit: Int64s
    run: Int64s
    estimate: Int64s
    tested: Int64s
    processors: Int64s
    head_rank: Int64s
    place: Int64s
    job_at: Int64s


class BatchRules(NamedTuple):
    """The semantics as numbers. ``promises``: whether the head of the queue gets a reservation.

    A promise is relaxed by ``share`` of the base, which applies fully at a queue length of ``whole_at`` (0: always).
    """

    total: int
    is_batch: bool
    is_submit_first: bool
    is_free_at_estimate: bool
    uses_extra: bool
    is_strict: bool
    is_fixed: bool
    keeps_head: bool
    backfills: bool
    promises: bool
    base: int
    share: float
    whole_at: float
    is_capped: bool
    is_queue_kept: bool


class BatchBooks(NamedTuple):
    """Mutable state: decisions, heap of ends, running jobs by estimated end, heap of queue heads, tree of candidates."""

    starts: Int64s
    promises: Int64s
    sequence: Int64s
    is_released: Bools
    end_times: Int64s
    end_jobs: Int64s
    run_ends: Int64s
    run_jobs: Int64s
    head_ranks: Int64s
    head_jobs: Int64s
    sizes: Int64s
    estimates: Int64s
    state: Int64s


# Indices of BatchBooks.state. START and EXTRA belong to the head PROMISED. VALID: they are up to date; SETTLED: nothing became
# free since the last pass; LEAVES: 0 without backfilling; BLOCKED: queue length when that head blocked.
(
    FREE,
    QUEUED,
    LOW,
    HIGH,
    ENDING,
    STARTED,
    HEADS,
    HELD,
    PROMISED,
    START,
    EXTRA,
    VALID,
    SETTLED,
    LEAVES,
    ARRIVED,
    BLOCKED,
) = range(16)


@njit_without_refcount
def set_leaf(sizes: Int64s, estimates: Int64s, leaf: int, size: int, estimate: int) -> None:
    """Write one leaf and update the nodes above it."""
    sizes[leaf] = size
    estimates[leaf] = estimate
    node = leaf >> 1
    while node > 0:
        size = min(sizes[2 * node], sizes[2 * node + 1])
        estimate = min(estimates[2 * node], estimates[2 * node + 1])
        if sizes[node] == size and estimates[node] == estimate:
            break
        sizes[node] = size
        estimates[node] = estimate
        node >>= 1


@njit_without_refcount
def find_candidate(
    sizes: Int64s, estimates: Int64s, leaves: int, place: int, free: int, longest: int, extra: int
) -> int:
    """First place from ``place`` on whose job fits and is short enough, or fits next to the reservation; -1 if there is none."""
    node = leaves + place if place else 1
    narrow = min(free, extra)
    while True:
        fits = sizes[node] <= narrow or (sizes[node] <= free and estimates[node] <= longest)
        while fits and node < leaves:
            node *= 2
            fits = sizes[node] <= narrow or (sizes[node] <= free and estimates[node] <= longest)
            if not fits:
                node += 1
                fits = sizes[node] <= narrow or (sizes[node] <= free and estimates[node] <= longest)
        if fits:
            return int(node - leaves)
        while node & 1:
            node >>= 1
        if node == 0:
            return -1
        node += 1


@njit(cache=True, nogil=True)
def open_books(count: int, total: int, backfills: bool) -> BatchBooks:
    """The initial state."""
    leaves = 0
    if backfills:
        leaves = 1
        while leaves < count:
            leaves *= 2
    room = 2 * min(count, total) + 16
    state = np.zeros(16, np.int64)
    state[FREE] = total
    state[HELD] = state[PROMISED] = -1
    state[LEAVES] = leaves
    return BatchBooks(
        np.full(count, NOT_YET),
        np.full(count, NOT_YET),
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.empty(count + 1, np.int64),
        np.empty(count + 1, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(count + 1, np.int64),
        np.empty(count + 1, np.int64),
        np.full(2 * max(leaves, 1), NEVER),
        np.full(2 * max(leaves, 1), NEVER),
        state,
    )


@njit(cache=True, nogil=True, inline="always")
def begin(job: int, now: int, rows: BatchRows, books: BatchBooks) -> None:
    """Start a job that is not in the queue (any more)."""
    state, low = books.state, books.state[LOW]
    books.starts[job] = now
    books.sequence[job] = state[STARTED]
    state[STARTED] += 1
    state[FREE] -= rows.processors[job]
    state[ENDING] = push(books.end_times, books.end_jobs, books.sequence, state[ENDING], now + rows.run[job], job)
    if state[HIGH] == books.run_ends.size:
        for at in range(low, state[HIGH]):
            books.run_ends[at - low] = books.run_ends[at]
            books.run_jobs[at - low] = books.run_jobs[at]
        state[HIGH] -= low
        state[LOW] = 0
    state[HIGH] = insert_running(books.run_ends, books.run_jobs, state[LOW], state[HIGH], now + rows.estimate[job], job)


@njit(cache=True, nogil=True, inline="always")
def dequeue(job: int, now: int, rows: BatchRows, books: BatchBooks) -> None:
    """Start a waiting job."""
    begin(job, now, rows, books)
    books.state[QUEUED] -= 1
    if books.state[LEAVES]:
        set_leaf(books.sizes, books.estimates, books.state[LEAVES] + rows.place[job], NEVER, NEVER)


@njit(cache=True, nogil=True, inline="always")
def find_head(rows: BatchRows, books: BatchBooks, keeps_head: bool) -> int:
    """The first waiting job, or the previous head if heads are kept. The queue must not be empty."""
    held = books.state[HELD]
    if keeps_head and held >= 0 and books.starts[held] == NOT_YET:
        return int(held)
    while books.starts[books.head_jobs[0]] != NOT_YET:
        books.state[HEADS] = pop(books.head_ranks, books.head_jobs, rows.head_rank, books.state[HEADS])
    books.state[HELD] = books.head_jobs[0]
    return int(books.head_jobs[0])


@njit(cache=True, nogil=True, inline="always")
def process_end(now: int, rows: BatchRows, books: BatchBooks) -> None:
    """Process the first job of the heap of ends."""
    state, job = books.state, books.end_jobs[0]
    state[ENDING] = pop(books.end_times, books.end_jobs, books.sequence, state[ENDING])
    estimated = books.starts[job] + rows.estimate[job]
    if not books.is_released[job]:
        state[HIGH] = remove_running(books.run_ends, books.run_jobs, state[LOW], state[HIGH], estimated, job)
        state[FREE] += rows.processors[job]
    if estimated != now:
        state[VALID] = 0
    state[SETTLED] = 0


@njit(cache=True, nogil=True, inline="always")
def release_due(now: int, rows: BatchRows, books: BatchBooks) -> None:
    """Free the processors of jobs at their estimated end, before their end is processed."""
    state = books.state
    while state[LOW] < state[HIGH] and books.run_ends[state[LOW]] <= now:
        job = books.run_jobs[state[LOW]]
        books.is_released[job] = True
        state[FREE] += rows.processors[job]
        state[LOW] += 1
        state[SETTLED] = 0


@njit(cache=True, nogil=True, inline="always")
def enqueue(job: int, rows: BatchRows, books: BatchBooks) -> None:
    """Add an arrived job to the queue."""
    state = books.state
    state[HEADS] = push(books.head_ranks, books.head_jobs, rows.head_rank, state[HEADS], rows.head_rank[job], job)
    state[QUEUED] += 1
    if state[LEAVES]:
        set_leaf(books.sizes, books.estimates, state[LEAVES] + rows.place[job], rows.processors[job], rows.tested[job])


@njit(cache=True, nogil=True, inline="always")
def promise(head: int, rows: BatchRows, books: BatchBooks) -> None:
    """Compute the reservation of the head by the current estimates."""
    state = books.state
    state[START], state[EXTRA] = reserve(
        rows.processors[head], state[FREE], books.run_ends, books.run_jobs, rows.processors, state[LOW], state[HIGH]
    )
    state[VALID] = 1
    if books.promises[head] == NOT_YET:
        books.promises[head] = state[START]


@njit(cache=True, nogil=True, inline="always")
def find_longest(now: int, head: int, rows: BatchRows, rules: BatchRules, books: BatchBooks) -> int:
    """The longest run time of a candidate that respects the promise to the head."""
    if not rules.promises:
        return NEVER
    share = rules.share
    if rules.whole_at > 0.0:
        queued = books.state[BLOCKED] if rules.is_queue_kept else books.state[QUEUED]
        part = queued / rules.whole_at
        share *= min(part, 1.0) if rules.is_capped else part
    return longest_allowed(
        books.state[START], now, rows.submit[head], rows.estimate[head], share, rules.base, rules.is_strict
    )


@njit(cache=True, nogil=True, inline="always")
def take_extra(job: int, now: int, longest: int, rows: BatchRows, rules: BatchRules, books: BatchBooks) -> None:
    """Account for a candidate that is about to start: if it runs past the promise, it uses extra processors.

    If that is allowed only because the promise is relaxed, the promise moves, too.
    """
    state = books.state
    if rows.tested[job] > longest:
        state[EXTRA] -= rows.processors[job]
    elif rules.share > 0.0 and now + rows.estimate[job] > state[START]:
        state[EXTRA] -= rows.processors[job]
        state[VALID] = 0


@njit(cache=True, nogil=True, inline="always")
def backfill(now: int, head: int, rows: BatchRows, rules: BatchRules, books: BatchBooks) -> None:
    """Start every candidate that respects the promise."""
    state, leaves = books.state, books.state[LEAVES]
    longest = find_longest(now, head, rows, rules, books)
    place = 0
    while place < leaves:
        extra = state[EXTRA] if rules.uses_extra else 0
        place = find_candidate(books.sizes, books.estimates, leaves, place, state[FREE], longest, extra)
        if place < 0:
            break
        job = rows.job_at[place]
        take_extra(job, now, longest, rows, rules, books)
        dequeue(job, now, rows, books)
        place += 1


@njit(cache=True, nogil=True, inline="always")
def schedule(now: int, rows: BatchRows, rules: BatchRules, books: BatchBooks) -> None:
    """One scheduling pass: start heads in order while they fit, then backfill around the promise to the first that does not."""
    state = books.state
    if state[QUEUED] == 0:
        return
    head = find_head(rows, books, rules.keeps_head)
    while rows.processors[head] <= state[FREE]:
        dequeue(head, now, rows, books)
        state[VALID] = 0  # it may have overtaken the job that holds the promise
        if state[QUEUED] == 0:
            return
        head = find_head(rows, books, rules.keeps_head)
    if head != state[PROMISED]:
        promise(head, rows, books)
        state[PROMISED], state[BLOCKED] = head, state[QUEUED]
    state[SETTLED] = 1
    if state[LEAVES] == 0 or books.sizes[1] > state[FREE]:
        return
    if not state[VALID] and not rules.is_fixed:
        promise(head, rows, books)
    backfill(now, head, rows, rules, books)


@njit(cache=True, nogil=True, inline="always")
def arrive(job: int, now: int, rows: BatchRows, rules: BatchRules, books: BatchBooks) -> None:
    """Process a single arrival. If nothing became free since the last pass, only this job can start."""
    state = books.state
    size = rows.processors[job]
    if state[QUEUED] == 0 and size <= state[FREE]:
        begin(job, now, rows, books)
        return
    is_settled = state[SETTLED] == 1 and state[QUEUED] > 0 and (rules.whole_at == 0.0 or rules.is_queue_kept)
    if not is_settled or (rows.head_rank[job] < rows.head_rank[state[PROMISED]] and not rules.keeps_head):
        enqueue(job, rows, books)
        schedule(now, rows, rules, books)
        return
    if state[LEAVES] and size <= state[FREE]:
        if not state[VALID] and not rules.is_fixed:
            promise(state[PROMISED], rows, books)
        longest = find_longest(now, state[PROMISED], rows, rules, books)
        if rows.tested[job] <= longest or (rules.uses_extra and size <= state[EXTRA]):
            take_extra(job, now, longest, rows, rules, books)
            begin(job, now, rows, books)
            return
    enqueue(job, rows, books)


def simulate_indexed(rows: BatchRows, rules: BatchRules, progress: Int64s) -> tuple[Int64s, Int64s]:
    """Start and first promised start of each job (NOT_YET: it never held a reservation). ``progress[0]`` counts events."""
    books = open_books(rows.submit.size, rules.total, rules.backfills)
    _run(rows, rules, books, progress)
    return books.starts, books.promises


@njit_without_refcount
def _run(rows: BatchRows, rules: BatchRules, books: BatchBooks, progress: Int64s) -> None:
    """Run from the first event to the last."""
    count, state = rows.submit.size, books.state
    while state[ARRIVED] < count or state[ENDING] > 0:
        end = books.end_times[0] if state[ENDING] > 0 else NEVER
        arrival = rows.submit[state[ARRIVED]] if state[ARRIVED] < count else NEVER
        now = min(end, arrival)
        is_arrival = arrival < end or (arrival == end and rules.is_submit_first)
        progress[0] += 1
        if rules.is_batch or not is_arrival:
            while state[ENDING] > 0 and books.end_times[0] == now:
                process_end(now, rows, books)
                if not rules.is_batch:
                    break
        if rules.is_free_at_estimate:
            release_due(now, rows, books)
        if not rules.is_batch and is_arrival:
            state[ARRIVED] += 1
            arrive(state[ARRIVED] - 1, now, rows, rules, books)
            continue
        while rules.is_batch and state[ARRIVED] < count and rows.submit[state[ARRIVED]] == now:
            enqueue(state[ARRIVED], rows, books)
            state[ARRIVED] += 1
        schedule(now, rows, rules, books)
