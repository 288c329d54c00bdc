"""Frozen records and ids: what a cluster is made of, who asks for it and what was measured. Imports nothing of ours.

A tracked script must not pay for numpy nor for the catalogue: each name is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterscape.model.ids import (
        GpuUuid,
        NodeId,
        UnitId,
        UnixMs,
        WorkloadId,
        gpu_unit_id,
        mig_unit_id,
        requested_unit_id,
        unplaced_unit_id,
    )
    from clusterscape.model.inventory import Node, NodeState, NodeTurn, Partition, Unit, UnitKind
    from clusterscape.model.metrics import ALIASES, CATALOGUE, METRICS, Alias, Metric, MetricKind, MetricUnit
    from clusterscape.model.observations import (
        HistoryObserved,
        InventoryObserved,
        Observation,
        PrioritiesObserved,
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

_NAMES = {
    "ids": "GpuUuid NodeId UnitId UnixMs WorkloadId gpu_unit_id mig_unit_id requested_unit_id unplaced_unit_id",
    "inventory": "Node NodeState NodeTurn Partition Unit UnitKind",
    "metrics": "ALIASES Alias CATALOGUE METRICS Metric MetricKind MetricUnit",
    "workloads": "Allocation AllocationSource CONFIDENCE Workload WorkloadKind WorkloadState",
    "observations": "HistoryObserved InventoryObserved Observation PrioritiesObserved QueueObserved ScrapeObserved SourceStatus",
    "samples": "Names RawScrape RawSeries SampleBatch SeriesTable",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


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
    "PrioritiesObserved",
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
    "unplaced_unit_id",
]
