"""Runs a scenario: translates its choices for the kernels, selects the kernel, and lets policies order the queue.

Pure: the same scenario gives the same schedule. Kernels are imported when first needed, because compiling takes a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterscape.errors import StoppedError
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.batch.contract import LEARNED, PREDICTED, RELAXED, BatchJobs, Scenario, Schedule, Waiting
from clusterscape.simulate.batch.semantics import Semantics

if TYPE_CHECKING:
    from clusterscape.simulate.batch.indexed_kernels import BatchBooks, BatchRows, BatchRules
    from clusterscape.simulate.batch.listed_kernels import Lists

BASES = {"expected_wait": 0, "remaining_wait": 1, "request": 2}
"""`Semantics.relaxation_base` as the kernels encode it."""


def simulate(scenario: Scenario, progress: Int64s | None = None) -> Schedule:
    """Simulate a scenario. ``progress[0]`` counts events while it runs, for another thread to read.

    If another thread sets ``progress[1]`` to a value other than 0, a long simulation raises StoppedError.
    """
    from clusterscape.simulate.batch.indexed_kernels import simulate_indexed
    from clusterscape.simulate.batch.kernels import NOT_YET

    progress = np.zeros(1, np.int64) if progress is None else progress
    if len(scenario.jobs) == 0:
        starts = promises = np.zeros(0, np.int64)
    elif scenario.policy.is_static and scenario.backfill.kind != "conservative" and not is_predicting(scenario):
        starts, promises = simulate_indexed(_rows(scenario), make_rules(scenario), progress)
    else:
        starts, promises = _simulate_lists(scenario, progress)
    if progress.size > 1 and progress[1] != 0:
        raise StoppedError("the simulation was stopped")
    if scenario.backfill.kind == "first-fit":
        promises = np.full(len(scenario.jobs), NOT_YET)
    return Schedule(scenario, starts, promises, promises != NOT_YET)


def is_predicting(scenario: Scenario) -> bool:
    """Whether estimates are predicted when jobs arrive, and corrected when they are exceeded."""
    return scenario.backfill.kind == "easy++" or scenario.estimates in PREDICTED


def make_rules(scenario: Scenario) -> BatchRules:
    """The semantics and the backfilling as the kernels encode them."""
    from clusterscape.simulate.batch.indexed_kernels import BatchRules

    semantics, backfill = scenario.semantics, scenario.backfill
    is_relaxed = backfill.kind in RELAXED
    return BatchRules(
        total=scenario.total_processors,
        is_batch=semantics.events == "batch",
        is_submit_first=semantics.same_time == "submit_first",
        is_free_at_estimate=semantics.freed == "at_estimated_end",
        uses_extra=semantics.extra_nodes,
        is_strict=semantics.bound == "strict",
        is_fixed=semantics.promise == "fixed",
        keeps_head=semantics.head == "kept",
        backfills=backfill.kind != "none",
        promises=backfill.kind != "first-fit",
        base=BASES[semantics.relaxation_base],
        share=backfill.share if is_relaxed else 0.0,
        whole_at=backfill.whole_at if backfill.kind == "adaptive" else 0.0,
        is_capped=semantics.adaptive_cap == "at_full_share",
        is_queue_kept=semantics.adaptive_queue == "when_blocked",
    )


def _rows(scenario: Scenario) -> BatchRows:
    from clusterscape.simulate.batch.indexed_kernels import BatchRows

    jobs, semantics = scenario.jobs, scenario.semantics
    ties = _tie_order(jobs, semantics)
    head_rank = ties
    if not _is_ordered_live(scenario):
        all_jobs = np.arange(len(jobs))
        head_rank = rank_by(scenario.policy.score(_waiting(scenario, all_jobs, 0, None, jobs.estimate_s)), ties)
    tested = jobs.estimate_s if semantics.candidate_time == "estimate" else jobs.run_s
    place = head_rank if semantics.candidate_order == "queue" else ties
    if scenario.backfill.kind == "easy-sjbf":
        place = rank_by(tested.astype(float), ties)
    elif scenario.backfill.kind == "frugal":
        place = rank_by(_frugal_size(tested, jobs.processors, semantics), ties)
    job_at = np.empty(len(jobs), np.int64)
    job_at[place] = np.arange(len(jobs))
    # EASY++ writes its predictions into the estimates, so every simulation needs its own copy.
    return BatchRows(
        jobs.submit_s, jobs.run_s, jobs.estimate_s.copy(), tested.copy(), jobs.processors, head_rank, place, job_at
    )


def _frugal_size(tested: Int64s, processors: Int64s, semantics: Semantics) -> Float64s:
    """The size by which frugal backfilling orders candidates, smallest first."""
    if semantics.frugal_by == "estimate":
        return tested.astype(float)
    return processors.astype(float) * (tested if semantics.frugal_by == "area" else 1.0)


def _tie_order(jobs: BatchJobs, semantics: Semantics) -> Int64s:
    """Each job's rank by submission, then by its position in the file or by its id."""
    if semantics.ties == "file_order":
        return np.arange(len(jobs), dtype=np.int64)
    return rank_by(jobs.submit_s.astype(float), jobs.number)


def rank_by(score: Float64s, ties: Int64s) -> Int64s:
    """Each job's rank by score, then by ``ties``."""
    ranks = np.empty(len(score), np.int64)
    ranks[np.lexsort((ties, score))] = np.arange(len(score))
    return ranks


def _waiting(scenario: Scenario, chosen: Int64s, now_s: int, lists: Lists | None, estimate_s: Int64s) -> Waiting:
    jobs = scenario.jobs
    usage = np.zeros(len(chosen))
    if lists is not None and lists.half_life > 0:
        users = lists.user[chosen]
        usage = lists.usage[users] * 0.5 ** ((now_s - lists.usage_at[users]) / lists.half_life)
    return Waiting(
        now_s,
        int(jobs.submit_s[0]),
        scenario.total_processors,
        jobs.submit_s[chosen],
        estimate_s[chosen],
        jobs.processors[chosen],
        usage,
    )


def _open_lists(scenario: Scenario) -> Lists:
    from clusterscape.simulate.batch.listed_kernels import BY_AREA, BY_ESTIMATE, BY_PLACE, Lists

    jobs, count = scenario.jobs, len(scenario.jobs)
    tries_by = BY_ESTIMATE if scenario.backfill.kind in ("easy-sjbf", "easy++") else BY_PLACE
    if scenario.backfill.kind == "frugal" and is_predicting(scenario):
        tries_by = {"area": BY_AREA, "estimate": BY_ESTIMATE}.get(scenario.semantics.frugal_by, BY_PLACE)
    users = int(jobs.user.max()) + 1
    return Lists(
        queue=np.empty(count + 1, np.int64),
        tail=np.empty(count + 1, np.int64),
        request=jobs.request_s,
        over_times=np.empty(count + 1, np.int64),
        over_jobs=np.empty(count + 1, np.int64),
        corrections=np.zeros(count, np.int64),
        user=jobs.user,
        last_run=np.zeros(users, np.int64),
        former_run=np.zeros(users, np.int64),
        predictions=_learned_predictions(scenario),
        usage=np.zeros(users),
        usage_at=np.full(users, jobs.submit_s[0]),
        half_life=float(getattr(scenario.policy, "half_life_s", 0)),
        is_predicting=is_predicting(scenario),
        tries_by=tries_by,
        state=np.zeros(2, np.int64),
    )


def _learned_predictions(scenario: Scenario) -> Int64s:
    """The predictions of a model, if the scheduler uses them; jobs × corrections."""
    predictions = scenario.jobs.predictions_s
    if predictions is None or scenario.estimates not in LEARNED:
        return np.zeros((len(scenario.jobs), 0), np.int64)
    return np.ascontiguousarray(predictions)


def _simulate_lists(scenario: Scenario, progress: Int64s) -> tuple[Int64s, Int64s]:
    from clusterscape.simulate.batch.conservative_kernels import simulate_conservative
    from clusterscape.simulate.batch.indexed_kernels import open_books
    from clusterscape.simulate.batch.listed_kernels import simulate_listed

    rows, rules, lists = _rows(scenario), make_rules(scenario), _open_lists(scenario)
    books = open_books(len(scenario.jobs), scenario.total_processors, False)
    if _is_ordered_live(scenario):
        _order_and_schedule(scenario, rows, rules, books, lists, progress)
    elif scenario.backfill.kind == "conservative":
        simulate_conservative(rows, rules, books, lists, progress)
    else:
        simulate_listed(rows, rules, books, lists, progress)
    return books.starts, books.promises


def _is_ordered_live(scenario: Scenario) -> bool:
    """Whether scores change during the simulation: with time or usage, or with predicted estimates."""
    if not scenario.policy.is_static or not is_predicting(scenario):
        return not scenario.policy.is_static
    all_jobs = np.arange(len(scenario.jobs))
    scores = [
        scenario.policy.score(_waiting(scenario, all_jobs, 0, None, estimate_s))
        for estimate_s in (scenario.jobs.estimate_s, np.ones_like(scenario.jobs.estimate_s))
    ]
    return not np.array_equal(scores[0], scores[1])


def _order_and_schedule(
    scenario: Scenario, rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists, progress: Int64s
) -> None:
    """Step to each time at which more than one job waits; the policy orders them before the scheduling pass."""
    from clusterscape.simulate.batch.conservative_kernels import open_profile, step_conservative
    from clusterscape.simulate.batch.indexed_kernels import QUEUED
    from clusterscape.simulate.batch.kernels import NEVER, NOT_YET
    from clusterscape.simulate.batch.listed_kernels import step_listed

    is_conservative = scenario.backfill.kind == "conservative"
    planned = np.full(len(scenario.jobs), NOT_YET)
    profile = open_profile(len(scenario.jobs), scenario.total_processors) if is_conservative else None
    has_own_order = scenario.backfill.kind in ("easy-sjbf", "easy++", "frugal")
    follows_queue = not has_own_order and scenario.semantics.candidate_order == "queue"
    now_s = NOT_YET
    while True:
        if profile is not None:
            now_s = step_conservative(now_s, rows, rules, books, lists, planned, profile, progress)
        else:
            now_s = step_listed(now_s, rows, rules, books, lists, progress)
        if now_s == NEVER or (progress.size > 1 and progress[1] != 0):
            return
        queued = int(books.state[QUEUED])
        waiting = lists.queue[:queued]
        scores = scenario.policy.score(_waiting(scenario, waiting, now_s, lists, rows.estimate))
        waiting[:] = waiting[np.lexsort((rows.head_rank[waiting], scores))]
        if follows_queue:
            lists.tail[:queued] = waiting
