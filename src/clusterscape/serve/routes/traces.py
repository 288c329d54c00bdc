"""Imported traces: sent in pieces, listed, drawn. Reports are JSON; spans, steps and other tables Arrow."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, Field

from clusterscape.errors import QueryError, StoreError
from clusterscape.model.identity_fields import ScopedText
from clusterscape.model.trace_report import WhatIf
from clusterscape.query.bounds import Count, ItemId, Nanoseconds
from clusterscape.query.ownership import owner_for
from clusterscape.query.traces import Change, Level, Merge
from clusterscape.query.traces.answers import SpanAnswer, TraceAnswer, TraceDiffAnswer, TraceList, TraceRow
from clusterscape.query.traces.flow_answers import FlowAnswer
from clusterscape.serve.redaction import OpenedRow, RedactedResponse, RedactedRoute
from clusterscape.serve.state import CurrentViewer, State, TraceWriter
from clusterscape.serve.uploads import SizeLimit, answer_refusal, read_pieces, stream_to_thread
from clusterscape.serve.wire import ARROW_RESPONSE, arrow_response, arrow_tables_response

router = APIRouter(prefix="/api/v1/traces", tags=["traces"], route_class=RedactedRoute)

TraceId = Annotated[str, Path(description="As `clusterscape trace list` shows it.", max_length=100)]
FilePath = Annotated[str, Path(max_length=1000, description="Below the trace's folder.")]
WindowStart = Annotated[
    Nanoseconds | None,
    Query(alias="from_ns", description="Nanoseconds since the trace's first start; by default that."),
]
WindowEnd = Annotated[Nanoseconds | None, Query(alias="to_ns", description="By default the trace's end.")]
Pixels = Annotated[int, Query(ge=16, le=20_000, description="Width of the picture.")]


class NewTrace(BaseModel):
    """A trace whose files are to be sent."""

    name: str = Field(min_length=1, max_length=200)
    workload_id: ItemId | None = None


class SentFile(BaseModel):
    """What became of a file."""

    path: ScopedText
    size: int


class WhatIfChange(BaseModel):
    """What is changed: a ``straggler`` (``rank``) as fast as its peers, stages in ``balance``, every ``link`` (or those of one
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
    """One question."""

    change: WhatIfChange


@router.get("")
def list_traces(
    state: State, workload: Annotated[ItemId | None, Query(description="Only those of this workload.")] = None
) -> TraceList:
    """Traces, newest first."""
    return state.queries.traces.all(workload=workload)


@router.post("", status_code=201)
def create_trace(new: NewTrace, state: State, viewer: CurrentViewer) -> TraceRow:
    """Announce a trace. Its files are sent to `files/` next, then `import` is asked for."""
    writer = _writer(state.traces)
    workload = None if new.workload_id is None else state.queries.traces.check_workload(new.workload_id, viewer)
    made = writer.create(new.name, workload, owned_by=owner_for(viewer))
    return state.queries.traces.row(made.trace_id)


@router.put("/{trace}/files/{path:path}")
async def send_trace_file(
    trace: TraceId, path: FilePath, request: Request, state: State, viewer: CurrentViewer
) -> SentFile:
    """The raw content of one file, streamed to the disk; the folder it lies in may tell its rank."""
    writer = _writer(state.traces)
    await run_in_threadpool(state.queries.traces.check_change, trace, viewer)
    limit = SizeLimit(
        "a file",
        writer.max_upload_bytes,
        setting="storage.max_upload_bytes",
        hint="Send fewer steps of the trace.",
    )
    limits = state.limits
    keep = partial(writer.put_file, trace, path)
    async with answer_refusal(request):
        limit.check_announced(request)
        pieces = limit.bound(read_pieces(request, stall_s=limits.upload_stall_s))
        size = await stream_to_thread(limits.upload_threads, pieces, keep, stall_s=limits.upload_stall_s)
    return SentFile(path=path, size=size)


@router.post("/{trace}/import", status_code=202)
def import_trace(trace: TraceId, state: State, viewer: CurrentViewer) -> TraceRow:
    """Read what was sent, in a process of its own; `GET` the trace to see how far it is."""
    state.queries.traces.check_change(trace, viewer)
    _writer(state.traces).start(trace)
    return state.queries.traces.row(trace)


@router.delete("/{trace}", status_code=204)
def delete_trace(trace: TraceId, state: State, viewer: CurrentViewer) -> None:
    """Remove a trace and all its files."""
    state.queries.traces.check_change(trace, viewer)
    _writer(state.traces).delete(trace)


@router.get("/diff")
def diff_traces(
    state: State,
    a: Annotated[str, Query(description="The trace before.", max_length=100)],
    b: Annotated[str, Query(description="The trace after.", max_length=100)],
) -> TraceDiffAnswer:
    """Two runs of the same model: what takes longer or shorter per step, with intervals and in words."""
    return state.queries.traces.diff(a, b)


@router.get("/{trace}")
def read_trace(trace: TraceId, state: State) -> TraceAnswer:
    """One trace: ranks, stages, and once it has been read its report with the verdicts."""
    return state.queries.traces.one(trace)


@router.get("/{trace}/steps", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_steps(trace: TraceId, state: State) -> RedactedResponse:
    """``rank``, ``step``, ``start_ns``, ``duration_ns`` = ``compute_ns`` + ``exposed_wait_ns`` + ``exposed_transfer_ns`` +
    ``idle_ns``; ``communication_ns`` also counts what compute hides.
    """
    return arrow_response(state.redact_table(state.queries.traces.steps(trace), OpenedRow))


@router.get("/{trace}/marey", response_class=Response, responses=ARROW_RESPONSE)
def get_trace_marey(
    trace: TraceId,
    state: State,
    level: Annotated[Level, Query(description="What a row is.")] = "rank",
    opened: Annotated[
        str, Query(alias="open", max_length=20_000, description="Opened further: stages as `0`, ranks as `r3`.")
    ] = "",
    start: WindowStart = None,
    end: WindowEnd = None,
    pixels: Pixels = 1400,
    classes: Annotated[
        str, Query(max_length=200, description="Of spans; by default compute, communication, memory.")
    ] = "",
    merge: Annotated[Merge, Query(description="What neighbors are merged by.")] = "gap",
) -> RedactedResponse:
    """The Marey graph of a window: three Arrow streams one after another (`spans`, `rows`, `bands`); ``X-Tables`` has the bytes
    of each. Spans too near to be told apart are merged; one 3 times as long as usual never is with others than its like.
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
    """One span: its collective's members with arrival, wait and transfer, its launch, the same operator on other ranks."""
    return state.queries.traces.span(trace, span)


@router.get("/{trace}/flow")
def read_trace_flow(
    trace: TraceId,
    state: State,
    opened: Annotated[
        str | None,
        Query(
            alias="open",
            max_length=20_000,
            description="Numbers of the namespaces drawn open, `*3` for parts of 3 one by one; by default a first picture.",
        ),
    ] = None,
    text: Annotated[str, Query(max_length=200, description="Nodes tell how many of their operators have it.")] = "",
    span: Annotated[
        int | None, Query(ge=0, le=2**40, description="`at` tells its node; a first picture shows it.")
    ] = None,
) -> FlowAnswer:
    """The execution flow: nodes in the order of execution, edges with the sharding of their tensors, blocks cut at sends and
    receives. At most 2,000 nodes: namespaces that would be more stay closed.
    """
    return state.queries.traces.flow(trace, opened=None if opened is None else _split(opened), text=text, span=span)


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
    numbers = _split(ranks)
    if not all(number.isdigit() for number in numbers):
        raise QueryError("ranks are whole numbers", hint="Write ranks=0,3,5.")
    table = state.queries.traces.operators(trace, start_ns=start, end_ns=end, ranks=[int(each) for each in numbers])
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
    ``memory_bytes``; null where the recorder gave none.
    """
    table = state.queries.traces.curves(trace, start_ns=start, end_ns=end, pixels=pixels)
    return arrow_response(state.redact_table(table, OpenedRow))


@router.post("/{trace}/whatif")
def ask_what_if(trace: TraceId, question: WhatIfQuestion, state: State) -> WhatIf:
    """The step there would be, re-simulated from what ranks wait for, with the speed-up and its interval over steps."""
    return state.queries.traces.what_if(trace, Change(**question.change.model_dump()))


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _writer(traces: TraceWriter | None) -> TraceWriter:
    if traces is None:
        raise StoreError("this server takes no traces in", hint="Use one that was started with `clusterscape serve`.")
    return traces
