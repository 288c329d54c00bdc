"""A site with one partition whose jobs and clock the test controls, in real stores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from clusterscape.model import (
    Allocation,
    AllocationSource,
    Names,
    Node,
    NodeId,
    SampleBatch,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.watcher import Watch

T0 = 1_790_000_000_000
START = UnixMs(T0)
MINUTE = 60_000
SCRAPE_MS = 15_000

Curve = Callable[[float], float]
"""A value by the minute since T0."""


@dataclass
class WatchedSite:
    """Eight GPUs on one node."""

    folder: Path
    alerts: Alerts | None = None
    metrics: MetricStore = field(init=False)
    records: RecordStore = field(init=False)
    watch: Watch = field(init=False)
    changes: Changes = field(default_factory=Changes)
    now: UnixMs = START
    units: Sequence[UnitId] = tuple(gpu_unit_id(NodeId("n1"), index) for index in range(8))

    def __post_init__(self) -> None:
        storage = StorageSettings(data_dir=self.folder)
        self.metrics = open_metric_store(storage, RetentionSettings(), cluster="test")
        self.records = open_record_store(storage)
        units = [
            Unit(id=unit, node=NodeId("n1"), index=index, machine_type="A100-80G", power_limit_watts=400.0)
            for index, unit in enumerate(self.units)
        ]
        self.records.write_inventory(nodes=[Node(id=NodeId("n1"))], partitions=[], units=units, at_ms=self.now)
        self.open_watch()

    def open_watch(self) -> None:
        """Open the watch as after a restart of the program."""
        self.watch = Watch(
            records=self.records,
            metrics=self.metrics,
            changes=self.changes,
            clock=lambda: self.now,
            checkpoint=self.folder / "life-statistics.bin",
            alerts=self.alerts,
        )
        self.watch.open()

    def start_job(self, name: str, gpus: Sequence[int], *, user: str = "ann") -> WorkloadId:
        """Start a job that holds GPUs from now on."""
        workload = WorkloadId(f"slurm:{name}")
        job = Workload(
            id=workload,
            state=WorkloadState.RUNNING,
            name=name,
            user=user,
            project="p1",
            gpus_requested=len(gpus),
            started_at=self.now,
        )
        self.records.write_workloads([job], at_ms=self.now)
        held = [
            Allocation(
                workload=workload,
                unit=self.units[gpu],
                from_at=self.now,
                source=AllocationSource.SCHEDULER_INDEX,
                confidence=1.0,
            )
            for gpu in gpus
        ]
        self.records.write_allocations(held)
        self.watch.on_allocations(self.records.open_allocations(), self.now)
        return workload

    def end_job(self, workload: WorkloadId) -> None:
        """End a job now."""
        from dataclasses import replace

        job = self.records.workload(workload)
        assert job is not None
        self.records.write_workloads([replace(job, state=WorkloadState.COMPLETED, ended_at=self.now)], at_ms=self.now)
        allocations = [allocation for allocation in self.records.open_allocations() if allocation.workload == workload]
        self.records.write_allocations([replace(allocation, to_at=self.now) for allocation in allocations])
        self.watch.on_allocations(self.records.open_allocations(), self.now)

    def run_until(self, minute: float, curves: Mapping[str, Sequence[Curve]], *, judge_every: int = 4) -> None:
        """Scrape until ``minute``. ``curves``: one per unit for each metric; rules are judged every ``judge_every`` scrapes."""
        scrape = 0
        while self.now < T0 + minute * MINUTE:
            self.now = UnixMs(self.now + SCRAPE_MS)
            batch = self.sample(curves)
            self.metrics.append(batch)
            self.watch.on_samples(batch)
            scrape += 1
            if scrape % judge_every == 0:
                self.watch.judge()

    def sample(self, curves: Mapping[str, Sequence[Curve]]) -> SampleBatch:
        """One scrape at the current time."""
        at = (self.now - T0) / MINUTE
        names = list(curves)
        values = np.array([[curve(at) for curve in curves[name]] for name in names])
        units = len(self.units)
        return SampleBatch(
            Names(self.units),
            Names(names),
            np.tile(np.arange(units, dtype=np.int32), len(names)),
            np.repeat(np.arange(len(names), dtype=np.int32), units),
            np.full(len(names) * units, self.now, np.int64),
            values.ravel(),
        )

    def close(self) -> None:
        """Close as at the end of the program."""
        self.watch.close()
        self.metrics.close()
        self.records.close()
