"""The spool file: schema, lock, transactions and errors.

SQLite, because a delivery changes several things atomically (the message is removed, its key is recorded, the channel recovers),
and because its journal is checksummed: a torn write loses only one transaction. The only SQL outside ``store``: a private queue
that must work while the record store does not.
"""

import fcntl
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterscape.errors import StoreBusyError, StoreError, StoreFullError, StoreVersionError

VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (version INTEGER NOT NULL, spool TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS channel (
  name TEXT PRIMARY KEY, kind TEXT NOT NULL, delivered INTEGER NOT NULL DEFAULT 0, delivered_at INTEGER,
  failing_since INTEGER, note TEXT, paused_until INTEGER,
  flaps INTEGER NOT NULL DEFAULT 0, tallied INTEGER NOT NULL DEFAULT 0
);
-- message NULL: in no message yet
CREATE TABLE IF NOT EXISTS turn (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, message INTEGER, posted_at INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS turn_by_message ON turn (channel, message, seq);
-- only messages that wait; AUTOINCREMENT never gives a number twice, so neither is a key
CREATE TABLE IF NOT EXISTS message (
  id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, lane TEXT NOT NULL, kind TEXT NOT NULL, grouped TEXT NOT NULL,
  created_at INTEGER NOT NULL, tallies TEXT NOT NULL DEFAULT '[]', attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER,
  failing_since INTEGER, error TEXT, is_lasting INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS message_by_lane ON message (channel, lane, id);
CREATE TABLE IF NOT EXISTS delivery (
  key TEXT PRIMARY KEY, channel TEXT NOT NULL, lane TEXT NOT NULL, at INTEGER NOT NULL, attempts INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS delivery_by_time ON delivery (channel, at);
CREATE TABLE IF NOT EXISTS told (
  channel TEXT NOT NULL, grouped TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (channel, grouped)
);
CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY, at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS seen_by_time ON seen (at);
-- violations that a channel was, or will be, notified of and that have not stopped
CREATE TABLE IF NOT EXISTS started (
  channel TEXT NOT NULL, rule TEXT NOT NULL, workload TEXT NOT NULL, part TEXT NOT NULL, since INTEGER NOT NULL,
  PRIMARY KEY (channel, rule, workload, part)
);
CREATE TABLE IF NOT EXISTS firing (
  channel TEXT NOT NULL, rule TEXT NOT NULL, workload TEXT NOT NULL, first TEXT NOT NULL, parts TEXT NOT NULL,
  PRIMARY KEY (channel, rule, workload)
);
"""


class Database:
    """One connection for all threads of the process that delivers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.RLock()
        self._lock = _lock(path)
        try:
            with translate_errors(path):
                self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
                self._prepare()
        except BaseException:
            os.close(self._lock)
            raise

    def _prepare(self) -> None:
        # FULL: a commit returns when the journal is on disk.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        with self.writing() as sql:
            for statement in SCHEMA.split(";\n"):
                sql.execute(statement)
            if not sql.execute("SELECT 1 FROM meta").fetchone():
                sql.execute("INSERT INTO meta VALUES (?, ?)", (VERSION, secrets.token_hex(6)))
            version, self.spool = sql.execute("SELECT version, spool FROM meta").fetchone()
            refuse_newer(self.path, version)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on disk when this returns, or rolled back."""
        with self._guard, translate_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite ends the transaction itself when the disk is full.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for reading."""
        with self._guard, translate_errors(self.path):
            yield self._connection

    def close(self) -> None:
        """Close the file and release the lock."""
        with self._guard:
            self._connection.close()
            os.close(self._lock)


@contextmanager
def reading_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the spool of another process, which may be running."""
    with translate_errors(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
        try:
            (version,) = connection.execute("SELECT version FROM meta").fetchone()
            refuse_newer(path, version)
            yield connection
        finally:
            connection.close()


def refuse_newer(path: Path, version: int) -> None:
    """Raise StoreVersionError if a newer ClusterScape wrote the spool."""
    if version > VERSION:
        raise StoreVersionError(
            f"{path} was written by a newer ClusterScape (format {version}, this version supports {VERSION})",
            hint="Use the newer version, or move the file away: its waiting messages are then not sent.",
        )


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise StoreFullError(
                f"no space left on device for the alerts in {path}", hint="Free disk space."
            ) from error
        raise StoreError(
            f"cannot read or write the alerts in {path}: {error}",
            hint="Is the folder writable? Move a damaged file away: its waiting messages are then not sent.",
        ) from error


def _lock(path: Path) -> int:
    """Lock the spool for the lifetime of the process: two processes would send everything twice."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot store alerts in {path.parent}: {error.strerror}", hint="Is the folder writable?"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise StoreBusyError(
            f"another ClusterScape process already uses {path}", hint="Stop it, or choose another storage.data_dir."
        ) from None
    return handle
