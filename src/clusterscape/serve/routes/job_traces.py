"""Job traces: this cluster's own history and uploaded ones, described alone and side by side."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from clusterscape.query.scheduling.description import JobTraceList, JobTraceRow, TracesDescription
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import CurrentViewer, State
from clusterscape.serve.uploads import SizeLimit, answer_refusal, read_pieces, stream_to_thread

router = APIRouter(prefix="/api/v1/job-traces", tags=["scheduling"], route_class=RedactedRoute)

TraceId = Annotated[str, Path(description="`cluster`, or the id of an upload.", max_length=100)]
Zone = Annotated[str, Query(max_length=64, description="Such as Europe/Berlin.")]
_RAW_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("")
def list_job_traces(state: State) -> JobTraceList:
    """This cluster's own history, then what was uploaded."""
    return state.queries.job_traces.all()


@router.post("", status_code=201, openapi_extra=_RAW_BODY)
async def upload_job_trace(
    request: Request,
    state: State,
    viewer: CurrentViewer,
    name: Annotated[str, Query(min_length=1, max_length=200, description="The file's name; it names the trace.")],
    format: Annotated[str | None, Query(max_length=32, description="By default the content decides.")] = None,
    timezone: Zone = "UTC",
    total_units: Annotated[
        int | None, Query(ge=1, le=1_000_000_000, description="The machine's size, if the file has none.")
    ] = None,
) -> JobTraceRow:
    """Upload a job trace as the raw body, compressed or not; the answer lists every reason for which rows were dropped."""
    limit = SizeLimit(
        "a job trace",
        state.queries.context.uploads.job_trace_bytes,
        setting="limits.uploads.job_trace_bytes",
        hint="Compress it, or split it by time.",
    )
    upload = state.queries.job_traces.upload
    keep = partial(upload, name, format=format, timezone=timezone, total_units=total_units, by=viewer)
    threads, stall_s = state.limits.upload_threads, state.limits.upload_stall_s
    async with answer_refusal(request):
        limit.check_announced(request)
        pieces = limit.bound(read_pieces(request, stall_s=stall_s))
        return await stream_to_thread(threads, pieces, keep, stall_s=stall_s)


@router.get("/{trace}/description")
def describe_job_trace(
    trace: TraceId,
    state: State,
    compare: Annotated[str, Query(max_length=500, description="Up to three more ids, separated by commas.")] = "",
    timezone: Zone = "UTC",
) -> TracesDescription:
    """Geometries, failures and users of one to four traces, ready to be drawn, and the paper's claims tested on them."""
    others = [each.strip() for each in compare.split(",") if each.strip()]
    return state.queries.job_traces.description(trace, others, timezone=timezone)


@router.delete("/{trace}", status_code=204)
def remove_job_trace(trace: TraceId, state: State, viewer: CurrentViewer) -> None:
    """Forget an uploaded trace and its file."""
    state.queries.job_traces.remove(trace, by=viewer)
