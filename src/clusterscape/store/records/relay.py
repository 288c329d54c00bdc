"""Exchanges change notifications between processes over the same PostgreSQL: LISTEN and NOTIFY.

Owns two threads and one connection. The listener decides what a change means (reloading, notifying clients).
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
POLL_INTERVAL_S = 0.5
"""Interval at which ``close`` is checked."""

_FIELDS = frozenset(field.name for field in fields(Versions))
_WATCHED = ("inventory", "tick", "rules", "history", "runs")


class ChangeRelay:
    """Synchronizes ``changes`` with other processes.

    ``on_remote`` gets the names of what changed elsewhere before the versions are adopted, so that later reads see the new data.
    After a lost connection everything counts as changed. ``collects``: whether this process collects; only collectors know
    whether ingest is paused.
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
        self._receiving = loops.loop(
            "changes received",
            log,
            fails="changes of other processes are not received",
            works="changes of other processes are received again",
        )
        self._engine = engine
        self._changes = changes
        self._on_remote = on_remote
        self._collects = collects
        self._origin = uuid.uuid4().hex
        self._unsent = threading.Event()
        self._remote: dict[str, Versions] = {}  # the latest of each process
        self._is_stopping = False
        self._is_adopting = threading.local()
        self._unlisten = changes.listen(self._on_change)
        self._threads = [
            threading.Thread(target=self._send, name="relay send", daemon=True),
            threading.Thread(target=self._receive, name="relay hear", daemon=True),
        ]

    def start(self) -> None:
        """Start the threads, and announce this process's versions to the others."""
        for thread in self._threads:
            thread.start()
        self._unsent.set()

    def close(self) -> None:
        """Stop both threads."""
        self._is_stopping = True
        self._unlisten()
        self._unsent.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _on_change(self, _: Versions) -> None:
        if not getattr(self._is_adopting, "now", False):
            self._unsent.set()

    # sending

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

    # receiving

    def _receive(self) -> None:
        is_first = True
        while not self._is_stopping:
            with self._receiving, self._listen() as session:
                if not is_first:
                    # Notifications during the outage were lost.
                    self._apply(frozenset(_WATCHED), self._changes.versions)
                    self._unsent.set()
                is_first = False
                self._follow(session)
            if not self._is_stopping:
                threading.Event().wait(RETRY_S)

    @contextmanager
    def _listen(self) -> Iterator[Any]:
        """A listening session. Raises StoreError if PostgreSQL is unreachable or the connection is lost."""
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
            self._receiving.succeed()
            messages = [notification.payload for notification in session.notifies(timeout=POLL_INTERVAL_S)]
            for message in messages:
                self._handle(message)
            if not messages:
                session.execute("SELECT 1")  # detects a lost connection

    def _handle(self, message: str) -> None:
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            notice = orjson.loads(message)
            origin, collects = notice["from"], notice["collects"]
            if origin == self._origin:
                return
            other = Versions(**{name: value for name, value in notice.items() if name in _FIELDS})
            before, now = self._remote.get(origin), self._changes.versions
            self._remote[origin] = other
            changed = frozenset(
                name for name in _WATCHED if before is None or getattr(other, name) > getattr(before, name)
            )
            if not collects or self._collects():
                other = replace(other, paused=now.paused)
            self._apply(changed, _ahead(now, other, changed))

    def _apply(self, changed: frozenset[str], versions: Versions) -> None:
        try:
            self._on_remote(changed, versions)
        except Exception:
            log.exception("failed to apply a change of another process")
        self._is_adopting.now = True
        try:
            self._changes.adopt(versions)
        finally:
            self._is_adopting.now = False


def _ahead(now: Versions, other: Versions, changed: frozenset[str]) -> Versions:
    """The versions to adopt: at least one more than ours for what changed, so that our caches are outdated."""
    return replace(other, **{name: max(getattr(now, name) + 1, getattr(other, name)) for name in changed})
