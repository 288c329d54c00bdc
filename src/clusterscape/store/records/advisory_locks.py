"""Leader election of collectors, and leases, by session-level advisory locks of PostgreSQL.

A lock ends with its connection, so locks of a killed process are free at once, without clocks or renewal. Every collector has a
fencing token, higher than all before; each of its writing transactions checks that token, so a collector that lost its lock
without noticing cannot write.
"""

import hashlib
import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, text

from clusterscape.errors import StoreError
from clusterscape.store.records.engines import database_errors

if TYPE_CHECKING:
    import psycopg


KIND = "leader"
"""Document kind: the latest fencing token of each lock."""

ALL = "collectors"
"""The lock that all collectors share, and that ``clusterscape migrate`` holds exclusively."""

# A disconnected holder must notice it (check, then this timeout) before the server releases its lock (keepalives below).
ANSWER_TIMEOUT_MS = 4_000
SESSION_SETTINGS = {"tcp_keepalives_idle": 5, "tcp_keepalives_interval": 2, "tcp_keepalives_count": 3}

_LOCK = "SELECT pg_try_advisory_lock(%s)"
_LOCK_SHARED = "SELECT pg_try_advisory_lock_shared(%s)"
_FIND = text("SELECT body FROM documents WHERE kind = :kind AND key = :key")
_RAISE = text(
    "INSERT INTO documents (kind, key, body, written_at) VALUES (:kind, :key, '1', :at) "
    "ON CONFLICT (kind, key) DO UPDATE SET body = CAST(CAST(documents.body AS BIGINT) + 1 AS TEXT), written_at = :at "
    "RETURNING body"
)


class Fence:
    """Rejects writes of a collector whose fencing token is outdated. Allows all writes while this process does not collect."""

    def __init__(self) -> None:
        self._held: tuple[str, int] | None = None

    def raise_to(self, name: str, number: int) -> None:
        """From now on writes require that ``number`` is the latest token of ``name``."""
        self._held = (name, number)

    def lower(self) -> None:
        """This process no longer collects: allow all writes."""
        self._held = None

    def check(self, connection: Connection) -> None:
        """Raise StoreError, which rolls the transaction back, if another process collects now."""
        if self._held is None:
            return
        name, number = self._held
        latest = connection.execute(_FIND, {"kind": KIND, "key": name}).scalar()
        if latest != str(number):
            raise StoreError(
                "another process collects now", hint="No action needed: this process stops collecting by itself."
            )


class Leadership:
    """The lock ``name``. For one thread at a time, except ``is_held``."""

    def __init__(self, engine: Engine, name: str, fence: Fence) -> None:
        self._engine = engine
        self._name = name
        self._fence = fence
        self._key = _key(name)
        self._session: psycopg.Connection[Any] | None = None
        self.trouble: str | None = None
        """Why the lock could not be tried; None if another process holds it."""

    @property
    def is_held(self) -> bool:
        """Whether it was held at the last check."""
        return self._session is not None

    def try_acquire(self) -> bool:
        """Acquire the lock; False if another process holds it, the site is being moved, or PostgreSQL is unreachable."""
        import psycopg

        if self._session is not None:
            return True
        self.trouble = None
        session: psycopg.Connection[Any] | None = None
        try:
            session = self._connect()
            if not _try_lock_key(session, self._key):
                session.close()
                return False
            if not _try_lock_key(session, _key(ALL), is_shared=True):
                session.close()
                self.trouble = "the site is being moved (clusterscape migrate): collecting waits"
                return False
            self._fence.raise_to(self._name, self._next_token())
        except (psycopg.Error, StoreError) as error:
            self.trouble = " ".join(str(error).split())
            if session is not None:
                _close(session)
            return False
        self._session = session
        return True

    def try_acquire_all(self) -> bool:
        """Block all collectors until ``release``; False if one is running."""
        import psycopg

        self.trouble = None
        try:
            session = self._connect()
            if _try_lock_key(session, _key(ALL)):
                self._session = session
                return True
            session.close()
        except psycopg.Error as error:
            self.trouble = " ".join(str(error).split())
        return False

    def wait(self, timeout_s: float) -> bool:
        """Wait for ``timeout_s``; returns whether the lock is still held, at once if the connection is lost."""
        session = self._session
        if session is None:
            return False
        import psycopg

        try:
            # No notifications are expected: this returns early only when the connection ends.
            for _ in session.notifies(timeout=timeout_s):
                pass
            session.execute("SELECT 1")
        except psycopg.Error:
            self._session = None
            _close(session)
            return False
        return True

    def release(self) -> None:
        """Release the lock, and stop fencing the writes of this process."""
        session, self._session = self._session, None
        self._fence.lower()
        if session is not None:
            _close(session)

    def _connect(self) -> "psycopg.Connection[Any]":
        import psycopg

        url = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        settings = " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items())
        return psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=5,
            application_name=f"clusterscape {self._name}",
            tcp_user_timeout=ANSWER_TIMEOUT_MS,
            options=settings,
        )

    def _next_token(self) -> int:
        at = time.time_ns() // 1_000_000
        # Under the writer lock: earlier writes are committed, and later ones see the new token.
        with database_errors("the election"), self._engine.execution_options(writes=True).begin() as connection:
            return int(connection.execute(_RAISE, {"kind": KIND, "key": self._name, "at": at}).scalar_one())


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def _try_lock_key(session: "psycopg.Connection[Any]", key: int, *, is_shared: bool = False) -> bool:
    row = session.execute(_LOCK_SHARED if is_shared else _LOCK, [key]).fetchone()
    return row is not None and bool(row[0])


def _close(session: "psycopg.Connection[Any]") -> None:
    with suppress(Exception):
        session.close()


log = logging.getLogger(__name__)

# Checks without acquiring the lock, which would block another process for a moment.
_IS_HELD = """
SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database AND datname = current_database()
WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = %s
"""


class Leases:
    """Named locks of this process. Thread-safe. Connects on first use; acquires everything again after a lost connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._held: set[str] = set()
        self._session: psycopg.Connection[Any] | None = None

    def acquire(self, name: str) -> bool:
        """Acquire ``name``; False if another process holds it. If the database is unreachable, it is acquired on reconnect."""
        import psycopg

        with self._lock:
            try:
                if name not in self._held and not self._try_lock(self._connected(), name):
                    return False
            except psycopg.Error as error:
                self._disconnect(error)
            self._held.add(name)
            return True

    def release(self, name: str) -> None:
        """Release ``name``."""
        import psycopg

        with self._lock:
            self._held.discard(name)
            if self._session is not None:
                try:
                    self._session.execute("SELECT pg_advisory_unlock(%s)", [_lease_key(name)])
                except psycopg.Error as error:
                    self._disconnect(error)

    def is_free(self, name: str) -> bool:
        """Whether no process holds ``name``; False if the database is unreachable."""
        import psycopg

        with self._lock:
            try:
                row = self._connected().execute(_IS_HELD, [_lease_key(name)]).fetchone()
            except psycopg.Error as error:
                self._disconnect(error)
                return False
            return name not in self._held and row is None

    def close(self) -> None:
        """Release everything."""
        with self._lock:
            self._held.clear()
            self._disconnect(None)
        self._engine.dispose()

    def _connected(self) -> "psycopg.Connection[Any]":
        import psycopg

        if self._session is not None:
            with suppress(psycopg.Error):
                self._session.execute("SELECT 1")
                return self._session
            self._disconnect(None)
        url = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        session = psycopg.connect(url, autocommit=True, connect_timeout=5, application_name="clusterscape leases")
        for name in self._held:
            self._try_lock(session, name)
        self._session = session
        return session

    def _try_lock(self, session: "psycopg.Connection[Any]", name: str) -> bool:
        row = session.execute("SELECT pg_try_advisory_lock(%s)", [_lease_key(name)]).fetchone()
        return row is not None and bool(row[0])

    def _disconnect(self, error: Exception | None) -> None:
        if error is not None:
            log.debug("leases are unavailable: %s", error)
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()


def _lease_key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"lease {name}".encode(), digest_size=8).digest(), "big", signed=True)
