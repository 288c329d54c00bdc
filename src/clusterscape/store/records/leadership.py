"""Which of several processes over one PostgreSQL collects: a session-level advisory lock on a connection of its own.

The lock goes with its connection, so a killed process loses it at once. Each holder has a number, higher than all before; every
writing transaction of a holder checks it, so one that has been cut off and does not know it yet cannot write either.
"""

import hashlib
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, text

from clusterscape.errors import StoreError
from clusterscape.store.records.faults import explained

if TYPE_CHECKING:
    import psycopg

KIND = "leader"
"""Of the documents that hold the numbers, one for each lock."""

ALL = "collectors"
"""The lock that every collector shares, whatever its shard, and that one who moves the site has alone."""

# A cut-off holder must notice (check, then this) before the server gives its lock away (the keep-alives below).
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
    """Lets writes pass while this process does not collect, or still is the one that does."""

    def __init__(self) -> None:
        self._held: tuple[str, int] | None = None

    def raise_to(self, name: str, number: int) -> None:
        """From now on writes need ``number`` to be the newest holder's."""
        self._held = (name, number)

    def lower(self) -> None:
        """This process collects no more: what people write passes."""
        self._held = None

    def check(self, connection: Connection) -> None:
        """Raise StoreError, so that the transaction is undone, where another process collects by now."""
        if self._held is None:
            return
        name, number = self._held
        found = connection.execute(_FIND, {"kind": KIND, "key": name}).scalar()
        if found != str(number):
            raise StoreError("another process has begun to collect", hint="Nothing to do: this one stops by itself.")


class Leadership:
    """The lock ``name``. Called by one thread at a time, but ``is_held`` by any."""

    def __init__(self, engine: Engine, name: str, fence: Fence) -> None:
        self._engine = engine
        self._name = name
        self._fence = fence
        self._key = _key(name)
        self._session: psycopg.Connection[Any] | None = None
        self.trouble: str | None = None
        """Why it could not even be tried to take the lock; None where somebody simply has it."""

    @property
    def is_held(self) -> bool:
        """Whether it was held at the last look."""
        return self._session is not None

    def try_take(self) -> bool:
        """Take the lock where nobody has it; False where somebody does, somebody moves the site, or the server is away."""
        import psycopg

        if self._session is not None:
            return True
        self.trouble = None
        session: psycopg.Connection[Any] | None = None
        try:
            session = self._connect()
            if not _locks(session, self._key):
                session.close()
                return False
            if not _locks(session, _key(ALL), is_shared=True):
                session.close()
                self.trouble = "the site is being moved elsewhere (clusterscape migrate): collecting waits"
                return False
            self._fence.raise_to(self._name, self._next_number())
        except (psycopg.Error, StoreError) as error:
            self.trouble = " ".join(str(error).split())
            if session is not None:
                _close(session)
            return False
        self._session = session
        return True

    def try_take_all(self) -> bool:
        """Keep everybody from collecting, whatever their shard, until ``release``; False where somebody does."""
        import psycopg

        self.trouble = None
        try:
            session = self._connect()
            if _locks(session, _key(ALL)):
                self._session = session
                return True
            session.close()
        except psycopg.Error as error:
            self.trouble = " ".join(str(error).split())
        return False

    def wait(self, timeout_s: float) -> bool:
        """Whether the lock is still held after ``timeout_s``; returns at once when the connection breaks."""
        session = self._session
        if session is None:
            return False
        import psycopg

        try:
            # Nothing is ever sent here unasked: what comes is the end of the connection.
            for _ in session.notifies(timeout=timeout_s):
                pass
            session.execute("SELECT 1")
        except psycopg.Error:
            self._session = None
            _close(session)
            return False
        return True

    def release(self) -> None:
        """Let another process take it, now. What this one still writes is not held back any more."""
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

    def _next_number(self) -> int:
        at = time.time_ns() // 1_000_000
        # As a writer: whoever wrote before has committed, whoever writes later finds the new number.
        with explained("the election"), self._engine.execution_options(writes=True).begin() as connection:
            return int(connection.execute(_RAISE, {"kind": KIND, "key": self._name, "at": at}).scalar_one())


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def _locks(session: "psycopg.Connection[Any]", key: int, *, is_shared: bool = False) -> bool:
    row = session.execute(_LOCK_SHARED if is_shared else _LOCK, [key]).fetchone()
    return row is not None and bool(row[0])


def _close(session: "psycopg.Connection[Any]") -> None:
    with suppress(Exception):
        session.close()
