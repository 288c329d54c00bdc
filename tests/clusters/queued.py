"""Four nodes of eight GPUs in two partitions, all but one busy, with a queue, in a real record store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clusters.opened import open_queries, open_services
from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    NodeState,
    Partition,
    Unit,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.query import Queries, QueryContext
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore

NOW = UnixMs(1_790_000_000_000)
HOUR_MS = 3_600_000
GPUS = 8


@dataclass
class QueuedCluster:
    """``main``: n1 and n2, held until in 2 h and in 5 h. ``spare``: n3, held for 9 h by half, and n4, free."""

    metrics: MetricStore
    records: RecordStore
    changes: Changes = field(default_factory=Changes)
    now: UnixMs = NOW

    def __post_init__(self) -> None:
        self.queries = self.make_queries()
        self.services = open_services(self.queries)

    def make_queries(self) -> Queries:
        """As after a restart."""
        return open_queries(
            QueryContext(
                metrics=self.metrics,
                records=self.records,
                changes=self.changes,
                clock=lambda: self.now,
                cluster="queued",
            )
        )

    def run(self, name: str, node: str, gpus: int, *, hours: float, since_h: float = 1.0) -> None:
        """A running workload on the first GPUs of a node, ``hours`` before its limit."""
        started = UnixMs(int(self.now - since_h * HOUR_MS))
        workload = Workload(
            id=WorkloadId(name),
            state=WorkloadState.RUNNING,
            user="ada",
            partition="spare" if node in ("n3", "n4") else "main",
            gpus_requested=gpus,
            nodes_requested=1,
            time_limit_s=int((since_h + hours) * 3600),
            submitted_at=started,
            started_at=started,
            nodes=(node,),
        )
        self.records.write_workloads([workload], at_ms=self.now)
        self.records.write_allocations(
            Allocation(workload=workload.id, unit=gpu_unit_id(NodeId(node), at), from_at=started) for at in range(gpus)
        )
        self.changes.bump_inventory()

    def wait(
        self,
        name: str,
        gpus: int,
        *,
        nodes: int = 1,
        hours: float = 1.0,
        priority: int = 100,
        since_h: float = 1.0,
        reason: str = "Priority",
        user: str = "bob",
    ) -> None:
        """A workload that waits in ``main``."""
        workload = Workload(
            id=WorkloadId(name),
            state=WorkloadState.WAITING,
            user=user,
            partition="main",
            resource_type=f"A100-{gpus}",
            gpus_requested=gpus,
            nodes_requested=nodes,
            time_limit_s=int(hours * 3600),
            priority=priority,
            submitted_at=UnixMs(int(self.now - since_h * HOUR_MS)),
            pending_reason=reason,
        )
        self.records.write_workloads([workload], at_ms=self.now)
        self.changes.bump_inventory()

    def start(self, name: str, node: str) -> None:
        """A waiting workload begins now."""
        stored = self.records.workload(WorkloadId(name))
        assert stored is not None
        limit_h = (stored.time_limit_s or 0) / 3600
        self.run(name, node, stored.gpus_requested, hours=limit_h, since_h=0.0)


@pytest.fixture
def queued_cluster(tmp_path: Path) -> Iterator[QueuedCluster]:
    with open_queued_cluster(tmp_path) as cluster:
        yield cluster


@contextmanager
def open_queued_cluster(folder: Path) -> Iterator[QueuedCluster]:
    """The same for processes that have no fixtures."""
    storage = StorageSettings(data_dir=folder / "data")
    cluster = QueuedCluster(open_metric_store(storage, RetentionSettings()), open_record_store(storage))
    parts = {"main": ("n1", "n2"), "spare": ("n3", "n4")}
    nodes = [
        Node(id=NodeId(name), partitions=(part,), machine_type="A100", state=NodeState.MIXED, gpu_count=GPUS)
        for part, names in parts.items()
        for name in names
    ]
    cluster.records.write_inventory(
        nodes=nodes,
        partitions=[Partition(name=part, nodes=tuple(map(NodeId, names))) for part, names in parts.items()],
        units=[Unit(id=gpu_unit_id(node.id, at), node=node.id, index=at) for node in nodes for at in range(GPUS)],
        at_ms=NOW,
    )
    cluster.run("slurm:1", "n1", GPUS, hours=2)
    cluster.run("slurm:2", "n2", GPUS, hours=5)
    cluster.run("slurm:3", "n3", 4, hours=9)
    yield cluster
    cluster.metrics.close()
    cluster.records.close()
