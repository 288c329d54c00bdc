"""Keeps all executions of a workload: the queue shows the newest alone, the accounting has a record of each. Pure."""

from collections.abc import Iterable
from dataclasses import fields, replace

from clusterscape.model import Execution, UnixMs, Workload, WorkloadState


def carry_over(known: Workload | None, seen: Workload, at: UnixMs) -> Workload:
    """``seen`` in the queue, with the executions known before. One that the queue shows no longer ended by ``at``."""
    if known is None or not _is_same_job(known, seen):
        return seen
    earlier = known.earlier
    if _is_restarted(known, seen):
        former = known.ended_execution() or _estimate_former(known, seen, at)
        earlier = join_executions([] if former is None else [former], earlier)
    return replace(seen, earlier=earlier) if earlier else seen


def join_history(known: Workload | None, seen: Workload) -> Workload:
    """``known`` with what the accounting says: of the same execution, of an earlier one, or of a later one."""
    if known is None:
        return seen
    if not _is_same_owner(known, seen):  # the number was given to another job
        return known if _is_later(known, seen) else seen
    earlier = join_executions(known.earlier, seen.earlier)
    if seen.state is WorkloadState.UNKNOWN:
        return _with_earlier_only(known, earlier)
    if _is_later(known, seen):
        former = seen.ended_execution()
        return replace(known, earlier=join_executions(earlier, [] if former is None else [former]))
    if _is_later(seen, known):
        former = known.ended_execution()
        earlier = join_executions([] if former is None else [former], earlier)
        known = replace(known, exit_code=None, exit_signal=None, derived_exit_code=None, derived_exit_signal=None)
    newest = seen.ended_execution()
    return replace(
        _fill(known, seen),
        earlier=tuple(each for each in earlier if newest is None or not _is_estimate_of(each, newest)),
        suspended_s=seen.suspended_s,
        suspended_at=None,
    )


def join_executions(known: Iterable[Execution], told: Iterable[Execution]) -> tuple[Execution, ...]:
    """Both, by start. Of the same start ``told`` counts; an estimate never counts beside what the accounting says."""
    by_start: dict[UnixMs, Execution] = {}
    for each in (*known, *told):
        before = by_start.get(each.started_at)
        if before is None or before.is_estimated or not each.is_estimated:
            by_start[each.started_at] = each
    exact = [each for each in by_start.values() if not each.is_estimated]
    kept = [each for each in by_start.values() if not any(_is_estimate_of(each, other) for other in exact)]
    return tuple(sorted(kept, key=lambda each: each.started_at))


def is_settled(known: Workload, seen: Workload) -> bool:
    """Whether the queue repeats how an execution ended that ``known``, by the accounting, tells better."""
    return (
        not known.state.is_active
        and not seen.state.is_active
        and seen.restarts <= known.restarts
        and seen.submitted_at == known.submitted_at
    )


def _is_same_job(known: Workload, seen: Workload) -> bool:
    """Whether ``known`` is not an ended job whose number was given to another: one that begins again counts its restarts."""
    return _is_same_owner(known, seen) and (
        known.state.is_active or seen.restarts > 0 or known.submitted_at == seen.submitted_at
    )


def _is_same_owner(known: Workload, seen: Workload) -> bool:
    return known.user is None or seen.user is None or known.user == seen.user


def _is_restarted(known: Workload, seen: Workload) -> bool:
    """Whether ``seen`` is another execution. A start alone may move, as when a node has to boot first."""
    if seen.state is WorkloadState.WAITING:
        return True
    if known.state is WorkloadState.WAITING or known.started_at == seen.started_at:
        return False
    return seen.restarts > known.restarts or (known.submitted_at or 0) < (seen.submitted_at or 0)


def _estimate_former(known: Workload, seen: Workload, at: UnixMs) -> Execution | None:
    """The execution that ended between two looks, until the accounting tells when."""
    if known.started_at is None or known.state is WorkloadState.WAITING:
        return None
    ended_at = at if seen.started_at is None else min(at, seen.started_at)
    if known.state is WorkloadState.SUSPENDED and known.suspended_at is not None:
        ended_at = known.suspended_at
    stopped = replace(known, state=WorkloadState.UNKNOWN, ended_at=ended_at)
    former = stopped.ended_execution()
    return None if former is None else replace(former, is_estimated=True)


def _with_earlier_only(known: Workload, earlier: tuple[Execution, ...]) -> Workload:
    """``known``, of which the accounting tells but earlier executions. One that vanished may turn out to be among them."""
    requeued = {each.started_at for each in earlier if each.word == "REQUEUED"}
    if known.state is WorkloadState.UNKNOWN and known.started_at in requeued:
        known = replace(known, started_at=None, suspended_s=0, suspended_at=None)
    return replace(known, earlier=earlier)


def _is_later(one: Workload, other: Workload) -> bool:
    """Whether ``one`` is of a later execution than ``other``. A requeued job counts as submitted anew."""
    if one.submitted_at is not None and other.submitted_at is not None and one.submitted_at != other.submitted_at:
        return one.submitted_at > other.submitted_at
    if one.state is WorkloadState.WAITING:
        return other.ended_at is not None and other.ended_at <= (one.submitted_at or 0)
    if one.started_at is None or other.started_at is None or one.started_at == other.started_at:
        return False
    # The start of what goes on may still be moved.
    is_after = other.ended_at is not None and one.started_at >= other.ended_at
    return is_after or (not one.state.is_active and one.started_at > other.started_at)


def _is_estimate_of(estimate: Execution, exact: Execution) -> bool:
    return (
        estimate.is_estimated
        and not exact.is_estimated
        and exact.started_at < estimate.ended_at
        and estimate.started_at < exact.ended_at
    )


def _fill(known: Workload, seen: Workload) -> Workload:
    """``seen`` over ``known``, but what ``seen`` does not say stays."""
    values = ((field.name, getattr(seen, field.name)) for field in fields(Workload))
    return replace(known, **{name: value for name, value in values if value not in (None, (), {}, 0)})
