"""What comes out of a simulation: events in order of time, each a record in the past tense."""

from dataclasses import dataclass
from enum import StrEnum

from clusterscape.simulate.jobs import FaultKind, Job


class Reason(StrEnum):
    """Why a job waits, in Slurm's words."""

    RESOURCES = "Resources"  # first in line: GPUs are kept for it
    PRIORITY = "Priority"  # others are ahead
    USER_LIMIT = "QOSMaxGRESPerUser"  # its user holds as many GPUs as one may


class Ending(StrEnum):
    """How a job left its GPUs or the queue."""

    FINISHED = "finished"
    TIMEOUT = "timeout"
    NODE_FAILED = "node_failed"
    REQUEUED = "requeued"  # its node failed and it waits again
    WITHDRAWN = "withdrawn"  # left the queue without having started


@dataclass(frozen=True, slots=True)
class Grant:
    """GPUs of one node given to a job: ``node`` is the node's name, ``gpus`` the indices, ascending."""

    node: str
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JobWaited:
    """The job entered the queue, or its reason to wait changed."""

    time_s: int
    job: Job
    reason: Reason


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The job got its GPUs."""

    time_s: int
    job: Job
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The job gave back its GPUs, or left the queue (WITHDRAWN)."""

    time_s: int
    job: Job
    ending: Ending


@dataclass(frozen=True, slots=True)
class NodeClosed:
    """The node takes no new jobs from now on."""

    time_s: int
    node: str
    kind: FaultKind


@dataclass(frozen=True, slots=True)
class NodeOpened:
    """The node is in service again."""

    time_s: int
    node: str


Event = JobWaited | JobStarted | JobEnded | NodeClosed | NodeOpened
