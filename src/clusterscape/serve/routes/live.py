"""The live stream."""

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from clusterscape.serve.redaction import RedactedRoute, RedactedStream
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["live"], route_class=RedactedRoute)


@router.get("/live", response_class=StreamingResponse)
async def get_live(state: State) -> RedactedStream:
    """Server-sent events: `version` ticks at once, on every change, and at least every 15 s."""
    return RedactedStream(
        state.live.stream(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
