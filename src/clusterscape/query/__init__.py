"""Read-only queries, one class per area, and the shapes of their answers. Background work and writes are in `services`.

``answers``: the shapes of answers; field markers say which fields reveal names.
``bounds``: upper bounds of request values.
``cache``: the cache of query results.
``cluster``: the cluster now or at a past minute, and statistics over the lives of its workloads.
``context``: the dependencies of every query: stores, versions, a cache and a clock.
``diagnosis``: the diagnosis of one workload.
``jobs``: the card of one job.
``ownership``: who may change what users save or start.
``past``: the cluster at a past minute: allocations, waiting workloads and the picture.
``picture``: the table of all units; its columns are those of the overview.
``reasons``: why a workload waits, in plain sentences, and what counts as waiting for GPUs.
``redaction``: which viewer sees which names on a private site.
``rule_answers``: the shapes of answers about rules and violations.
``rule_notes``: mutes and comments.
``rules``: rules and the state of alert channels.
``runs``: tracked runs.
``scheduling``: the live queue, forecasts, what-ifs and job traces.
``search``: search by substring or by any form of an id; the page's part is ``web/src/base/workload-id.ts``.
``series``: metrics over time, of units, of a node, or of a workload over its life.
``sources``: data sources and their health.
``summary``: the picture in numbers, and what could start on the free GPUs.
``timeline``: the cluster's history at even steps: allocated and requested GPUs, utilization.
``traces``: imported traces.
``usage``: GPU-hours, jobs, waits and money over any period, and budgets.
``views``: saved views, shared by all users, and the view that the page opens with.
``violations``: which workload violated which rule, when, and its GPU-hours.
``waste``: GPU-hours of idle allocations in the last hours.
``workloads``: lists and details of workloads, with waiting and run times.
"""

import polars as pl

from clusterscape.model.access import Viewer
from clusterscape.query.cluster import ClusterQuery
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis import DiagnosisQuery
from clusterscape.query.jobs import JobQuery
from clusterscape.query.past import PastPictures
from clusterscape.query.picture import SnapshotRow
from clusterscape.query.redaction.pseudonyms import WorkloadCodes
from clusterscape.query.redaction.redactor import ScopeRedactor
from clusterscape.query.redaction.scopes import Scopes
from clusterscape.query.rule_notes import RuleNotes
from clusterscape.query.rules import AlertQuery, RuleQuery
from clusterscape.query.runs import HangQuery, RunQuery, RunSeriesQuery
from clusterscape.query.scheduling.description import JobTraceQuery
from clusterscape.query.scheduling.promises import Promises
from clusterscape.query.scheduling.queue import QueueQuery
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.scheduling.whatif import WhatIfQuery
from clusterscape.query.search import SearchQuery
from clusterscape.query.series import SeriesQuery
from clusterscape.query.sources import IngestState, SourceQuery
from clusterscape.query.timeline import TimelineQuery
from clusterscape.query.traces import TraceQuery
from clusterscape.query.usage import UsageQuery, UsageReportQuery
from clusterscape.query.views import INSIGHT, ViewQuery
from clusterscape.query.violations import ViolationQuery
from clusterscape.query.waste import WasteQuery
from clusterscape.query.workloads import WorkloadQuery
from clusterscape.watch.watcher import Watch


class Queries:
    """All queries of the API and the command line."""

    def __init__(self, context: QueryContext, ingest: IngestState | None = None, *, watch: Watch) -> None:
        """``watch``: evaluates rules."""
        self.context = context
        self.watch = watch
        self.rule_notes = RuleNotes(context)
        self.violations = ViolationQuery(context, watch, self.rule_notes)
        self.cluster = ClusterQuery(context, watch, self.violations)
        self.workloads = WorkloadQuery(context, self.cluster.past)
        self.jobs = JobQuery(context, self.workloads, self.cluster.past)
        self.series = SeriesQuery(context, self.workloads)
        self.search = SearchQuery(context, self.redacted_picture, self.cluster.nodes)
        self.sources = SourceQuery(context, ingest)
        self.timeline = TimelineQuery(context, self.cluster)
        self.views = ViewQuery(context)
        self.insights = ViewQuery(context, INSIGHT)
        self.runs = RunQuery(context)
        self.hangs = HangQuery(context)
        self.run_series = RunSeriesQuery(context, self.runs)
        self.job_traces = JobTraceQuery(context)
        self.waits = WaitQuery(context)
        self.promises = Promises()
        self.queue = QueueQuery(context, self.promises, self.waits)
        self.what_if = WhatIfQuery(context, self.queue, self.waits)
        self.waste = WasteQuery(context, self.cluster)
        self.usage = UsageQuery(context)
        self.usage_report = UsageReportQuery(context, self.usage)
        self.rules = RuleQuery(watch)
        self.alerts = AlertQuery(watch)
        self.traces = TraceQuery(context, self.workloads)
        self.diagnosis = DiagnosisQuery(context, self.workloads, watch.book, self.rule_notes)
        self.redactor: ScopeRedactor | None = None
        """Redacts names for the viewers of these queries; None if all names are shown."""
        self._scopes: Scopes[Queries] | None = None
        if context.is_private:
            self._scopes = Scopes(context, lambda scoped, redactor: ScopedQueries(self, watch, scoped, redactor))

    @property
    def codes(self) -> WorkloadCodes | None:
        """Pseudonyms of workload ids that contain names; None unless the site is private."""
        return None if self._scopes is None else self._scopes.codes

    @property
    def anonymous_redactor(self) -> ScopeRedactor | None:
        """Redacts every name, for requests that are not authenticated yet; None unless the site is private."""
        return None if self._scopes is None else self._scopes.anonymous_redactor

    @property
    def scope_code(self) -> str:
        """Identifies the viewer scope, as a part of cache keys; empty if all names are shown."""
        return "" if self.redactor is None else self.redactor.code

    def redacted_picture(self) -> tuple[int, pl.DataFrame]:
        """The current picture with names redacted for the viewers, and its version."""
        version, table = self.cluster.picture()
        redactor = self.redactor
        if redactor is None:
            return version, table
        return version, self.context.cache.get(
            "redacted picture", version, lambda: redactor.redact_table(table, SnapshotRow)
        )

    def scoped_to(self, viewer: Viewer) -> "Queries":
        """The queries that ``viewer`` may use: these, or on a private site those of the viewer's scope."""
        return self if self._scopes is None else self._scopes.find(viewer) or self


class ScopedQueries(Queries):
    """The same queries within one viewer scope.

    Queries that search by name, or list what users saved, read scoped stores. All others are shared with the unscoped
    queries and computed once; their answers are redacted when they are sent.
    """

    def __init__(self, unscoped: Queries, watch: Watch, context: QueryContext, redactor: ScopeRedactor) -> None:
        self.context = context
        self.watch = watch
        self.redactor = redactor
        self.cluster = unscoped.cluster
        self.sources = unscoped.sources
        self.timeline = unscoped.timeline
        self.waits = unscoped.waits
        self.promises = unscoped.promises
        self.queue = unscoped.queue
        self.what_if = unscoped.what_if
        self.waste = unscoped.waste
        self.usage = UsageQuery(context)
        self.usage_report = UsageReportQuery(context, self.usage)
        self.alerts = unscoped.alerts
        self.rule_notes = RuleNotes(context)
        self.violations = ViolationQuery(context, watch, self.rule_notes)
        past = PastPictures(context, unscoped.cluster.places)
        self.workloads = WorkloadQuery(context, past)
        self.jobs = JobQuery(context, self.workloads, past)
        self.series = SeriesQuery(context, self.workloads)
        self.search = SearchQuery(context, self.redacted_picture, unscoped.cluster.nodes)
        self.views = ViewQuery(context)
        self.insights = ViewQuery(context, INSIGHT)
        self.runs = RunQuery(context)
        self.hangs = HangQuery(context)
        self.run_series = RunSeriesQuery(context, self.runs)
        self.job_traces = JobTraceQuery(context)
        self.rules = RuleQuery(watch, redact=redactor.redact)
        self.traces = unscoped.traces.within(context, self.workloads)
        self.diagnosis = unscoped.diagnosis.within(context, self.workloads, self.rule_notes)
        self._scopes = None


__all__ = ["IngestState", "Queries", "QueryContext"]
