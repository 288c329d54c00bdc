"""Versions of the stored data: writers increment them; readers use them as cache keys and wait for the next one."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from clusterscape.model import UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """``inventory`` changes with nodes, workloads and allocations; ``tick`` with every stored scrape; ``rules`` with every
    evaluation that changes a violation, and with every change of a rule; ``history`` with samples of the past; ``runs`` with
    every piece of a tracked run that was stored.
    """

    inventory: int = 0
    tick: int = 0
    rules: int = 0
    history: int = 0
    runs: int = 0
    history_at: UnixMs | None = None  # last arrival of samples of the past
    newest_sample_at: UnixMs | None = None
    paused: str | None = None  # why ingest is paused


class Changes:
    """The current versions. Thread-safe; listeners are called in the writer's thread and must return at once."""

    def __init__(self, *, first: int = 1) -> None:
        # A start value that increases between server starts, so that a client's cached version never matches a new process.
        self._versions = Versions(inventory=first, tick=first, rules=first, runs=first)
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Versions], None]] = []

    @property
    def versions(self) -> Versions:
        """The versions now."""
        return self._versions

    def listen(self, listener: Callable[[Versions], None]) -> Callable[[], None]:
        """Call ``listener`` on every change; returns a function that unsubscribes."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def bump_inventory(self) -> None:
        """Nodes, workloads or allocations changed."""
        self._update(lambda now: replace(now, inventory=now.inventory + 1))

    def bump_tick(self, newest_sample_at: UnixMs) -> None:
        """New samples are readable."""
        self._update(
            lambda now: replace(
                now, tick=now.tick + 1, newest_sample_at=max(newest_sample_at, now.newest_sample_at or newest_sample_at)
            )
        )

    def bump_history(self, at: UnixMs) -> None:
        """Samples of the past were added: earlier reads of it are outdated."""
        self._update(lambda now: replace(now, history=now.history + 1, history_at=at))

    def bump_rules(self) -> None:
        """Rules or violations changed."""
        self._update(lambda now: replace(now, rules=now.rules + 1))

    def adopt(self, other: Versions) -> None:
        """Advance to the versions of another process over the same stores."""
        self._update(lambda now: _later(now, other))

    def bump_runs(self) -> None:
        """A tracked run changed."""
        self._update(lambda now: replace(now, runs=now.runs + 1))

    def pause(self, why: str | None) -> None:
        """Ingest is paused because of ``why``; None: it runs."""
        if self._versions.paused != why:
            self._update(lambda now: replace(now, paused=why))

    def _update(self, change: Callable[[Versions], Versions]) -> None:
        with self._lock:
            self._versions = change(self._versions)
            versions, listeners = self._versions, tuple(self._listeners)
        for listener in listeners:
            listener(versions)


def _later(now: Versions, other: Versions) -> Versions:
    def newest(first: UnixMs | None, second: UnixMs | None) -> UnixMs | None:
        return max((at for at in (first, second) if at is not None), default=None)

    return Versions(
        inventory=max(now.inventory, other.inventory),
        tick=max(now.tick, other.tick),
        rules=max(now.rules, other.rules),
        history=max(now.history, other.history),
        runs=max(now.runs, other.runs),
        history_at=newest(now.history_at, other.history_at),
        newest_sample_at=newest(now.newest_sample_at, other.newest_sample_at),
        paused=other.paused,
    )
