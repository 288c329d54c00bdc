"""Runs a scenario of a GPU cluster: lays out the columns for the kernels, and answers when they ask for nodes or an order.

Pure: the same scenario gives the same schedule. Kernels are imported when first needed, because compiling takes a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.batch.contract import RELAXED, Waiting
from clusterscape.simulate.batch.engine import BASES, rank_by
from clusterscape.simulate.cluster.contract import ClusterJobs, ClusterScenario, ClusterSchedule, Integrals
from clusterscape.simulate.faults import FaultKind
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement, Setting, choose_nodes

if TYPE_CHECKING:
    from clusterscape.simulate.cluster.kernels import Books
    from clusterscape.simulate.cluster.pass_kernels import Rules

_NOTHING = np.zeros(0, np.int64)


def simulate_cluster(scenario: ClusterScenario, progress: Int64s | None = None) -> ClusterSchedule:
    """When and where every job runs. ``progress[0]`` counts arrivals while it runs, for another thread to look at."""
    progress = np.zeros(1, np.int64) if progress is None else progress
    return drive(scenario, make_rules(scenario), open_books(scenario), progress)


def drive(scenario: ClusterScenario, rules: Rules, books: Books, progress: Int64s) -> ClusterSchedule:
    """Run on from what the books say until nothing is left to come."""
    from clusterscape.simulate.cluster.pass_kernels import CHOOSE, OVER, step

    placement = scenario.placement.begin(Setting(books, np.random.default_rng(scenario.seed)))
    nodes = books.nodes.view(np.ndarray)
    questions = _Questions(_asks(books), np.asarray(books.jobs["wish"]), np.asarray(books.jobs["nodes"]))
    state = NodeState(
        nodes["free_units"], nodes["gpus"], books.gpu_units, nodes["cpu"], nodes["memory"], books.held_by_gpus
    )
    chosen = gpus = _NOTHING
    while True:
        wanted = step(rules, books, chosen, gpus, progress)
        if wanted == OVER:
            return _schedule(scenario, books)
        if wanted == CHOOSE:
            chosen, gpus = _choose(placement, state, questions, books)
        else:
            _order(scenario, books)


@dataclass(frozen=True, slots=True)
class _Questions:
    """What each wish asks for; each job's wish and number of nodes."""

    asks: list[Ask]
    wish: Int64s
    nodes: Int64s


def _choose(placement: Placement, state: NodeState, questions: _Questions, books: Books) -> tuple[Int64s, Int64s]:
    """Nodes for the job that may start, and the GPU of each where it shares one; none where the head's promise forbids all."""
    from clusterscape.simulate.cluster.job_kernels import CANDIDATES, IS_EXTRA, JOB, SURPLUS

    job, found = int(books.state[JOB]), int(books.state[CANDIDATES])
    candidates = books.candidates[:found].copy()
    ask, count = questions.asks[questions.wish[job]], int(questions.nodes[job])
    chosen = choose_nodes(placement, state, candidates, count, ask)
    if chosen is not None and books.state[IS_EXTRA]:
        harmful = books.harmful[:found]
        if np.isin(chosen, candidates[harmful]).sum() > books.state[SURPLUS]:
            chosen = choose_nodes(placement, state, candidates[~harmful], count, ask)
    if chosen is None:
        return _NOTHING, _NOTHING
    picked = placement.pick_gpu(state, int(chosen[0]), ask) if ask.is_share else None
    return chosen, np.full(count, -1 if picked is None else picked, np.int64)


def _order(scenario: ClusterScenario, books: Books) -> None:
    """Let the policy order the queue that is about to be looked at."""
    from clusterscape.simulate.cluster.job_kernels import NOW, PARTITION

    partition = books.partitions[books.state[PARTITION]]
    first = partition["first_queue"]
    waiting = books.queue[first : first + partition["queued"]]
    estimates = np.asarray(books.jobs["estimate"])
    scores = scenario.policy.score(_waiting(scenario, waiting, int(books.state[NOW]), books, estimates))
    waiting[:] = waiting[np.lexsort((books.jobs["rank"][waiting], scores, -books.jobs["priority"][waiting]))]


def _waiting(scenario: ClusterScenario, chosen: Int64s, now_s: int, books: Books | None, estimate_s: Int64s) -> Waiting:
    jobs = scenario.jobs
    half_life_s = float(getattr(scenario.policy, "half_life_s", 0))
    usage: Float64s = np.zeros(len(chosen))
    if books is not None and half_life_s > 0:
        users = books.users[jobs.user[chosen]]
        usage = users["usage"] * 0.5 ** ((now_s - users["usage_at"]) / half_life_s)
    gpus = -(-jobs.total_units[chosen] // UNITS_PER_GPU)
    return Waiting(
        now_s,
        int(jobs.submit_s[0]),
        scenario.cluster.total_gpus,
        jobs.submit_s[chosen],
        estimate_s[chosen],
        np.maximum(gpus, 1),
        usage,
    )


def open_books(scenario: ClusterScenario) -> Books:
    """Books in which nothing has happened yet."""
    from clusterscape.simulate.cluster.kernels import OUTAGE_STEP, USER, Books, refresh

    cluster, jobs = scenario.cluster, scenario.jobs
    count, width = len(cluster), max(int(cluster.gpus.max()), 1)
    users = int(jobs.user.max()) + 1 if len(jobs) else 1
    units = np.where(np.arange(width) < cluster.gpus[:, None], UNITS_PER_GPU, 0).astype(np.int64)
    wishes, wish_of, partition_of = _find_wishes(scenario)
    outages = np.array(_outages(scenario), OUTAGE_STEP).reshape(-1)
    books = Books(
        nodes=_make_nodes(scenario, units),
        wishes=wishes,
        jobs=_make_jobs(scenario, wish_of),
        pods=_make_pods(scenario),
        partitions=_make_partitions(scenario, units, partition_of),
        users=_records(USER, users, usage_at=jobs.submit_s[0] if len(jobs) else 0),
        outages=outages.view(np.recarray),
        gpu_units=units,
        held_by_gpus=np.zeros((count, width + 1), np.int64),
        held_by_user=np.zeros((len(cluster.partitions), users), np.int64),
        hosts=np.zeros((len(wishes), count), np.bool_),
        members=np.argsort(cluster.partition, kind="stable"),
        queue=np.zeros(len(jobs) + 1, np.int64),
        end_times=np.zeros(len(jobs) + 1, np.int64),
        end_jobs=np.zeros(len(jobs) + 1, np.int64),
        over_times=np.zeros(len(jobs) + 1, np.int64),
        over_jobs=np.zeros(len(jobs) + 1, np.int64),
        candidates=np.zeros(count, np.int64),
        harmful=np.zeros(count, np.bool_),
        sums=np.zeros(5),
        state=_make_state(),
    )
    for node in range(count):
        refresh(node, books)
    return books


def _records(kind: np.dtype[np.void], count: int, **columns: object) -> Any:
    """A table of ``count`` rows; columns that are not given are 0."""
    table = np.zeros(count, kind)
    for name, values in columns.items():
        table[name] = values
    return table.view(np.recarray)


def _make_state() -> Int64s:
    from clusterscape.simulate.batch.kernels import NOT_YET
    from clusterscape.simulate.cluster.job_kernels import HEAD, JOB, NOW, OVERS
    from clusterscape.simulate.cluster.kernels import NOBODY

    state = np.zeros(OVERS + 1, np.int64)
    state[NOW], state[HEAD], state[JOB] = NOT_YET, NOBODY, NOBODY
    return state


def _make_nodes(scenario: ClusterScenario, units: Int64s) -> Any:
    from clusterscape.simulate.cluster.kernels import NOBODY, NODE

    cluster = scenario.cluster
    return _records(
        NODE,
        len(cluster),
        gpus=cluster.gpus,
        model=cluster.model,
        partition=cluster.partition,
        slices=cluster.slices,
        free_units=units.sum(axis=1),
        cpu=cluster.cpu_milli,
        memory=cluster.memory_mib,
        first_pod=NOBODY,
        ready_version=NOBODY,
    )


def _make_partitions(scenario: ClusterScenario, units: Int64s, first_wish: Int64s) -> Any:
    from clusterscape.simulate.cluster.kernels import NOBODY, PART

    cluster = scenario.cluster
    count = len(cluster.partitions)
    first_node = np.searchsorted(np.sort(cluster.partition), np.arange(count + 1))
    waiting = np.bincount(scenario.jobs.partition, minlength=count)
    limits = [partition.max_gpus_per_user or 0 for partition in cluster.partitions]
    return _records(
        PART,
        count,
        first_node=first_node[:-1],
        end_node=first_node[1:],
        first_wish=first_wish[:-1],
        end_wish=first_wish[1:],
        first_queue=np.cumsum(waiting) - waiting,
        free_units=np.bincount(cluster.partition, units.sum(axis=1), count),
        ready_wish=NOBODY,
        head=NOBODY,
        user_units=np.array(limits) * UNITS_PER_GPU,
    )


def _find_wishes(scenario: ClusterScenario) -> tuple[Any, Int64s, Int64s]:
    """The different wishes, partition by partition; each job's; and where each partition's begin."""
    from clusterscape.simulate.cluster.kernels import WISH

    jobs = scenario.jobs
    columns = (jobs.partition, jobs.gpus, jobs.units, jobs.cpu_milli, jobs.memory_mib, jobs.models)
    table = np.stack(columns, axis=1).astype(np.int64).reshape(-1, len(columns))
    found, wish_of, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    first = np.searchsorted(found[:, 0], np.arange(len(scenario.cluster.partitions) + 1))
    popularity = np.zeros(len(found))
    for start, stop in pairwise(first.tolist()):
        popularity[start:stop] = _popularity(counts[start:stop], scenario.popularity)
    _, gpus, units, cpu, memory, models = found.T
    wishes = _records(
        WISH, len(found), gpus=gpus, units=units, cpu=cpu, memory=memory, models=models, popularity=popularity
    )
    return wishes, wish_of.reshape(-1).astype(np.int64), first


def _popularity(counts: Int64s, share: float) -> Float64s:
    """The commonest kinds that make up ``share`` of the jobs, in parts of all such jobs; 0 for the others."""
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    kept = np.zeros(len(counts))
    kept[order] = np.where(before < share * counts.sum(), counts[order], 0)
    return np.asarray(kept / max(kept.sum(), 1.0))


def _make_jobs(scenario: ClusterScenario, wish_of: Int64s) -> Any:
    from clusterscape.simulate.batch.kernels import NOT_YET
    from clusterscape.simulate.cluster.kernels import JOB

    jobs = scenario.jobs
    return _records(
        JOB,
        len(jobs),
        submit=jobs.submit_s,
        run=jobs.run_s,
        estimate=jobs.estimate_s,
        wish=wish_of,
        nodes=jobs.nodes,
        partition=jobs.partition,
        user=jobs.user,
        priority=jobs.priority,
        rank=_ranks(scenario, jobs),
        first_pod=np.cumsum(jobs.nodes) - jobs.nodes,
        start=NOT_YET,
        end=NOT_YET,
        began=NOT_YET,
        promise=NOT_YET,
        request=jobs.estimate_s,
    )


def _make_pods(scenario: ClusterScenario) -> Any:
    from clusterscape.simulate.cluster.kernels import NOBODY, POD

    jobs = scenario.jobs
    owners = np.repeat(np.arange(len(jobs)), jobs.nodes)
    return _records(POD, len(owners), job=owners, node=NOBODY, next=NOBODY, previous=NOBODY)


def _ranks(scenario: ClusterScenario, jobs: ClusterJobs) -> Int64s:
    """Each job's place: by priority, then the policy's score where that never changes, then submission."""
    by_file = scenario.semantics.ties == "file_order"
    ties = np.arange(len(jobs)) if by_file else rank_by(jobs.submit_s.astype(float), jobs.number)
    score = np.zeros(len(jobs))
    if len(jobs) and not _is_ordered_live(scenario):
        score = scenario.policy.score(_waiting(scenario, np.arange(len(jobs)), 0, None, jobs.estimate_s))
    ranks = np.empty(len(jobs), np.int64)
    ranks[np.lexsort((ties, score, -jobs.priority))] = np.arange(len(jobs))
    return ranks


def _is_predicting(scenario: ClusterScenario) -> bool:
    return scenario.backfill.kind == "easy++" or scenario.estimates == "predicted"


def _is_ordered_live(scenario: ClusterScenario) -> bool:
    """Whether scores change: with time or usage, or because predictions do and another estimate gives another score."""
    if not scenario.policy.is_static or not _is_predicting(scenario) or not len(scenario.jobs):
        return not scenario.policy.is_static
    everything, estimate_s = np.arange(len(scenario.jobs)), scenario.jobs.estimate_s
    scores = [
        scenario.policy.score(_waiting(scenario, everything, 0, None, each))
        for each in (estimate_s, np.ones_like(estimate_s))
    ]
    return not np.array_equal(scores[0], scores[1])


def _find_order(scenario: ClusterScenario) -> int:
    """In which order candidates are tried, as the kernels number it."""
    from clusterscape.simulate.cluster.job_kernels import BY_AREA, BY_ESTIMATE, BY_QUEUE, BY_SIZE

    if scenario.backfill.kind == "frugal":
        return {"area": BY_AREA, "estimate": BY_ESTIMATE, "processors": BY_SIZE}[scenario.semantics.frugal_by]
    return BY_ESTIMATE if scenario.backfill.kind in ("easy-sjbf", "easy++") else BY_QUEUE


def make_rules(scenario: ClusterScenario) -> Rules:
    """The choices of a scenario as the kernels take them."""
    from clusterscape.simulate.cluster.pass_kernels import NO_ONE, WHO_FITS, WHO_KEEPS_PROMISE, Rules

    how, backfill = scenario.semantics, scenario.backfill
    return Rules(
        fill={"none": NO_ONE, "first-fit": WHO_FITS}.get(backfill.kind, WHO_KEEPS_PROMISE),
        uses_extra=how.extra_nodes,
        is_strict=how.bound == "strict",
        is_fixed=how.promise == "fixed",
        base=BASES[how.relaxation_base],
        share=backfill.share if backfill.kind in RELAXED else 0.0,
        whole_at=backfill.whole_at if backfill.kind == "adaptive" else 0.0,
        is_capped=how.adaptive_cap == "at_full_share",
        is_queue_kept=how.adaptive_queue == "when_blocked",
        is_dynamic=_is_ordered_live(scenario),
        preempts=scenario.preempts,
        checkpoint=scenario.checkpoint_s or 0,
        half_life=float(getattr(scenario.policy, "half_life_s", 0)),
        depth=scenario.depth or 0,
        tries_by=_find_order(scenario),
        is_predicting=_is_predicting(scenario),
    )


def _outages(scenario: ClusterScenario) -> list[tuple[int, int, int]]:
    """Time, kind and node of each change, in order."""
    from clusterscape.simulate.cluster.pass_kernels import DRAIN, FAIL, OPEN

    places = {name: place for place, name in enumerate(scenario.cluster.names)}
    steps: list[tuple[int, int, int]] = []
    for fault in scenario.faults:
        if fault.node not in places:
            raise QueryError(f"there is no node {fault.node!r} to fail")
        steps.append((fault.from_s, FAIL if fault.kind is FaultKind.FAIL else DRAIN, places[fault.node]))
        if fault.to_s is not None:
            steps.append((fault.to_s, OPEN, places[fault.node]))
    return sorted(steps)


def _asks(books: Books) -> list[Ask]:
    columns = (books.wishes[name].tolist() for name in ("gpus", "units", "cpu", "memory"))
    return [
        Ask(gpus, units, cpu, memory, shape)
        for shape, (gpus, units, cpu, memory) in enumerate(zip(*columns, strict=True))
    ]


def _schedule(scenario: ClusterScenario, books: Books) -> ClusterSchedule:
    from clusterscape.simulate.batch.kernels import NOT_YET
    from clusterscape.simulate.cluster.job_kernels import BLOCKED_S, FRAGMENT_S, IDLE_S, LOST_S

    sums, jobs = books.sums / UNITS_PER_GPU, books.jobs
    has_started = jobs["start"] != NOT_YET
    return ClusterSchedule(
        scenario,
        np.asarray(jobs["start"]),
        np.asarray(jobs["end"]),
        np.asarray(jobs["promise"]),
        np.asarray(jobs["attempts"]),
        np.asarray(jobs["lost"]),
        has_started,
        has_started & (jobs["end"] != NOT_YET),
        np.asarray(jobs["promise"] != NOT_YET),
        np.asarray(books.pods["node"]),
        np.asarray(jobs["first_pod"]),
        Integrals(
            idle=float(sums[IDLE_S]),
            fragmented=float(sums[FRAGMENT_S]),
            blocked=float(sums[BLOCKED_S]),
            lost=float(sums[LOST_S]),
        ),
    )
