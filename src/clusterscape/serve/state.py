"""What routes are handed: one typed object on the app, and the dependency that finds it."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from clusterscape.query import Queries
from clusterscape.serve.live import LiveHub
from clusterscape.serve.telemetry import Telemetry
from clusterscape.serve.wire import Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """Everything a route may use."""

    queries: Queries
    live: LiveHub
    wire: Wire
    telemetry: Telemetry
    token: str | None


def _state(request: Request) -> AppState:
    return cast(AppState, request.app.state.clusterscape)


State = Annotated[AppState, Depends(_state)]
