"""The general simulation: queue orders and predicted estimates that change with time. The queue is a plain list.

It runs from one scheduling pass to the next, so that a policy can order the queue in between. Importing this imports numba.
"""

from typing import NamedTuple

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.batch.indexed_kernels import (
    ARRIVED,
    BLOCKED,
    ENDING,
    EXTRA,
    FREE,
    HELD,
    HIGH,
    LOW,
    PROMISED,
    QUEUED,
    VALID,
    BatchBooks,
    BatchRows,
    BatchRules,
    begin,
    find_longest,
    process_end,
    promise,
    release_due,
    take_extra,
)
from clusterscape.simulate.batch.kernels import (
    NEVER,
    NOT_YET,
    charge,
    insert_running,
    njit_without_refcount,
    pop,
    push,
    remove_running,
)

CORRECTIONS_S = np.array([0, 60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000], dtype=np.int64)
"""Total growth of an exceeded prediction after each correction (Tsafrir, Etsion & Feitelson 2007, as in pyss)."""

# Indices of Lists.state.
OVERS, TAILS = 0, 1
# Lists.tries_by: the order in which candidates are tried.
BY_PLACE, BY_ESTIMATE, BY_AREA = 0, 1, 2


class Lists(NamedTuple):
    """Waiting jobs in queue order and in the order of candidates; state of predictions and fair share.

    ``predictions``: jobs × corrections, of a model; no columns: from the user's last two jobs.
    """

    queue: Int64s
    tail: Int64s
    request: Int64s
    over_times: Int64s
    over_jobs: Int64s
    corrections: Int64s
    user: Int64s
    last_run: Int64s
    former_run: Int64s
    predictions: Int64s
    usage: Float64s
    usage_at: Int64s
    half_life: float
    is_predicting: bool
    tries_by: int
    state: Int64s


@njit_without_refcount
def enqueue_listed(job: int, rows: BatchRows, books: BatchBooks, lists: Lists) -> None:
    """Add an arrived job to the lists, with a prediction of the model, or from its user's last two jobs."""
    user = lists.user[job]
    if lists.is_predicting:
        rows.estimate[job] = lists.request[job]
        predicted = lists.predictions[job, 0] if lists.predictions.shape[1] > 0 else 0
        if predicted == 0 and lists.former_run[user] > 0:
            predicted = (lists.last_run[user] + lists.former_run[user]) // 2
        if predicted > 0:
            rows.estimate[job] = min(lists.request[job], predicted)
        rows.tested[job] = rows.estimate[job]
    queued = books.state[QUEUED]
    place = queued
    while place > 0 and rows.head_rank[lists.queue[place - 1]] > rows.head_rank[job]:
        lists.queue[place] = lists.queue[place - 1]
        place -= 1
    lists.queue[place] = job
    place = queued
    while place > 0 and _is_tried_before(job, lists.tail[place - 1], rows, lists.tries_by):
        lists.tail[place] = lists.tail[place - 1]
        place -= 1
    lists.tail[place] = job
    books.state[QUEUED] += 1


@njit_without_refcount
def _is_tried_before(job: int, other: int, rows: BatchRows, tries_by: int) -> bool:
    if tries_by == BY_ESTIMATE:
        return bool(rows.tested[job] < rows.tested[other])
    if tries_by == BY_AREA:
        return bool(rows.tested[job] * rows.processors[job] < rows.tested[other] * rows.processors[other])
    return bool(rows.place[job] < rows.place[other])


@njit_without_refcount
def correct(now: int, rows: BatchRows, books: BatchBooks, lists: Lists) -> None:
    """Extend the prediction of a running job that has exceeded it, up to its request."""
    job = lists.over_jobs[0]
    lists.state[OVERS] = pop(lists.over_times, lists.over_jobs, books.sequence, lists.state[OVERS])
    state = books.state
    state[HIGH] = remove_running(books.run_ends, books.run_jobs, state[LOW], state[HIGH], now, job)
    step = min(lists.corrections[job], CORRECTIONS_S.size - 2)
    lists.corrections[job] = step + 1
    former = rows.estimate[job]
    predicted = lists.predictions[job, step + 1] if step + 1 < lists.predictions.shape[1] else 0
    if predicted <= former:
        predicted = former - CORRECTIONS_S[step] + CORRECTIONS_S[step + 1]
    rows.estimate[job] = min(predicted, lists.request[job])
    amount = float((rows.estimate[job] - former) * rows.processors[job])
    charge(lists.usage, lists.usage_at, lists.half_life, lists.user[job], amount, now)
    estimated = books.starts[job] + rows.estimate[job]
    state[HIGH] = insert_running(books.run_ends, books.run_jobs, state[LOW], state[HIGH], estimated, job)
    state[VALID] = 0
    if rows.estimate[job] < rows.run[job]:
        lists.state[OVERS] = push(lists.over_times, lists.over_jobs, books.sequence, lists.state[OVERS], estimated, job)


@njit_without_refcount
def finish_job(now: int, rows: BatchRows, books: BatchBooks, lists: Lists) -> None:
    """Process the first job of the heap of ends: record its run time, correct its user's usage."""
    job = books.end_jobs[0]
    user = lists.user[job]
    lists.former_run[user] = lists.last_run[user]
    lists.last_run[user] = rows.run[job]
    amount = float((rows.run[job] - rows.estimate[job]) * rows.processors[job])
    charge(lists.usage, lists.usage_at, lists.half_life, user, amount, now)
    process_end(now, rows, books)


@njit_without_refcount
def advance(rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists) -> int:
    """Process the next events; returns their time, or NEVER if none is left. A scheduling pass is due afterwards."""
    state, count = books.state, rows.submit.size
    end = books.end_times[0] if state[ENDING] > 0 else NEVER
    arrival = rows.submit[state[ARRIVED]] if state[ARRIVED] < count else NEVER
    now = min(end, arrival)
    if now == NEVER:
        return int(now)
    # Corrections up to this second come first; they do not trigger a scheduling pass.
    while lists.state[OVERS] > 0 and lists.over_times[0] <= now:
        correct(lists.over_times[0], rows, books, lists)
    is_arrival = arrival < end or (arrival == end and rules.is_submit_first)
    if rules.is_batch or not is_arrival:
        while state[ENDING] > 0 and books.end_times[0] == now:
            finish_job(now, rows, books, lists)
            if not rules.is_batch:
                break
    if rules.is_free_at_estimate:
        release_due(now, rows, books)
    if rules.is_batch or is_arrival:
        while state[ARRIVED] < count and rows.submit[state[ARRIVED]] == now:
            enqueue_listed(state[ARRIVED], rows, books, lists)
            state[ARRIVED] += 1
            if not rules.is_batch:
                break
    return int(now)


@njit_without_refcount
def launch(job: int, now: int, rows: BatchRows, books: BatchBooks, lists: Lists) -> None:
    """Start a waiting job."""
    begin(job, now, rows, books)
    amount = float(rows.estimate[job] * rows.processors[job])
    charge(lists.usage, lists.usage_at, lists.half_life, lists.user[job], amount, now)
    if lists.is_predicting and rows.estimate[job] < rows.run[job]:
        lists.state[OVERS] = push(
            lists.over_times, lists.over_jobs, books.sequence, lists.state[OVERS], now + rows.estimate[job], job
        )


@njit_without_refcount
def drop_started(books: BatchBooks, lists: Lists) -> None:
    """Remove started jobs from both lists."""
    queued = books.state[QUEUED]
    queue_length = tail_length = 0
    for at in range(queued):
        if books.starts[lists.queue[at]] == NOT_YET:
            lists.queue[queue_length] = lists.queue[at]
            queue_length += 1
        if books.starts[lists.tail[at]] == NOT_YET:
            lists.tail[tail_length] = lists.tail[at]
            tail_length += 1
    books.state[QUEUED] = queue_length


@njit_without_refcount
def start_heads(now: int, rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists) -> int:
    """Start jobs in order while they fit; returns the first that does not fit, or -1."""
    state, queued = books.state, books.state[QUEUED]
    head = -1
    held = state[HELD]
    if rules.keeps_head and held >= 0 and books.starts[held] == NOT_YET:
        if rows.processors[held] > state[FREE]:
            return int(held)
        launch(held, now, rows, books, lists)
    for at in range(queued):
        job = lists.queue[at]
        if books.starts[job] != NOT_YET:
            continue
        if rows.processors[job] > state[FREE]:
            head = job
            break
        launch(job, now, rows, books, lists)
    drop_started(books, lists)
    state[HELD] = head
    return int(head)


@njit_without_refcount
def schedule_listed(now: int, rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists) -> None:
    """One scheduling pass, as in the indexed simulation but over the whole list."""
    state = books.state
    if state[QUEUED] == 0:
        return
    head = start_heads(now, rows, rules, books, lists)
    if head < 0:
        return
    if head != state[PROMISED]:
        promise(head, rows, books)
        state[PROMISED], state[BLOCKED] = head, state[QUEUED]
    if not rules.backfills or state[FREE] == 0:
        return
    if not rules.is_fixed:
        promise(head, rows, books)
    longest = find_longest(now, head, rows, rules, books)
    has_started = False
    for at in range(state[QUEUED]):
        job = lists.tail[at]
        size = rows.processors[job]
        if size > state[FREE] or job == head:
            continue
        if rows.tested[job] <= longest or (rules.uses_extra and size <= state[EXTRA]):
            take_extra(job, now, longest, rows, rules, books)
            launch(job, now, rows, books, lists)
            has_started = True
    if has_started:
        drop_started(books, lists)


@njit_without_refcount
def simulate_listed(rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists, progress: Int64s) -> None:
    """Run the whole simulation with a queue order that never changes."""
    now = advance(rows, rules, books, lists)
    while now != NEVER and (progress.size < 2 or progress[1] == 0):
        progress[0] += 1
        schedule_listed(now, rows, rules, books, lists)
        now = advance(rows, rules, books, lists)


@njit_without_refcount
def step_listed(now: int, rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists, progress: Int64s) -> int:
    """Schedule the ordered queue (unless ``now`` is NOT_YET), then advance to the next time at which its order matters."""
    if now != NOT_YET:
        schedule_listed(now, rows, rules, books, lists)
    while True:
        now = advance(rows, rules, books, lists)
        progress[0] += 1
        if now == NEVER or books.state[QUEUED] > 1:
            return now
        schedule_listed(now, rows, rules, books, lists)
