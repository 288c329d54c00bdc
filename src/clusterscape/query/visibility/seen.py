"""Queries as one sight asks them, where they share work with the site's own: what has no names in it is computed once for all.

All others are the usual ones over veiled stores. Private parts of the shared ones are their own kind's: each is a subclass.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from clusterscape.errors import ForbiddenError, NotFoundError
from clusterscape.model import WorkloadId
from clusterscape.model.rules import Rule
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.alerts import AlertQuery
from clusterscape.query.answers import ClusterSummary, NodeAnswer, ReservationAnswer
from clusterscape.query.cluster import ClusterQuery, Tick
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis import DiagnosisQuery
from clusterscape.query.rule_answers import AlertState, CommentAnswer, RuleAnswer, RuleCounts, RuleList
from clusterscape.query.rule_notes import RuleNotes
from clusterscape.query.rules import RuleQuery
from clusterscape.query.scheduling.description import JobTraceQuery
from clusterscape.query.scheduling.live_forecast import Runs
from clusterscape.query.scheduling.live_queue import LiveQueue
from clusterscape.query.scheduling.queue import PlannedQueue, QueueQuery
from clusterscape.query.scheduling.queue_answers import LikelyStart
from clusterscape.query.scheduling.simulations import SimulationQuery
from clusterscape.query.scheduling.simulations_answers import (
    SimulationAnswer,
    SimulationAsk,
    SimulationList,
    SimulatorOptions,
)
from clusterscape.query.scheduling.waiting import ModelCards, ReliabilityAnswer, WaitAnswer, WaitingForecasts, WaitQuery
from clusterscape.query.traces import TraceQuery
from clusterscape.query.traces.opened import OpenTrace
from clusterscape.query.violations import ViolationQuery
from clusterscape.query.visibility.veil import Veil
from clusterscape.query.visibility.veiled_records import VeiledRecords
from clusterscape.query.workloads import WorkloadQuery
from clusterscape.store.artifacts.traces import read_about
from clusterscape.watch.rulebook import RuleBook
from clusterscape.watch.watcher import Watch


class SeenCluster(ClusterQuery):
    """The picture is veiled; numbers, units and metrics are everybody's."""

    def __init__(
        self, context: QueryContext, watch: Watch, violations: ViolationQuery, whole: ClusterQuery, veil: Veil
    ) -> None:
        super().__init__(context, watch, violations)
        self._whole = whole
        self._veil = veil

    def places(self) -> pl.DataFrame:
        """Nodes and units as a table."""
        return self._veil.places(self._whole.places())

    def tick(self, metrics: Sequence[str], at_ms: int | None = None) -> Tick:
        """The same for all: the veil keeps the order of rows."""
        return self._whole.tick(metrics, at_ms)

    def summary(self, at_ms: int | None = None) -> ClusterSummary:
        """The numbers at the top of the page; names of reservations name nobody."""
        whole = self._whole.summary(at_ms)
        return replace(whole, hides_names=True, reservations=_scrub_reservations(whole.reservations, self._veil))

    def nodes(self, at_ms: int | None = None) -> list[NodeAnswer]:
        """Every node; reasons name nobody."""
        scrub = self._veil.names.scrub
        return [replace(n, reason=scrub(n.reason)) if n.reason else n for n in self._whole.nodes(at_ms)]


def _scrub_reservations(reservations: Sequence[ReservationAnswer], veil: Veil) -> list[ReservationAnswer]:
    return [replace(each, name=veil.names.scrub(each.name)) for each in reservations]


class SeenRules(RuleQuery):
    """Rules whose owners and scopes name nobody else."""

    def __init__(self, context: QueryContext, watch: Watch, records: VeiledRecords, veil: Veil) -> None:
        super().__init__(context, watch)
        self._sight = records.sight
        self._veil = veil

    def all(self) -> RuleList:
        """All rules in order; what cannot be read is for those who can mend it."""
        return replace(super().all(), unreadable={})

    def _describe(self, rule: Rule, counts: RuleCounts | None) -> RuleAnswer:
        return super()._describe(self._veil.rule(rule, self._sight), counts)


class SeenNotes(RuleNotes):
    """Who writes about a workload knows it; who knows it reads who wrote."""

    def __init__(self, context: QueryContext, book: RuleBook, records: VeiledRecords) -> None:
        super().__init__(context, book)
        self._veiled = records

    def comment(self, *, workload: str, author: str, text: str) -> CommentAnswer:
        """Write something about a workload that is one's own."""
        workload = self._resolve(workload)
        if not self._veiled.knows(WorkloadId(workload)):
            raise ForbiddenError(
                f"{workload} is not yours to comment on", hint="Its owner, leads of its project and operators can."
            )
        return super().comment(workload=workload, author=author, text=text)


class SeenAlerts(AlertQuery):
    """How channels do; what they said may name people."""

    def state(self) -> AlertState:
        """Every channel, without what it answered."""
        told = super().state()
        hidden = [replace(each, last_error=each.last_error and "an operator can see why") for each in told.channels]
        return replace(told, channels=hidden)


class SeenWaits(WaitQuery):
    """Forecasts are made from all that is known, once for all; only whose they are is veiled."""

    def __init__(self, context: QueryContext, whole: WaitQuery, records: VeiledRecords) -> None:
        super().__init__(context)
        self.models = whole.models
        self._log = whole._log
        self._whole = whole
        self._sight = records.sight

    def ask(self, *, user: str | None = None, **question: Any) -> WaitAnswer:
        """If it were submitted now. How others' jobs run is not told: anybody but oneself is the average user."""
        return self._whole.ask(user=user if user == self._sight.user else None, **question)

    def waiting(self) -> WaitingForecasts:
        """Of everything that waits."""
        told = self._whole.waiting()
        users = {each.id: each.user for each in self._context.records.active_workloads()}
        rows = [replace(each, user=users.get(WorkloadId(each.workload))) for each in told.workloads]
        return replace(told, workloads=rows)

    def reliability(self) -> ReliabilityAnswer:
        """Forecasts against outcomes: numbers only."""
        return self._whole.reliability()

    def cards(self) -> ModelCards:
        """What is learned, from what, how good: numbers only."""
        return self._whole.cards()


class SeenQueue(QueueQuery):
    """The plan and the forecasts are everybody's; the workloads in them are veiled."""

    def __init__(self, context: QueryContext, whole: QueueQuery, waits: WaitQuery, veil: Veil) -> None:
        super().__init__(context, whole.promises, waits)
        self._whole = whole
        self._veil = veil

    def _reservations(self, queue: LiveQueue) -> list[ReservationAnswer]:
        return _scrub_reservations(super()._reservations(queue), self._veil)

    def seen(self) -> PlannedQueue:
        """The queue now, planned once for all."""
        records = self._context.records
        return replace(self._whole.seen(), workloads={each.id: each for each in records.active_workloads()})

    def run_quantiles(self) -> Runs:
        """Predicted run times, by workload."""
        return self._whole.run_quantiles()

    def _forecasts(self) -> tuple[dict[str, LikelyStart], bool]:
        return self._whole._forecasts()


class SeenSimulations(SimulationQuery):
    """Results are numbers; those of a trace are for whoever sees the trace."""

    def __init__(self, context: QueryContext, traces: JobTraceQuery, whole: SimulationQuery) -> None:
        super().__init__(context, traces)
        self._whole = whole

    def options(self) -> SimulatorOptions:
        """What can be chosen."""
        return self._whole.options()

    def ask(self, asked: SimulationAsk, *, by: Viewer = ANYONE_HERE, user: str = "") -> SimulationAnswer:
        """Start what is asked, or find it."""
        self._traces.check(asked.trace)
        return self._whole.ask(asked, by=by, user=user)

    def find(self, simulation: str) -> SimulationAnswer:
        """How far it is, where its trace may be seen."""
        found = self._whole.find(simulation)
        return found if self._sees(found.asked) else super().find(simulation)

    def all(self) -> SimulationList:
        """What is kept of traces that may be seen."""
        rows = self._whole.all().simulations
        return SimulationList(simulations=[row for row in rows if self._sees(row.asked)])

    def stop(self, simulation: str, *, by: Viewer = ANYONE_HERE) -> SimulationAnswer:
        """Do not go on with it."""
        self.find(simulation)
        return self._whole.stop(simulation, by=by)

    def remove(self, simulation: str, *, by: Viewer = ANYONE_HERE) -> None:
        """Forget a kept result, where its trace may be seen."""
        self.find(simulation)
        self._whole.remove(simulation, by=by)

    def _sees(self, asked: SimulationAsk) -> bool:
        try:
            self._traces.check(asked.trace)
        except NotFoundError:
            return False
        return True


class SeenTraces(TraceQuery):
    """Traces that may be seen; those that are open are open for all who may."""

    def __init__(self, context: QueryContext, workloads: WorkloadQuery, whole: TraceQuery) -> None:
        super().__init__(context, workloads)
        self._operators = whole._operators
        self._whole = whole

    def open(self, trace_id: str) -> OpenTrace:
        """A trace that has been read."""
        read_about(self._artifacts, trace_id)
        return self._whole.open(trace_id)


class SeenDiagnosis(DiagnosisQuery):
    """Samples and what is found in them have no names: they are loaded and judged once for all."""

    def __init__(
        self, context: QueryContext, workloads: WorkloadQuery, book: RuleBook, notes: RuleNotes, whole: DiagnosisQuery
    ) -> None:
        super().__init__(context, workloads, book, notes)
        self._loader = whole._loader
        self._judgings = whole._judgings
