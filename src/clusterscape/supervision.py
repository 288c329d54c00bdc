"""Supervised loops: background work that continues after exceptions and reports whether, how often and why it fails.

Counts and logs failures; the owner of a loop defines its work and schedule.
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
"""Pause before work is restarted after an exception."""

CANCEL_AGAIN_S = 15.0
"""Longer than any clean-up of a loop takes, which a second cancellation would interrupt."""


async def cancel_and_wait(*tasks: "asyncio.Task[None]", again_s: float = CANCEL_AGAIN_S) -> None:
    """Cancel tasks and wait until all have ended; their exceptions are not raised.

    Tasks that continue are cancelled again: aiohttp reports a cancellation that coincides with a timeout as TimeoutError,
    which a loop that retries survives.
    """
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=again_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """A background loop. ``error``: the class of its last error, ``problem`` its message; both null while it works."""

    loop: PublicText
    failures: int
    failing_since: int | None
    error: PublicText | None
    problem: OperatorOnly | None


class SupervisedLoop:
    """``with loop:`` around one iteration: an exception is counted, logged once and suppressed.

    Cancellation and exit propagate. Iterations of one loop do not overlap; ``state`` may be read by any thread.
    """

    def __init__(self, name: str, trouble: Trouble) -> None:
        self._name = name
        self._trouble = trouble
        self._state = LoopState(loop=name, failures=0, failing_since=None, error=None, problem=None)

    @property
    def state(self) -> LoopState:
        """The current state."""
        return self._state

    @property
    def is_failing(self) -> bool:
        """Whether the last iteration failed."""
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
        """Report success: called at the end of the block, and within a block that runs as long as it works."""
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
            # The message of an unexpected exception may contain paths or names, so it is only logged.
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
        """States of all loops, by name."""
        with self._lock:
            loops = sorted(self._loops.items())
        return [loop.state for _, loop in loops]

    def failing(self) -> list[LoopState]:
        """States of the loops whose last iteration failed."""
        return [state for state in self.states() if state.error is not None]


async def keep_running(
    loop: SupervisedLoop, work: Callable[[], Awaitable[None]], *, restart_s: float = RESTART_S
) -> None:
    """Await ``work`` until it returns or is cancelled; restart it after an exception."""
    while True:
        settled = asyncio.get_running_loop().call_later(restart_s, loop.succeed)
        try:
            with loop:
                await work()
                return
        finally:
            settled.cancel()
        await asyncio.sleep(restart_s)
