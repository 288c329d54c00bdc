"""The demo's scheduler: event-driven, with reasons for waiting. It runs uncompiled and is used only by the demo."""

from clusterscape.demo.scheduler.engine import Simulation
from clusterscape.demo.scheduler.events import (
    Event,
    Grant,
    JobEnded,
    JobEnding,
    JobStarted,
    JobWaited,
    NodeClosed,
    NodeOpened,
    Reason,
    SimNode,
    SubmittedJob,
)

__all__ = [
    "Event",
    "Grant",
    "JobEnded",
    "JobEnding",
    "JobStarted",
    "JobWaited",
    "NodeClosed",
    "NodeOpened",
    "Reason",
    "SimNode",
    "Simulation",
    "SubmittedJob",
]
