"""Imported traces: which there are, what each shows, and the tables its pictures are made from."""

import math
from collections.abc import Collection, Sequence
from copy import copy

import numpy as np
import polars as pl

from clusterscape.analyze.trace.aggregate import Merge, Window
from clusterscape.analyze.trace.changes import Change, ChangeError
from clusterscape.analyze.trace.drawn import CLASSES, SHOWN_CLASSES, Level
from clusterscape.errors import ClusterScapeError, ForbiddenError, NotFoundError, QueryError, StoreError
from clusterscape.model.trace_report import WhatIf
from clusterscape.model.viewers import Viewer
from clusterscape.query.cache import VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.holding import find_holding
from clusterscape.query.ownership import check_owner
from clusterscape.query.picture import encode_strings
from clusterscape.query.traces.answers import SpanAnswer, TraceAnswer, TraceDiffAnswer, TraceList, TraceRow
from clusterscape.query.traces.describing import describe_change, describe_diff, describe_report, describe_row
from clusterscape.query.traces.flow_answers import FlowAnswer
from clusterscape.query.traces.opened import KEPT, SEED, OpenTrace, OpenTraces
from clusterscape.query.traces.spans import describe_span
from clusterscape.query.workloads import WorkloadQuery
from clusterscape.store.artifacts.contract import ArtifactStore
from clusterscape.store.artifacts.traces import list_abouts, read_about

OPERATOR_FORMAT = "StragglerAnalysis"


class TraceQuery:
    """Everything the parallel view asks."""

    def __init__(self, context: QueryContext, workloads: WorkloadQuery) -> None:
        self._context = context
        self._workloads = workloads
        self._operators = VersionedCache(size=KEPT)
        self._opened = OpenTraces(context.artifacts) if context.artifacts is not None else None
        self._is_scoped = False

    def within(self, context: QueryContext, workloads: WorkloadQuery) -> "TraceQuery":
        """The same questions within a viewer scope; a trace that is open is open for all who may read it."""
        scoped = copy(self)
        scoped._context, scoped._workloads, scoped._is_scoped = context, workloads, True
        return scoped

    def all(self, *, workload: str | None = None) -> TraceList:
        """Traces, newest first; those of one workload."""
        wanted = None if workload is None else str(self._workloads.find(workload).id)
        found = [each for each in list_abouts(self._artifacts) if wanted in (None, each.workload_id)]
        return TraceList(traces=[describe_row(each) for each in found])

    def row(self, trace_id: str) -> TraceRow:
        """What lists show of one trace."""
        return describe_row(read_about(self._artifacts, trace_id))

    def one(self, trace_id: str) -> TraceAnswer:
        """A trace with its report, as far as it has been read."""
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
        """A trace that has been read."""
        if self._is_scoped:
            read_about(self._artifacts, trace_id)  # raises NotFoundError where the viewer may not read it
        if self._opened is None:
            raise StoreError("this server keeps no traces", hint="Start it with `clusterscape serve`.")
        return self._opened.find(trace_id)

    def steps(self, trace_id: str) -> pl.DataFrame:
        """``rank``, ``step``, ``start_ns``, ``duration_ns`` and its parts ``compute_ns`` + ``exposed_wait_ns`` +
        ``exposed_transfer_ns`` + ``idle_ns``; ``communication_ns`` is all of it, hidden or not.
        """
        return (
            self.open(trace_id)
            .steps.rename(
                {
                    "step_ns": "duration_ns",
                    "waiting_ns": "exposed_wait_ns",
                    "transferring_ns": "exposed_transfer_ns",
                }
            )
            .sort("step", "rank")
        )

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
        """Spans, rows and bands of a window; by default the whole trace, and what devices do and ranks send."""
        from clusterscape.analyze.trace.marey import draw_marey

        unknown = sorted(set(classes) - set(CLASSES))
        if unknown:
            raise QueryError(f"unknown class {', '.join(unknown)}", hint=f"There are: {', '.join(CLASSES)}.")
        drawn = self.open(trace_id).drawn
        window = _window(drawn.extent_ns, start_ns, end_ns, pixels)
        graph = draw_marey(
            drawn, window, level=level, opened=frozenset(opened), classes=classes or SHOWN_CLASSES, merge=merge
        )
        return graph.spans, graph.rows, graph.bands

    def span(self, trace_id: str, span: int) -> SpanAnswer:
        """Everything about one span."""
        opened = self.open(trace_id)
        if not 0 <= span < opened.spans.height:
            raise NotFoundError(f"trace {trace_id} has no span {span}", hint=f"It has {opened.spans.height:,}.")
        return describe_span(opened.spans, span, opened.drawn.origin_ns)

    def operators(
        self,
        trace_id: str,
        *,
        start_ns: float | None = None,
        end_ns: float | None = None,
        ranks: Sequence[int] = (),
    ) -> pl.DataFrame:
        """What every operator cost in a window."""
        from clusterscape.analyze.trace.operators import sum_operators

        opened = self.open(trace_id)
        window = _window(opened.drawn.extent_ns, start_ns, end_ns, 1)
        origin = opened.drawn.origin_ns
        low, high = origin + int(window.start_ns), origin + math.ceil(window.end_ns)
        return encode_strings(sum_operators(opened.spans, low, high, ranks), ["name", "class", "phase"])

    def communication(self, trace_id: str) -> pl.DataFrame:
        """Who sent how much to whom, how long it took and was waited for."""
        from clusterscape.analyze.trace.communication import sum_links

        return encode_strings(sum_links(self.open(trace_id).spans), ["kind", "process_group"])

    def curves(
        self, trace_id: str, *, start_ns: float | None = None, end_ns: float | None = None, pixels: int = 350
    ) -> pl.DataFrame:
        """How much every rank computed and communicated, over time."""
        from clusterscape.analyze.trace.curves import draw_curves

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
        """The execution flow with some namespaces open; None: as a first picture. ``span``: whose node is to be told."""
        from clusterscape.query.traces.flow import draw, load_operators
        from clusterscape.query.traces.flow_places import find_place

        trace = self.open(trace_id)
        operators = self._operators.get(trace_id, trace.about.imported_at, lambda: load_operators(trace))
        place = None
        if span is not None and span < trace.spans.height:
            stage = trace.about.stages.get(trace.spans["rank"][span])
            place = find_place(operators.graph, trace.spans, span, stage)
        return draw(operators, opened, text, place)

    def diff(self, before: str, after: str) -> TraceDiffAnswer:
        """What changed from one run to another."""
        from clusterscape.analyze.trace.diff import RunTables, compare_runs

        first, second = self.open(before), self.open(after)
        found = compare_runs(
            RunTables(first.spans, first.steps),
            RunTables(second.spans, second.steps),
            np.random.default_rng(SEED),
        )
        return describe_diff(first.about, second.about, found)

    def what_if(self, trace_id: str, change: Change) -> WhatIf:
        """The step there would be."""
        opened = self.open(trace_id)
        if opened.about.format == OPERATOR_FORMAT:
            raise QueryError(
                "a trace recorded operator by operator is re-simulated as published, not by what its ranks wait for",
                hint="The answers are in its report.",
            )
        try:
            return describe_change(opened.changed.ask(change))
        except ChangeError as error:
            raise QueryError(f"this cannot be asked of the trace: {error}", hint="Ask another question.") from None

    def check_workload(self, workload: str, viewer: Viewer) -> str:
        """The id of a workload; raises where there is none, or where its traces are not this viewer's to send."""
        found = self._workloads.find(workload)
        if not viewer.knows(found.user, found.project):
            raise ForbiddenError(
                f"{workload} is not yours", hint="Send the trace without a workload, or ask its owner to."
            )
        return found.id

    def check_change(self, trace_id: str, viewer: Viewer) -> None:
        """Raise where there is no such trace, or where it is not this viewer's to change."""
        about = read_about(self._artifacts, trace_id)
        if about.workload_id is None or about.owned_by == viewer.login is not None:
            check_owner(about.owned_by, viewer, f"the trace {trace_id}")
        else:
            self.check_workload(about.workload_id, viewer)

    # parts

    @property
    def _artifacts(self) -> ArtifactStore:
        if self._context.artifacts is None:
            raise StoreError("this server keeps no traces", hint="Start it with `clusterscape serve`.")
        return self._context.artifacts

    def _units(self, opened: OpenTrace) -> dict[int, str]:
        """The GPU of each rank, where the workload held one of that rank while the trace was recorded."""
        about = opened.about
        if about.workload_id is None:
            return {}
        start = None if about.origin_ms is None else int(about.origin_ms)
        try:
            workload = self._workloads.find(about.workload_id)
            holding = find_holding(
                self._context, workload, start, None if start is None else start + 1 + int(about.extent_ns / 1e6)
            )
        except ClusterScapeError:  # the workload is gone, or the trace was recorded at another time
            return {}
        return {each.global_rank: each.unit for each in holding.units if each.global_rank is not None}


def _window(extent_ns: float, start_ns: float | None, end_ns: float | None, pixels: int) -> Window:
    low = 0.0 if start_ns is None else start_ns
    high = extent_ns if end_ns is None else end_ns
    if high <= low:
        raise QueryError("the window ends before it begins", hint=f"The trace lasts {extent_ns:.0f} ns.")
    return Window(low, high, pixels)
