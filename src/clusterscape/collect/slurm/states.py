"""Maps Slurm's job and node states, in all their spellings, to ours, and reads how a job ended."""

from collections.abc import Iterable

from clusterscape.collect.slurm.values import as_object, read_int, read_words
from clusterscape.model import NodeState, WorkloadState

_ENDED = {
    "COMPLETED": WorkloadState.COMPLETED,
    "CANCELLED": WorkloadState.CANCELLED,
    "FAILED": WorkloadState.FAILED,
    "TIMEOUT": WorkloadState.TIMEOUT,
    "DEADLINE": WorkloadState.TIMEOUT,
    "OUT_OF_MEMORY": WorkloadState.OUT_OF_MEMORY,
    "NODE_FAIL": WorkloadState.NODE_FAILED,
    "BOOT_FAIL": WorkloadState.NODE_FAILED,
    "PREEMPTED": WorkloadState.PREEMPTED,
    "LAUNCH_FAILED": WorkloadState.FAILED,
    "RECONFIG_FAIL": WorkloadState.FAILED,
    "REVOKED": WorkloadState.CANCELLED,
}
_ACTIVE = {
    "PENDING": WorkloadState.WAITING,
    "RUNNING": WorkloadState.RUNNING,
    "SUSPENDED": WorkloadState.SUSPENDED,
}
# Flags that older versions print in place of the state they modify.
_FLAGS = {
    "COMPLETING": WorkloadState.RUNNING,
    "CONFIGURING": WorkloadState.RUNNING,
    "POWER_UP_NODE": WorkloadState.RUNNING,
    "RESIZING": WorkloadState.RUNNING,
    "SIGNALING": WorkloadState.RUNNING,
    "STAGE_OUT": WorkloadState.RUNNING,
    "STOPPED": WorkloadState.SUSPENDED,
    "REQUEUED": WorkloadState.WAITING,
    "REQUEUE_FED": WorkloadState.WAITING,
    "REQUEUE_HOLD": WorkloadState.WAITING,
    "RESV_DEL_HOLD": WorkloadState.WAITING,
    "SPECIAL_EXIT": WorkloadState.WAITING,
}


def job_state(words: Iterable[str]) -> WorkloadState | None:
    """Our state for Slurm's words; None where none of them is known."""
    named = list(words)
    # A requeued job may carry both PENDING and how its former life ended.
    for table in (_ACTIVE, _ENDED, _FLAGS):
        for word in named:
            if word in table:
                return table[word]
    return None


def exit_state(value: object, state: WorkloadState) -> tuple[int | None, int | None]:
    """(exit code, signal) from a wait status (``768``) or ``{"return_code": …, "signal": {"id": …}}``.

    Success of a job that did not complete says nothing (Slurm 22.05 prints it for every failed job in ``sacct --json``).
    """
    if state.is_active:
        return None, None
    ending = as_object(value)
    if not ending or "number" in ending:
        status = read_int(value)
        if status is None:
            return None, None
        code, signal = (status >> 8) & 0xFF, status & 0x7F
    else:
        sent = as_object(ending.get("signal"))
        code = read_int(ending.get("return_code")) or 0
        signal = read_int(sent.get("id", sent.get("signal_id"))) or 0
        if "SUCCESS" in read_words(ending.get("status")):
            code = signal = 0
    if signal:
        return None, signal
    return (code if code or state is WorkloadState.COMPLETED else None), None


_BUSY = frozenset({"MIXED", "ALLOCATED", "COMPLETING"})
_BROKEN = frozenset({"DOWN", "ERROR", "NOT_RESPONDING", "NO_RESPOND", "REBOOT_ISSUED", "INVALID_REG", "INVAL"})
_CLOSED = frozenset({"DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINTENANCE", "MAINT", "POWERING_DOWN"})
_PLAIN = {
    "IDLE": NodeState.IDLE,
    "MIXED": NodeState.MIXED,
    "ALLOCATED": NodeState.ALLOCATED,
    # Flags that older versions print in place of the state they modify.
    "COMPLETING": NodeState.ALLOCATED,
    "PLANNED": NodeState.IDLE,
    "RESERVED": NodeState.IDLE,
    "BLOCKED": NodeState.IDLE,
    "POWERED_DOWN": NodeState.IDLE,
}
_WHY = {
    "NOT_RESPONDING": "not responding",
    "NO_RESPOND": "not responding",
    "INVALID_REG": "registered with less than configured",
    "INVAL": "registered with less than configured",
    "REBOOT_ISSUED": "rebooting",
    "MAINTENANCE": "maintenance",
    "MAINT": "maintenance",
    "POWERING_DOWN": "powering down",
}


def node_state(words: Iterable[str]) -> tuple[NodeState, str | None]:
    """Our state for a node's words and flags, and a reason where the words themselves are one."""
    named = set(words)
    reason = next((_WHY[word] for word in _WHY if word in named), None)
    if named & _BROKEN:
        return NodeState.DOWN, reason
    if named & _CLOSED:
        is_busy = bool(named & (_BUSY | {"DRAINING", "FAILING"}))
        return (NodeState.DRAINING if is_busy else NodeState.DRAINED), reason
    for word, state in _PLAIN.items():
        if word in named:
            return state, None
    return NodeState.UNKNOWN, None
