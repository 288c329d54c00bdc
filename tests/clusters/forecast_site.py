"""A small site with a queue, for the tests of forecasts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.small import HOUR_MS, NOW, SmallCluster
from clusterscape.model import Node, NodeId, NodeState, Partition, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store


@pytest.fixture
def forecast_site(tmp_path: Path) -> Iterator[SmallCluster]:
    """Two nodes of four A100 in partition ``gpu``, held until an hour from now; one free node of four V100 in ``old``."""
    storage = StorageSettings(data_dir=tmp_path)
    metrics = open_metric_store(storage, RetentionSettings(), cluster="forecast")
    records = open_record_store(storage)
    site = SmallCluster(metrics, records)
    nodes = [
        Node(id=NodeId(name), partitions=(part,), machine_type=kind, state=NodeState.MIXED, gpu_count=4)
        for name, part, kind in (("a1", "gpu", "A100-80G"), ("a2", "gpu", "A100-80G"), ("v1", "old", "V100"))
    ]
    parts = [
        Partition(name="gpu", nodes=(NodeId("a1"), NodeId("a2")), max_time_s=86_400),
        Partition(name="old", nodes=(NodeId("v1"),)),
    ]
    records.write_inventory(nodes=nodes, partitions=parts, units=[], at_ms=NOW)
    records.write_workloads([running("1", 6, hours=2), waiting("2", 4, priority=5), waiting("3", 4)], at_ms=NOW)
    yield site
    metrics.close()
    records.close()


def running(name: str, gpus: int, *, hours: int) -> Workload:
    return Workload(
        id=WorkloadId(f"slurm:{name}"),
        state=WorkloadState.RUNNING,
        user="ann",
        partition="gpu",
        gpus_requested=gpus,
        nodes=("a1", "a2"),
        time_limit_s=hours * 3600,
        submitted_at=UnixMs(NOW - 2 * HOUR_MS),
        started_at=UnixMs(NOW - HOUR_MS),
    )


def waiting(name: str, gpus: int, *, priority: int | None = None) -> Workload:
    return Workload(
        id=WorkloadId(f"slurm:{name}"),
        state=WorkloadState.WAITING,
        user="bob",
        partition="gpu",
        gpus_requested=gpus,
        priority=priority,
        time_limit_s=3600,
        submitted_at=UnixMs(NOW - HOUR_MS // 2),
    )
