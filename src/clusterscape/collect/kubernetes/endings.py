"""How pods and their owners ended, in our states: the reason that the API gives goes before the exit code."""

from collections.abc import Mapping

from clusterscape.collect.kubernetes.facts import Ending
from clusterscape.collect.kubernetes.values import (
    Json,
    StatusCondition,
    as_object,
    dig,
    iter_objects,
    read_conditions,
    read_int,
    read_text,
    read_time,
)
from clusterscape.model import UnixMs, WorkloadState

_SIGNALLED = 128
"""A shell's, and the kubelet's, code for "ended by signal n" is 128 + n."""

_STATES = {
    "OOMKilled": WorkloadState.OUT_OF_MEMORY,
    "DeadlineExceeded": WorkloadState.TIMEOUT,
    "ActiveDeadlineExceeded": WorkloadState.TIMEOUT,
    "PreemptionByScheduler": WorkloadState.PREEMPTED,
    "Preempting": WorkloadState.PREEMPTED,
    "Preempted": WorkloadState.PREEMPTED,
    "NodeLost": WorkloadState.NODE_FAILED,
    "NodeShutdown": WorkloadState.NODE_FAILED,
    "Shutdown": WorkloadState.NODE_FAILED,
    "Terminated": WorkloadState.NODE_FAILED,
    "DeletionByPodGC": WorkloadState.NODE_FAILED,
    "DeletionByTaintManager": WorkloadState.NODE_FAILED,
    "UnexpectedAdmissionError": WorkloadState.NODE_FAILED,
}
_DONE = ("Complete", "Succeeded", "Completed")
_PHASES = {
    # status.state.phase of Volcano's jobs, status.jobStatus of Ray's, status.phase of Argo's.
    "Completed": WorkloadState.COMPLETED,
    "Succeeded": WorkloadState.COMPLETED,
    "SUCCEEDED": WorkloadState.COMPLETED,
    "Failed": WorkloadState.FAILED,
    "FAILED": WorkloadState.FAILED,
    "Error": WorkloadState.FAILED,
    "Aborted": WorkloadState.CANCELLED,
    "Terminated": WorkloadState.CANCELLED,
    "STOPPED": WorkloadState.CANCELLED,
}


def read_pod_ending(status: Json, conditions: Mapping[str, StatusCondition]) -> Ending | None:
    """None while it runs or waits."""
    phase = status.get("phase")
    if phase not in ("Succeeded", "Failed"):
        return None
    ended = [
        as_object(dig(container, "state", "terminated"))
        for key in ("containerStatuses", "initContainerStatuses")
        for container in iter_objects(status.get(key))
    ]
    times = [at for container in ended if (at := read_time(container.get("finishedAt")))]
    at = max(times, default=None)
    if phase == "Succeeded":
        return Ending(state=WorkloadState.COMPLETED, at=at, exit_code=0)
    failed = next((container for container in ended if read_int(container.get("exitCode"))), {})
    target = conditions.get("DisruptionTarget")
    disrupted = target.reason if target and target.is_true else None
    reason = disrupted or read_text(status.get("reason")) or read_text(failed.get("reason"))
    code, signal = read_exit(failed)
    return Ending(
        state=_STATES.get(reason or "", WorkloadState.FAILED), at=at, reason=reason, exit_code=code, exit_signal=signal
    )


def end_deleted(reason: str | None, at: UnixMs) -> Ending:
    """The ending of an object that was deleted while active: cancelled, unless the server gives another reason."""
    return Ending(state=_STATES.get(reason or "", WorkloadState.CANCELLED), at=at, reason=reason or "Deleted")


def read_exit(ended: Json) -> tuple[int | None, int | None]:
    """(exit code, signal) of a container that has ended."""
    signal, code = read_int(ended.get("signal")), read_int(ended.get("exitCode"))
    if signal:
        return None, signal
    if code is not None and _SIGNALLED < code < _SIGNALLED + 65:
        return None, code - _SIGNALLED
    return code, None


def read_owner_ending(status: Json) -> Ending | None:
    """Of a Job, JobSet, PyTorchJob, vcjob, RayJob, …: by its conditions, or by its phase where it has none."""
    conditions = read_conditions(status.get("conditions"))
    for kind in _DONE:
        if (condition := conditions.get(kind)) and condition.is_true:
            at = read_time(status.get("completionTime")) or condition.at
            return Ending(state=WorkloadState.COMPLETED, at=at)
    if (failed := conditions.get("Failed")) and failed.is_true:
        state = _STATES.get(failed.reason or "", WorkloadState.FAILED)
        return Ending(state=state, at=failed.at, reason=failed.reason)
    phase = read_text(dig(status, "state", "phase")) or read_text(status.get("jobStatus"))
    if phase in _PHASES:
        at = read_time(dig(status, "state", "lastTransitionTime")) or read_time(status.get("endTime"))
        return Ending(state=_PHASES[phase], at=at, reason=read_text(dig(status, "state", "reason")))
    return None
