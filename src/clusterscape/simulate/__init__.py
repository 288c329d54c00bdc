"""A scheduling engine with policies and placements: jobs and faults in, events out. It has no clock and no chance of its own."""

from clusterscape.simulate.contract import Policy, Reservation, Turn
from clusterscape.simulate.engine import Simulation
from clusterscape.simulate.events import (
    Ending,
    Event,
    Grant,
    JobEnded,
    JobStarted,
    JobWaited,
    NodeClosed,
    NodeOpened,
    Reason,
)
from clusterscape.simulate.jobs import FaultKind, Job, NodeFault, SimNode
from clusterscape.simulate.placing import Placement

__all__ = [
    "Ending",
    "Event",
    "FaultKind",
    "Grant",
    "Job",
    "JobEnded",
    "JobStarted",
    "JobWaited",
    "NodeClosed",
    "NodeFault",
    "NodeOpened",
    "Placement",
    "Policy",
    "Reason",
    "Reservation",
    "SimNode",
    "Simulation",
    "Turn",
]
