"""The time by which things are old enough to be removed: the machine's clock, but no sudden leap of it into the future.

Says once that the clock jumped. What is stored carries the clock's own time; that is not decided here.
"""

import logging
import threading
import time
from collections.abc import Callable

from clusterscape.model import UnixMs
from clusterscape.model.quantities import format_duration

log = logging.getLogger(__name__)

JUMP_MS = 60_000
"""Between two looks; less is a clock that is being set right little by little."""
BELIEVED_AFTER_MS = 86_400_000
"""A clock that is still ahead after a day is right, and the one before was wrong."""


def time_since_boot_ms() -> int:
    """Goes on evenly, also while the machine sleeps."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class SteadyClock:
    """Compares ``clock`` with ``elapsed``, which never jumps. May be asked by any thread."""

    def __init__(self, clock: Callable[[], UnixMs], elapsed: Callable[[], int] = time_since_boot_ms) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._offset_ms = clock() - elapsed()
        self._ahead_since_ms: int | None = None

    def now(self) -> UnixMs:
        """The clock's time; after a jump forward, the time that it would have had without, for a day."""
        with self._lock:
            elapsed_ms = self._elapsed()
            ahead_ms = self._clock() - elapsed_ms - self._offset_ms
            if abs(ahead_ms) <= JUMP_MS:
                if self._ahead_since_ms is not None:
                    log.warning("this machine's clock is back where it was before it jumped")
                self._follow(ahead_ms)
            elif ahead_ms < 0:
                log.warning(
                    "this machine's clock jumped back by %s; what is stored now lies before what was stored last",
                    format_duration(-ahead_ms / 1000),
                )
                self._follow(ahead_ms)
            elif self._ahead_since_ms is None:
                log.warning(
                    "this machine's clock jumped forward by %s; nothing is removed for its age until it has stayed so for a day",
                    format_duration(ahead_ms / 1000),
                )
                self._ahead_since_ms = elapsed_ms
            elif elapsed_ms - self._ahead_since_ms > BELIEVED_AFTER_MS:
                self._follow(ahead_ms)
            return UnixMs(elapsed_ms + self._offset_ms)

    def _follow(self, ahead_ms: int) -> None:
        self._offset_ms += ahead_ms
        self._ahead_since_ms = None
