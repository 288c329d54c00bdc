"""Questions about one workload's GPUs. The analysis is imported when it is first asked for: it is heavy."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from clusterscape.errors import QueryError
from clusterscape.model import CATALOGUE, METRICS, MetricKind, WorkloadState
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
    Holding,
    describe_units,
    expand_units,
    find_holding,
    keep_telling,
    read_layout,
)
from clusterscape.query.diagnosis.loading import Floats, Ints, RunLoader, Samples
from clusterscape.query.rule_notes import RuleNotes
from clusterscape.query.series import NICE_STEPS_S
from clusterscape.query.workloads import WorkloadQuery
from clusterscape.watch.rulebook import RuleBook

if TYPE_CHECKING:
    from clusterscape.query.diagnosis.diagnosing import Judged

MOST_COMPARED = 1_000_000
"""Values that GPUs are compared by: beyond that they are means of a few samples."""

MOST_COMPANIONS = 1_500_000
"""Values that findings are drawn from, of all metrics together."""


MISSING_SHARE = 0.05
"""Of a window: so much without samples at its begin or end is said."""

LOADING_MS = 30_000
"""History that came within this is still being loaded."""

JUDGINGS_KEPT = 4
"""Each with the samples it was made from, some 20 MB of a long run."""

LineSummary = Literal["none", "median", "clusters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """What GPUs are compared by. ``metric`` None: the first that has samples; ``count`` and ``height`` None: a chosen cut."""

    metric: str | None = None
    by: By = "histogram"
    max_lag: int = 0
    linkage: Linkage = "average"
    count: int | None = None
    height: float | None = None
    significance: float = 0.05


AS_USUAL = Comparing()


@dataclass(frozen=True, slots=True)
class Judging:
    """What the analysis says of a window, and what it was made from."""

    metric: str | None
    judged: "Judged"
    companions: Samples
    known: frozenset[str]
    machine_types: list[str]
    step_ms: int | None


class DiagnosisQuery:
    """Questions about the GPUs of one workload."""

    def __init__(self, context: QueryContext, workloads: WorkloadQuery, book: RuleBook, notes: RuleNotes) -> None:
        self._context = context
        self._workloads = workloads
        self._book = book
        self._notes = notes
        self._loader = RunLoader(context)
        self._judgings = VersionedCache(JUDGINGS_KEPT)

    def within(self, context: QueryContext, workloads: WorkloadQuery, notes: RuleNotes) -> "DiagnosisQuery":
        """The same questions within a viewer scope; samples, and what is found in them, are loaded and judged once for all."""
        scoped = copy(self)
        scoped._context, scoped._workloads, scoped._notes = context, workloads, notes
        return scoped

    def diagnosis(
        self, workload: str, *, start_ms: int | None = None, end_ms: int | None = None, comparing: Comparing = AS_USUAL
    ) -> DiagnosisAnswer:
        """Clusters by one metric, odd GPUs, what they share, and findings. Without samples: empty, and a note says why."""
        from clusterscape.query.diagnosis import describing
        from clusterscape.query.diagnosis.costs import compute_energy, compute_wasted_hours

        holding = self._holding(workload, start_ms, end_ms)
        with ThreadPoolExecutor(1) as aside:
            counting = aside.submit(compute_wasted_hours, self._context, holding, self._loader)
            judging = self._judge(holding, comparing)
            wasted = counting.result()
        judged = judging.judged
        found, clustering = judged.diagnosis, judged.diagnosis.clustering
        energy, energy_from = compute_energy(holding, judging.companions)
        record = holding.workload
        return DiagnosisAnswer(
            workload=record.id,
            name=record.name,
            user=record.user,
            project=record.project,
            partition=record.partition,
            state=record.state,
            machine_types=judging.machine_types,
            layout=read_layout(record, record.gpus_requested),
            started_at=None if record.state is WorkloadState.WAITING else record.started_at,
            ended_at=record.ended_at,
            life=_window(holding.life),
            window=_window(holding.window),
            gpus=len(holding.units),
            nodes=len({each.node for each in holding.units}),
            gpu_hours=holding.gpu_hours(),
            wasted_gpu_hours=wasted,
            energy_joules=energy,
            energy_from=energy_from,
            metrics=[replace(each, has_samples=each.name in judging.known) for each in _offered()],
            metric=judging.metric,
            by=comparing.by,
            step_ms=judging.step_ms,
            units=describing.describe_units(holding, judged, self._rules_of(holding)),
            clusters=describing.describe_clusters(judged),
            compared=[str(unit) for unit in found.run.pick(clustering.compared)],
            linkage=clustering.tree.tolist(),
            leaves=[str(unit) for unit in found.run.pick(describing.order_leaves(clustering))],
            cut_height=clustering.height,
            cut_kind=clustering.cut.value,
            heights_for_counts=describing.heights_for_counts(clustering),
            odd=describing.describe_odd(judged),
            odd_note=found.odd.note,
            findings=[describing.describe_finding(finding) for finding in judged.findings],
            notes=_notes(holding, judged.notes, self._describe_missing(holding, found.run.samples.times_ms)),
        )

    def histograms(
        self, workload: str, *, metric: str, start_ms: int | None = None, end_ms: int | None = None, bins: int = 40
    ) -> Picture:
        """How a metric is distributed on each GPU."""
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
        comparing: Comparing = AS_USUAL,
    ) -> pl.DataFrame:
        """Lines of a picture ``points`` pixels wide; every extreme is in it.

        Where no unit is named all are drawn, if they are few. ``summary`` "clusters": also median, 5th and 95th percentile of
        each cluster that the diagnosis finds, named ``c0:median`` ….
        """
        from clusterscape.query.diagnosis.lines import MOST_LINES, SUMMARY, Band, draw_lines

        check_metrics(metrics)
        holding = self._holding(workload, start_ms, end_ms)
        samples = self._load_lines(holding, metrics, points)
        everyone = range(len(holding.units))
        is_many = len(everyone) > MOST_LINES
        columns = expand_units(holding, units) if units else [] if is_many or summary == "clusters" else [*everyone]
        bands = [Band(everyone, [*SUMMARY])] if is_many else [Band(everyone, ["median"])] if summary != "none" else []
        if summary == "clusters":
            clustering = self._judge(holding, comparing).judged.diagnosis.clustering
            members = [clustering.members(label).tolist() for label in range(clustering.count)]
            bands += [Band(each, [*SUMMARY], f"c{label}:") for label, each in enumerate(members)]
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
    ) -> ScatterPicture:
        """Two metrics against each other, and which points lie outside."""
        from clusterscape.query.diagnosis.pictures import draw_scatter

        check_metrics([x, y])
        holding = self._holding(workload, start_ms, end_ms)
        pair = [self._loader.load(holding, [name]) for name in (x, y)]
        if not np.array_equal(pair[0].times_ms, pair[1].times_ms):
            # Of exporters that differ: brought onto one grid.
            step = max((each.step_ms or 0 for each in pair), default=0) or None
            pair = [self._loader.load_steps(holding, [x, y], step)] * 2
        chosen = set(expand_units(holding, units))
        left_out = [column for column in range(len(holding.units)) if units and column not in chosen]
        return draw_scatter(
            pair[0].times_ms,
            _without(pair[0].values[x], left_out),
            _without(pair[1].values[y], left_out),
            holding,
            robust=robust,
            significance=significance,
            most=most,
        )

    def events(self, workload: str, *, start_ms: int | None = None, end_ms: int | None = None) -> list[WorkloadEvent]:
        """What happened to the workload."""
        from clusterscape.query.diagnosis.events import list_events

        holding = self._holding(workload, start_ms, end_ms)
        return list_events(self._context, holding, {rule.key: rule for rule in self._book.rules()}, self._notes)

    def warm_up(self) -> None:
        """Load what a first diagnosis needs, and its compiled parts: seconds that nobody should wait for."""
        from clusterscape.query.diagnosis.diagnosing import warm_up

        warm_up()

    # parts

    def _describe_missing(self, holding: Holding, times_ms: Ints) -> list[str]:
        """That samples begin late or end early, and whether some are on their way."""
        from clusterscape.analyze.diagnose.run_data import format_duration

        if holding.window is None or times_ms.size == 0:
            return []
        start, end = holding.window[0], min(holding.window[1], holding.now)
        late_ms, early_ms = int(times_ms[0]) - start, end - int(times_ms[-1])
        least_ms = max(MISSING_SHARE * (end - start), 10 * self._loader.interval_ms(holding))
        loaded_at = self._context.changes.versions.history_at
        notes = []
        if late_ms > least_ms:
            why = "they were not measured, or not kept"
            if loaded_at is not None and holding.now - loaded_at < LOADING_MS:
                why = "earlier ones are being loaded now, and the picture fills"
            notes.append(
                f"The first sample is {format_duration(late_ms / 1000)} after the begin of this window: {why}."
            )
        if early_ms > least_ms:
            notes.append(f"The last sample is {format_duration(early_ms / 1000)} before the end of this window.")
        return notes

    def _judge(self, holding: Holding, comparing: Comparing) -> Judging:
        if comparing.metric is not None:
            check_metrics([comparing.metric])
        if comparing.count is not None and comparing.height is not None:
            raise QueryError("give a number of clusters or a height, not both")
        version = self._loader.version(holding)
        return self._judgings.get((holding.key, comparing), version, lambda: self._judge_anew(holding, comparing))

    def _judge_anew(self, holding: Holding, comparing: Comparing) -> Judging:
        from clusterscape.analyze.diagnose import Options
        from clusterscape.analyze.diagnose.features import find_quantum
        from clusterscape.query.diagnosis import diagnosing

        known = self._loader.known_metrics(holding)
        metric = comparing.metric or next((each.name for each in _offered() if each.name in known), None)
        wanted = {*diagnosing.FINDING_METRICS, "energy_joules"} & known | ({metric} if metric else set())
        with ThreadPoolExecutor(1) as aside:  # reading is mostly decoding, outside of the interpreter's lock
            reading = aside.submit(self._loader.load, holding, sorted(wanted), most=MOST_COMPANIONS)
            fine = self._loader.load(holding, [metric] if metric else [])
            companions = reading.result()
        # Of the samples themselves: their means have finer steps than the metric.
        quantum = None if metric is None else find_quantum(fine.values[metric])
        fine = fine if metric is None else fine.thin(metric, MOST_COMPARED)
        units = {each.id: each for each in self._context.records.units()} if holding.units else {}
        nodes = {each.id: each for each in self._context.records.nodes()} if holding.units else {}
        attributes = describe_units(holding, nodes, units)
        sizes = [unit.memory_bytes for each in holding.units if (unit := units.get(each.unit)) and unit.memory_bytes]
        options = Options(
            metric=metric,
            by=comparing.by,
            max_lag=comparing.max_lag,
            linkage=comparing.linkage,
            count=None if comparing.count is None else min(comparing.count, max(1, len(holding.units))),
            height=comparing.height,
            significance=comparing.significance,
            quantum=quantum,
        )
        memory = float(np.median(sizes)) if sizes else None
        judged = diagnosing.judge(holding, metric, fine, companions, keep_telling(attributes), memory, options)
        machine_types = sorted({str(each) for each in attributes.get("machine type", []) if each is not None})
        return Judging(metric, judged, companions, known, machine_types, fine.step_ms)

    def _holding(self, workload: str, start: int | None, end: int | None) -> Holding:
        return find_holding(self._context, self._workloads.find(workload), start, end)

    def _load_lines(self, holding: Holding, metrics: Sequence[str], points: int) -> Samples:
        """Steps no longer than a pixel, with their extremes; raw samples where a pixel has few of them."""
        if holding.window is None:
            return self._loader.load(holding, metrics)
        pixel_ms = (holding.window[1] - holding.window[0]) / points
        step = max((each * 1000 for each in NICE_STEPS_S if each * 1000 <= pixel_ms), default=0)
        if step < 2 * self._loader.interval_ms(holding):
            return self._loader.load(holding, metrics)
        return self._loader.load_steps(holding, metrics, step, with_range=True)

    def _rules_of(self, holding: Holding) -> dict[str, list[UnitRule]]:
        """Rules that each unit breaks or broke in the window, in the order of the bar."""
        start, end = holding.window or (0, 0)
        found: dict[str, dict[str, bool]] = {}
        for each in self._context.records.violations(workload=holding.workload.id):
            if each.since >= end or (each.until is not None and each.until <= start):
                continue
            for unit in holding.names if each.unit is None else [each.unit]:
                broken = found.setdefault(unit, {})
                broken[each.rule] = broken.get(each.rule, False) or each.until is None
        order = {rule.key: place for place, rule in enumerate(self._book.rules())}
        return {
            unit: [
                UnitRule(rule=rule, state="now" if is_now else "past")
                for rule, is_now in sorted(broken.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
            ]
            for unit, broken in found.items()
        }


def check_metrics(metrics: Sequence[str]) -> None:
    """Raise QueryError for a metric that there is not."""
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise QueryError(f"unknown metric {', '.join(unknown)}", hint="GET /api/v1/metrics lists them.")


def _offered() -> list[DiagnosedMetric]:
    """Gauges, those of the summary first: of a counter only the increase means something."""
    gauges = [each for each in CATALOGUE if each.kind is MetricKind.GAUGE]
    gauges.sort(key=lambda each: not each.summary)
    return [DiagnosedMetric(name=e.name, label=e.label, unit=e.unit, has_samples=False) for e in gauges]


def _window(span: tuple[int, int] | None) -> TimeWindow | None:
    return None if span is None else TimeWindow(start=span[0], end=span[1])


def _notes(holding: Holding, notes: Sequence[str], missing: Sequence[str]) -> list[str]:
    """A workload that never held a GPU needs no further words."""
    if holding.units:
        return [*missing, *notes]
    if holding.workload.state is WorkloadState.WAITING:
        return ["The workload waits and has not held a GPU yet: there is nothing to diagnose."]
    return ["It is not known which GPUs the workload held: there is nothing to diagnose."]


def _without(values: Floats, columns: Sequence[int]) -> Floats:
    if not columns:
        return values
    out = values.copy()
    out[:, columns] = np.nan
    return out
