"""What routes are handed: one typed object on the app, and the dependency that finds it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Protocol, cast

import polars as pl
from fastapi import Depends, Request

from clusterscape.ingest.runs import TakenIn
from clusterscape.model.traces import TraceAbout
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query import Queries
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.serve.costs import RequestLimits
from clusterscape.serve.identity.caller import USER_KEY, VIEWER_KEY, WHENCE_KEY, name_user
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.live import LiveHub
from clusterscape.serve.redaction import REDACTOR_KEY, RedactedTable, redact_table
from clusterscape.serve.telemetry import Telemetry


class RunWriter(Protocol):
    """Takes runs in, on the one thread that writes."""

    @property
    def max_piece_bytes(self) -> int:
        """How large a piece may be."""
        ...

    async def offsets(self, run: str) -> dict[str, int]:
        """How much of each file of a run is stored."""
        ...

    async def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> TakenIn:
        """Store a piece of a file; of a run of ``user``, where one is named."""
        ...

    async def delete(self, run: str, *, user: str | None = None) -> None:
        """Forget a run; of ``user``, where one is named."""
        ...


class TraceWriter(Protocol):
    """Takes traces in, beside everything else; safe from several threads."""

    @property
    def max_upload_bytes(self) -> int:
        """How large a file may be."""
        ...

    def create(self, name: str, workload_id: str | None = None, *, owned_by: str | None = None) -> TraceAbout:
        """A trace whose files are still to come."""
        ...

    def put_file(self, trace_id: str, path: str, chunks: Iterable[bytes]) -> int:
        """Keep a file of a trace."""
        ...

    def start(self, trace_id: str) -> TraceAbout:
        """Begin to read what was sent."""
        ...

    def delete(self, trace_id: str) -> None:
        """Remove a trace."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """Everything a route may use."""

    queries: Queries
    live: LiveHub
    telemetry: Telemetry
    limits: RequestLimits
    identity: Identity | None = None
    """None: everybody may come in, and nothing of it is kept."""
    runs: RunWriter | None = None
    traces: TraceWriter | None = None

    @property
    def redactor(self) -> Redactor | None:
        """What hides names from the viewer; None where every name is shown."""
        return self.queries.redactor

    def redact_table(self, frame: pl.DataFrame, row: type) -> RedactedTable:
        """``frame`` as the viewer may read it, by the markers of ``row``."""
        return redact_table(self.redactor, frame, row)


# All are coroutines that never wait: a function would be sent through the thread pool twice for every request.
async def find_viewer(request: Request) -> Viewer:
    """Who asks; where no gate stands before the app, whoever is on this machine."""
    return cast(Viewer, request.scope.get(VIEWER_KEY, ANYONE_HERE))


CurrentViewer = Annotated[Viewer, Depends(find_viewer)]


async def find_user(request: Request, viewer: CurrentViewer) -> str:
    """Whom a request counts for in limits: the login, or the address where there is no name."""
    user = request.scope.get(USER_KEY)
    return str(user) if user is not None else name_user(viewer, request.scope.get(WHENCE_KEY))


CurrentUser = Annotated[str, Depends(find_user)]


async def _state(request: Request, viewer: CurrentViewer) -> AppState:
    """The app's state with the queries that this viewer may ask: no route has others at hand."""
    state = cast(AppState, request.app.state.clusterscape)
    scoped = state.queries.scoped_to(viewer)
    request.scope[REDACTOR_KEY] = scoped.redactor
    return state if scoped is state.queries else replace(state, queries=scoped)


State = Annotated[AppState, Depends(_state)]
