"""Requests and mails on disk, until they are sent: a file of SQLite.

Every step is one transaction, so that a crash neither loses a mail nor composes it twice. A crash between the server's "accepted"
and the next commit sends a mail again, with the same Message-ID.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from clusterscape.services.job_mail.requests import MailRequest, parse_request

KEEP_MS = 30 * DAY_MS
"""How long keys are remembered, so that no file is read twice."""
UNFINISHED_MS = MINUTE_MS
"""A file that is still being written after this was left by a MailProg that was killed."""
_FIRST_RETRY_MS = MINUTE_MS
_LONGEST_RETRY_MS = HOUR_MS
GIVE_UP_MS = 7 * DAY_MS
_SCHEMA = """
CREATE TABLE IF NOT EXISTS request (key TEXT PRIMARY KEY, address TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS seen (key TEXT PRIMARY KEY, at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS mail (
  key TEXT PRIMARY KEY, address TEXT NOT NULL, body BLOB NOT NULL, created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS sent (address TEXT NOT NULL, at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS sent_by_address ON sent (address, at);
"""


@dataclass(frozen=True, slots=True)
class QueuedMail:
    """A mail that waits to be sent; ``body`` is the message as bytes."""

    key: str
    address: str
    body: bytes
    attempts: int
    created_at: UnixMs


class Outbox:
    """The file. Thread-safe; raises StoreError."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        with _errors():
            self._sql = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._sql.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {_SCHEMA}")

    def close(self) -> None:
        """Close the file."""
        self._sql.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _errors():
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                yield self._sql
            except BaseException:
                self._sql.execute("ROLLBACK")
                raise
            self._sql.execute("COMMIT")

    def take_in(self, folder: Path, now: UnixMs) -> tuple[int, int]:
        """Move spooled files into this one; returns how many were read, and how many are damaged and were renamed."""
        count = damaged = 0
        files = (
            sorted(path for path in folder.iterdir() if path.suffix in (".json", ".part")) if folder.is_dir() else []
        )
        for start in range(0, len(files), 500):
            requests, done = [], []
            for path in files[start : start + 500]:
                try:
                    if path.suffix == ".part" and now - path.stat().st_mtime_ns // 1_000_000 < UNFINISHED_MS:
                        continue
                    request = parse_request(path.stem, path.read_bytes())
                except FileNotFoundError:
                    continue
                if request is None:
                    damaged += 1
                    path.rename(path.with_suffix(".damaged"))
                else:
                    requests.append(request)
                    done.append(path)
            self._add(requests, now)
            count += len(requests)
            for path in done:
                path.unlink(missing_ok=True)
        return count, damaged

    def _add(self, requests: Sequence[MailRequest], now: UnixMs) -> None:
        with self._writing() as sql:
            for request in requests:
                if sql.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (request.key, now)).rowcount:
                    body = orjson.dumps(asdict(request)).decode()
                    sql.execute("INSERT INTO request VALUES (?, ?, ?)", (request.key, request.address, body))
            sql.execute("DELETE FROM seen WHERE at < ?", (now - KEEP_MS,))

    def waiting(self) -> dict[str, list[MailRequest]]:
        """All requests by address, oldest first."""
        with self._lock, _errors():
            rows = self._sql.execute("SELECT address, body FROM request ORDER BY key").fetchall()
        by_address: dict[str, list[MailRequest]] = {}
        for address, body in rows:
            by_address.setdefault(address, []).append(MailRequest(**orjson.loads(body)))
        return by_address

    def sent_since(self, address: str, since: UnixMs) -> list[int]:
        """When mails to an address were queued since then, oldest first."""
        with self._lock, _errors():
            rows = self._sql.execute("SELECT at FROM sent WHERE address = ? AND at >= ? ORDER BY at", (address, since))
            return [at for (at,) in rows.fetchall()]

    def queue(
        self, requests: Sequence[MailRequest], mail: bytes | None, *, key: str, address: str, now: UnixMs
    ) -> None:
        """Replace requests by the mail that answers them; None: by nothing, because the user wants none."""
        with self._writing() as sql:
            sql.executemany("DELETE FROM request WHERE key = ?", [(request.key,) for request in requests])
            if mail is not None:
                sql.execute(
                    "INSERT OR IGNORE INTO mail (key, address, body, created_at, next_at) VALUES (?, ?, ?, ?, ?)",
                    (key, address, mail, now, now),
                )
                sql.execute("INSERT INTO sent VALUES (?, ?)", (address, now))
            sql.execute("DELETE FROM sent WHERE at < ?", (now - DAY_MS,))

    def queue_once(self, mail: bytes, *, key: str, address: str, now: UnixMs) -> bool:
        """Queue a mail that no request asked for; False if one of this key was queued before."""
        with self._writing() as sql:
            if not sql.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (key, now)).rowcount:
                return False
            sql.execute(
                "INSERT INTO mail (key, address, body, created_at, next_at) VALUES (?, ?, ?, ?, ?)",
                (key, address, mail, now, now),
            )
        return True

    def was_queued(self, key: str) -> bool:
        """Whether ``queue_once`` has queued a mail of this key."""
        with self._lock, _errors():
            return self._sql.execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone() is not None

    def due(self, now: UnixMs, limit: int = 50) -> list[QueuedMail]:
        """Mails to send now, oldest first."""
        with self._lock, _errors():
            rows = self._sql.execute(
                "SELECT key, address, body, attempts, created_at FROM mail WHERE next_at <= ? ORDER BY next_at, key LIMIT ?",
                (now, limit),
            ).fetchall()
        return [QueuedMail(*row) for row in rows]

    def sent(self, mail: QueuedMail) -> None:
        """Forget a mail that was accepted, or that can never be."""
        with self._writing() as sql:
            sql.execute("DELETE FROM mail WHERE key = ?", (mail.key,))

    def retry(self, mail: QueuedMail, now: UnixMs) -> None:
        """Try a mail again later, with growing pauses."""
        pause = min(_LONGEST_RETRY_MS, _FIRST_RETRY_MS * 2 ** min(mail.attempts, 10))
        with self._writing() as sql:
            sql.execute("UPDATE mail SET attempts = attempts + 1, next_at = ? WHERE key = ?", (now + pause, mail.key))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"the outbox of job mails cannot be written: {error}", hint="Check the disk of storage.data_dir."
        ) from None
