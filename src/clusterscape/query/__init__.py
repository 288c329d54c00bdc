"""Answers named after what a view asks; the only reader of the stores."""

import polars as pl

from clusterscape.model.viewers import Viewer
from clusterscape.query.alerts import AlertQuery
from clusterscape.query.cluster import ClusterQuery
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis import DiagnosisQuery
from clusterscape.query.rule_notes import RuleNotes
from clusterscape.query.rules import RuleQuery
from clusterscape.query.runs import RunQuery, RunSeriesQuery
from clusterscape.query.scheduling.description import JobTraceQuery
from clusterscape.query.scheduling.promises_keeper import PromiseKeeper
from clusterscape.query.scheduling.queue import QueueQuery
from clusterscape.query.scheduling.simulations import SimulationQuery
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.scheduling.whatif import WhatIfQuery
from clusterscape.query.scheduling.whatif_runs import WhatIfRuns
from clusterscape.query.search import SearchQuery
from clusterscape.query.series import SeriesQuery
from clusterscape.query.sources import IngestState, SourceQuery
from clusterscape.query.timeline import TimelineQuery
from clusterscape.query.traces import TraceQuery
from clusterscape.query.views import INSIGHT, ViewQuery
from clusterscape.query.violations import ViolationQuery
from clusterscape.query.visibility.hidden_ids import HiddenIds
from clusterscape.query.visibility.seen import (
    SeenAlerts,
    SeenCluster,
    SeenDiagnosis,
    SeenNotes,
    SeenQueue,
    SeenRules,
    SeenSimulations,
    SeenTraces,
    SeenWaits,
)
from clusterscape.query.visibility.veil import Veil
from clusterscape.query.visibility.veiled_records import VeiledRecords
from clusterscape.query.visibility.veiling import Sights
from clusterscape.query.waste import WasteQuery
from clusterscape.query.workloads import WorkloadQuery
from clusterscape.watch.watcher import Watch


class Queries:
    """All questions the API and the command line can ask."""

    def __init__(self, context: QueryContext, ingest: IngestState | None = None, *, watch: Watch | None = None) -> None:
        """``watch``: what judges rules; without one nothing is judged, and rules can still be read and written."""
        watch = watch or Watch(
            records=context.records, metrics=context.metrics, changes=context.changes, clock=context.clock
        )
        self.context = context
        self.rule_notes = RuleNotes(context, watch.book)
        self.violations = ViolationQuery(context, watch, self.rule_notes)
        self.cluster = ClusterQuery(context, watch, self.violations)
        self.workloads = WorkloadQuery(context, self.cluster.past)
        self.series = SeriesQuery(context, self.workloads)
        self.search = SearchQuery(context, self.cluster)
        self.sources = SourceQuery(context, ingest)
        self.timeline = TimelineQuery(context, self.cluster)
        self.views = ViewQuery(context)
        self.insights = ViewQuery(context, INSIGHT)
        self.runs = RunQuery(context)
        self.run_series = RunSeriesQuery(context, self.runs)
        self.job_traces = JobTraceQuery(context)
        self.simulations = SimulationQuery(context, self.job_traces)
        self.waits = WaitQuery(context)
        self.promises = PromiseKeeper(context)
        self.queue = QueueQuery(context, self.promises, self.waits)
        self.what_if = WhatIfQuery(context, self.queue, self.waits)
        self.what_if_runs = WhatIfRuns(self.what_if, context.work, is_private=context.is_private)
        self.waste = WasteQuery(context, self.cluster)
        self.rules = RuleQuery(context, watch)
        self.alerts = AlertQuery(watch)
        self.traces = TraceQuery(context, self.workloads)
        self.diagnosis = DiagnosisQuery(context, self.workloads, watch.book, self.rule_notes)
        self.sight_code = ""
        """Tells apart what different sights are answered; empty where all is shown as it is."""
        self._sights: Sights[Queries] | None = None
        if context.is_private:
            self._sights = Sights(context, lambda seen: VeiledQueries(self, watch, *seen))

    @property
    def hidden_ids(self) -> HiddenIds | None:
        """Codes for ids that are names, on a private site."""
        return None if self._sights is None else self._sights.ids

    def hide_ids(self, table: pl.DataFrame) -> pl.DataFrame:
        """``table`` as it may leave: with ids that are names as they are, or hidden."""
        return table

    def seen_by(self, viewer: Viewer) -> "Queries":
        """The questions as ``viewer`` may ask them: these, or on a private site those that others' names are hidden from."""
        return self if self._sights is None else self._sights.find(viewer) or self


class VeiledQueries(Queries):
    """The same questions as one sight may ask them: over veiled stores, sharing with ``whole`` what has no names in it."""

    def __init__(self, whole: Queries, watch: Watch, context: QueryContext, records: VeiledRecords, veil: Veil) -> None:
        self.context = context
        self.sight_code = veil.names.code("sight", str(records.sight.user), *sorted(records.sight.projects))
        self.rule_notes = SeenNotes(context, watch.book, records)
        self.violations = ViolationQuery(context, watch, self.rule_notes)
        self.cluster = SeenCluster(context, watch, self.violations, whole.cluster, veil)
        self.workloads = WorkloadQuery(context, self.cluster.past)
        self.series = SeriesQuery(context, self.workloads)
        self.search = SearchQuery(context, self.cluster)
        self.sources = whole.sources.without_problems()
        self.timeline = whole.timeline
        self.views = ViewQuery(context)
        self.insights = ViewQuery(context, INSIGHT)
        self.runs = RunQuery(context)
        self.run_series = RunSeriesQuery(context, self.runs)
        self.job_traces = JobTraceQuery(context)
        self.simulations = SeenSimulations(context, self.job_traces, whole.simulations)
        self.waits = SeenWaits(context, whole.waits, records)
        self.promises = whole.promises
        self.queue = SeenQueue(context, whole.queue, self.waits, veil)
        self.what_if = WhatIfQuery(context, self.queue, self.waits)
        self.what_if_runs = WhatIfRuns(
            self.what_if, context.work, is_private=True, sight=self.sight_code, whole=whole.what_if_runs
        )
        self.waste = whole.waste
        self.rules = SeenRules(context, watch, records, veil)
        self.alerts = SeenAlerts(watch)
        self.traces = SeenTraces(context, self.workloads, whole.traces)
        self.diagnosis = SeenDiagnosis(context, self.workloads, watch.book, self.rule_notes, whole.diagnosis)

        self._sights = None
        self._ids = whole.hidden_ids

    def hide_ids(self, table: pl.DataFrame) -> pl.DataFrame:
        """``table`` with codes in place of ids that are names."""
        return table if self._ids is None else self._ids.hide_frame(table)


__all__ = ["IngestState", "Queries", "QueryContext"]
