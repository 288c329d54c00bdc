"""A small cluster in real stores, for the tests of queries, routes and commands."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from clusters.opened import open_queries
from clusterscape.model import (
    Allocation,
    AllocationSource,
    Names,
    Node,
    NodeId,
    NodeState,
    Partition,
    SampleBatch,
    SourceStatus,
    Unit,
    UnitId,
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


@dataclass
class SmallCluster:
    """Three nodes with two GPUs: n1 runs a job and half of a shared GPU, n2 is drained, n3's exporter is silent."""

    metrics: MetricStore
    records: RecordStore
    changes: Changes = field(default_factory=Changes)
    now: UnixMs = NOW

    @property
    def queries(self) -> Queries:
        return open_queries(
            QueryContext(
                metrics=self.metrics,
                records=self.records,
                changes=self.changes,
                clock=lambda: self.now,
                cluster="small",
            )
        )

    def store_sample(self, metric: str, unit: UnitId, time_ms: int, value: float) -> None:
        self.metrics.append(
            SampleBatch(
                Names([unit]),
                Names([metric]),
                np.zeros(1, np.int32),
                np.zeros(1, np.int32),
                np.array([time_ms], np.int64),
                np.array([value]),
            )
        )
        self.changes.bump_tick(UnixMs(time_ms))


def unit(node: str, index: int) -> UnitId:
    return gpu_unit_id(NodeId(node), index)


@pytest.fixture
def small_cluster(tmp_path: Path) -> Iterator[SmallCluster]:
    storage = StorageSettings(data_dir=tmp_path / "data")
    cluster = SmallCluster(open_metric_store(storage, RetentionSettings()), open_record_store(storage))
    fill_inventory(cluster.records)
    fill_queue(cluster.records)
    for place, value in ((unit("n1", 0), 0.9), (unit("n1", 1), 0.5)):
        for minutes in (30, 20, 10, 0):
            cluster.store_sample("gpu_util_ratio", place, NOW - minutes * 60_000 - 1000, value)
        cluster.store_sample("power_watts", place, NOW - 1000, 300.0)
    yield cluster
    cluster.metrics.close()
    cluster.records.close()


def fill_inventory(records: RecordStore) -> None:
    states = {"n1": NodeState.MIXED, "n2": NodeState.DRAINED, "n3": NodeState.IDLE}
    nodes = [
        Node(
            id=NodeId(name),
            partitions=("main", "debug") if name == "n1" else ("main",),
            machine_type="A100-80G",
            state=state,
            reason="fan" if name == "n2" else None,
            gpu_count=2,
        )
        for name, state in states.items()
    ]
    records.write_inventory(
        nodes=nodes,
        partitions=[
            Partition(name="main", nodes=tuple(node.id for node in nodes)),
            Partition(name="debug", nodes=(NodeId("n1"),)),
        ],
        units=[Unit(id=unit(node.id, i), node=node.id, index=i) for node in nodes for i in range(2)],
        at_ms=NOW,
    )
    records.write_sources(
        [
            SourceStatus(
                source="http://n3:9400/metrics",
                kind="dcgm",
                is_ok=False,
                at=NOW,
                node=NodeId("n3"),
                message="connection refused",
                hint="Start dcgm-exporter on n3.",
            )
        ]
    )


def fill_queue(records: RecordStore) -> None:
    running = Workload(
        id=WorkloadId("slurm:1"),
        state=WorkloadState.RUNNING,
        name="train",
        user="ada",
        project="nlp",
        partition="main",
        gpus_requested=2,
        submitted_at=UnixMs(NOW - 2 * HOUR_MS),
        started_at=UnixMs(NOW - HOUR_MS),
        nodes=("n1",),
    )
    sharing = Workload(
        id=WorkloadId("slurm:2"), state=WorkloadState.RUNNING, user="bob", partition="main", gpus_requested=1
    )
    waiting = Workload(
        id=WorkloadId("slurm:3"),
        state=WorkloadState.WAITING,
        name="100%_sure",
        user="ada",
        project="nlp",
        partition="debug",
        resource_type="A100-3",
        gpus_requested=3,
        submitted_at=UnixMs(NOW - HOUR_MS),
        pending_reason="QOSMaxGRESPerUser",
    )
    done = Workload(
        id=WorkloadId("slurm:0"),
        state=WorkloadState.FAILED,
        user="eve",
        gpus_requested=1,
        submitted_at=UnixMs(NOW - 9 * HOUR_MS),
        started_at=UnixMs(NOW - 8 * HOUR_MS),
        ended_at=UnixMs(NOW - 6 * HOUR_MS),
        exit_code=1,
    )
    records.write_workloads([running, sharing, waiting, done], at_ms=NOW)
    start = UnixMs(NOW - HOUR_MS)
    records.write_allocations(
        [
            Allocation(workload=running.id, unit=unit("n1", 0), from_at=start),
            Allocation(workload=running.id, unit=unit("n1", 1), from_at=start),
            Allocation(
                workload=sharing.id,
                unit=unit("n1", 1),
                from_at=start,
                source=AllocationSource.EXPORTER_LABEL,
                confidence=0.9,
            ),
            Allocation(
                workload=done.id, unit=unit("n1", 0), from_at=UnixMs(NOW - 8 * HOUR_MS), to_at=UnixMs(NOW - 6 * HOUR_MS)
            ),
        ]
    )
