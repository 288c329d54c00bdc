"""Answers named after what a view asks; the only reader of the stores."""

import polars as pl

from clusterscape.model.viewers import Viewer
from clusterscape.query.alerts import AlertQuery
from clusterscape.query.cluster import ClusterQuery
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis import DiagnosisQuery
from clusterscape.query.past import PastPictures
from clusterscape.query.picture import SnapshotRow
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.query.redaction.scopes import Scopes
from clusterscape.query.redaction.workload_codes import WorkloadCodes
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
        self.rule_notes = RuleNotes(context, watch.book)
        self.violations = ViolationQuery(context, watch, self.rule_notes)
        self.cluster = ClusterQuery(context, watch, self.violations)
        self.workloads = WorkloadQuery(context, self.cluster.past)
        self.series = SeriesQuery(context, self.workloads)
        self.search = SearchQuery(context, self.redacted_picture, self.cluster.nodes)
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
        self.redactor: Redactor | None = None
        """What hides names from the viewers of these queries; None where every name is shown."""
        self._scopes: Scopes[Queries] | None = None
        if context.is_private:
            self._scopes = Scopes(context, lambda scoped, redactor: ScopedQueries(self, watch, scoped, redactor))

    @property
    def codes(self) -> WorkloadCodes | None:
        """Codes for ids that are names, on a private site."""
        return None if self._scopes is None else self._scopes.codes

    @property
    def strictest(self) -> Redactor | None:
        """What hides every name, on a private site: for whoever asks before it is certain who they are."""
        return None if self._scopes is None else self._scopes.nobody

    @property
    def scope_code(self) -> str:
        """Tells apart what viewers of different scopes are answered; empty where every name is shown."""
        return "" if self.redactor is None else self.redactor.code

    def redacted_picture(self) -> tuple[int, pl.DataFrame]:
        """The picture of all units now with the names that the viewers read, and its version."""
        version, table = self.cluster.picture()
        redactor = self.redactor
        if redactor is None:
            return version, table
        return version, self.context.cache.get(
            "redacted picture", version, lambda: redactor.redact_table(table, SnapshotRow)
        )

    def scoped_to(self, viewer: Viewer) -> "Queries":
        """The questions as ``viewer`` may ask them: these, or on a private site those within the viewer's scope."""
        return self if self._scopes is None else self._scopes.find(viewer) or self


class ScopedQueries(Queries):
    """The same questions within one viewer scope.

    Those that go by names, or list what people keep, are asked of scoped stores; all others are the site's own, computed once,
    and their answers are redacted when they leave.
    """

    def __init__(self, whole: Queries, watch: Watch, context: QueryContext, redactor: Redactor) -> None:
        self.context = context
        self.redactor = redactor
        self.cluster = whole.cluster
        self.sources = whole.sources
        self.timeline = whole.timeline
        self.waits = whole.waits
        self.promises = whole.promises
        self.queue = whole.queue
        self.what_if = whole.what_if
        self.waste = whole.waste
        self.alerts = whole.alerts
        self.rule_notes = RuleNotes(context, watch.book, may_comment=redactor.covers_workload)
        self.violations = ViolationQuery(context, watch, self.rule_notes)
        self.workloads = WorkloadQuery(context, PastPictures(context, whole.cluster.places))
        self.series = SeriesQuery(context, self.workloads)
        self.search = SearchQuery(context, self.redacted_picture, whole.cluster.nodes)
        self.views = ViewQuery(context)
        self.insights = ViewQuery(context, INSIGHT)
        self.runs = RunQuery(context)
        self.run_series = RunSeriesQuery(context, self.runs)
        self.job_traces = JobTraceQuery(context)
        self.simulations = whole.simulations.within(self.job_traces)
        self.what_if_runs = WhatIfRuns(
            self.what_if, context.work, is_private=True, scope=redactor.code, whole=whole.what_if_runs
        )
        self.rules = RuleQuery(context, watch, redact=redactor.redact)
        self.traces = whole.traces.within(context, self.workloads)
        self.diagnosis = whole.diagnosis.within(context, self.workloads, self.rule_notes)
        self._scopes = None


__all__ = ["IngestState", "Queries", "QueryContext"]
