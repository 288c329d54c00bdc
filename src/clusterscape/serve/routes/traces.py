"""Traces: upload, import, list and read. Reports are JSON; spans, steps and other tables are Arrow."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, Field

from clusterscape.errors import QueryError, StoreError
from clusterscape.model.identity_fields import ScopedText
from clusterscape.model.trace_report import WhatIf
from clusterscape.query.bounds import Count, ItemId, Nanoseconds, parse_count
from clusterscape.query.ownership import owner_for
from clusterscape.query.traces import Change, Level, Merge
from clusterscape.query.traces.answers import (
    FlowActivity,
    FlowAnswer,
    SpanAnswer,
    TraceAnswer,
    TraceDiffAnswer,
    TraceList,
    TraceRow,
)
from clusterscape.serve.redaction import OpenedRow, RedactedResponse, RedactedRoute
from clusterscape.serve.state import CurrentViewer, State, TraceWriter
from clusterscape.serve.uploads import SizeLimit, drain_if_refused, read_pieces, stream_to_thread
from clusterscape.serve.wire import ARROW_RESPONSE, arrow_response, arrow_tables_response

router = APIRouter(prefix="/api/v1/traces", tags=["traces"], route_class=RedactedRoute)

TraceId = Annotated[str, Path(description="As `clusterscape trace list` shows it.", max_length=100)]
FilePath = Annotated[str, Path(max_length=1000, description="Path below the trace's folder.")]
WindowStart = Annotated[
    Nanoseconds | None,
    Query(alias="from_ns", description="Nanoseconds since the start of the trace; by default 0."),
]
WindowEnd = Annotated[
    Nanoseconds | None,
    Query(alias="to_ns", description="Nanoseconds since the start of the trace; by default its end."),
]
Pixels = Annotated[int, Query(ge=16, le=20_000, description="Width of the picture in pixels.")]
OpenNodes = Annotated[
    str | None,
    Query(
        alias="open",
        max_length=20_000,
        description="Numbers of the expanded namespaces, `*3` for the parts of 3 one by one; by default an overview.",
    ),
]


class NewTrace(BaseModel):
    """A trace whose files will be uploaded."""

    name: str = Field(min_length=1, max_length=200)
    workload_id: ItemId | None = None


class SentFile(BaseModel):
    """An uploaded file."""

    path: ScopedText
    size: int


class WhatIfChange(BaseModel):
    """The change: a ``straggler`` (``rank``) as fast as its peers, stages in ``balance``, every ``link`` (or those of one
    ``process_group``) or ``compute`` (of a ``rank``, a ``stage`` or all) ``factor`` times as fast, perfect ``overlap``, or
    another ``schedule`` (``micro_batches``, ``schedule``) of a pipeline.
    """

    kind: Literal["straggler", "balance", "link", "overlap", "compute", "schedule"]
    rank: Count | None = None
    stage: Count | None = None
    factor: float = Field(2.0, gt=0, le=1000)
    process_group: ItemId | None = None
    micro_batches: int | None = Field(None, ge=1, le=10_000)
    schedule: Literal["gpipe", "1f1b"] | None = None


class WhatIfQuestion(BaseModel):
    """A what-if question about a trace."""

    change: WhatIfChange


@router.get("")
def list_traces(
    state: State, workload: Annotated[ItemId | None, Query(description="Only those of this workload.")] = None
) -> TraceList:
    """Traces, newest first."""
    return state.queries.traces.all(workload=workload)


@router.post("", status_code=201)
def create_trace(new: NewTrace, state: State, viewer: CurrentViewer) -> TraceRow:
    """Create a trace. Upload its files to `files/` next, then POST to `import`."""
    writer = _writer(state.traces)
    workload = None if new.workload_id is None else state.queries.traces.check_workload(new.workload_id, viewer)
    trace = writer.create(new.name, workload, owned_by=owner_for(viewer))
    return state.queries.traces.row(trace.trace_id)


@router.put("/{trace}/files/{path:path}")
async def send_trace_file(
    trace: TraceId, path: FilePath, request: Request, state: State, viewer: CurrentViewer
) -> SentFile:
    """Upload the raw content of one file, streamed to disk; its folder name may identify the rank."""
    writer = _writer(state.traces)
    await run_in_threadpool(state.queries.traces.check_change, trace, viewer)
    limit = SizeLimit(
        "a file",
        writer.max_upload_bytes,
        setting="storage.max_upload_bytes",
        hint="Record fewer steps of the trace.",
    )
    limits = state.limits
    store = partial(writer.put_file, trace, path)
    async with drain_if_refused(request):
        limit.check_announced(request)
        pieces = limit.bound(read_pieces(request, stall_s=limits.upload_timeout_s))
        size = await stream_to_thread(limits.upload_threads, pieces, store, stall_s=limits.upload_timeout_s)
    return SentFile(path=path, size=size)


@router.post("/{trace}/import", status_code=202)
def import_trace(trace: TraceId, state: State, viewer: CurrentViewer) -> TraceRow:
    """Import the uploaded files, in a separate process; `GET` the trace to see the progress."""
    state.queries.traces.check_change(trace, viewer)
    _writer(state.traces).start(trace)
    return state.queries.traces.row(trace)


@router.delete("/{trace}", status_code=204)
def delete_trace(trace: TraceId, state: State, viewer: CurrentViewer) -> None:
    """Delete a trace and all its files."""
    state.queries.traces.check_change(trace, viewer)
    _writer(state.traces).delete(trace)


@router.get("/diff")
def diff_traces(
    state: State,
    a: Annotated[str, Query(description="The trace before.", max_length=100)],
    b: Annotated[str, Query(description="The trace after.", max_length=100)],
) -> TraceDiffAnswer:
    """Compare two runs of the same model: what takes more or less time per step, with intervals and in words."""
    return state.queries.traces.diff(a, b)


@router.get("/{trace}")
def read_trace(trace: TraceId, state: State) -> TraceAnswer:
    """One trace: ranks, stages, and after the import its report with the verdicts."""
    return state.queries.traces.one(trace)


@router.get("/{trace}/steps", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_steps(trace: TraceId, state: State) -> RedactedResponse:
    """``rank``, ``step``, ``start_ns``, ``duration_ns`` = ``compute_ns`` + ``exposed_wait_ns`` + ``exposed_transfer_ns`` +
    ``idle_ns``; ``communication_ns`` also counts what compute hides. ``active_start_ns`` to ``active_end_ns``: the step without
    long idle time around its activity; ``busy_before_ns``, ``busy_after_ns``: what ranks do outside of it all the same.
    """
    return arrow_response(state.redact_table(state.queries.traces.steps(trace), OpenedRow))


@router.get("/{trace}/marey", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_marey(
    trace: TraceId,
    state: State,
    level: Annotated[Level, Query(description="What a row is.")] = "rank",
    opened: Annotated[
        str, Query(alias="open", max_length=20_000, description="Expanded rows: stages as `0`, ranks as `r3`.")
    ] = "",
    start: WindowStart = None,
    end: WindowEnd = None,
    pixels: Pixels = 1400,
    classes: Annotated[
        str, Query(max_length=200, description="Classes of spans; by default compute, communication, memory.")
    ] = "",
    merge: Annotated[Merge, Query(description="How neighboring spans are merged.")] = "gap",
) -> RedactedResponse:
    """The Marey graph of a window: three Arrow streams one after another (`spans`, `rows`, `bands`); ``X-Tables`` has the bytes
    of each. Spans too close to be distinguished are merged; a span 3 times as long as usual is merged only with similar ones.
    """
    tables = state.queries.traces.marey(
        trace,
        level=level,
        opened=_split(opened),
        start_ns=start,
        end_ns=end,
        pixels=pixels,
        classes=_split(classes),
        merge=merge,
    )
    return arrow_tables_response([state.redact_table(table, OpenedRow) for table in tables])


@router.get("/{trace}/spans/{span}")
def read_trace_span(trace: TraceId, span: Annotated[int, Path(ge=0, le=2**40)], state: State) -> SpanAnswer:
    """One span: the members of its collective with arrival, wait and transfer, its launch, the same operator on other ranks."""
    return state.queries.traces.span(trace, span)


@router.get("/{trace}/flow")
def read_trace_flow(
    trace: TraceId,
    state: State,
    opened: OpenNodes = None,
    text: Annotated[
        str, Query(max_length=200, description="Nodes have the number of their operators that contain it.")
    ] = "",
    span: Annotated[int | None, Query(ge=0, le=2**40, description="`at` is its node; the overview shows it.")] = None,
) -> FlowAnswer:
    """The execution flow: nodes in the order of execution, edges with the sharding of their tensors, blocks cut at sends and
    receives. At most 2,000 nodes: larger namespaces stay collapsed.
    """
    return state.queries.traces.flow(trace, opened=None if opened is None else _split(opened), text=text, span=span)


@router.get("/{trace}/flow/activity")
def read_trace_flow_activity(
    trace: TraceId,
    state: State,
    opened: OpenNodes = None,
    start: WindowStart = None,
    end: WindowEnd = None,
    span: Annotated[int | None, Query(ge=0, le=2**40, description="`at` is its node.")] = None,
) -> FlowActivity:
    """Which nodes of the execution flow run in a window: how many of the operators of each, on any rank."""
    return state.queries.traces.flow_activity(
        trace, opened=None if opened is None else _split(opened), start_ns=start, end_ns=end, span=span
    )


@router.get("/{trace}/highlights", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_highlights(
    trace: TraceId,
    state: State,
    opened: OpenNodes = None,
    nodes: Annotated[str, Query(max_length=2000, description="Numbers of nodes, separated by commas.")] = "",
    start: WindowStart = None,
    end: WindowEnd = None,
    pixels: Pixels = 1400,
) -> RedactedResponse:
    """When the operators of nodes of the flow run on all ranks: ``rank``, ``lane``, ``class``, ``phase``, ``step``,
    ``start_ns``, ``end_ns``, ``count``.
    """
    table = state.queries.traces.highlights(
        trace,
        opened=None if opened is None else _split(opened),
        nodes=_split_numbers(nodes, "nodes"),
        start_ns=start,
        end_ns=end,
        pixels=pixels,
    )
    return arrow_response(state.redact_table(table, OpenedRow))


@router.get("/{trace}/overview", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_overview(trace: TraceId, state: State, pixels: Pixels = 700) -> RedactedResponse:
    """The whole trace in bins of equal length: ``row``, ``label`` (a stage, a rank, all), ``time_ns``, and the shares of the bin
    in which the ranks of the row ``compute``, and in which they only communicate (``communication``); means over these ranks.
    """
    return arrow_response(state.redact_table(state.queries.traces.overview(trace, pixels=pixels), OpenedRow))


@router.get("/{trace}/operators", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_operators(
    trace: TraceId,
    state: State,
    start: WindowStart = None,
    end: WindowEnd = None,
    ranks: Annotated[str, Query(max_length=20_000, description="Only these, separated by commas.")] = "",
) -> RedactedResponse:
    """``name``, ``class``, ``phase``, ``count``, ``total_ns``, ``mean_ns``, ``max_ns``, ``share`` (of its class), ``ranks``,
    ``worst_rank``, ``worst_span``, ``imbalance`` (max/mean − 1 over ranks), ``wait_ns``, ``flops``; largest total first.
    """
    numbers = _split_numbers(ranks, "ranks")
    table = state.queries.traces.operators(trace, start_ns=start, end_ns=end, ranks=numbers)
    return arrow_response(state.redact_table(table, OpenedRow))


@router.get("/{trace}/communication", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_communication(trace: TraceId, state: State) -> RedactedResponse:
    """``from_rank``, ``to_rank`` (null: a rank's share in collectives of ``process_group``), ``kind``, ``count``, ``bytes``,
    ``time_ns`` (transferring), ``wait_ns``, ``bandwidth_bytes_per_s``.
    """
    return arrow_response(state.redact_table(state.queries.traces.communication(trace), OpenedRow))


@router.get("/{trace}/curves", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_curves(
    trace: TraceId,
    state: State,
    start: WindowStart = None,
    end: WindowEnd = None,
    pixels: Pixels = 350,
) -> RedactedResponse:
    """``rank``, ``time_ns``, ``compute`` and ``communication`` (shares of the time until the next, 0–1), ``flops`` (per second),
    ``memory_bytes``; null if not recorded.
    """
    table = state.queries.traces.curves(trace, start_ns=start, end_ns=end, pixels=pixels)
    return arrow_response(state.redact_table(table, OpenedRow))


@router.post("/{trace}/whatif")
def ask_what_if(trace: TraceId, question: WhatIfQuestion, state: State) -> WhatIf:
    """Simulate the training step with a change, from the dependencies between ranks; returns the speed-up and its interval."""
    return state.queries.traces.what_if(trace, Change(**question.change.model_dump()))


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _split_numbers(names: str, parameter: str) -> list[int]:
    numbers = [parse_count(name) for name in _split(names)]
    if None in numbers:
        raise QueryError(f"{parameter} must be whole numbers", hint=f"Write {parameter}=0,3,5.")
    return [number for number in numbers if number is not None]


def _writer(traces: TraceWriter | None) -> TraceWriter:
    if traces is None:
        raise StoreError(
            "this server does not accept traces", hint="Use a server that was started with `clusterscape serve`."
        )
    return traces
