"""Maps Slurm's job and node states, in all their spellings, to ours, and parses exit codes."""

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
# Flags that older versions print instead of the state that they modify.
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


def job_state(slurm_states: Iterable[str]) -> WorkloadState | None:
    """Our state for Slurm's state and flags; None if all are unknown."""
    names = list(slurm_states)
    # A requeued job may have both PENDING and the end state of its last execution.
    for table in (_ACTIVE, _ENDED, _FLAGS):
        for name in names:
            if name in table:
                return table[name]
    return None


def exit_state(value: object, state: WorkloadState) -> tuple[int | None, int | None]:
    """(exit code, signal) from a wait status (``768``) or ``{"return_code": …, "signal": {"id": …}}``.

    Exit code 0 of a job that did not complete is ignored (Slurm 22.05 prints it for every failed job in ``sacct --json``).
    """
    if state.is_active:
        return None, None
    fields = as_object(value)
    if not fields or "number" in fields:
        status = read_int(value)
        if status is None:
            return None, None
        code, signal = (status >> 8) & 0xFF, status & 0x7F
    else:
        signal_fields = as_object(fields.get("signal"))
        code = read_int(fields.get("return_code")) or 0
        signal = read_int(signal_fields.get("id", signal_fields.get("signal_id"))) or 0
        if "SUCCESS" in read_words(fields.get("status")):
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
    # Flags that older versions print instead of the state that they modify.
    "COMPLETING": NodeState.ALLOCATED,
    "PLANNED": NodeState.IDLE,
    "RESERVED": NodeState.IDLE,
    "BLOCKED": NodeState.IDLE,
    "POWERED_DOWN": NodeState.IDLE,
}
_REASONS = {
    "NOT_RESPONDING": "not responding",
    "NO_RESPOND": "not responding",
    "INVALID_REG": "registered with less than configured",
    "INVAL": "registered with less than configured",
    "REBOOT_ISSUED": "rebooting",
    "MAINTENANCE": "maintenance",
    "MAINT": "maintenance",
    "POWERING_DOWN": "powering down",
}


def node_state(slurm_states: Iterable[str]) -> tuple[NodeState, str | None]:
    """Our state for a node's state and flags, and a reason if a flag is one."""
    names = set(slurm_states)
    reason = next((_REASONS[name] for name in _REASONS if name in names), None)
    if names & _BROKEN:
        return NodeState.DOWN, reason
    if names & _CLOSED:
        is_busy = bool(names & (_BUSY | {"DRAINING", "FAILING"}))
        return (NodeState.DRAINING if is_busy else NodeState.DRAINED), reason
    for name, state in _PLAIN.items():
        if name in names:
            return state, None
    return NodeState.UNKNOWN, None
