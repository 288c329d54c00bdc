"""Which routes need what is compiled after a start; until then they answer 503 with the time that is left."""

from collections.abc import Mapping
from typing import cast

from fastapi import Request

from clusterscape.serve.state import AppState
from clusterscape.warm_up import Area

NEEDED: Mapping[str, Area] = {
    **dict.fromkeys(["list_queue", "explain_waiting", "forecast_wait", "forecast_waiting"], Area.QUEUE),
    **dict.fromkeys(
        ["get_diagnosis", "get_workload_histograms", "get_workload_lines", "get_workload_scatter"], Area.DIAGNOSIS
    ),
    **dict.fromkeys(["simulate_what_if", "start_what_if"], Area.WHAT_IF),
    "try_rule": Area.RULES,
}
"""By the name of the route."""


async def require_warm(request: Request) -> None:
    """A dependency of every route: raise WarmingUpError where it would have to compile first."""
    area = NEEDED.get(str(getattr(request.scope.get("route"), "name", "")))
    if area is not None:
        cast(AppState, request.app.state.clusterscape).queries.context.warm_up.require(area)
