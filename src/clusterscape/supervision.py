"""Supervised loops: background work that goes on after any exception, and says whether it fails now, how often and why.

Owns counting and logging of failures. What a loop does, and when, is its owner's matter.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType

from clusterscape.errors import ClusterScapeError, Trouble
from clusterscape.model.identity_fields import OperatorOnly, PublicText

RESTART_S = 5.0
"""Pause before work that ended with an exception is begun again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """A background loop. ``error``: the class of its last error, ``problem`` its message; both null while it works."""

    loop: PublicText
    failures: int
    failing_since: int | None
    error: PublicText | None
    problem: OperatorOnly | None


class SupervisedLoop:
    """``with loop:`` around one round: an exception is counted and logged once, and does not leave the block.

    Cancellation and exit pass. Rounds of one loop do not overlap; ``state`` may be read by any thread.
    """

    def __init__(self, name: str, trouble: Trouble) -> None:
        self._name = name
        self._trouble = trouble
        self._state = LoopState(loop=name, failures=0, failing_since=None, error=None, problem=None)

    @property
    def state(self) -> LoopState:
        """How it is now."""
        return self._state

    @property
    def is_failing(self) -> bool:
        """Whether the last round failed."""
        return self._state.error is not None

    def __enter__(self) -> "SupervisedLoop":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            self.succeed()
            return False
        if not isinstance(error, Exception):
            return False
        self._fail(error)
        return True

    def succeed(self) -> None:
        """It works: called by the block's end, and within a block that does not end while all is well."""
        if self.is_failing:
            failures = self._state.failures
            self._state = LoopState(loop=self._name, failures=failures, failing_since=None, error=None, problem=None)
        self._trouble.end()

    def _fail(self, error: Exception) -> None:
        before = self._state
        self._state = LoopState(
            loop=self._name,
            failures=before.failures + 1,
            failing_since=before.failing_since or time.time_ns() // 1_000_000,
            error=type(error).__name__,
            # The text of an unexpected exception may hold anything, such as a path or a name: it is for the log.
            problem=error.public_message
            if isinstance(error, ClusterScapeError)
            else "unexpected; the server's log says more",
        )
        self._trouble.tell(error)


class BackgroundLoops:
    """All supervised loops of a process. Thread-safe."""

    def __init__(self) -> None:
        self._loops: dict[str, SupervisedLoop] = {}
        self._lock = threading.Lock()

    def loop(self, name: str, log: logging.Logger, *, fails: str, works: str) -> SupervisedLoop:
        """The loop of this name. ``fails``: "rules could not be judged"; ``works``: "rules are judged again"."""
        with self._lock:
            return self._loops.setdefault(name, SupervisedLoop(name, Trouble(log, fails, works)))

    def states(self) -> list[LoopState]:
        """Of every loop, by name."""
        with self._lock:
            loops = sorted(self._loops.items())
        return [loop.state for _, loop in loops]

    def failing(self) -> list[LoopState]:
        """Of those whose last round failed."""
        return [state for state in self.states() if state.error is not None]


async def keep_running(
    loop: SupervisedLoop, work: Callable[[], Awaitable[None]], *, restart_s: float = RESTART_S
) -> None:
    """Await ``work`` until it ends by itself or is cancelled; after an exception it is begun again."""
    while True:
        settled = asyncio.get_running_loop().call_later(restart_s, loop.succeed)
        try:
            with loop:
                await work()
                return
        finally:
            settled.cancel()
        await asyncio.sleep(restart_s)
