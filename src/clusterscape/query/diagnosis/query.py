"""Queries on the GPUs of one workload. The analysis is imported on first use, since that is slow."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from clusterscape.errors import QueryError
from clusterscape.executors import run_meanwhile
from clusterscape.model import METRICS, UNIT_METRICS, MetricKind, WorkloadState
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.query.cache import VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.answers import (
    By,
    DiagnosedMetric,
    DiagnosisAnswer,
    Linkage,
    Picture,
    ScatterPicture,
    TimeWindow,
    UnitRule,
    WorkloadEvent,
)
from clusterscape.query.diagnosis.holding import (
    WorkloadHolding,
    describe_units,
    drop_constant,
    expand_units,
    find_holding,
    read_layout,
)
from clusterscape.query.diagnosis.loading import RunLoader, Samples
from clusterscape.query.rule_notes import RuleNotes
from clusterscape.query.series import NICE_STEPS_S
from clusterscape.query.workloads import WorkloadQuery
from clusterscape.watch.rulebook import RuleBook

if TYPE_CHECKING:
    from clusterscape.query.diagnosis.diagnosing import AnalyzedWindow

MAX_COMPARED = 1_000_000
"""Upper bound of values that GPUs are compared by; beyond it, means of several samples are compared."""

MAX_COMPANIONS = 1_500_000
"""Upper bound of values that findings are based on, of all metrics together."""


MISSING_SHARE = 0.05
"""A larger share of the window without samples at its start or end is reported in a note."""

LOADING_MS = 30_000
"""If history arrived within this time, it is still being loaded."""

CACHED_DIAGNOSES = 4
"""Each holds its samples, about 20 MB for a long run."""

LineSummary = Literal["none", "median", "clusters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """How GPUs are compared. ``metric`` None: the first with samples; ``count`` and ``height`` None: an automatic cut."""

    metric: str | None = None
    by: By = "histogram"
    max_lag: int = 0
    linkage: Linkage = "average"
    count: int | None = None
    height: float | None = None
    significance: float = 0.01


DEFAULT_OPTIONS = ComparisonOptions()


@dataclass(frozen=True, slots=True)
class CachedDiagnosis:
    """The analysis of a window and its inputs."""

    metric: str | None
    analyzed: "AnalyzedWindow"
    companions: Samples
    available_metrics: frozenset[str]
    machine_types: list[str]
    step_ms: int | None


class DiagnosisQuery:
    """Queries on the GPUs of one workload."""

    def __init__(self, context: QueryContext, workloads: WorkloadQuery, book: RuleBook, notes: RuleNotes) -> None:
        self._context = context
        self._workloads = workloads
        self._book = book
        self._notes = notes
        self._loader = RunLoader(context)
        self._diagnoses = VersionedCache(CACHED_DIAGNOSES)

    def within(self, context: QueryContext, workloads: WorkloadQuery, notes: RuleNotes) -> "DiagnosisQuery":
        """The same queries within a viewer scope; cached samples and diagnoses are shared by all scopes."""
        scoped = copy(self)
        scoped._context, scoped._workloads, scoped._notes = context, workloads, notes
        return scoped

    def diagnosis(
        self,
        workload: str,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        options: ComparisonOptions = DEFAULT_OPTIONS,
    ) -> DiagnosisAnswer:
        """Clusters by one metric, their explanations, outlier GPUs, and findings. Empty without samples; a note says why."""
        from clusterscape.query.diagnosis import diagnosing
        from clusterscape.query.diagnosis.events import compute_energy, compute_wasted_hours

        holding = self._holding(workload, start_ms, end_ms)
        with run_meanwhile(partial(compute_wasted_hours, self._context, holding, self._loader)) as wait_for_hours:
            cached = self._analyze(holding, options)
            wasted = wait_for_hours()
        analyzed = cached.analyzed
        diagnosis, clustering = analyzed.diagnosis, analyzed.diagnosis.clustering
        energy, energy_from = compute_energy(holding, cached.companions)
        record = holding.workload
        return DiagnosisAnswer(
            workload=record.id,
            name=record.name,
            user=record.user,
            project=record.project,
            partition=record.partition,
            state=record.state,
            machine_types=cached.machine_types,
            layout=read_layout(record, record.gpus_requested),
            started_at=None if record.state is WorkloadState.WAITING else record.started_at,
            ended_at=record.ended_at,
            life=_window(holding.life),
            window=_window(holding.window),
            gpus=len(holding.units),
            nodes=len({held.node for held in holding.units}),
            gpu_hours=holding.gpu_hours(),
            wasted_gpu_hours=wasted,
            energy_joules=energy,
            energy_from=energy_from,
            metrics=[replace(metric, has_samples=metric.name in cached.available_metrics) for metric in _list_gauges()],
            metric=cached.metric,
            by=options.by,
            step_ms=cached.step_ms,
            units=diagnosing.describe_units(holding, analyzed, self._rules_of(holding)),
            clusters=diagnosing.describe_clusters(analyzed),
            compared=[str(unit) for unit in diagnosis.run.pick(clustering.compared)],
            linkage=clustering.tree.tolist(),
            leaves=[str(unit) for unit in diagnosis.run.pick(diagnosing.order_leaves(clustering))],
            cut_height=clustering.height,
            cut_kind=clustering.cut.value,
            heights_for_counts=diagnosing.heights_for_counts(clustering),
            odd=diagnosing.describe_odd(analyzed),
            odd_note=diagnosis.odd.note,
            findings=[diagnosing.describe_finding(finding) for finding in analyzed.findings],
            notes=_notes(holding, analyzed.notes, self._describe_missing(holding, diagnosis.run.samples.times_ms)),
        )

    def histograms(
        self, workload: str, *, metric: str, start_ms: int | None = None, end_ms: int | None = None, bins: int = 40
    ) -> Picture:
        """The distribution of a metric on each GPU."""
        from clusterscape.query.diagnosis.pictures import draw_histograms

        check_metrics([metric])
        holding = self._holding(workload, start_ms, end_ms)
        return draw_histograms(self._loader.load(holding, [metric]), metric, holding, bins)

    def lines(
        self,
        workload: str,
        *,
        metrics: Sequence[str],
        units: Sequence[str] = (),
        start_ms: int | None = None,
        end_ms: int | None = None,
        points: int = 1000,
        summary: LineSummary = "none",
        options: ComparisonOptions = DEFAULT_OPTIONS,
    ) -> pl.DataFrame:
        """Lines for a chart ``points`` pixels wide, with all extremes.

        Without ``units`` all are drawn, up to MAX_LINES. ``summary`` "clusters": also median, 5th and 95th percentile of each
        cluster of the diagnosis, named ``c0:median`` ….
        """
        from clusterscape.query.diagnosis.pictures import MAX_LINES, SUMMARY, LineBand, draw_lines

        check_metrics(metrics)
        holding = self._holding(workload, start_ms, end_ms)
        samples = self._load_lines(holding, metrics, points)
        all_columns = range(len(holding.units))
        is_many = len(all_columns) > MAX_LINES
        columns = expand_units(holding, units) if units else [] if is_many or summary == "clusters" else [*all_columns]
        bands = (
            [LineBand(all_columns, [*SUMMARY])]
            if is_many
            else [LineBand(all_columns, ["median"])]
            if summary != "none"
            else []
        )
        if summary == "clusters":
            clustering = self._analyze(holding, options).analyzed.diagnosis.clustering
            members = [clustering.members(label).tolist() for label in range(clustering.count)]
            bands += [LineBand(columns_of, [*SUMMARY], f"c{label}:") for label, columns_of in enumerate(members)]
        return draw_lines(samples, metrics, holding, columns, bands, pixels=points)

    def scatter(
        self,
        workload: str,
        *,
        x: str,
        y: str,
        start_ms: int | None = None,
        end_ms: int | None = None,
        units: Sequence[str] = (),
        robust: bool = False,
        significance: float = 0.001,
        most: int = 20_000,
        options: ComparisonOptions = DEFAULT_OPTIONS,
    ) -> ScatterPicture:
        """A scatter plot of two metrics, with outliers marked: points outside the cloud of their own peers.

        ``options``: how GPUs are compared, from which their peers follow.
        """
        from clusterscape.query.diagnosis.pictures import draw_scatter

        check_metrics([x, y])
        holding = self._holding(workload, start_ms, end_ms)
        pair = [self._loader.load(holding, [name]) for name in (x, y)]
        if not np.array_equal(pair[0].times_ms, pair[1].times_ms):
            # The metrics have different times, so they are aligned to one grid.
            step = max((samples.step_ms or 0 for samples in pair), default=0) or None
            pair = [self._loader.load_steps(holding, [x, y], step)] * 2
        chosen = set(expand_units(holding, units))
        left_out = [column for column in range(len(holding.units)) if units and column not in chosen]
        peers = self._analyze(holding, options).analyzed.diagnosis.peers.groups
        return draw_scatter(
            pair[0].times_ms,
            _without(pair[0].values[x], left_out),
            _without(pair[1].values[y], left_out),
            holding,
            peers=peers,
            robust=robust,
            significance=significance,
            most=most,
        )

    def events(self, workload: str, *, start_ms: int | None = None, end_ms: int | None = None) -> list[WorkloadEvent]:
        """Events of the workload."""
        from clusterscape.query.diagnosis.events import list_events

        holding = self._holding(workload, start_ms, end_ms)
        return list_events(self._context, holding, {rule.key: rule for rule in self._book.rules()}, self._notes)

    def warm_up(self) -> None:
        """Imports and compiles what the first diagnosis needs, which takes seconds."""
        from clusterscape.query.diagnosis.diagnosing import warm_up

        warm_up()

    def _describe_missing(self, holding: WorkloadHolding, times_ms: Int64s) -> list[str]:
        """Notes if samples begin late or end early, and whether more are being loaded."""
        from clusterscape.analyze.diagnose.run_data import format_seconds

        if holding.window is None or times_ms.size == 0:
            return []
        start, end = holding.window[0], min(holding.window[1], holding.now)
        late_ms, early_ms = int(times_ms[0]) - start, end - int(times_ms[-1])
        least_ms = max(MISSING_SHARE * (end - start), 10 * self._loader.interval_ms(holding))
        loaded_at = self._context.changes.versions.history_at
        notes = []
        if late_ms > least_ms:
            why = "earlier samples were not collected, or are no longer stored"
            if loaded_at is not None and holding.now - loaded_at < LOADING_MS:
                why = "earlier samples are still being loaded"
            notes.append(f"The first sample is {format_seconds(late_ms / 1000)} after the start of this window: {why}.")
        if early_ms > least_ms:
            notes.append(f"The last sample is {format_seconds(early_ms / 1000)} before the end of this window.")
        return notes

    def _analyze(self, holding: WorkloadHolding, options: ComparisonOptions) -> CachedDiagnosis:
        if options.metric is not None:
            check_metrics([options.metric])
        if options.count is not None and options.height is not None:
            raise QueryError("pass a number of clusters or a height, not both")
        version = self._loader.version(holding)
        return self._diagnoses.get((holding.key, options), version, lambda: self._compute(holding, options))

    def _compute(self, holding: WorkloadHolding, options: ComparisonOptions) -> CachedDiagnosis:
        from clusterscape.analyze.diagnose import Options
        from clusterscape.analyze.diagnose.features import find_quantum
        from clusterscape.query.diagnosis import diagnosing

        available = self._loader.find_metrics(holding)
        metric = options.metric or next((gauge.name for gauge in _list_gauges() if gauge.name in available), None)
        needed = {*diagnosing.FINDING_METRICS, "energy_joules"} & available | ({metric} if metric else set())
        load_companions = partial(self._loader.load, holding, sorted(needed), most=MAX_COMPANIONS)
        with run_meanwhile(load_companions) as wait_for_companions:  # decoding releases the GIL
            fine = self._loader.load(holding, [metric] if metric else [])
            companions = wait_for_companions()
        # From the raw samples: their means have finer steps than the metric.
        quantum = None if metric is None else find_quantum(fine.values[metric])
        fine = fine if metric is None else fine.thin(metric, MAX_COMPARED)
        units = {unit.id: unit for unit in self._context.records.units()} if holding.units else {}
        nodes = {node.id: node for node in self._context.records.nodes()} if holding.units else {}
        attributes = describe_units(holding, nodes, units)
        sizes = [unit.memory_bytes for held in holding.units if (unit := units.get(held.unit)) and unit.memory_bytes]
        analysis_options = Options(
            metric=metric,
            by=options.by,
            max_lag=options.max_lag,
            linkage=options.linkage,
            count=None if options.count is None else min(options.count, max(1, len(holding.units))),
            height=options.height,
            significance=options.significance,
            quantum=quantum,
        )
        memory = float(np.median(sizes)) if sizes else None
        analyzed = diagnosing.analyze_window(
            holding, metric, fine, companions, drop_constant(attributes), memory, analysis_options
        )
        machine_types = sorted({str(name) for name in attributes.get("machine type", []) if name is not None})
        return CachedDiagnosis(metric, analyzed, companions, available, machine_types, fine.step_ms)

    def _holding(self, workload: str, start: int | None, end: int | None) -> WorkloadHolding:
        return find_holding(self._context, self._workloads.find(workload), start, end)

    def _load_lines(self, holding: WorkloadHolding, metrics: Sequence[str], points: int) -> Samples:
        """Steps no longer than a pixel, with their extremes; raw samples if there are few per pixel."""
        if holding.window is None:
            return self._loader.load(holding, metrics)
        pixel_ms = (holding.window[1] - holding.window[0]) / points
        step = max((step_s * 1000 for step_s in NICE_STEPS_S if step_s * 1000 <= pixel_ms), default=0)
        if step < 2 * self._loader.interval_ms(holding):
            return self._loader.load(holding, metrics)
        return self._loader.load_steps(holding, metrics, step, with_range=True)

    def _rules_of(self, holding: WorkloadHolding) -> dict[str, list[UnitRule]]:
        """Rules that each unit violates or violated in the window, in display order."""
        start, end = holding.window or (0, 0)
        rules_by_unit: dict[str, dict[str, bool]] = {}
        for violation in self._context.records.violations(workload=holding.workload.id):
            if violation.since >= end or (violation.until is not None and violation.until <= start):
                continue
            for unit in holding.names if violation.unit is None else [violation.unit]:
                violated = rules_by_unit.setdefault(unit, {})
                violated[violation.rule] = violated.get(violation.rule, False) or violation.until is None
        order = {rule.key: index for index, rule in enumerate(self._book.rules())}
        return {
            unit: [
                UnitRule(rule=rule, state="now" if is_now else "past")
                for rule, is_now in sorted(violated.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
            ]
            for unit, violated in rules_by_unit.items()
        }


def check_metrics(metrics: Sequence[str]) -> None:
    """Raise QueryError for an unknown metric."""
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise QueryError(f"unknown metric {', '.join(unknown)}", hint="GET /api/v1/metrics lists them.")


def _list_gauges() -> list[DiagnosedMetric]:
    """Gauges, summary metrics first. Counters are left out: only their increase is meaningful."""
    gauges = [metric for metric in UNIT_METRICS if metric.kind is MetricKind.GAUGE]
    gauges.sort(key=lambda gauge: not gauge.summary)
    return [DiagnosedMetric(name=gauge.name, label=gauge.label, unit=gauge.unit, has_samples=False) for gauge in gauges]


def _window(span: tuple[int, int] | None) -> TimeWindow | None:
    return None if span is None else TimeWindow(start=span[0], end=span[1])


def _notes(holding: WorkloadHolding, notes: Sequence[str], missing: Sequence[str]) -> list[str]:
    """The notes of a diagnosis; for a workload that never held a GPU only the reason."""
    if holding.units:
        return [*missing, *notes]
    if holding.workload.state is WorkloadState.WAITING:
        return ["Nothing to diagnose: the workload is waiting and has not held a GPU yet."]
    return ["Nothing to diagnose: the GPUs of this workload are unknown."]


def _without(values: Float64s, columns: Sequence[int]) -> Float64s:
    if not columns:
        return values
    out = values.copy()
    out[:, columns] = np.nan
    return out
