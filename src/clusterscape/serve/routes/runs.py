"""Tracked runs: trackers send their files here in pieces; everybody else lists and reads them."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel

from clusterscape.errors import QueryError, StoreError
from clusterscape.query.runs import RunAnswer, RunQuery, RunRow
from clusterscape.serve.state import RunWriter, State

router = APIRouter(prefix="/api/v1", tags=["runs"])

RunId = Annotated[str, Path(description="As `clusterscape runs list` shows it.", max_length=100)]
FileName = Annotated[str, Path(description="A spool file of the run.", max_length=100)]
MOST_BYTES = 64 * 2**20


class RunFiles(BaseModel):
    """How many bytes of each file are stored."""

    offsets: dict[str, int]


class RunPiece(BaseModel):
    """What became of a piece: where the next one begins, and how many samples it brought."""

    offset: int
    samples: int
    not_finite: int


@router.get("/runs")
def list_runs(
    state: State,
    experiment: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> list[RunRow]:
    """Runs, newest first."""
    return RunQuery(state.queries.context).all(experiment=experiment, limit=limit)


@router.get("/runs/{run}")
def read_run(run: RunId, state: State) -> RunAnswer:
    """One run with everything but its samples, which `/api/v1/series` has."""
    return RunQuery(state.queries.context).one(run)


@router.get("/runs/{run}/files")
async def list_run_files(run: RunId, state: State) -> RunFiles:
    """How far a run was sent; a tracker goes on from there."""
    return RunFiles(offsets=await _writer(state.runs).offsets(run))


@router.post("/runs/{run}/files/{file}")
async def send_run_file(
    run: RunId, file: FileName, request: Request, state: State, offset: Annotated[int, Query(ge=0)] = 0
) -> RunPiece:
    """Whole frames of a spool file from an offset on; sent twice they change nothing."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > MOST_BYTES:
        raise QueryError(f"a piece may have {MOST_BYTES} bytes", hint="Send smaller pieces.")
    taken = await _writer(state.runs).take(run, file, offset, await request.body())
    return RunPiece(offset=taken.offset, samples=taken.samples, not_finite=taken.not_finite)


def _writer(runs: RunWriter | None) -> RunWriter:
    if runs is None:
        raise StoreError("this server takes no runs in", hint="Send to one that was started with `clusterscape serve`.")
    return runs
