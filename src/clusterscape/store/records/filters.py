"""Conditions on workloads, allocations and violations, as SQL expressions that mean the same in both engines."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, and_, false, func, not_, or_, select, union_all

from clusterscape.model import UnixMs, WorkloadState
from clusterscape.store.records.contract import WorkloadFilter
from clusterscape.store.records.tables import allocations, violations, workload_nodes, workloads

ACTIVE_STATES = [state.value for state in WorkloadState if state.is_active]

IS_ACTIVE = workloads.c.state.in_(ACTIVE_STATES)
IS_OPEN = allocations.c.to_at.is_(None)
IS_BROKEN = violations.c.until.is_(None)


def matching(where: WorkloadFilter) -> list[ColumnElement[bool]]:
    """The conditions of ``where``; all must hold."""
    found: list[ColumnElement[bool]] = []
    if where.states is not None:
        found.append(workloads.c.state.in_(sorted(where.states)))
    if where.user is not None:
        found.append(workloads.c.user == where.user)
    if where.project is not None:
        found.append(workloads.c.project == where.project)
    if where.partition is not None:
        found.append(workloads.c.partition == where.partition)
    if where.node is not None:
        found.append(workloads.c.id.in_(select(workload_nodes.c.workload).where(workload_nodes.c.node == where.node)))
    known = None if where.known_to is None else belonging_to(*where.known_to)
    if known is not None and where.is_known is not None:
        found.append(known if where.is_known else not_(known))
    if where.text is not None and where.text.strip():
        text = where.text.strip().casefold()
        found.append(workloads.c.search.contains(text, autoescape=True))
        if known is not None:
            # Of Kubernetes even the id holds names.
            is_number = and_(
                workloads.c.id.not_like("kubernetes:%"), func.lower(workloads.c.id).contains(text, autoescape=True)
            )
            found.append(or_(known, is_number, func.lower(workloads.c.id) == text))
    if where.active_between is not None:
        start_ms, end_ms = where.active_between
        found.append(workloads.c.begins_at < end_ms)
        found.append(or_(IS_ACTIVE, workloads.c.ends_at > start_ms))
    return found


def belonging_to(user: str | None, projects: frozenset[str]) -> ColumnElement[bool]:
    """Workloads of this user or of these projects; never null."""
    columns = workloads.c
    owned = false() if user is None else and_(columns.user.is_not(None), columns.user == user)
    shared = and_(columns.project.is_not(None), columns.project.in_(sorted(projects))) if projects else false()
    return or_(owned, shared)


def overlapping_anywhere(
    columns: Sequence[ColumnElement[Any]], start_ms: UnixMs, end_ms: UnixMs
) -> CompoundSelect[Any]:
    """``columns`` of all allocations that overlap [start, end), found by their end: most questions are about recent times.

    Without statistics SQLite would take the index of begins, and read nearly all there ever was; the sum hides that index. It
    also joins the two halves of an "or" by a slow set of keys, so they are asked for apart.
    """
    has_begun = allocations.c.from_at + 0 < end_ms
    return union_all(
        select(*columns).where(IS_OPEN, has_begun), select(*columns).where(allocations.c.to_at > start_ms, has_begun)
    )


def overlapping(start_ms: UnixMs | None, end_ms: UnixMs | None) -> list[ColumnElement[bool]]:
    """Allocations that share some time with [start, end); a missing bound is open."""
    found: list[ColumnElement[bool]] = []
    if end_ms is not None:
        found.append(allocations.c.from_at < end_ms)
    if start_ms is not None:
        found.append(or_(IS_OPEN, allocations.c.to_at > start_ms))
    return found


def violated_between(start_ms: UnixMs | None, end_ms: UnixMs | None) -> list[ColumnElement[bool]]:
    """Violations that share some time with [start, end); a missing bound is open."""
    found: list[ColumnElement[bool]] = []
    if end_ms is not None:
        found.append(violations.c.since < end_ms)
    if start_ms is not None:
        found.append(or_(IS_BROKEN, violations.c.until > start_ms))
    return found
