"""The state that routes receive: one typed object on the app, and the dependencies that return it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Protocol, cast

import polars as pl
from fastapi import Depends, Request

from clusterscape.errors import StoreError
from clusterscape.ingest.runs import StoredPiece
from clusterscape.model.access import LOCAL_ADMIN, Viewer
from clusterscape.model.traces import TraceAbout
from clusterscape.query import Queries
from clusterscape.query.redaction.redactor import ScopeRedactor
from clusterscape.serve.costs import RequestLimits
from clusterscape.serve.identity.caller import CLIENT_KEY, USER_KEY, VIEWER_KEY, user_key
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.live import LiveHub
from clusterscape.serve.redaction import REDACTOR_KEY, RedactedTable, redact_table
from clusterscape.serve.telemetry import Telemetry
from clusterscape.services import Services


class RunWriter(Protocol):
    """Stores tracked runs, on the writer thread."""

    @property
    def max_piece_bytes(self) -> int:
        """The maximum size of a piece."""
        ...

    async def offsets(self, run: str) -> dict[str, int]:
        """The number of stored bytes of each file of a run."""
        ...

    async def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> StoredPiece:
        """Store a piece of a file; with ``user``, only of a run that they own."""
        ...

    async def delete(self, run: str, *, user: str | None = None) -> None:
        """Delete a run; with ``user``, only one that they own."""
        ...


class TraceWriter(Protocol):
    """Stores and imports traces; thread-safe."""

    @property
    def max_upload_bytes(self) -> int:
        """The maximum size of a file."""
        ...

    def create(self, name: str, workload_id: str | None = None, *, owned_by: str | None = None) -> TraceAbout:
        """Create a trace; its files are uploaded next."""
        ...

    def put_file(self, trace_id: str, path: str, chunks: Iterable[bytes]) -> int:
        """Store a file of a trace; returns its size."""
        ...

    def start(self, trace_id: str) -> TraceAbout:
        """Start the import of the uploaded files."""
        ...

    def delete(self, trace_id: str) -> None:
        """Delete a trace."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """Everything a route may use."""

    queries: Queries
    live: LiveHub
    telemetry: Telemetry
    limits: RequestLimits
    identity: Identity | None = None
    """None: no authentication and no audit log."""
    site_services: Services | None = None
    """Services of the whole site, which write; None: this app only reads."""
    runs: RunWriter | None = None
    traces: TraceWriter | None = None

    @property
    def services(self) -> Services:
        """The services, limited to the viewer's scope."""
        if self.site_services is None:
            raise StoreError(
                "this server is read-only", hint="Use a server that was started with `clusterscape serve`."
            )
        return self.site_services.scoped_to(self.queries)

    @property
    def redactor(self) -> ScopeRedactor | None:
        """The viewer's redactor; None: all names are shown."""
        return self.queries.redactor

    def redact_table(self, frame: pl.DataFrame, row: type) -> RedactedTable:
        """Redact ``frame`` for the viewer, by the markers of ``row``."""
        return redact_table(self.redactor, frame, row)


# Coroutines that never wait: FastAPI would run plain functions in the thread pool, twice for every request.
async def find_viewer(request: Request) -> Viewer:
    """The viewer of a request; without a gate, any user of this machine."""
    return cast(Viewer, request.scope.get(VIEWER_KEY, LOCAL_ADMIN))


CurrentViewer = Annotated[Viewer, Depends(find_viewer)]


async def find_user(request: Request, viewer: CurrentViewer) -> str:
    """The user whose limits a request counts against: the login, or the address if there is none."""
    user = request.scope.get(USER_KEY)
    return str(user) if user is not None else user_key(viewer, request.scope.get(CLIENT_KEY))


CurrentUser = Annotated[str, Depends(find_user)]


async def _state(request: Request, viewer: CurrentViewer) -> AppState:
    """The app's state with queries limited to the viewer's scope: routes have no access to other queries."""
    state = cast(AppState, request.app.state.clusterscape)
    scoped = state.queries.scoped_to(viewer)
    request.scope[REDACTOR_KEY] = scoped.redactor
    return state if scoped is state.queries else replace(state, queries=scoped)


State = Annotated[AppState, Depends(_state)]
