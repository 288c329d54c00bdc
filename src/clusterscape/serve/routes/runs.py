"""Tracked runs: trackers upload their files in pieces; users list and read them."""

from typing import Annotated, Literal

import polars as pl
from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, StringConstraints

from clusterscape.errors import NotFoundError, StoreError
from clusterscape.model.identity_fields import access_checked
from clusterscape.query.answers import SavedView, SavedViews
from clusterscape.query.bounds import Coordinate, ItemId, Name
from clusterscape.query.ownership import deleter_for, owner_for
from clusterscape.query.picture import encode_strings
from clusterscape.query.runs.answers import HangAnswer, HangList, RunAnswer, RunMetrics, RunRow, RunTree, RunWorkload
from clusterscape.query.runs.series import LineRequest
from clusterscape.serve.redaction import OpenedRow, RedactedResponse, RedactedRoute
from clusterscape.serve.routes.views import ViewDocument, ViewName
from clusterscape.serve.state import CurrentViewer, RunWriter, State
from clusterscape.serve.uploads import read_body
from clusterscape.serve.wire import ARROW_RESPONSE, arrow_response

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=RedactedRoute)

RunId = Annotated[str, Path(description="As `clusterscape runs list` shows it.", max_length=100)]
FileName = Annotated[str, Path(description="A spool file of the run.", max_length=100)]
RunIds = Annotated[list[ItemId], Query(description="Runs.", max_length=2000)]
MetricNames = Annotated[list[Name], Query(description="Metrics, as `/api/v1/runs/metrics` lists them.", max_length=100)]
Scope = Annotated[
    Literal["run", "tree", "process", "device", "mig", "host"] | None,
    Query(description="Only series of this scope; by default all."),
]
Axis = Annotated[
    Literal["time", "step", "epoch"],
    Query(description="Seconds since the start (or `phase`), the script's steps, or its epochs."),
]
Phase = Annotated[Name | None, Query(description="On the time axis: second 0 is the first start of this phase.")]
Points = Annotated[int, Query(ge=2, le=20_000, description="Maximum number of points per line.")]
Bound = Annotated[Coordinate | None, Query(description="Bound of the axis.")]


@access_checked("run")
class RunFiles(BaseModel):
    """Number of stored bytes of each file."""

    offsets: dict[str, int]
    looked_elsewhere: int | None = None  # when another tracker of its job last looked at a stall that lasts (Unix ms)


class RunPiece(BaseModel):
    """The result of a piece: the offset of the next one, and the number of samples in it."""

    offset: int
    samples: int
    not_finite: int


class RunWorkloadAnswer(BaseModel):
    """A run workload with its runs."""

    workload: RunWorkload
    rows: list[RunRow]


@router.get("/runs")
def list_runs(
    state: State,
    experiment: Name | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> list[RunRow]:
    """Runs, newest first."""
    return state.queries.runs.all(experiment=experiment, limit=limit)


@router.get("/runs/tree")
def read_run_tree(state: State, limit: Annotated[int, Query(ge=1, le=50_000)] = 5000) -> RunTree:
    """Experiments with their workloads and runs, their totals, and repeats with confidence intervals."""
    return state.queries.runs.tree(limit=limit)


@router.get("/runs/workloads/{run}")
def read_run_workload(run: RunId, state: State) -> RunWorkloadAnswer:
    """The runs that executed together with the given run."""
    workload, rows = state.queries.runs.workload(run)
    return RunWorkloadAnswer(workload=workload, rows=rows)


@router.get("/runs/metrics")
def list_run_metrics(state: State, run: RunIds) -> RunMetrics:
    """Metrics and phases of these runs, and whether they have steps and epochs."""
    return state.queries.runs.metrics(run)


@router.get("/runs/series", response_class=Response, responses=ARROW_RESPONSE)
def read_run_series(
    state: State,
    run: RunIds,
    metric: MetricNames,
    scope: Scope = None,
    axis: Axis = "time",
    phase: Phase = None,
    start: Bound = None,
    end: Bound = None,
    points: Points = 1000,
) -> RedactedResponse:
    """``run``, ``metric``, ``place``, ``scope``, ``x``, ``value``: lines one after another; extremes are kept."""
    line_request = LineRequest(
        runs=run, metrics=metric, scope=scope, axis=axis, phase=phase, start=start, end=end, points=points
    )
    return arrow_response(state.redact_table(state.queries.run_series.lines(line_request), OpenedRow))


@router.get("/runs/bands", response_class=Response, responses=ARROW_RESPONSE)
def read_run_bands(
    state: State,
    group: Annotated[
        list[Annotated[str, StringConstraints(max_length=20_000)]],
        Query(description="Runs joined by commas; each group is one band.", max_length=200),
    ],
    metric: MetricNames,
    band: Annotated[
        Literal["interval", "range", "deviation"],
        Query(description="95 % confidence interval of the mean, lowest to highest, or one standard deviation."),
    ] = "interval",
    scope: Scope = None,
    axis: Axis = "time",
    phase: Phase = None,
    start: Bound = None,
    end: Bound = None,
    points: Annotated[int, Query(ge=2, le=5000)] = 400,
) -> RedactedResponse:
    """``group`` (its index), ``metric``, ``x``, ``mean``, ``low``, ``high``, ``lines``: one band per group of repeats."""
    line_request = LineRequest(
        runs=(), metrics=metric, scope=scope, axis=axis, phase=phase, start=start, end=end, points=points
    )
    groups = [[run for run in runs.split(",") if run] for runs in group]
    table = state.queries.run_series.bands(groups, line_request, band=band)
    encoded = encode_strings(table.cast({"metric": pl.String}), ["metric"])
    return arrow_response(state.redact_table(encoded, OpenedRow))


@router.get("/insights")
def list_insights(state: State) -> SavedViews:
    """Saved comparisons of runs, with their documents."""
    return state.queries.insights.all()


@router.put("/insights/{name}")
def save_insight(name: ViewName, document: ViewDocument, state: State, viewer: CurrentViewer) -> SavedView:
    """Save a comparison of runs under a name; overwrites an existing one."""
    return state.services.insights.save(name, document.model_dump(), by=viewer)


@router.delete("/insights/{name}", status_code=204)
def remove_insight(name: ViewName, state: State, viewer: CurrentViewer) -> None:
    """Delete a saved comparison."""
    state.services.insights.remove(name, by=viewer)


@router.get("/runs/{run}")
def read_run(run: RunId, state: State) -> RunAnswer:
    """One run without its samples, which `/api/v1/runs/series` returns."""
    return state.queries.runs.one(run)


@router.get("/runs/{run}/hang")
def read_run_hang(run: RunId, state: State) -> HangAnswer:
    """Who hangs in the job of a run, where and why: ranks by process groups, and stacks."""
    return state.queries.hangs.one(run)


@router.get("/hangs")
def list_hangs(
    state: State,
    workload: Annotated[Name | None, Query(description="Only of this run (`run:…`) or Slurm job (`slurm:…`).")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> HangList:
    """Jobs that stopped making steps, newest first."""
    return state.queries.hangs.all(workload=workload, limit=limit)


@router.delete("/runs/{run}", status_code=204)
async def delete_run(run: RunId, state: State, viewer: CurrentViewer) -> None:
    """Delete a run with its samples permanently. For its owner and admins; it cannot be uploaded again for a while."""
    if not await run_in_threadpool(state.queries.runs.has, run):
        raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")
    await _writer(state.runs).delete(run, user=deleter_for(viewer))


@router.get("/runs/{run}/files")
async def list_run_files(run: RunId, state: State) -> RunFiles:
    """Stored bytes of a run's files; a tracker continues from there."""
    offsets = await _writer(state.runs).offsets(run)
    if not await run_in_threadpool(state.queries.runs.has, run):
        return RunFiles(offsets={})
    return RunFiles(
        offsets=offsets, looked_elsewhere=await run_in_threadpool(state.queries.hangs.looked_elsewhere, run)
    )


@router.post("/runs/{run}/files/{file}")
async def send_run_file(
    run: RunId,
    file: FileName,
    request: Request,
    state: State,
    viewer: CurrentViewer,
    offset: Annotated[int, Query(ge=0, le=2**50)] = 0,
) -> RunPiece:
    """Upload whole frames of a spool file at an offset; idempotent. Researchers may upload only runs that they own."""
    body = await read_body(request, stall_s=state.limits.upload_timeout_s)
    stored = await _writer(state.runs).take(run, file, offset, body, user=owner_for(viewer))
    return RunPiece(offset=stored.offset, samples=stored.samples, not_finite=stored.not_finite)


def _writer(runs: RunWriter | None) -> RunWriter:
    if runs is None:
        raise StoreError(
            "this server does not accept runs", hint="Use a server that was started with `clusterscape serve`."
        )
    return runs
