"""Merges the executions of a workload: the queue shows only the latest, the accounting has a record of each. Pure."""

from collections.abc import Iterable
from dataclasses import fields, replace

from clusterscape.model import Execution, UnixMs, Workload, WorkloadState


def merge_queued(stored: Workload | None, observed: Workload, at: UnixMs) -> Workload:
    """``observed`` in the queue, with the executions of ``stored``. One that the queue no longer shows ended by ``at``."""
    if stored is None or not _is_same_job(stored, observed):
        return observed
    earlier = stored.earlier
    if _is_restarted(stored, observed):
        ended = stored.ended_execution() or _estimate_ended(stored, observed, at)
        earlier = merge_executions([] if ended is None else [ended], earlier)
    return replace(observed, earlier=earlier) if earlier else observed


def merge_history(stored: Workload | None, observed: Workload) -> Workload:
    """``stored`` merged with the accounting's record of the same, an earlier or a later execution."""
    if stored is None:
        return observed
    if not _is_same_owner(stored, observed):  # the job id was reused
        return stored if _is_later(stored, observed) else observed
    earlier = merge_executions(stored.earlier, observed.earlier)
    if observed.state is WorkloadState.UNKNOWN:
        return _with_earlier(stored, earlier)
    if _is_later(stored, observed):
        ended = observed.ended_execution()
        return replace(stored, earlier=merge_executions(earlier, [] if ended is None else [ended]))
    if _is_later(observed, stored):
        ended = stored.ended_execution()
        earlier = merge_executions([] if ended is None else [ended], earlier)
        stored = replace(stored, exit_code=None, exit_signal=None, derived_exit_code=None, derived_exit_signal=None)
    newest = observed.ended_execution()
    return replace(
        _merge_fields(stored, observed),
        earlier=tuple(execution for execution in earlier if newest is None or not _is_estimate_of(execution, newest)),
        suspended_s=observed.suspended_s,
        suspended_at=None,
    )


def merge_executions(stored: Iterable[Execution], reported: Iterable[Execution]) -> tuple[Execution, ...]:
    """Both, by start. ``reported`` replaces a stored one with the same start; exact executions replace overlapping estimates."""
    by_start: dict[UnixMs, Execution] = {}
    for execution in (*stored, *reported):
        before = by_start.get(execution.started_at)
        if before is None or before.is_estimated or not execution.is_estimated:
            by_start[execution.started_at] = execution
    exact = [execution for execution in by_start.values() if not execution.is_estimated]
    kept = [
        execution for execution in by_start.values() if not any(_is_estimate_of(execution, other) for other in exact)
    ]
    return tuple(sorted(kept, key=lambda execution: execution.started_at))


def is_settled(stored: Workload, observed: Workload) -> bool:
    """Whether ``observed``, from the queue, is the ended execution that ``stored`` already has from the accounting."""
    return (
        not stored.state.is_active
        and not observed.state.is_active
        and observed.restarts <= stored.restarts
        and observed.submitted_at == stored.submitted_at
    )


def _is_same_job(stored: Workload, observed: Workload) -> bool:
    """Whether both are the same job, not different jobs with a reused id: a requeued job has a restart count."""
    return _is_same_owner(stored, observed) and (
        stored.state.is_active or observed.restarts > 0 or stored.submitted_at == observed.submitted_at
    )


def _is_same_owner(stored: Workload, observed: Workload) -> bool:
    return stored.user is None or observed.user is None or stored.user == observed.user


def _is_restarted(stored: Workload, observed: Workload) -> bool:
    """Whether ``observed`` is another execution. A changed start alone is not enough: it moves while a node boots."""
    if observed.state is WorkloadState.WAITING:
        return True
    if stored.state is WorkloadState.WAITING or stored.started_at == observed.started_at:
        return False
    return observed.restarts > stored.restarts or (stored.submitted_at or 0) < (observed.submitted_at or 0)


def _estimate_ended(stored: Workload, observed: Workload, at: UnixMs) -> Execution | None:
    """The execution that ended between two polls, until the accounting has its exact end."""
    if stored.started_at is None or stored.state is WorkloadState.WAITING:
        return None
    ended_at = at if observed.started_at is None else min(at, observed.started_at)
    if stored.state is WorkloadState.SUSPENDED and stored.suspended_at is not None:
        ended_at = stored.suspended_at
    stopped = replace(stored, state=WorkloadState.UNKNOWN, ended_at=ended_at)
    ended = stopped.ended_execution()
    return None if ended is None else replace(ended, is_estimated=True)


def _with_earlier(stored: Workload, earlier: tuple[Execution, ...]) -> Workload:
    """``stored`` if the accounting only has earlier executions. If ``stored`` vanished, it may be one
    of them that was requeued.
    """
    requeued = {execution.started_at for execution in earlier if execution.word == "REQUEUED"}
    if stored.state is WorkloadState.UNKNOWN and stored.started_at in requeued:
        stored = replace(stored, started_at=None, suspended_s=0, suspended_at=None)
    return replace(stored, earlier=earlier)


def _is_later(workload: Workload, other: Workload) -> bool:
    """Whether ``workload`` is a later execution than ``other``. A requeued job has a new submit time."""
    if (
        workload.submitted_at is not None
        and other.submitted_at is not None
        and workload.submitted_at != other.submitted_at
    ):
        return workload.submitted_at > other.submitted_at
    if workload.state is WorkloadState.WAITING:
        return other.ended_at is not None and other.ended_at <= (workload.submitted_at or 0)
    if workload.started_at is None or other.started_at is None or workload.started_at == other.started_at:
        return False
    # The start of an active execution may still change.
    is_after = other.ended_at is not None and workload.started_at >= other.ended_at
    return is_after or (not workload.state.is_active and workload.started_at > other.started_at)


def _is_estimate_of(estimate: Execution, exact: Execution) -> bool:
    return (
        estimate.is_estimated
        and not exact.is_estimated
        and exact.started_at < estimate.ended_at
        and estimate.started_at < exact.ended_at
    )


def _merge_fields(stored: Workload, observed: Workload) -> Workload:
    """``stored`` updated with the non-empty fields of ``observed``."""
    values = ((field.name, getattr(observed, field.name)) for field in fields(Workload))
    return replace(stored, **{name: value for name, value in values if value not in (None, (), {}, 0)})
