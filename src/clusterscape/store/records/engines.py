"""Connections to SQLite and PostgreSQL, configured for the contract (durable commits, one writer, many readers).
Translates every driver error to a StoreError.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from clusterscape.errors import ConfigError, StoreBusyError, StoreError, StoreFullError
from clusterscape.settings import PostgresSettings, StorageSettings

_FULL_HINT = "Free space on its disk; writing then resumes by itself."
_SMALLEST_USEFUL_BYTES = 2**20
_OWN_DATABASE_HINT = "Use a separate database for ClusterScape in storage.records."
_NO_SPACE = "No space left on device"


@contextmanager
def database_errors(where: str) -> Iterator[None]:
    """Convert driver errors in the block to a StoreError with a hint."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError, OverflowError) as error:
        raise translate_error(error, where) from error


def translate_error(error: Exception, where: str) -> StoreError:
    """The StoreError for a driver error; ``where`` is the file or the address without password."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(error, PoolTimeoutError):
        return StoreBusyError(f"too many readers at once for {where}", hint="Try again in a moment.")
    if isinstance(cause, sqlite3.Error):
        return _translate_sqlite(cause, where)
    if isinstance(error, OverflowError):
        return _value_error(str(cause), where)
    return _translate_postgres(cause, where)


def _value_error(text: str, where: str) -> StoreError:
    return StoreError(f"a value cannot be stored in {where}: {text}", hint="Integers must fit 64 bits.")


def _foreign_tables_error(text: str, where: str) -> StoreError:
    return StoreError(f"{where} already has tables of another application: {text}", hint=_OWN_DATABASE_HINT)


def _translate_sqlite(cause: sqlite3.Error, where: str) -> StoreError:
    name = getattr(cause, "sqlite_errorname", None) or ""
    is_io = name.startswith("SQLITE_IOERR")
    if name == "SQLITE_FULL" or (is_io and _is_full(Path(where))):
        return StoreFullError(f"no space left for {where}", hint=_FULL_HINT)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreBusyError(
            f"another process is writing {where}",
            hint="Stop the other ClusterScape, or use another data_dir.",
        )
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StoreError(
            f"cannot open or write {where}: {cause}",
            hint="Give this user write permission on the file and its folder, or set storage.data_dir to another one.",
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreError(
            f"{where} is damaged or not an SQLite database: {cause}",
            hint="Move it away and restore a backup; without it ClusterScape starts with an empty database.",
        )
    if is_io:
        return StoreError(f"cannot read or write {where}: {cause}", hint="Check the disk: space, quota, kernel log.")
    if name == "SQLITE_ERROR" and "already exists" in str(cause):
        return _foreign_tables_error(str(cause), where)
    return StoreError(f"{where} rejected a statement: {cause}", hint="Report this as a bug.")


def _is_full(path: Path) -> bool:
    """SQLite reports a full disk only for data writes; when it grows its shared memory it reports an I/O error."""
    try:
        return shutil.disk_usage(path.parent).free < _SMALLEST_USEFUL_BYTES
    except OSError:
        return False


def _translate_postgres(cause: BaseException | None, where: str) -> StoreError:
    state = str(getattr(cause, "sqlstate", None) or "")
    text = " ".join(str(cause).split())
    if state == "53100" or _NO_SPACE in text:
        return StoreFullError(f"PostgreSQL has no space left for {where}: {text}", hint=_FULL_HINT)
    if state.startswith("28") or "authentication failed" in text or "no password supplied" in text:
        return StoreError(
            f"PostgreSQL rejected the login to {where}: {text}",
            hint="Check user and password in storage.records, and pg_hba.conf on the server.",
        )
    if state == "3D000" or ("database" in text and "does not exist" in text):
        return StoreError(
            f"database does not exist: {where}",
            hint="Create it with `createdb`, owned by the user in storage.records.",
        )
    if state.startswith("22"):
        return _value_error(text, where)
    if state == "42P07":
        return _foreign_tables_error(text, where)
    if state == "42501":
        return StoreError(
            f"PostgreSQL denied permission on {where}: {text}",
            hint="The user needs CREATE on the schema: `GRANT CREATE, USAGE ON SCHEMA public TO …`, or own the database.",
        )
    if state == "57014":
        return StoreBusyError(
            f"PostgreSQL cancelled a statement at {where}: {text}",
            hint="It took longer than storage.postgres.statement_timeout_s; query less, or raise the timeout.",
        )
    if not state or state.startswith(("08", "57P")):
        return StoreError(
            f"PostgreSQL does not answer at {where}: {text}",
            hint="Check that the server runs and that storage.records names its host and port.",
        )
    return StoreError(f"PostgreSQL rejected a statement at {where}: {text}", hint="Report this as a bug.")


BUSY_TIMEOUT_S = 10
_ADDRESS_HINT = "Write it as postgresql://USER:PASSWORD@HOST:5432/DATABASE."
_POOL_SIZE = 5  # of SQLite
_MAX_OVERFLOW = 10
# Arbitrary constant: the key of PostgreSQL's advisory lock of writers and migrations.
_WRITER_LOCK = 0x636C7573746572


def record_engine(storage: StorageSettings) -> Engine:
    """The engine of ``storage.records``; only creates SQLite's folder, and does not connect yet."""
    file = find_sqlite_file(storage)
    return postgres_engine(_address(storage), storage.postgres) if file is None else sqlite_engine(file)


def find_sqlite_file(storage: StorageSettings) -> Path | None:
    """The SQLite file of ``storage.records``; None if it is not SQLite."""
    if storage.records == "sqlite":
        return storage.data_dir / "records.db"
    url = _address(storage)
    if url.get_backend_name() != "sqlite":
        return None
    file = Path(url.database or "").expanduser()
    if not file.is_absolute():  # a relative path would depend on the working directory
        raise ConfigError(
            "storage.records must name the SQLite file by its absolute path",
            hint="Write sqlite:////path/to/records.db, with four slashes.",
        )
    return file


def _address(storage: StorageSettings) -> URL:
    try:
        return make_url(storage.records)
    except (ArgumentError, ValueError) as error:  # ValueError: the port is not a number
        raise ConfigError(f"storage.records is not a database address: {error}", hint=_ADDRESS_HINT) from None


def sqlite_engine(path: Path) -> Engine:
    """SQLite in WAL mode at ``path``: readers never wait for the writer."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot create the folder {path.parent}: {error.strerror}",
            hint="Give this user write permission there, or set storage.data_dir to another folder.",
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
    # FULL, not NORMAL: in WAL mode NORMAL does not sync at commit, so a power failure may undo committed transactions.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -16384")  # KiB
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE takes the write lock at once: a deferred transaction that reads first would fail instead of wait if busy.
    is_write = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")


def postgres_engine(url: URL, settings: PostgresSettings | None = None) -> Engine:
    """PostgreSQL with psycopg 3, regardless of the driver in ``url``."""
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
    arguments: dict[str, str | int] = {
        "connect_timeout": settings.connect_timeout_s,
        "application_name": "clusterscape",
        # Detects a lost server within a minute instead of the system's two hours.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
    if settings.statement_timeout_s and "options" not in url.query:
        arguments["options"] = f"-c statement_timeout={round(settings.statement_timeout_s * 1000)}"
    return arguments


def _begin_postgres(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("unhurried", False):
        connection.execute(text("SET LOCAL statement_timeout = 0"))
    if options.get("writes", False):
        # One writer at a time, as in SQLite, so that writers cannot deadlock on rows.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_LOCK})
