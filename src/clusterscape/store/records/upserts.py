"""Writing many rows at once: only those that differ from what is stored, by one upsert that both engines understand."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Insert, Table, delete, select
from sqlalchemy import Row as StoredRow
from sqlalchemy.dialects import postgresql, sqlite

from clusterscape.store.records.rows import Row

SEEN_STEP_MS = 600_000
"""How exactly ``seen_at`` is kept: an unchanged row is written again only when it was last seen longer ago than this."""

_WORTH_COMPARING = 64  # rows; fewer are written faster than the stored ones are read
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
    """Those of ``rows`` that are new or differ from what is stored, and the stored rows they were compared with.

    ``among`` narrows what is read for the comparison to the rows that are rewritten again and again; others count as new.
    Of several rows with one key the last one is taken.
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
    """Delete the rows whose ``column`` has one of ``values``, however many these are."""
    names = list(values)
    for start in range(0, len(names), _DELETED_AT_ONCE):
        connection.execute(delete(column.table).where(column.in_(names[start : start + _DELETED_AT_ONCE])))
