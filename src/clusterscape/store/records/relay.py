"""Tells other processes over the same PostgreSQL what changed, and hears it from them: LISTEN and NOTIFY.

Owns two threads and one connection. What a change means to this process (reading anew, waking pages) is the listener's.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from typing import Any

import orjson
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from clusterscape.errors import StoreError
from clusterscape.store.changes import Changes, Versions
from clusterscape.supervision import BackgroundLoops

log = logging.getLogger(__name__)

CHANNEL = "clusterscape_changes"
RETRY_S = 1.0
HEARD_EVERY_S = 0.5
"""How soon ``close`` is noticed."""

_KNOWN = frozenset(field.name for field in fields(Versions))
_WATCHED = ("inventory", "tick", "rules", "history", "runs")


class ChangeRelay:
    """Joins ``changes`` with those of the other processes.

    ``on_remote`` gets the names of what changed elsewhere, before the numbers are adopted: it makes sure that what is read from
    now on is the new. After a lost connection everything counts as changed. ``collects`` says whether this process is one that
    collects: only those know whether storing is paused.
    """

    def __init__(
        self,
        engine: Engine,
        changes: Changes,
        on_remote: Callable[[frozenset[str], Versions], None],
        *,
        collects: Callable[[], bool],
        loops: BackgroundLoops | None = None,
    ) -> None:
        loops = loops or BackgroundLoops()
        self._sending = loops.loop(
            "changes sent", log, fails="other processes are not notified", works="other processes are notified again"
        )
        self._hearing = loops.loop(
            "changes received",
            log,
            fails="changes of other processes are not heard",
            works="changes of other processes are heard again",
        )
        self._engine = engine
        self._changes = changes
        self._on_remote = on_remote
        self._collects = collects
        self._origin = uuid.uuid4().hex
        self._unsent = threading.Event()
        self._heard: dict[str, Versions] = {}  # the last of each process
        self._is_stopping = False
        self._is_adopting = threading.local()
        self._unlisten = changes.listen(self._on_change)
        self._threads = [
            threading.Thread(target=self._send, name="relay send", daemon=True),
            threading.Thread(target=self._hear, name="relay hear", daemon=True),
        ]

    def start(self) -> None:
        """Begin. Says hello with this process's numbers, which others are never behind of from then on."""
        for thread in self._threads:
            thread.start()
        self._unsent.set()

    def close(self) -> None:
        """End both threads."""
        self._is_stopping = True
        self._unlisten()
        self._unsent.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _on_change(self, _: Versions) -> None:
        if not getattr(self._is_adopting, "now", False):
            self._unsent.set()

    # telling

    def _send(self) -> None:
        while True:
            self._unsent.wait()
            self._unsent.clear()
            if self._is_stopping:
                return
            with self._sending:
                self._notify(self._changes.versions)
            if self._sending.is_failing:
                threading.Event().wait(RETRY_S)
                self._unsent.set()

    def _notify(self, versions: Versions) -> None:
        message = orjson.dumps({"from": self._origin, "collects": self._collects(), **asdict(versions)}).decode()
        try:
            with self._engine.begin() as connection:
                connection.execute(
                    text("SELECT pg_notify(:channel, :message)"), {"channel": CHANNEL, "message": message}
                )
        except SQLAlchemyError as error:
            raise StoreError("PostgreSQL does not answer") from error

    # hearing

    def _hear(self) -> None:
        is_first = True
        while not self._is_stopping:
            with self._hearing, self._listen() as session:
                if not is_first:
                    # What was told meanwhile was not heard.
                    self._take(frozenset(_WATCHED), self._changes.versions)
                    self._unsent.set()
                is_first = False
                self._follow(session)
            if not self._is_stopping:
                threading.Event().wait(RETRY_S)

    @contextmanager
    def _listen(self) -> Iterator[Any]:
        """A session that is notified. Raises StoreError where PostgreSQL is away, or goes away meanwhile."""
        import psycopg

        url = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            with psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=5,
                application_name="clusterscape relay",
                tcp_user_timeout=10_000,
            ) as session:
                session.execute(f"LISTEN {CHANNEL}")
                yield session
        except psycopg.Error as error:
            raise StoreError("PostgreSQL does not answer") from error

    def _follow(self, session: Any) -> None:
        while not self._is_stopping:
            self._hearing.succeed()
            heard = [each.payload for each in session.notifies(timeout=HEARD_EVERY_S)]
            for message in heard:
                self._hear_one(message)
            if not heard:
                session.execute("SELECT 1")  # a server that vanished without a word is noticed

    def _hear_one(self, message: str) -> None:
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            told = orjson.loads(message)
            origin, collects = told["from"], told["collects"]
            if origin == self._origin:
                return
            other = Versions(**{name: value for name, value in told.items() if name in _KNOWN})
            before, now = self._heard.get(origin), self._changes.versions
            self._heard[origin] = other
            changed = frozenset(
                name for name in _WATCHED if before is None or getattr(other, name) > getattr(before, name)
            )
            if not collects or self._collects():
                other = replace(other, paused=now.paused)
            self._take(changed, _ahead(now, other, changed))

    def _take(self, changed: frozenset[str], versions: Versions) -> None:
        try:
            self._on_remote(changed, versions)
        except Exception:
            log.exception("what another process changed could not be taken in")
        self._is_adopting.now = True
        try:
            self._changes.adopt(versions)
        finally:
            self._is_adopting.now = False


def _ahead(now: Versions, other: Versions, changed: frozenset[str]) -> Versions:
    """The numbers to adopt: at least one more than ours for what changed, so that what we have kept counts as old."""
    return replace(other, **{name: max(getattr(now, name) + 1, getattr(other, name)) for name in changed})
