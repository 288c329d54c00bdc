"""Admission of requests: each holds a slot of its cost while it runs, waits for one, or is refused with 429."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import Request

from clusterscape.serve.costs import COSTS, STREAMED, Cost
from clusterscape.serve.state import AppState, CurrentUser


async def limit_cost(request: Request, user: CurrentUser) -> AsyncIterator[None]:
    """A dependency of every route: holds a slot while the route runs. Raises ThrottledError where there are too many."""
    if _name_of(request) in STREAMED:
        yield
        return
    async with _hold_slot(request, user):
        yield


async def limit_stream(request: Request, user: CurrentUser) -> AsyncIterator[None]:
    """The same for a route of STREAMED, until its answer has been sent."""
    async with _hold_slot(request, user):
        yield


@asynccontextmanager
async def _hold_slot(request: Request, user: str) -> AsyncIterator[None]:
    cost = COSTS.get(_name_of(request), Cost.EXPENSIVE)
    limit = cast(AppState, request.app.state.clusterscape).limits.by_cost.get(cost)
    if limit is None:
        yield
        return

    async def hang_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    # The body of an upload has not been read yet: whoever listened for the client to leave would swallow it.
    async with limit.slot(user, None if cost is Cost.UPLOAD else hang_up):
        yield


def _name_of(request: Request) -> str:
    return str(getattr(request.scope.get("route"), "name", ""))
