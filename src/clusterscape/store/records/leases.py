"""What a process over one PostgreSQL says to be at work on: a session-level advisory lock for each name, on one connection.

The locks go with their connection, so what a killed process was at is free at once: no clock, nothing to renew by time.
"""

import hashlib
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

# Looking must not hold the lock for even a moment: somebody could want it then.
_IS_HELD = """
SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database AND datname = current_database()
WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = %s
"""


class Leases:
    """Names that this process holds. Thread-safe. Connects when first used; after a lost connection everything is held anew."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._held: set[str] = set()
        self._session: psycopg.Connection[Any] | None = None

    def take(self, name: str) -> bool:
        """Hold ``name``; False where another process does. Where the database is away it is held as soon as it is back."""
        import psycopg

        with self._lock:
            try:
                if name not in self._held and not self._try_lock(self._connected(), name):
                    return False
            except psycopg.Error as error:
                self._lose(error)
            self._held.add(name)
            return True

    def give_back(self, name: str) -> None:
        """Hold ``name`` no more."""
        import psycopg

        with self._lock:
            self._held.discard(name)
            if self._session is not None:
                try:
                    self._session.execute("SELECT pg_advisory_unlock(%s)", [_key(name)])
                except psycopg.Error as error:
                    self._lose(error)

    def is_free(self, name: str) -> bool:
        """Whether no process holds ``name``; False where that cannot be found out now."""
        import psycopg

        with self._lock:
            try:
                row = self._connected().execute(_IS_HELD, [_key(name)]).fetchone()
            except psycopg.Error as error:
                self._lose(error)
                return False
            return name not in self._held and row is None

    def close(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._held.clear()
            self._lose(None)
        self._engine.dispose()

    def _connected(self) -> "psycopg.Connection[Any]":
        import psycopg

        if self._session is not None:
            with suppress(psycopg.Error):
                self._session.execute("SELECT 1")
                return self._session
            self._lose(None)
        url = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        session = psycopg.connect(url, autocommit=True, connect_timeout=5, application_name="clusterscape leases")
        for name in self._held:
            self._try_lock(session, name)
        self._session = session
        return session

    def _try_lock(self, session: "psycopg.Connection[Any]", name: str) -> bool:
        row = session.execute("SELECT pg_try_advisory_lock(%s)", [_key(name)]).fetchone()
        return row is not None and bool(row[0])

    def _lose(self, error: Exception | None) -> None:
        if error is not None:
            log.debug("leases cannot be told apart now: %s", error)
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"lease {name}".encode(), digest_size=8).digest(), "big", signed=True)
