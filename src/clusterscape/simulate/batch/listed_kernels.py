"""The general simulation: queues whose order changes with time, and predicted estimates, which do. The queue is a plain list.

It runs from one look at the queue to the next, so that a policy may order the queue in between. Importing this imports numba.
"""

from typing import NamedTuple

import numpy as np

from clusterscape.model.samples import Float64s, Int64s
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
    Books,
    Rows,
    Rules,
    begin,
    find_longest,
    note_beside,
    promise,
    release_due,
    take_end,
)
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, bare, charge, insert_running, pop, push, remove_running

CORRECTIONS_S = np.array([0, 60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000], dtype=np.int64)
"""How much an exceeded prediction grows, in all, after each correction (Tsafrir, Etsion & Feitelson 2007, as pyss has it)."""

# Places in Lists.state.
OVERS, TAILS = 0, 1
# Lists.tries_by: in which order candidates are tried.
BY_PLACE, BY_ESTIMATE, BY_AREA = 0, 1, 2


class Lists(NamedTuple):
    """Waiting jobs in queue order and in the order candidates are tried; what predictions and fair share remember."""

    queue: Int64s
    tail: Int64s
    request: Int64s
    over_times: Int64s
    over_jobs: Int64s
    corrections: Int64s
    user: Int64s
    last_run: Int64s
    former_run: Int64s
    usage: Float64s
    usage_at: Int64s
    half_life: float
    is_predicting: bool
    tries_by: int
    state: Int64s


@bare
def enlist(job: int, rows: Rows, books: Books, lists: Lists) -> None:
    """An arrived job waits, with the prediction its user's last two jobs give."""
    user = lists.user[job]
    if lists.is_predicting:
        rows.estimate[job] = lists.request[job]
        if lists.former_run[user] > 0:
            mean = (lists.last_run[user] + lists.former_run[user]) // 2
            rows.estimate[job] = min(lists.request[job], mean)
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


@bare
def _is_tried_before(job: int, other: int, rows: Rows, tries_by: int) -> bool:
    if tries_by == BY_ESTIMATE:
        return bool(rows.tested[job] < rows.tested[other])
    if tries_by == BY_AREA:
        return bool(rows.tested[job] * rows.processors[job] < rows.tested[other] * rows.processors[other])
    return bool(rows.place[job] < rows.place[other])


@bare
def correct(now: int, rows: Rows, books: Books, lists: Lists) -> None:
    """A running job has exceeded its prediction: give it more time, never more than it asked for."""
    job = lists.over_jobs[0]
    lists.state[OVERS] = pop(lists.over_times, lists.over_jobs, books.sequence, lists.state[OVERS])
    state = books.state
    state[HIGH] = remove_running(books.run_ends, books.run_jobs, state[LOW], state[HIGH], now, job)
    step = min(lists.corrections[job], CORRECTIONS_S.size - 2)
    lists.corrections[job] = step + 1
    former = rows.estimate[job]
    rows.estimate[job] = min(former - CORRECTIONS_S[step] + CORRECTIONS_S[step + 1], lists.request[job])
    amount = float((rows.estimate[job] - former) * rows.processors[job])
    charge(lists.usage, lists.usage_at, lists.half_life, lists.user[job], amount, now)
    estimated = books.starts[job] + rows.estimate[job]
    state[HIGH] = insert_running(books.run_ends, books.run_jobs, state[LOW], state[HIGH], estimated, job)
    state[VALID] = 0
    if rows.estimate[job] < rows.run[job]:
        lists.state[OVERS] = push(lists.over_times, lists.over_jobs, books.sequence, lists.state[OVERS], estimated, job)


@bare
def settle(now: int, rows: Rows, books: Books, lists: Lists) -> None:
    """The first of the heap of ends is over: remember its run, settle its charge."""
    job = books.end_jobs[0]
    user = lists.user[job]
    lists.former_run[user] = lists.last_run[user]
    lists.last_run[user] = rows.run[job]
    amount = float((rows.run[job] - rows.estimate[job]) * rows.processors[job])
    charge(lists.usage, lists.usage_at, lists.half_life, user, amount, now)
    take_end(now, rows, books)


@bare
def advance(rows: Rows, rules: Rules, books: Books, lists: Lists) -> int:
    """Take in what happens next; returns its time, or NEVER where all is over. The queue is then due a look."""
    state, count = books.state, rows.submit.size
    end = books.end_times[0] if state[ENDING] > 0 else NEVER
    arrival = rows.submit[state[ARRIVED]] if state[ARRIVED] < count else NEVER
    now = min(end, arrival)
    if now == NEVER:
        return int(now)
    # Corrections of earlier seconds, and of this one, come first; they give no look at the queue.
    while lists.state[OVERS] > 0 and lists.over_times[0] <= now:
        correct(lists.over_times[0], rows, books, lists)
    is_arrival = arrival < end or (arrival == end and rules.is_submit_first)
    if rules.is_batch or not is_arrival:
        while state[ENDING] > 0 and books.end_times[0] == now:
            settle(now, rows, books, lists)
            if not rules.is_batch:
                break
    if rules.is_free_at_estimate:
        release_due(now, rows, books)
    if rules.is_batch or is_arrival:
        while state[ARRIVED] < count and rows.submit[state[ARRIVED]] == now:
            enlist(state[ARRIVED], rows, books, lists)
            state[ARRIVED] += 1
            if not rules.is_batch:
                break
    return int(now)


@bare
def launch(job: int, now: int, rows: Rows, books: Books, lists: Lists) -> None:
    """Start a waiting job."""
    begin(job, now, rows, books)
    amount = float(rows.estimate[job] * rows.processors[job])
    charge(lists.usage, lists.usage_at, lists.half_life, lists.user[job], amount, now)
    if lists.is_predicting and rows.estimate[job] < rows.run[job]:
        lists.state[OVERS] = push(
            lists.over_times, lists.over_jobs, books.sequence, lists.state[OVERS], now + rows.estimate[job], job
        )


@bare
def drop_started(books: Books, lists: Lists) -> None:
    """Close the gaps that started jobs left in both lists."""
    queued = books.state[QUEUED]
    kept = tried = 0
    for at in range(queued):
        if books.starts[lists.queue[at]] == NOT_YET:
            lists.queue[kept] = lists.queue[at]
            kept += 1
        if books.starts[lists.tail[at]] == NOT_YET:
            lists.tail[tried] = lists.tail[at]
            tried += 1
    books.state[QUEUED] = kept


@bare
def start_heads(now: int, rows: Rows, rules: Rules, books: Books, lists: Lists) -> int:
    """Start jobs in order while they fit; returns the first that does not, or -1."""
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


@bare
def schedule_listed(now: int, rows: Rows, rules: Rules, books: Books, lists: Lists) -> None:
    """One look at the queue, as in the indexed simulation but walking the list."""
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
    is_any = False
    for at in range(state[QUEUED]):
        job = lists.tail[at]
        size = rows.processors[job]
        if size > state[FREE] or job == head:
            continue
        if rows.tested[job] <= longest or (rules.uses_extra and size <= state[EXTRA]):
            note_beside(job, now, longest, rows, rules, books)
            launch(job, now, rows, books, lists)
            is_any = True
    if is_any:
        drop_started(books, lists)


@bare
def simulate_listed(rows: Rows, rules: Rules, books: Books, lists: Lists, progress: Int64s) -> None:
    """The whole simulation, where the order of the queue never changes."""
    now = advance(rows, rules, books, lists)
    while now != NEVER and (progress.size < 2 or progress[1] == 0):
        progress[0] += 1
        schedule_listed(now, rows, rules, books, lists)
        now = advance(rows, rules, books, lists)


@bare
def step_listed(now: int, rows: Rows, rules: Rules, books: Books, lists: Lists, progress: Int64s) -> int:
    """Look at the queue as it is ordered (not at NOT_YET), then go on to the next time at which its order matters."""
    if now != NOT_YET:
        schedule_listed(now, rows, rules, books, lists)
    while True:
        now = advance(rows, rules, books, lists)
        progress[0] += 1
        if now == NEVER or books.state[QUEUED] > 1:
            return now
        schedule_listed(now, rows, rules, books, lists)
