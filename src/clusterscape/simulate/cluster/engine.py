"""Runs a scenario of a GPU cluster, from the start or from a given state (jobs already run or wait): builds the tables for the
kernels, and calls placements and policies when the kernels need nodes or an order.

Pure: the same scenario gives the same schedule. Kernels are imported when first needed, because compiling takes a while.

A simulation from a given state differs only in its initial tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.simulate.batch.contract import PREDICTED, RELAXED, Waiting
from clusterscape.simulate.batch.engine import BASES, rank_by
from clusterscape.simulate.cluster.contract import ClusterJobs, ClusterScenario, ClusterSchedule, Integrals
from clusterscape.simulate.faults import FaultKind
from clusterscape.simulate.placing import (
    UNITS_PER_GPU,
    NodeLoads,
    Placement,
    PlacementContext,
    PodRequest,
    choose_nodes,
)

if TYPE_CHECKING:
    from clusterscape.simulate.cluster.kernels import ClusterBooks
    from clusterscape.simulate.cluster.pass_kernels import ClusterRules


_NOTHING = np.zeros(0, np.int64)


def simulate_cluster(scenario: ClusterScenario, progress: Int64s | None = None) -> ClusterSchedule:
    """Simulate when and where every job runs. ``progress[0]`` counts arrivals, for another thread to read."""
    progress = np.zeros(1, np.int64) if progress is None else progress
    return run_from(scenario, make_rules(scenario), open_books(scenario), progress)


def run_from(scenario: ClusterScenario, rules: ClusterRules, books: ClusterBooks, progress: Int64s) -> ClusterSchedule:
    """Run from the state in ``books`` until no event is left."""
    from clusterscape.simulate.cluster.pass_kernels import CHOOSE, OVER, step

    placement = scenario.placement.begin(PlacementContext(books, np.random.default_rng(scenario.seed)))
    nodes = books.nodes.view(np.ndarray)
    job_requests = _JobRequests(_requests(books), np.asarray(books.jobs["demand"]), np.asarray(books.jobs["nodes"]))
    state = NodeLoads(
        nodes["free_units"], nodes["gpus"], books.gpu_units, nodes["cpu"], nodes["memory"], books.held_by_gpus
    )
    chosen = gpus = _NOTHING
    while True:
        action = step(rules, books, chosen, gpus, progress)
        if action == OVER:
            return _schedule(scenario, books)
        if action == CHOOSE:
            chosen, gpus = _choose(placement, state, job_requests, books)
        else:
            _order(scenario, books)


@dataclass(frozen=True, slots=True)
class _JobRequests:
    """The request of each demand; each job's demand and number of nodes."""

    requests: list[PodRequest]
    demand: Int64s
    nodes: Int64s


def _choose(
    placement: Placement, state: NodeLoads, job_requests: _JobRequests, books: ClusterBooks
) -> tuple[Int64s, Int64s]:
    """Nodes for the job that may start, and the GPU of each if it shares one; empty if the head's promise forbids all."""
    from clusterscape.simulate.cluster.job_kernels import CANDIDATES, IS_EXTRA, JOB, SURPLUS

    job, candidate_count = int(books.state[JOB]), int(books.state[CANDIDATES])
    candidates = books.candidates[:candidate_count].copy()
    request, count = job_requests.requests[job_requests.demand[job]], int(job_requests.nodes[job])
    chosen = choose_nodes(placement, state, candidates, count, request)
    if chosen is not None and books.state[IS_EXTRA]:
        harmful = books.harmful[:candidate_count]
        if np.isin(chosen, candidates[harmful]).sum() > books.state[SURPLUS]:
            chosen = choose_nodes(placement, state, candidates[~harmful], count, request)
    if chosen is None:
        return _NOTHING, _NOTHING
    picked = placement.pick_gpu(state, int(chosen[0]), request) if request.is_share else None
    return chosen, np.full(count, -1 if picked is None else picked, np.int64)


def _order(scenario: ClusterScenario, books: ClusterBooks) -> None:
    """Let the policy order the queue before its scheduling pass."""
    from clusterscape.simulate.cluster.job_kernels import NOW, PARTITION

    partition = books.partitions[books.state[PARTITION]]
    first = partition["first_queue"]
    waiting = books.queue[first : first + partition["queued"]]
    estimates = np.asarray(books.jobs["estimate"])
    scores = scenario.policy.score(_waiting(scenario, waiting, int(books.state[NOW]), books, estimates))
    waiting[:] = waiting[np.lexsort((books.jobs["rank"][waiting], scores, -books.jobs["priority"][waiting]))]


def _waiting(
    scenario: ClusterScenario, chosen: Int64s, now_s: int, books: ClusterBooks | None, estimate_s: Int64s
) -> Waiting:
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


def open_books(scenario: ClusterScenario) -> ClusterBooks:
    """The initial state."""
    from clusterscape.simulate.cluster.kernels import OUTAGE_STEP, USER, ClusterBooks, refresh

    cluster, jobs = scenario.cluster, scenario.jobs
    count, width = len(cluster), max(int(cluster.gpus.max()), 1)
    users = int(jobs.user.max()) + 1 if len(jobs) else 1
    units = np.where(np.arange(width) < cluster.gpus[:, None], UNITS_PER_GPU, 0).astype(np.int64)
    demands, demand_of, partition_of = _find_demands(scenario)
    outages = np.array(_outages(scenario), OUTAGE_STEP).reshape(-1)
    books = ClusterBooks(
        nodes=_make_nodes(scenario, units),
        demands=demands,
        jobs=_make_jobs(scenario, demand_of),
        pods=_make_pods(scenario),
        partitions=_make_partitions(scenario, units, partition_of),
        users=_records(USER, users, usage_at=jobs.submit_s[0] if len(jobs) else 0),
        outages=outages.view(np.recarray),
        gpu_units=units,
        held_by_gpus=np.zeros((count, width + 1), np.int64),
        held_by_user=np.zeros((len(cluster.partitions), users), np.int64),
        hosts=np.zeros((len(demands), count), np.bool_),
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
    """A table of ``count`` rows; other columns are 0."""
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


def _make_partitions(scenario: ClusterScenario, units: Int64s, first_demand: Int64s) -> Any:
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
        first_demand=first_demand[:-1],
        end_demand=first_demand[1:],
        first_queue=np.cumsum(waiting) - waiting,
        free_units=np.bincount(cluster.partition, units.sum(axis=1), count),
        ready_demand=NOBODY,
        head=NOBODY,
        user_units=np.array(limits) * UNITS_PER_GPU,
    )


def _find_demands(scenario: ClusterScenario) -> tuple[Any, Int64s, Int64s]:
    """The distinct demands by partition; the demand of each job; and the first demand of each partition."""
    from clusterscape.simulate.cluster.kernels import DEMAND

    jobs = scenario.jobs
    columns = (jobs.partition, jobs.gpus, jobs.units, jobs.cpu_milli, jobs.memory_mib, jobs.models)
    table = np.stack(columns, axis=1).astype(np.int64).reshape(-1, len(columns))
    distinct, demand_of, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    first = np.searchsorted(distinct[:, 0], np.arange(len(scenario.cluster.partitions) + 1))
    popularity = np.zeros(len(distinct))
    for start, stop in pairwise(first.tolist()):
        popularity[start:stop] = _popularity(counts[start:stop], scenario.popularity)
    _, gpus, units, cpu, memory, models = distinct.T
    demands = _records(
        DEMAND, len(distinct), gpus=gpus, units=units, cpu=cpu, memory=memory, models=models, popularity=popularity
    )
    return demands, demand_of.reshape(-1).astype(np.int64), first


def _popularity(counts: Int64s, share: float) -> Float64s:
    """Relative frequency of the most common kinds that make up ``share`` of the jobs; 0 for the others."""
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    common = np.zeros(len(counts))
    common[order] = np.where(before < share * counts.sum(), counts[order], 0)
    return np.asarray(common / max(common.sum(), 1.0))


def _make_jobs(scenario: ClusterScenario, demand_of: Int64s) -> Any:
    from clusterscape.simulate.batch.kernels import NOT_YET
    from clusterscape.simulate.cluster.kernels import JOB

    jobs = scenario.jobs
    return _records(
        JOB,
        len(jobs),
        submit=jobs.submit_s,
        run=jobs.run_s,
        estimate=jobs.estimate_s,
        demand=demand_of,
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
    """Each job's rank: by priority, then by the policy's score if it never changes, then by submission."""
    by_file = scenario.semantics.ties == "file_order"
    ties = np.arange(len(jobs)) if by_file else rank_by(jobs.submit_s.astype(float), jobs.number)
    score = np.zeros(len(jobs))
    if len(jobs) and not _is_ordered_live(scenario):
        score = scenario.policy.score(_waiting(scenario, np.arange(len(jobs)), 0, None, jobs.estimate_s))
    ranks = np.empty(len(jobs), np.int64)
    ranks[np.lexsort((ties, score, -jobs.priority))] = np.arange(len(jobs))
    return ranks


def _is_predicting(scenario: ClusterScenario) -> bool:
    return scenario.backfill.kind == "easy++" or scenario.estimates in PREDICTED


def _is_ordered_live(scenario: ClusterScenario) -> bool:
    """Whether scores change during the simulation: with time or usage, or with predicted estimates."""
    if not scenario.policy.is_static or not _is_predicting(scenario) or not len(scenario.jobs):
        return not scenario.policy.is_static
    all_jobs, estimate_s = np.arange(len(scenario.jobs)), scenario.jobs.estimate_s
    scores = [
        scenario.policy.score(_waiting(scenario, all_jobs, 0, None, estimates))
        for estimates in (estimate_s, np.ones_like(estimate_s))
    ]
    return not np.array_equal(scores[0], scores[1])


def _find_order(scenario: ClusterScenario) -> int:
    """The order in which candidates are tried, as the kernels encode it."""
    from clusterscape.simulate.cluster.job_kernels import BY_AREA, BY_ESTIMATE, BY_QUEUE, BY_SIZE

    if scenario.backfill.kind == "frugal":
        return {"area": BY_AREA, "estimate": BY_ESTIMATE, "processors": BY_SIZE}[scenario.semantics.frugal_by]
    return BY_ESTIMATE if scenario.backfill.kind in ("easy-sjbf", "easy++") else BY_QUEUE


def make_rules(scenario: ClusterScenario) -> ClusterRules:
    """The choices of a scenario as the kernels encode them."""
    from clusterscape.simulate.cluster.pass_kernels import NO_ONE, WHO_FITS, WHO_KEEPS_PROMISE, ClusterRules

    semantics, backfill = scenario.semantics, scenario.backfill
    return ClusterRules(
        fill={"none": NO_ONE, "first-fit": WHO_FITS}.get(backfill.kind, WHO_KEEPS_PROMISE),
        uses_extra=semantics.extra_nodes,
        is_strict=semantics.bound == "strict",
        is_fixed=semantics.promise == "fixed",
        base=BASES[semantics.relaxation_base],
        share=backfill.share if backfill.kind in RELAXED else 0.0,
        whole_at=backfill.whole_at if backfill.kind == "adaptive" else 0.0,
        is_capped=semantics.adaptive_cap == "at_full_share",
        is_queue_kept=semantics.adaptive_queue == "when_blocked",
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

    indices = {name: index for index, name in enumerate(scenario.cluster.names)}
    steps: list[tuple[int, int, int]] = []
    for fault in scenario.faults:
        if fault.node not in indices:
            raise QueryError(f"unknown node {fault.node!r} in a fault")
        steps.append((fault.from_s, FAIL if fault.kind is FaultKind.FAIL else DRAIN, indices[fault.node]))
        if fault.to_s is not None:
            steps.append((fault.to_s, OPEN, indices[fault.node]))
    return sorted(steps)


def _requests(books: ClusterBooks) -> list[PodRequest]:
    columns = (books.demands[name].tolist() for name in ("gpus", "units", "cpu", "memory"))
    return [
        PodRequest(gpus, units, cpu, memory, shape)
        for shape, (gpus, units, cpu, memory) in enumerate(zip(*columns, strict=True))
    ]


def _schedule(scenario: ClusterScenario, books: ClusterBooks) -> ClusterSchedule:
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


@dataclass(frozen=True, slots=True)
class RunningJobs:
    """The state that a simulation starts from. ``job`` and ``node``: rows of one-node jobs that run then, and their nodes.

    Their ``run_s`` and ``estimate_s`` are remaining times; all other jobs submitted until ``now_s`` wait.
    """

    now_s: int
    job: Int64s
    node: Int64s


def simulate_from_now(scenario: ClusterScenario, running: RunningJobs) -> ClusterSchedule:
    """Simulate when and where every job runs from now on. Raises QueryError if running jobs do not fit on their nodes."""
    from clusterscape.simulate.cluster.job_kernels import ARRIVED, CURSOR, NOW, OUTAGE, enqueue, start_job
    from clusterscape.simulate.cluster.pass_kernels import process_outage

    rules, books = make_rules(scenario), open_books(scenario)
    arrived = int(np.searchsorted(scenario.jobs.submit_s, running.now_s, side="right"))
    books.state[NOW], books.state[ARRIVED], books.state[CURSOR] = running.now_s, arrived, 0
    for job, node in zip(running.job.tolist(), running.node.tolist(), strict=True):
        if not books.hosts[books.jobs["demand"][job], node]:
            raise QueryError(f"node {scenario.cluster.names[node]} is too small for its running jobs")
        enqueue(job, books)
        start_job(job, np.array([node]), np.array([-1]), books, rules.half_life)
    due = int(np.searchsorted(books.outages["time"], running.now_s, side="right"))
    while books.state[OUTAGE] < due:
        process_outage(rules, books)
    is_running = np.zeros(len(scenario.jobs), bool)
    is_running[running.job] = True
    for job in np.flatnonzero(~is_running[:arrived]).tolist():
        enqueue(job, books)
    books.partitions["touched"] = True
    return run_from(scenario, rules, books, np.zeros(1, np.int64))
