"""What went wrong in a database, in our words: every driver error becomes a StoreError that says what to do."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from clusterscape.errors import StoreBusyError, StoreError, StoreFullError

_FULL_HINT = "Free space on its device; writing goes on by itself then."
_SMALLEST_USEFUL_BYTES = 2**20
_OWN_DATABASE_HINT = "Give ClusterScape a database of its own in storage.records."
_NO_SPACE = "No space left on device"


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn what a driver raises in the block into a StoreError that says what to do."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError, OverflowError) as error:
        raise explain(error, where) from error


def explain(error: Exception, where: str) -> StoreError:
    """The StoreError for what a driver raised; ``where`` is the file or the address without password."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(error, PoolTimeoutError):
        return StoreBusyError(f"too many readers at once for {where}", hint="Ask again in a moment.")
    if isinstance(cause, sqlite3.Error):
        return _explain_sqlite(cause, where)
    if isinstance(error, OverflowError):
        return _unfit(str(cause), where)
    return _explain_postgres(cause, where)


def _unfit(text: str, where: str) -> StoreError:
    return StoreError(f"a value cannot be kept in {where}: {text}", hint="Whole numbers must fit 64 bits.")


def _foreign(text: str, where: str) -> StoreError:
    return StoreError(f"{where} already holds tables of other origin: {text}", hint=_OWN_DATABASE_HINT)


def _explain_sqlite(cause: sqlite3.Error, where: str) -> StoreError:
    name = getattr(cause, "sqlite_errorname", None) or ""
    is_io = name.startswith("SQLITE_IOERR")
    if name == "SQLITE_FULL" or (is_io and _is_full(Path(where))):
        return StoreFullError(f"no space left for {where}", hint=_FULL_HINT)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreBusyError(
            f"another process is writing {where}",
            hint="Stop the other ClusterScape, or give this one its own data_dir.",
        )
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StoreError(
            f"cannot open or write {where}: {cause}",
            hint="Give this user the right to write the file and its folder, or set storage.data_dir to another one.",
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreError(
            f"{where} is damaged or no SQLite database: {cause}",
            hint="Put it aside and restore a copy; without it ClusterScape starts with an empty one.",
        )
    if is_io:
        return StoreError(
            f"cannot read or write {where}: {cause}", hint="Look at the device: space, quota, kernel log."
        )
    if name == "SQLITE_ERROR" and "already exists" in str(cause):
        return _foreign(str(cause), where)
    return StoreError(f"{where} did not accept a statement: {cause}", hint="Report this as a defect.")


def _is_full(path: Path) -> bool:
    """SQLite names a full device only where it wrote data; where it enlarged its shared memory it says "I/O error"."""
    try:
        return shutil.disk_usage(path.parent).free < _SMALLEST_USEFUL_BYTES
    except OSError:
        return False


def _explain_postgres(cause: BaseException | None, where: str) -> StoreError:
    state = str(getattr(cause, "sqlstate", None) or "")
    text = " ".join(str(cause).split())
    if state == "53100" or _NO_SPACE in text:
        return StoreFullError(f"PostgreSQL has no space left for {where}: {text}", hint=_FULL_HINT)
    if state.startswith("28") or "authentication failed" in text or "no password supplied" in text:
        return StoreError(
            f"PostgreSQL refuses the login to {where}: {text}",
            hint="Check user and password in storage.records, and pg_hba.conf on the server.",
        )
    if state == "3D000" or ("database" in text and "does not exist" in text):
        return StoreError(
            f"there is no such database: {where}",
            hint="Create it with `createdb`, owned by the user in storage.records.",
        )
    if state.startswith("22"):
        return _unfit(text, where)
    if state == "42P07":
        return _foreign(text, where)
    if state == "42501":
        return StoreError(
            f"PostgreSQL denies a right on {where}: {text}",
            hint="The user needs CREATE on the schema: `GRANT CREATE, USAGE ON SCHEMA public TO …`, or own the database.",
        )
    if state == "57014":
        return StoreBusyError(
            f"PostgreSQL ended a statement at {where}: {text}",
            hint="It took longer than storage.postgres.statement_timeout_s; ask for less, or raise it.",
        )
    if not state or state.startswith(("08", "57P")):
        return StoreError(
            f"PostgreSQL does not answer at {where}: {text}",
            hint="Check that the server runs and that storage.records names its host and port.",
        )
    return StoreError(f"PostgreSQL did not accept a statement at {where}: {text}", hint="Report this as a defect.")
