"""Alerts: how their channels do."""

from fastapi import APIRouter

from clusterscape.query.rule_answers import AlertState
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["alerts"], route_class=RedactedRoute)


@router.get("/alerts")
def get_alert_state(state: State) -> AlertState:
    """What each channel was told, what waits for it and what fails."""
    return state.queries.alerts.state()
