"""The live queue as the engine takes it: each partition (or one machine type of it) a homogeneous pool of GPUs.

An assumption, and told as one: which node a job's GPUs come from is left out, and so are limits per user and reservations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.features import RanJobs, to_ran_jobs
from clusterscape.model import Node, Partition, UnixMs, Workload, WorkloadState
from clusterscape.model.jobs import JobStatus
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.query.scheduling.models import Learned
from clusterscape.query.scheduling.waiting_forecast import Question
from clusterscape.simulate.forecast import QueueState
from clusterscape.store.records.contract import RecordStore

ASSUMPTIONS = (
    "Each partition counts as one pool of GPUs: which node they are on is left out.",
    "Waiting workloads go by priority, then by submission; later ones may fill gaps without delaying the first (EASY).",
    "Memory counts by what nodes have in all: what others hold of it is not known.",
    "Free GPUs that are left idle although a waiting workload asks for no more count as usable only once a neighbor ends.",
    "Workloads that wait for something else than GPUs (a dependency, a limit, a date) are left out, and so is pre-emption.",
    "Whoever comes later comes as in former weeks at this hour.",
)

FOR_GPUS = frozenset({"", "None", "Resources", "Priority", "Prolog"})
"""Words of the scheduler for waiting that ends when GPUs are free."""

LOOKS_EVERY_S = 120.0
"""A workload that waits longer than this beside enough free GPUs was looked at by its scheduler, and did not fit."""

UNKNOWN_LIMIT_S = 86_400.0
"""Of jobs without a time limit, where nothing else is known."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that is not submitted: so many GPUs for so long, by ``user`` where it is said."""

    gpus: int
    limit_s: float
    user: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """The GPUs of one partition, of one machine type where named.

    ``running``: with the GPUs each holds here, and with its share of the free ones that are not usable while it runs.
    ``left_out``: waiting workloads that wait for something else, or for more than there is.
    """

    partition: str
    machine_type: str | None
    total: int
    max_time_s: int | None
    running: tuple[tuple[Workload, int], ...]
    waiting: tuple[Workload, ...]
    left_out: int

    @property
    def free(self) -> int:
        """GPUs that nobody holds and that are usable."""
        return max(0, self.total - sum(gpus for _, gpus in self.running))


def find_pools(
    records: RecordStore, now: UnixMs, *, machine_type: str | None = None, memory_gib: float | None = None
) -> list[Pool]:
    """Every open partition that has such GPUs, by name; ``memory_gib``: on nodes with at least so much."""
    nodes = {node.id: node for node in records.nodes()}
    active = records.active_workloads()
    pools = []
    for part in records.partitions():
        if part.is_up:
            members = [nodes[name] for name in part.nodes if name in nodes and _has_memory(nodes[name], memory_gib)]
            pool = _make_pool(part, members, active, machine_type, now)
            if pool.total:
                pools.append(pool)
    return pools


def _has_memory(node: Node, memory_gib: float | None) -> bool:
    """Whether a node has so much in all; one that does not say counts as large enough."""
    return memory_gib is None or node.memory_bytes is None or node.memory_bytes >= memory_gib * 2**30


def _make_pool(
    part: Partition, members: list[Node], active: Sequence[Workload], machine_type: str | None, now: UnixMs
) -> Pool:
    wanted = None if machine_type is None else machine_type.casefold()
    # "A100" asks for "A100-80G", too.
    own = [n for n in members if wanted is None or (n.machine_type or "").casefold().startswith(wanted)]
    names = {node.id for node in own}
    kinds = {node.machine_type for node in own}
    running = []
    for workload in active:
        here = sum(node in names for node in workload.nodes)
        if workload.state is not WorkloadState.WAITING and here and workload.gpus_requested:
            running.append((workload, max(1, round(workload.gpus_requested * here / len(workload.nodes)))))
    here_waiting = [
        w for w in active if w.state is WorkloadState.WAITING and w.partition == part.name and w.gpus_requested
    ]
    total = sum(node.gpu_count for node in own if node.state.is_available)
    waiting = [w for w in here_waiting if _waits_for_gpus(w) and w.gpus_requested <= total]
    waiting.sort(key=lambda w: (-(w.priority or 0), w.submitted_at or 0, w.id))
    running = _give_stranded(running, _find_stranded(total, running, waiting, now))
    return Pool(
        part.name,
        next(iter(kinds)) if len(kinds) == 1 else None,
        total,
        part.max_time_s,
        tuple(running),
        tuple(waiting),
        len(here_waiting) - len(waiting),
    )


def _waits_for_gpus(workload: Workload) -> bool:
    return (workload.pending_reason or "").split(",")[0].strip().strip("()") in FOR_GPUS


def _find_stranded(total: int, running: list[tuple[Workload, int]], waiting: list[Workload], now: UnixMs) -> int:
    """Free GPUs that the scheduler evidently cannot use: a workload that asks for no more has been left waiting beside them."""
    free = total - sum(gpus for _, gpus in running)
    stuck = [
        workload.gpus_requested
        for workload in waiting
        if workload.gpus_requested <= free and now - (workload.submitted_at or now) > LOOKS_EVERY_S * 1000
    ]
    return free - min(stuck) + 1 if stuck else 0


def _give_stranded(running: list[tuple[Workload, int]], stranded: int) -> list[tuple[Workload, int]]:
    """Free GPUs that are not usable become so when their neighbors end: each running workload has its share of them."""
    held = sum(gpus for _, gpus in running)
    if not stranded or not held:
        return running
    upto = np.rint(np.cumsum([gpus for _, gpus in running]) * stranded / held).astype(np.int64)
    shares = np.diff(upto, prepend=0)
    return [(workload, gpus + int(share)) for (workload, gpus), share in zip(running, shares, strict=True)]


def make_question(pool: Pool, ask: Ask | None, learned: Learned, now: UnixMs) -> Question:
    """The state of the pool now; ``ask`` waits behind all others."""
    now_s = now / 1000
    longest = float(learned.jobs.request_s.max()) if len(learned.jobs) else UNKNOWN_LIMIT_S
    jobs = _to_jobs(pool, ask, now_s, longest)
    held = len(pool.running)
    elapsed = np.zeros(len(jobs))
    elapsed[:held] = np.maximum(now_s - jobs.start_s[:held], 0.0)
    left = np.maximum(jobs.request_s[:held] - elapsed[:held], 1.0)
    state = QueueState(
        max(pool.total, 1),
        _whole(np.array([gpus for _, gpus in pool.running], np.float64)),
        _whole(left),
        _whole(jobs.size[held:]),
        _whole(jobs.request_s[held:]),
    )
    return Question(state, learned.history.find(jobs), now_s, elapsed)


def _to_jobs(pool: Pool, ask: Ask | None, now_s: float, longest_s: float) -> RanJobs:
    workloads = [*(workload for workload, _ in pool.running), *pool.waiting]
    rows = [
        {
            "user": w.user,
            "project": w.project,
            "queue": w.partition,
            "submit_s": (w.submitted_at or w.started_at or now_s * 1000) / 1000,
            "start_s": (w.started_at or now_s * 1000) / 1000,
            "size": float(w.gpus_requested),
            "requested_s": float(w.time_limit_s or pool.max_time_s or longest_s),
        }
        for w in workloads
    ]
    if ask is not None:
        about = {"user": ask.user, "project": ask.project, "queue": pool.partition, "size": float(ask.gpus)}
        rows.append(about | {"submit_s": now_s, "start_s": now_s, "requested_s": float(ask.limit_s)})
    schema = {
        "user": pl.String(),
        "project": pl.String(),
        "queue": pl.String(),
        "submit_s": pl.Float64(),
        "start_s": pl.Float64(),
        "size": pl.Float64(),
        "requested_s": pl.Float64(),
    }
    frame = pl.DataFrame(rows, schema=schema).with_columns(
        run_s=pl.lit(None, pl.Float64), status=pl.lit(JobStatus.UNKNOWN.value)
    )
    return to_ran_jobs(frame)


def _whole(values: Float64s) -> Int64s:
    return np.ceil(values).astype(np.int64)
