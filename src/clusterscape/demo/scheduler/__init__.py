"""The pretend cluster's scheduler, event by event, with the reasons for waiting. Only the demo uses it: it runs uncompiled."""

from clusterscape.demo.scheduler.engine import Simulation
from clusterscape.demo.scheduler.events import (
    Ending,
    Event,
    Grant,
    Job,
    JobEnded,
    JobStarted,
    JobWaited,
    NodeClosed,
    NodeOpened,
    Reason,
    SimNode,
)

__all__ = [
    "Ending",
    "Event",
    "Grant",
    "Job",
    "JobEnded",
    "JobStarted",
    "JobWaited",
    "NodeClosed",
    "NodeOpened",
    "Reason",
    "SimNode",
    "Simulation",
]
