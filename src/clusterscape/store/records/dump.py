"""All records as plain rows, out of one database and into another, whichever engine each has. One consistent moment.

A dump is of one schema revision; it is loaded into an empty database of the same revision, which is then upgraded as usual.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from sqlalchemy import Connection, Engine, func, insert, select, text

from clusterscape.errors import StoreError, StoreVersionError
from clusterscape.store.records.migrations import bring_up_to_date, known_revisions, stored_revision
from clusterscape.store.records.tables import REVISION, metadata

ROWS_AT_ONCE = 5_000


def dump_rows(engine: Engine) -> Iterator[tuple[str, bytes]]:
    """(table, JSON lines) in pieces, parents before children, all of one moment.

    Raises StoreVersionError where the schema is not this program's own: columns are named after it.
    """
    revision = stored_revision(engine)
    if revision != REVISION:
        raise StoreVersionError(
            f"the records have schema {revision or 'none'}, this version of ClusterScape has {REVISION}",
            hint="Start `clusterscape serve` once, which upgrades them, then back up again.",
        )
    encode = msgspec.json.Encoder().encode_lines
    with engine.connect() as connection, connection.begin():
        _hold_moment(connection)
        for table in metadata.sorted_tables:
            rows = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(select(table))
            for piece in rows.mappings().partitions(ROWS_AT_ONCE):
                yield table.name, encode([dict(row) for row in piece])


def load_rows(engine: Engine, pieces: Iterator[tuple[str, bytes]], *, where: str) -> dict[str, int]:
    """Put dumped rows into an empty database, all or nothing; returns how many each table got."""
    bring_up_to_date(engine, where)
    loaded: dict[str, int] = {}
    with engine.execution_options(writes=True, unhurried=True).begin() as connection:
        held = count_rows(connection)
        if any(held.values()):
            raise StoreError(
                f"{where} already holds records ({', '.join(f'{n:,} {name}' for name, n in held.items() if n)})",
                hint="Restore into an empty database or folder; nothing was changed.",
            )
        for name, lines in pieces:
            table = metadata.tables.get(name)
            if table is None:
                raise StoreError(
                    f"the dump has a table {name!r} that is not known", hint="Use the version that wrote it."
                )
            rows: Sequence[Mapping[str, object]] = msgspec.json.Decoder().decode_lines(lines)
            if rows:
                connection.execute(insert(table), list(rows))
            loaded[name] = loaded.get(name, 0) + len(rows)
    return loaded


def count_rows(connection: Connection) -> dict[str, int]:
    """How many rows each table has."""
    return {
        table.name: int(connection.scalar(select(func.count()).select_from(table)) or 0)
        for table in metadata.sorted_tables
    }


def check_loadable(revision: str) -> None:
    """Raise StoreVersionError where a dump's schema is not this program's."""
    if revision == REVISION:
        return
    hint = (
        "Restore it with the version of ClusterScape that wrote it, then upgrade."
        if revision in known_revisions()
        else "It was written by a newer ClusterScape; use that one."
    )
    raise StoreVersionError(f"the backup has schema {revision}, this version has {REVISION}", hint=hint)


def _hold_moment(connection: Connection) -> None:
    # SQLite in WAL mode reads one moment in any transaction; PostgreSQL does from REPEATABLE READ on.
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
