"""Exports all records as plain rows, in one consistent snapshot, and imports them into another database of any engine.

A dump has one schema revision; it is loaded into an empty database of the same revision.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from sqlalchemy import Connection, Engine, func, insert, select, text

from clusterscape.errors import StoreError, StoreVersionError
from clusterscape.store.records.migrations import known_revisions, stored_revision, upgrade_schema
from clusterscape.store.records.tables import REVISION, metadata

ROWS_AT_ONCE = 5_000


def dump_rows(engine: Engine) -> Iterator[tuple[str, bytes]]:
    """(table, JSON lines) in pieces, parents before children, in one snapshot.

    Raises StoreVersionError if the schema is not that of this version.
    """
    revision = stored_revision(engine)
    if revision != REVISION:
        raise StoreVersionError(
            f"the records have schema {revision or 'none'}, this version of ClusterScape has {REVISION}",
            hint="Start `clusterscape serve` once, which upgrades them, then back up again.",
        )
    encode = msgspec.json.Encoder().encode_lines
    with engine.connect() as connection, connection.begin():
        _begin_snapshot(connection)
        for table in metadata.sorted_tables:
            rows = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(select(table))
            for piece in rows.mappings().partitions(ROWS_AT_ONCE):
                yield table.name, encode([dict(row) for row in piece])


def load_rows(engine: Engine, pieces: Iterator[tuple[str, bytes]], *, where: str) -> dict[str, int]:
    """Load dumped rows into an empty database in one transaction; returns the number of rows by table."""
    upgrade_schema(engine, where)
    loaded: dict[str, int] = {}
    with engine.execution_options(writes=True, unhurried=True).begin() as connection:
        existing = count_rows(connection)
        if any(existing.values()):
            raise StoreError(
                f"{where} already has records ({', '.join(f'{n:,} {name}' for name, n in existing.items() if n)})",
                hint="Restore into an empty database or folder; nothing was changed.",
            )
        for name, lines in pieces:
            table = metadata.tables.get(name)
            if table is None:
                raise StoreError(
                    f"the dump has an unknown table {name!r}", hint="Use the version of ClusterScape that wrote it."
                )
            rows: Sequence[Mapping[str, object]] = msgspec.json.Decoder().decode_lines(lines)
            if rows:
                connection.execute(insert(table), list(rows))
            loaded[name] = loaded.get(name, 0) + len(rows)
    return loaded


def count_rows(connection: Connection) -> dict[str, int]:
    """Number of rows by table."""
    return {
        table.name: int(connection.scalar(select(func.count()).select_from(table)) or 0)
        for table in metadata.sorted_tables
    }


def check_loadable(revision: str) -> None:
    """Raise StoreVersionError if a dump's schema is not that of this version."""
    if revision == REVISION:
        return
    hint = (
        "Restore it with the version of ClusterScape that wrote it, then upgrade."
        if revision in known_revisions()
        else "It was written by a newer ClusterScape; use that one."
    )
    raise StoreVersionError(f"the backup has schema {revision}, this version has {REVISION}", hint=hint)


def _begin_snapshot(connection: Connection) -> None:
    # In SQLite's WAL mode every transaction reads one snapshot; PostgreSQL needs REPEATABLE READ.
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
