"""The clock for retention: the machine's clock, but without sudden jumps forward, which would delete data too early.

Logs every jump once. Stored samples keep the time of the machine's clock.
"""

import logging
import threading
import time
from collections.abc import Callable

from clusterscape.model import UnixMs
from clusterscape.model.quantities import format_duration

log = logging.getLogger(__name__)

JUMP_MS = 60_000
"""Minimum difference between two checks; smaller differences are gradual clock adjustments."""
ACCEPTED_AFTER_MS = 86_400_000
"""A jump that lasts for a day is accepted: the clock was wrong before."""


def time_since_boot_ms() -> int:
    """Time since boot, including suspend; never jumps."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class SteadyClock:
    """Compares ``clock`` with ``elapsed``, which never jumps. Thread-safe."""

    def __init__(self, clock: Callable[[], UnixMs], elapsed: Callable[[], int] = time_since_boot_ms) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._offset_ms = clock() - elapsed()
        self._ahead_since_ms: int | None = None

    def now(self) -> UnixMs:
        """The clock's time; for a day after a jump forward, the time without the jump."""
        with self._lock:
            elapsed_ms = self._elapsed()
            ahead_ms = self._clock() - elapsed_ms - self._offset_ms
            if abs(ahead_ms) <= JUMP_MS:
                if self._ahead_since_ms is not None:
                    log.warning("the system clock is back to its time before the jump")
                self._follow(ahead_ms)
            elif ahead_ms < 0:
                log.warning(
                    "the system clock jumped back by %s; new samples are older than the last stored samples",
                    format_duration(round(-ahead_ms / 1000)),
                )
                self._follow(ahead_ms)
            elif self._ahead_since_ms is None:
                log.warning(
                    "the system clock jumped forward by %s; retention is paused until the jump has lasted for a day",
                    format_duration(round(ahead_ms / 1000)),
                )
                self._ahead_since_ms = elapsed_ms
            elif elapsed_ms - self._ahead_since_ms > ACCEPTED_AFTER_MS:
                self._follow(ahead_ms)
            return UnixMs(elapsed_ms + self._offset_ms)

    def _follow(self, ahead_ms: int) -> None:
        self._offset_ms += ahead_ms
        self._ahead_since_ms = None
