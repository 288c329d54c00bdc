"""Frozen records and ids of clusters, workloads and measurements. Imports no other package of ClusterScape.

Names are imported on first use, so that a tracked script does not load numpy or the metric catalogue.

``access``: viewers, roles, accounts, sessions, tokens, audit entries.
``arrays``: types of numpy arrays.
``durations``: lengths of time in seconds and milliseconds.
``findings``: findings of a diagnosis.
``identity_fields``: markers of fields that may identify a person.
``hangs``: looks at a run that makes no steps, and the verdict.
``host_metrics``: the part of the metric catalogue about jobs and whole nodes.
``ids``: branded identifiers and times.
``inventory``: nodes, partitions, units, reservations and preemption.
``job_summaries``: the summary of an ended job, kept for years.
``job_usage``: what a job used of its nodes, for its card.
``jobs``: a job trace as columns.
``machine_types``: machine types from product names.
``metrics``: the metric catalogue: one entry per metric, with the names sources use.
``observations``: what collectors yield.
``period_metrics``: the metrics of users and projects over a period, as rows of the catalogue.
``quantities``: formatting of hours and durations; the page's is in ``web/src/base/format.ts``.
``rules``: rules, their subjects, and violations.
``run_events``: every event of a run and its fields.
``run_fold``: applies events to a stored run.
``run_frames``: the format of a run's files, on disk and on the wire.
``runs``: a run as it is stored, and the names of its units.
``safe_text``: escapes control characters in untrusted text.
``samples``: samples as columns.
``spans``: spans and operator graphs.
``statistics``: the statistic catalogue of rules.
``timezones``: time zones by name.
``trace_report``: a trace's report.
``traces``: an imported trace as it is stored.
``workloads``: workloads, executions and allocations.
``xids``: XID error codes, what they mean and require.
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
        job_unit_id,
        mig_unit_id,
        requested_unit_id,
        unplaced_unit_id,
    )
    from clusterscape.model.inventory import (
        NO_PREEMPTION,
        Node,
        NodeState,
        NodeStateChange,
        Partition,
        PreemptionRules,
        Reservation,
        Unit,
        UnitKind,
    )
    from clusterscape.model.metrics import (
        ALIASES,
        CATALOGUE,
        METRICS,
        SOURCE_NAMES,
        UNIT_METRICS,
        Alias,
        Metric,
        MetricKind,
        MetricSubject,
        MetricUnit,
    )
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
    "ids": "GpuUuid NodeId UnitId UnixMs WorkloadId gpu_unit_id job_unit_id mig_unit_id requested_unit_id "
    "unplaced_unit_id",
    "inventory": "NO_PREEMPTION Node NodeState NodeStateChange Partition PreemptionRules Reservation Unit UnitKind",
    "metrics": "ALIASES Alias CATALOGUE METRICS Metric MetricKind MetricSubject MetricUnit SOURCE_NAMES UNIT_METRICS",
    "workloads": "Allocation AllocationSource CONFIDENCE Execution Workload WorkloadKind WorkloadState",
    "observations": "HistoryObserved InventoryObserved Observation PrioritiesObserved QueueObserved SchedulerRulesObserved "
    "ScrapeObserved SourceStatus",
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
    "SOURCE_NAMES",
    "UNIT_METRICS",
    "Alias",
    "Allocation",
    "AllocationSource",
    "Execution",
    "GpuUuid",
    "HistoryObserved",
    "InventoryObserved",
    "Metric",
    "MetricKind",
    "MetricSubject",
    "MetricUnit",
    "Names",
    "Node",
    "NodeId",
    "NodeState",
    "NodeStateChange",
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
    "job_unit_id",
    "mig_unit_id",
    "requested_unit_id",
    "unplaced_unit_id",
]
