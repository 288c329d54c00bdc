"""SQL that works in both engines: conditions on workloads, allocations and violations, and upserts of changed rows."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Insert,
    Table,
    and_,
    delete,
    false,
    func,
    not_,
    or_,
    select,
    union_all,
)
from sqlalchemy import Row as StoredRow
from sqlalchemy.dialects import postgresql, sqlite

from clusterscape.model import UnixMs, WorkloadState
from clusterscape.store.records.contract import WorkloadFilter
from clusterscape.store.records.rows import Row
from clusterscape.store.records.tables import allocations, violations, workload_nodes, workloads

ACTIVE_STATES = [state.value for state in WorkloadState if state.is_active]

IS_ACTIVE = workloads.c.state.in_(ACTIVE_STATES)
IS_OPEN = allocations.c.to_at.is_(None)
IS_ONGOING = violations.c.until.is_(None)


def matching(where: WorkloadFilter) -> list[ColumnElement[bool]]:
    """The conditions of ``where``; all must hold."""
    conditions: list[ColumnElement[bool]] = []
    if where.states is not None:
        conditions.append(workloads.c.state.in_(sorted(where.states)))
    if where.user is not None:
        conditions.append(workloads.c.user == where.user)
    if where.project is not None:
        conditions.append(workloads.c.project == where.project)
    if where.partition is not None:
        conditions.append(workloads.c.partition == where.partition)
    if where.node is not None:
        conditions.append(
            workloads.c.id.in_(select(workload_nodes.c.workload).where(workload_nodes.c.node == where.node))
        )
    is_visible = None if where.visible_to is None else belonging_to(*where.visible_to)
    if is_visible is not None and where.is_known is not None:
        conditions.append(is_visible if where.is_known else not_(is_visible))
    if where.text is not None and where.text.strip():
        text = where.text.strip().casefold()
        conditions.append(workloads.c.search.contains(text, autoescape=True))
        if is_visible is not None:
            # Kubernetes ids contain names.
            is_number = and_(
                workloads.c.id.not_like("kubernetes:%"), func.lower(workloads.c.id).contains(text, autoescape=True)
            )
            conditions.append(or_(is_visible, is_number, func.lower(workloads.c.id) == text))
    if where.active_between is not None:
        start_ms, end_ms = where.active_between
        conditions.append(workloads.c.begins_at < end_ms)
        conditions.append(or_(IS_ACTIVE, workloads.c.ends_at > start_ms))
    return conditions


def belonging_to(user: str | None, projects: frozenset[str]) -> ColumnElement[bool]:
    """Workloads of this user or of these projects; never null."""
    columns = workloads.c
    owned = false() if user is None else and_(columns.user.is_not(None), columns.user == user)
    shared = and_(columns.project.is_not(None), columns.project.in_(sorted(projects))) if projects else false()
    return or_(owned, shared)


def overlapping_anywhere(
    columns: Sequence[ColumnElement[Any]], start_ms: UnixMs, end_ms: UnixMs
) -> CompoundSelect[Any]:
    """``columns`` of all allocations that overlap [start, end), found by their end because most queries are about recent times.

    Without statistics SQLite would use the index of starts and read nearly all rows; ``from_at + 0`` prevents that. It also
    evaluates the "or" slowly by a set of keys, so both halves are separate queries.
    """
    has_begun = allocations.c.from_at + 0 < end_ms
    return union_all(
        select(*columns).where(IS_OPEN, has_begun), select(*columns).where(allocations.c.to_at > start_ms, has_begun)
    )


def overlapping(start_ms: UnixMs | None, end_ms: UnixMs | None) -> list[ColumnElement[bool]]:
    """Allocations that share some time with [start, end); a missing bound is open."""
    conditions: list[ColumnElement[bool]] = []
    if end_ms is not None:
        conditions.append(allocations.c.from_at < end_ms)
    if start_ms is not None:
        conditions.append(or_(IS_OPEN, allocations.c.to_at > start_ms))
    return conditions


def violated_between(start_ms: UnixMs | None, end_ms: UnixMs | None) -> list[ColumnElement[bool]]:
    """Violations that share some time with [start, end); a missing bound is open."""
    conditions: list[ColumnElement[bool]] = []
    if end_ms is not None:
        conditions.append(violations.c.since < end_ms)
    if start_ms is not None:
        conditions.append(or_(IS_ONGOING, violations.c.until > start_ms))
    return conditions


SEEN_STEP_MS = 600_000
"""Precision of ``seen_at``: an unchanged row is written again only when its ``seen_at`` is older than this."""

_WORTH_COMPARING = 64  # rows; fewer are written faster than compared
_DELETED_AT_ONCE = 500  # values in one statement; SQLite before 3.32 takes 999 parameters

Stored = dict[tuple[object, ...], StoredRow[Any]]


def upsert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert ``rows``, or replace those with the same key."""
    if rows:
        connection.execute(_upsert_of(connection.dialect.name, table), rows)


def _upsert_of(dialect: str, table: Table) -> Insert:
    keys = [column.name for column in table.primary_key]
    rest = [column.name for column in table.c if column.name not in keys]
    if dialect == "postgresql":
        statement = postgresql.insert(table)
        return statement.on_conflict_do_update(
            index_elements=keys, set_={name: statement.excluded[name] for name in rest}
        )
    other = sqlite.insert(table)
    return other.on_conflict_do_update(index_elements=keys, set_={name: other.excluded[name] for name in rest})


def changed(
    connection: Connection, table: Table, rows: Iterable[Row], *, among: ColumnElement[bool] | None = None
) -> tuple[list[Row], Stored]:
    """Those of ``rows`` that are new or changed, and the stored rows that they were compared with.

    ``among`` limits the comparison to rows that are rewritten often; others count as new. Of several rows with the same key
    the last one wins.
    """
    keys = [column.name for column in table.primary_key]
    newest = {tuple(row[key] for key in keys): row for row in rows}
    if len(newest) < _WORTH_COMPARING:
        return list(newest.values()), {}
    query = select(table) if among is None else select(table).where(among)
    width = len(keys)
    stored: Stored = {tuple(row[:width]): row for row in connection.execute(query)}
    return [row for key, row in newest.items() if _differs(row, stored.get(key))], stored


def _differs(row: Row, stored: StoredRow[Any] | None) -> bool:
    if stored is None:
        return True
    new = tuple(row.values())
    if "seen_at" not in row:
        return new != tuple(stored)
    return new[:-1] != tuple(stored[:-1]) or abs(new[-1] - stored[-1]) >= SEEN_STEP_MS


def delete_each(connection: Connection, column: Column[str], values: Iterable[str]) -> None:
    """Delete the rows whose ``column`` is in ``values``, in batches."""
    names = list(values)
    for start in range(0, len(names), _DELETED_AT_ONCE):
        connection.execute(delete(column.table).where(column.in_(names[start : start + _DELETED_AT_ONCE])))
