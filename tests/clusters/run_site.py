"""One job on a few nodes in real stores, with samples as a test wants them: for the tests of the diagnosis."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clusters.opened import open_queries
from clusterscape.model import (
    Allocation,
    Names,
    Node,
    NodeId,
    Partition,
    SampleBatch,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.query import Queries, QueryContext
from clusterscape.query.diagnosis import DiagnosisQuery
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore

NOW = UnixMs(1_790_000_040_000)  # a whole minute
STEP_MS, HOUR_MS = 15_000, 3_600_000
JOB = WorkloadId("slurm:7")
GPUS_PER_NODE = 4

Values = NDArray[np.float64]


@dataclass
class RunSite:
    """Eight nodes with four GPUs; ``hold`` starts the job, ``store`` gives it samples."""

    metrics: MetricStore
    records: RecordStore
    nodes: tuple[NodeId, ...] = tuple(NodeId(f"n{i}") for i in range(8))
    now: UnixMs = NOW
    queries: Queries = field(init=False)

    def __post_init__(self) -> None:
        context = QueryContext(
            metrics=self.metrics, records=self.records, changes=Changes(), clock=lambda: self.now, cluster="run"
        )
        self.queries = open_queries(context)
        self.records.write_inventory(
            nodes=[
                Node(id=node, partitions=("main",), machine_type="H100", gpu_count=GPUS_PER_NODE, rack=f"r{i // 2}")
                for i, node in enumerate(self.nodes)
            ],
            partitions=[Partition(name="main", nodes=self.nodes)],
            units=[
                Unit(id=gpu_unit_id(node, i), node=node, index=i, memory_bytes=80 * 2**30)
                for node in self.nodes
                for i in range(GPUS_PER_NODE)
            ],
            at_ms=self.now,
        )

    @property
    def diagnosis(self) -> DiagnosisQuery:
        return self.queries.diagnosis

    @property
    def units(self) -> list[UnitId]:
        return [gpu_unit_id(node, i) for node in self.nodes for i in range(GPUS_PER_NODE)]

    def hold(
        self,
        units: Mapping[UnitId, tuple[int, int | None]],
        *,
        state: WorkloadState = WorkloadState.RUNNING,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        start = min((begin for begin, _ in units.values()), default=None)
        job = Workload(
            id=JOB,
            state=state,
            name="train",
            user="ada",
            project="nlp",
            partition="main",
            gpus_requested=max(1, len(units)),
            started_at=None if start is None else UnixMs(start),
            nodes=tuple(self.nodes),
            tags=tags or {},
        )
        self.records.write_workloads([job], at_ms=self.now)
        self.records.write_allocations(
            [
                Allocation(workload=JOB, unit=unit, from_at=UnixMs(begin), to_at=None if stop is None else UnixMs(stop))
                for unit, (begin, stop) in units.items()
            ]
        )

    def store(self, metric: str, unit: UnitId, times_ms: NDArray[np.int64], values: Values) -> None:
        size = len(times_ms)
        zeros = np.zeros(size, np.int32)
        self.metrics.append_history(
            [SampleBatch(Names([unit]), Names([metric]), zeros, zeros, times_ms.astype(np.int64), values)]
        )

    def store_many(self, metric: str, columns: Mapping[UnitId, tuple[NDArray[np.int64], Values]]) -> None:
        """Of several units at once."""
        sizes = [len(times) for times, _ in columns.values()]
        self.metrics.append_history(
            [
                SampleBatch(
                    Names(columns),
                    Names([metric]),
                    np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
                    np.zeros(sum(sizes), np.int32),
                    np.concatenate([times for times, _ in columns.values()]).astype(np.int64),
                    np.concatenate([values for _, values in columns.values()]),
                )
            ]
        )

    def train(self, *, hours: float = 2.0, lazy_rank: int | None = 0, seed: int = 0) -> NDArray[np.int64]:
        """The job on all GPUs; the ``lazy_rank`` of each node is less busy. Each node is scraped at its own offset."""
        begin = int(self.now - hours * HOUR_MS)
        self.hold(dict.fromkeys(self.units, (begin, None)))
        rng = np.random.default_rng(seed)
        times = np.arange(begin, self.now, STEP_MS, dtype=np.int64)
        wave = 0.8 + 0.1 * np.sin(np.arange(times.size) / 20)
        utils = {}
        for place, unit in enumerate(self.units):
            less = 0.3 if place % GPUS_PER_NODE == lazy_rank else 0.0
            noise = rng.normal(0, 0.03, times.size)
            utils[unit] = (times + 137 * (place // GPUS_PER_NODE), np.clip(wave - less + noise, 0, 1))
        self.store_many("gpu_util_ratio", utils)
        self.store_many("power_watts", {unit: (when, 100 + 500 * util) for unit, (when, util) in utils.items()})
        return times


@pytest.fixture
def run_site(tmp_path: Path) -> Iterator[RunSite]:
    storage = StorageSettings(data_dir=tmp_path / "data")
    site = RunSite(open_metric_store(storage, RetentionSettings()), open_record_store(storage))
    yield site
    site.metrics.close()
    site.records.close()
