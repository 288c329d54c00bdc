"""Queries on imported traces: lists, reports, and the tables for charts."""

import math
from collections.abc import Collection, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from clusterscape.analyze.trace.aggregate import Merge, Window
from clusterscape.analyze.trace.changes import Change, ChangeError
from clusterscape.analyze.trace.drawn import CLASSES, SHOWN_CLASSES, Level
from clusterscape.errors import ClusterScapeError, ForbiddenError, NotFoundError, QueryError, StoreError
from clusterscape.model.access import Viewer
from clusterscape.model.trace_report import WhatIf
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.holding import find_holding
from clusterscape.query.ownership import check_owner
from clusterscape.query.picture import encode_strings
from clusterscape.query.traces.answers import (
    FlowActivity,
    FlowAnswer,
    SpanAnswer,
    TraceAnswer,
    TraceDiffAnswer,
    TraceList,
    TraceRow,
)
from clusterscape.query.traces.describing import (
    describe_change,
    describe_diff,
    describe_report,
    describe_row,
    describe_span,
    describe_stages,
    name_steps,
)
from clusterscape.query.traces.opened import SEED, OpenTrace, OpenTraces, new_trace_cache
from clusterscape.query.workloads import WorkloadQuery
from clusterscape.store.artifacts.contract import ArtifactReader
from clusterscape.store.artifacts.traces import list_abouts, read_about

if TYPE_CHECKING:
    from clusterscape.query.traces.flow import TraceOperators

OPERATOR_FORMAT = "StragglerAnalysis"
MAX_OVERVIEW_ROWS = 16
"""Rows of the overview of a whole trace."""


class TraceQuery:
    """The queries of the parallel view."""

    def __init__(self, context: QueryContext, workloads: WorkloadQuery) -> None:
        self._context = context
        self._workloads = workloads
        self._operators = new_trace_cache(context.uploads)
        self._opened = OpenTraces(context.artifacts, context.uploads) if context.artifacts is not None else None
        self._is_scoped = False

    def within(self, context: QueryContext, workloads: WorkloadQuery) -> "TraceQuery":
        """The same queries within a viewer scope; open traces are shared by all scopes that may read them."""
        scoped = copy(self)
        scoped._context, scoped._workloads, scoped._is_scoped = context, workloads, True
        return scoped

    def all(self, *, workload: str | None = None) -> TraceList:
        """Traces, newest first; only those of ``workload`` if it is not None."""
        workload_id = None if workload is None else str(self._workloads.find(workload).id)
        abouts = [about for about in list_abouts(self._artifacts) if workload_id in (None, about.workload_id)]
        return TraceList(traces=[describe_row(about) for about in abouts])

    def row(self, trace_id: str) -> TraceRow:
        """The list row of one trace."""
        return describe_row(read_about(self._artifacts, trace_id))

    def one(self, trace_id: str) -> TraceAnswer:
        """A trace with its report; without it until the trace is ready."""
        about = read_about(self._artifacts, trace_id)
        if about.state != "ready":
            return TraceAnswer(
                row=describe_row(about),
                origin_ms=None,
                extent_ns=0.0,
                ranks=[],
                stages=[],
                process_groups=[],
                report=None,
            )
        opened = self.open(trace_id)
        return describe_report(opened.about, opened.report, self._units(opened))

    def open(self, trace_id: str) -> OpenTrace:
        """A trace that is ready."""
        if self._is_scoped:
            read_about(self._artifacts, trace_id)  # raises NotFoundError if the viewer may not read it
        if self._opened is None:
            raise StoreError("this server does not store traces", hint="Start it with `clusterscape serve`.")
        return self._opened.find(trace_id)

    def steps(self, trace_id: str) -> pl.DataFrame:
        """``rank``, ``step``, ``start_ns``, ``duration_ns`` and its parts ``compute_ns`` + ``exposed_wait_ns`` +
        ``exposed_transfer_ns`` + ``idle_ns``; ``communication_ns`` is all communication, exposed or not. ``active_start_ns`` to
        ``active_end_ns``: the step without long idle time before and after its activity; ``busy_before_ns`` and
        ``busy_after_ns``: what ranks do there all the same.
        """
        from clusterscape.analyze.trace.activity import find_step_activity

        opened = self.open(trace_id)
        return name_steps(
            opened.steps.join(
                find_step_activity(opened.activity, opened.steps), on="step", how="left", maintain_order="left"
            )
        )

    def overview(self, trace_id: str, *, pixels: int = 700) -> pl.DataFrame:
        """The whole trace in bins of equal length, by stage; of a run without stages by rank if these are few, else of all."""
        from clusterscape.analyze.trace.activity import draw_overview

        opened = self.open(trace_id)
        stages = describe_stages(opened.about.stages)
        rows = [(None if stage.stage is None else f"stage {stage.stage}", stage.ranks) for stage in stages]
        if len(rows) == 1:
            (_, ranks) = rows[0]
            rows = [(f"rank {rank}", [rank]) for rank in ranks] if len(ranks) <= MAX_OVERVIEW_ROWS else [(None, ranks)]
        if len(rows) > MAX_OVERVIEW_ROWS:
            rows = [(None, sorted(opened.about.stages))]
        labels = [label or "all ranks" for label, _ in rows]
        table = draw_overview(opened.activity, [ranks for _, ranks in rows], opened.drawn.extent_ns, pixels)
        names = pl.Series(labels, dtype=pl.Enum(list(dict.fromkeys(labels))))
        return table.with_columns(names.gather(table["row"]).alias("label")) if labels else table

    def marey(
        self,
        trace_id: str,
        *,
        level: Level = "rank",
        opened: Collection[str] = (),
        start_ns: float | None = None,
        end_ns: float | None = None,
        pixels: int = 1400,
        classes: Sequence[str] = (),
        merge: Merge = "gap",
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Spans, rows and bands of a window; by default the whole trace, with device spans and communication."""
        from clusterscape.analyze.trace.marey import draw_marey

        unknown = sorted(set(classes) - set(CLASSES))
        if unknown:
            raise QueryError(f"unknown class {', '.join(unknown)}", hint=f"Choose from {', '.join(CLASSES)}.")
        drawn = self.open(trace_id).drawn
        window = _window(drawn.extent_ns, start_ns, end_ns, pixels)
        graph = draw_marey(
            drawn, window, level=level, opened=frozenset(opened), classes=classes or SHOWN_CLASSES, merge=merge
        )
        return graph.spans, graph.rows, graph.bands

    def span(self, trace_id: str, span: int) -> SpanAnswer:
        """One span in full."""
        opened = self.open(trace_id)
        if not 0 <= span < opened.spans.height:
            raise NotFoundError(
                f"trace {trace_id} has no span {span}", hint=f"It has {opened.spans.height:,} spans, numbered from 0."
            )
        return describe_span(opened.spans, span, opened.drawn.origin_ns)

    def operators(
        self,
        trace_id: str,
        *,
        start_ns: float | None = None,
        end_ns: float | None = None,
        ranks: Sequence[int] = (),
    ) -> pl.DataFrame:
        """The time of every operator in a window."""
        from clusterscape.analyze.trace.window_tables import sum_operators

        opened = self.open(trace_id)
        window = _window(opened.drawn.extent_ns, start_ns, end_ns, 1)
        origin = opened.drawn.origin_ns
        low, high = origin + int(window.start_ns), origin + math.ceil(window.end_ns)
        return encode_strings(sum_operators(opened.spans, low, high, ranks), ["name", "class", "phase"])

    def communication(self, trace_id: str) -> pl.DataFrame:
        """Bytes, transfer times and waiting times between ranks."""
        from clusterscape.analyze.trace.window_tables import sum_links

        return encode_strings(sum_links(self.open(trace_id).spans), ["kind", "process_group"])

    def curves(
        self, trace_id: str, *, start_ns: float | None = None, end_ns: float | None = None, pixels: int = 350
    ) -> pl.DataFrame:
        """Compute and communication of every rank over time."""
        from clusterscape.analyze.trace.window_tables import draw_curves

        opened = self.open(trace_id)
        window = _window(opened.drawn.extent_ns, start_ns, end_ns, pixels)
        origin = opened.drawn.origin_ns
        low, high = origin + int(window.start_ns), origin + math.ceil(window.end_ns)
        return draw_curves(opened.spans, low, high, pixels, opened.memory).with_columns(
            pl.col("time_ns") + (low - origin)
        )

    def flow(
        self, trace_id: str, *, opened: Sequence[str] | None = None, text: str = "", span: int | None = None
    ) -> FlowAnswer:
        """The execution flow with some namespaces open; None: the default. ``span``: a span whose node is returned, too."""
        from clusterscape.query.traces.flow import build_flow, place_span

        operators = self._load_operators(self.open(trace_id))
        place = None if span is None else place_span(operators, span)
        return build_flow(operators, opened, text, place)

    def flow_activity(
        self,
        trace_id: str,
        *,
        opened: Sequence[str] | None = None,
        start_ns: float | None = None,
        end_ns: float | None = None,
        span: int | None = None,
    ) -> FlowActivity:
        """Which nodes of the flow run in a window, by default in the whole trace; and the node of a span."""
        from clusterscape.query.traces.flow import find_flow_activity

        trace = self.open(trace_id)
        low, high = _clock_window(trace, start_ns, end_ns)
        return find_flow_activity(self._load_operators(trace), opened, low, high, span)

    def highlights(
        self,
        trace_id: str,
        *,
        opened: Sequence[str] | None = None,
        nodes: Sequence[int] = (),
        start_ns: float | None = None,
        end_ns: float | None = None,
        pixels: int = 1400,
    ) -> pl.DataFrame:
        """When the operators of some nodes of the flow run on all ranks: ``rank``, ``lane``, ``class``, ``phase``, ``step``,
        ``start_ns``, ``end_ns``, ``count``. Spans less than a pixel of the window apart are joined.
        """
        from clusterscape.analyze.trace.flow_links import join_spans
        from clusterscape.query.traces.flow import find_node_spans

        trace = self.open(trace_id)
        low, high = _clock_window(trace, start_ns, end_ns)
        rows = find_node_spans(self._load_operators(trace), opened, nodes)
        chosen = trace.spans[rows].filter((pl.col("end_ns") > low) & (pl.col("drawn_ns") < high))
        table = join_spans(chosen, (high - low) / pixels)
        origin = trace.drawn.origin_ns
        table = table.with_columns((pl.col("start_ns", "end_ns") - origin).cast(pl.Float64))
        return encode_strings(table, ["lane", "class", "phase"])

    def _load_operators(self, trace: OpenTrace) -> "TraceOperators":
        from clusterscape.query.traces.flow import load_operators

        about = trace.about
        return self._operators.get(about.trace_id, about.imported_at, lambda: load_operators(trace), weight=about.spans)

    def diff(self, before: str, after: str) -> TraceDiffAnswer:
        """What changed from one run to another."""
        from clusterscape.analyze.trace.diff import RunTables, compare_runs

        first, second = self.open(before), self.open(after)
        trace_diff = compare_runs(
            RunTables(first.spans, first.steps, first.report),
            RunTables(second.spans, second.steps, second.report),
            np.random.default_rng(SEED),
        )
        return describe_diff(first.about, second.about, trace_diff)

    def what_if(self, trace_id: str, change: Change) -> WhatIf:
        """The predicted step time after a change."""
        opened = self.open(trace_id)
        if opened.about.format == OPERATOR_FORMAT:
            raise QueryError(
                f"what-ifs are not available for {OPERATOR_FORMAT} traces",
                hint="The report contains simulated results.",
            )
        try:
            return describe_change(opened.changed.ask(change))
        except ChangeError as error:
            raise QueryError(f"this what-if does not apply to the trace: {error}", hint="Choose another one.") from None

    def check_workload(self, workload: str, viewer: Viewer) -> str:
        """The id of a workload; raises if it does not exist, or the viewer may not upload traces for it."""
        record = self._workloads.find(workload)
        if not viewer.may_see(record.user, record.project):
            raise ForbiddenError(
                f"{workload} belongs to another user",
                hint="Upload the trace without a workload, or ask its owner to upload it.",
            )
        return record.id

    def check_change(self, trace_id: str, viewer: Viewer) -> None:
        """Raise if the trace does not exist, or the viewer may not change it."""
        about = read_about(self._artifacts, trace_id)
        if about.workload_id is None or about.owned_by == viewer.login is not None:
            check_owner(about.owned_by, viewer, f"trace {trace_id}")
        else:
            self.check_workload(about.workload_id, viewer)

    @property
    def _artifacts(self) -> ArtifactReader:
        if self._context.artifacts is None:
            raise StoreError("this server does not store traces", hint="Start it with `clusterscape serve`.")
        return self._context.artifacts

    def _units(self, opened: OpenTrace) -> dict[int, str]:
        """The GPU of each rank, if the workload held one for that rank while the trace was recorded."""
        about = opened.about
        if about.workload_id is None:
            return {}
        start = None if about.origin_ms is None else int(about.origin_ms)
        try:
            workload = self._workloads.find(about.workload_id)
            holding = find_holding(
                self._context, workload, start, None if start is None else start + 1 + int(about.extent_ns / 1e6)
            )
        except ClusterScapeError:  # the workload no longer exists, or the trace was recorded at another time
            return {}
        return {held.global_rank: held.unit for held in holding.units if held.global_rank is not None}


def _clock_window(trace: OpenTrace, start_ns: float | None, end_ns: float | None) -> tuple[int, int]:
    """A window on the clock of the spans."""
    window = _window(trace.drawn.extent_ns, start_ns, end_ns, 1)
    return trace.drawn.origin_ns + math.floor(window.start_ns), trace.drawn.origin_ns + math.ceil(window.end_ns)


def _window(extent_ns: float, start_ns: float | None, end_ns: float | None, pixels: int) -> Window:
    low = 0.0 if start_ns is None else start_ns
    high = extent_ns if end_ns is None else end_ns
    if high <= low:
        raise QueryError("the end of the window must be after its start", hint=f"The trace lasts {extent_ns:.0f} ns.")
    return Window(low, high, pixels)
