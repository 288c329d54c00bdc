"""Connections to SQLite and PostgreSQL, set up so that both keep the contract: durable commits, one writer, many readers."""

import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from clusterscape.errors import ConfigError, StoreError
from clusterscape.settings import PostgresSettings, StorageSettings

BUSY_TIMEOUT_S = 10
_ADDRESS_HINT = "Write it as postgresql://USER:PASSWORD@HOST:5432/DATABASE."
_POOL_SIZE = 5  # of SQLite
_MAX_OVERFLOW = 10
# Any constant number of our own: the key of PostgreSQL's advisory lock that writers and migrations hold.
_WRITER_LOCK = 0x636C7573746572


def record_engine(storage: StorageSettings) -> Engine:
    """The engine that ``storage.records`` names; nothing is opened or written yet but SQLite's folder."""
    file = find_sqlite_file(storage)
    return postgres_engine(_address(storage), storage.postgres) if file is None else sqlite_engine(file)


def find_sqlite_file(storage: StorageSettings) -> Path | None:
    """The file that ``storage.records`` names; None where it is no SQLite."""
    if storage.records == "sqlite":
        return storage.data_dir / "records.db"
    url = _address(storage)
    if url.get_backend_name() != "sqlite":
        return None
    file = Path(url.database or "").expanduser()
    if not file.is_absolute():  # a relative one would depend on where the command is called
        raise ConfigError(
            "storage.records does not name an SQLite file by its whole path",
            hint="Write sqlite:////path/to/records.db, with four slashes.",
        )
    return file


def _address(storage: StorageSettings) -> URL:
    try:
        return make_url(storage.records)
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is no number
        raise ConfigError(f"storage.records is no database address: {error}", hint=_ADDRESS_HINT) from None


def sqlite_engine(path: Path) -> Engine:
    """SQLite in WAL mode at ``path``: readers never wait for the writer."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot create the folder {path.parent}: {error.strerror}",
            hint="Give this user the right to write there, or set storage.data_dir to another folder.",
        ) from None
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        poolclass=QueuePool,
        pool_size=_POOL_SIZE,
        max_overflow=_MAX_OVERFLOW,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # _begin_sqlite begins; the driver's own BEGIN comes too late for DDL and reads
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    # FULL, not NORMAL: in WAL mode NORMAL does not sync at commit, and a power cut may undo what was acknowledged.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -16384")  # KiB
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE takes the write lock at once: a deferred transaction that first reads would fail, not wait, on a busy store.
    is_write = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")


def postgres_engine(url: URL, settings: PostgresSettings | None = None) -> Engine:
    """PostgreSQL by psycopg 3, whatever driver ``url`` names."""
    settings = settings or PostgresSettings()
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=_connect_arguments(url, settings),
            pool_size=settings.pool_size,
            max_overflow=settings.max_overflow,
            pool_timeout=settings.pool_timeout_s,
            pool_recycle=int(settings.recycle_s),
            pool_pre_ping=True,  # a restarted server costs one reconnect, not a failed request
        )
    except ModuleNotFoundError:
        raise ConfigError(
            "storage.records names PostgreSQL, but its driver is not installed",
            hint="pip install 'clusterscape[postgres]'",
        ) from None
    event.listen(engine, "begin", _begin_postgres)
    return engine


def _connect_arguments(url: URL, settings: PostgresSettings) -> dict[str, str | int]:
    found: dict[str, str | int] = {
        "connect_timeout": settings.connect_timeout_s,
        "application_name": "clusterscape",
        # A server that vanished without a word is noticed within a minute, not after the system's two hours.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
    if settings.statement_timeout_s and "options" not in url.query:
        found["options"] = f"-c statement_timeout={round(settings.statement_timeout_s * 1000)}"
    return found


def _begin_postgres(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("unhurried", False):
        connection.execute(text("SET LOCAL statement_timeout = 0"))
    if options.get("writes", False):
        # One writer at a time, as in SQLite: two that lock the same rows in another order would deadlock.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_LOCK})
