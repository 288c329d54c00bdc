"""Input and output of a GPU cluster simulation: nodes, partitions, jobs with gangs and GPU sharing, schedules."""

import hashlib
import json
from dataclasses import asdict, dataclass, field

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Bools, Int64s
from clusterscape.simulate.batch.contract import Backfill, Estimates, Policy
from clusterscape.simulate.batch.semantics import CLUSTERSCAPE, Semantics
from clusterscape.simulate.faults import NodeFault
from clusterscape.simulate.placing import UNITS_PER_GPU, Placement

ENGINE = "cluster 3"
"""The engine's version. Increase it whenever the same input may give another schedule, so that fingerprints differ."""

BACKFILLS = ("none", "first-fit", "easy", "easy-sjbf", "easy++", "relaxed", "adaptive", "frugal")
"""The kinds of `Backfill` that are available on nodes. Conservative backfilling is not: see ``_WITHOUT``."""

_WITHOUT = {
    "conservative": "It promises nodes to every waiting job, so at each pass the placement would have to choose nodes for all of "
    "them on a future cluster; placements only see the current one."
}

_ONLY = {
    "events": "batch",
    "freed": "at_end",
    "head": "reordered",
    "candidate_order": "queue",
    "candidate_time": "estimate",
}


@dataclass(frozen=True, slots=True)
class NodePool:
    """A partition: a part of the cluster with its own queue. None: no limit."""

    name: str
    max_gpus_per_job: int | None = None
    max_run_s: int | None = None
    max_gpus_per_user: int | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes, one row each, and partitions; each node belongs to exactly one. ``model``: index into ``models``.

    ``slices``: number of equal parts of a shared GPU (MIG: 7), 0: any share.
    """

    names: tuple[str, ...]
    gpus: Int64s
    cpu_milli: Int64s
    memory_mib: Int64s
    model: Int64s
    models: tuple[str, ...]
    partition: Int64s
    slices: Int64s
    partitions: tuple[NodePool, ...] = (NodePool("all"),)

    def __post_init__(self) -> None:
        if len(self.names) == 0 or len(self.models) > 62:
            raise QueryError("a cluster must have at least one node and at most 62 GPU models")
        if len(set(self.names)) != len(self.names):
            raise QueryError("two nodes of the cluster have the same name")
        if any(UNITS_PER_GPU % int(count) for count in np.unique(self.slices) if count):
            raise QueryError(f"the number of slices of a GPU must divide {UNITS_PER_GPU}")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def total_gpus(self) -> int:
        """GPUs of all nodes."""
        return int(self.gpus.sum())


@dataclass(frozen=True, slots=True)
class ClusterJobs:
    """Jobs in submit order, whole seconds, 1 ≤ run ≤ estimate. A gang requests the same on each of ``nodes`` different nodes.

    ``units`` of each of ``gpus`` GPUs (UNITS_PER_GPU: whole GPUs). ``models``: bit m set if GPUs of model m are allowed, 0: any.
    ``priority``: higher goes first, before the policy. ``row``: row in the trace; ``number`` orders ties.
    """

    row: Int64s
    submit_s: Int64s
    run_s: Int64s
    estimate_s: Int64s
    nodes: Int64s
    gpus: Int64s
    units: Int64s
    cpu_milli: Int64s
    memory_mib: Int64s
    models: Int64s
    partition: Int64s
    user: Int64s
    priority: Int64s
    number: Int64s

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def total_units(self) -> Int64s:
        """GPU units over all nodes of a job."""
        return self.nodes * self.gpus * self.units


@dataclass(frozen=True, slots=True)
class ClusterScenario:
    """The complete input of one simulation: equal scenarios give equal schedules.

    ``preempts``: jobs of higher priority evict others. ``checkpoint_s``: how often jobs save their work; None: never, so that an
    evicted job, or one whose node fails, starts from the beginning. ``depth``: candidates tried behind a head; None: all.
    ``popularity``: fragmentation counts the most common kinds of jobs that make up this share.
    """

    cluster: Cluster
    jobs: ClusterJobs
    policy: Policy
    backfill: Backfill
    placement: Placement
    estimates: Estimates = "request"
    semantics: Semantics = CLUSTERSCAPE
    faults: tuple[NodeFault, ...] = ()
    preempts: bool = False
    checkpoint_s: int | None = None
    depth: int | None = None
    popularity: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.backfill.kind not in BACKFILLS:
            raise QueryError(
                f"backfilling {self.backfill.kind!r} is not available for clusters of nodes",
                hint=" ".join(
                    filter(None, (_WITHOUT.get(self.backfill.kind), f"Choose one of: {', '.join(BACKFILLS)}."))
                ),
            )
        for name, value in _ONLY.items():
            if getattr(self.semantics, name) != value:
                raise QueryError(
                    f"clusters of nodes support only {name} = {value}", hint="Use --semantics clusterscape."
                )

    def fingerprint(self) -> str:
        """A hash of every node, job, fault and choice."""
        digest = hashlib.sha256()
        choices = {
            "engine": ENGINE,
            "policy": repr(self.policy),
            "backfill": asdict(self.backfill),
            "placement": repr(self.placement),
            "estimates": self.estimates,
            "semantics": asdict(self.semantics),
            "faults": [asdict(fault) for fault in self.faults],
            "partitions": [asdict(partition) for partition in self.cluster.partitions],
            "names": self.cluster.names,
            "models": self.cluster.models,
            "others": [self.preempts, self.checkpoint_s, self.depth, self.popularity, self.seed],
        }
        digest.update(json.dumps(choices, sort_keys=True).encode())
        for table in (self.cluster, self.jobs):
            for name in table.__slots__:
                column = getattr(table, name)
                if isinstance(column, np.ndarray) and name != "row":
                    digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Integrals:
    """Totals over time in GPU-seconds: idle, idle in fragments, idle but unusable for a waiting gang, lost.

    ``blocked``: GPUs that the first waiting job requests while enough are idle, but not where it could use them.
    """

    idle: float
    fragmented: float
    blocked: float
    lost: float


@dataclass(frozen=True, slots=True)
class ClusterSchedule:
    """When each job first starts and finally ends (if ``has_ended``), its number of attempts and its lost work.

    ``promise_s`` is valid only where ``has_promise``. ``nodes[first_pod[j] : first_pod[j] + jobs.nodes[j]]``: the last nodes of
    job j (−1: none).
    """

    scenario: ClusterScenario
    start_s: Int64s
    end_s: Int64s
    promise_s: Int64s
    attempts: Int64s
    lost_s: Int64s
    has_started: Bools
    has_ended: Bools
    has_promise: Bools
    nodes: Int64s
    first_pod: Int64s
    integrals: Integrals = field(default_factory=lambda: Integrals(0.0, 0.0, 0.0, 0.0))

    @property
    def wait_s(self) -> Int64s:
        """Seconds from submission to the first start."""
        return self.start_s - self.scenario.jobs.submit_s
