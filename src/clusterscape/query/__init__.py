"""Answers named after what a view asks; the only reader of the stores."""

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
        self.cluster = ClusterQuery(context, watch)
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
        self.what_if_runs = WhatIfRuns(self.what_if)
        self.waste = WasteQuery(context, self.cluster)
        self.rules = RuleQuery(context, watch)
        self.rule_notes = RuleNotes(context, watch.book)
        self.alerts = AlertQuery(watch)
        self.violations = ViolationQuery(context, watch, self.rule_notes)
        self.traces = TraceQuery(context, self.workloads)
        self.diagnosis = DiagnosisQuery(context, self.workloads, watch.book, self.rule_notes)


__all__ = ["IngestState", "Queries", "QueryContext"]
