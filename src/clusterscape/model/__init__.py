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
        SchedulerRulesObserved,
        ScrapeObserved,
        SourceStatus,
    )
    from clusterscape.model.samples import Names, RawScrape, RawSeries, SampleBatch, SeriesTable
    from clusterscape.model.scheduler_rules import NO_PREEMPTION, PreemptionRules, Reservation
    from clusterscape.model.workloads import (
        CONFIDENCE,
        Allocation,
        AllocationSource,
        Execution,
        Workload,
        WorkloadKind,
        WorkloadState,
    )

_NAMES = {
    "ids": "GpuUuid NodeId UnitId UnixMs WorkloadId gpu_unit_id mig_unit_id requested_unit_id unplaced_unit_id",
    "inventory": "Node NodeState NodeTurn Partition Unit UnitKind",
    "metrics": "ALIASES Alias CATALOGUE METRICS Metric MetricKind MetricUnit",
    "workloads": "Allocation AllocationSource CONFIDENCE Execution Workload WorkloadKind WorkloadState",
    "observations": "HistoryObserved InventoryObserved Observation PrioritiesObserved QueueObserved SchedulerRulesObserved "
    "ScrapeObserved SourceStatus",
    "scheduler_rules": "NO_PREEMPTION PreemptionRules Reservation",
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
    "NO_PREEMPTION",
    "Alias",
    "Allocation",
    "AllocationSource",
    "Execution",
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
    "PreemptionRules",
    "PrioritiesObserved",
    "QueueObserved",
    "RawScrape",
    "RawSeries",
    "Reservation",
    "SampleBatch",
    "SchedulerRulesObserved",
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
