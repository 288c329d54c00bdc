"""Frozen records and ids: what a cluster is made of, who asks for it and what was measured. Imports nothing of ours."""

from clusterscape.model.ids import (
    GpuUuid,
    NodeId,
    UnitId,
    UnixMs,
    WorkloadId,
    gpu_unit_id,
    mig_unit_id,
    requested_unit_id,
)
from clusterscape.model.inventory import Node, NodeState, NodeTurn, Partition, Unit, UnitKind
from clusterscape.model.metrics import ALIASES, CATALOGUE, METRICS, Alias, Metric, MetricKind, MetricUnit
from clusterscape.model.observations import (
    HistoryObserved,
    InventoryObserved,
    Observation,
    QueueObserved,
    ScrapeObserved,
    SourceStatus,
)
from clusterscape.model.samples import Names, RawScrape, RawSeries, SampleBatch, SeriesTable
from clusterscape.model.workloads import (
    CONFIDENCE,
    Allocation,
    AllocationSource,
    Workload,
    WorkloadKind,
    WorkloadState,
)

__all__ = [
    "ALIASES",
    "CATALOGUE",
    "CONFIDENCE",
    "METRICS",
    "Alias",
    "Allocation",
    "AllocationSource",
    "GpuUuid",
    "HistoryObserved",
    "InventoryObserved",
    "Metric",
    "MetricKind",
    "MetricUnit",
    "Names",
    "Node",
    "NodeId",
    "NodeState",
    "NodeTurn",
    "Observation",
    "Partition",
    "QueueObserved",
    "RawScrape",
    "RawSeries",
    "SampleBatch",
    "ScrapeObserved",
    "SeriesTable",
    "SourceStatus",
    "Unit",
    "UnitId",
    "UnitKind",
    "UnixMs",
    "Workload",
    "WorkloadId",
    "WorkloadKind",
    "WorkloadState",
    "gpu_unit_id",
    "mig_unit_id",
    "requested_unit_id",
]
