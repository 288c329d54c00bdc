"""A clock for one run: wall time at its start, then the monotonic clock, so that a wall clock set back changes no order."""

import time


class SteadyClock:
    """Microseconds since 1970 that never go back. ``anchor_ns`` is shared by all processes of a run on one machine."""

    __slots__ = ("anchor_ns",)

    def __init__(self, anchor_ns: int | None = None) -> None:
        self.anchor_ns = time.time_ns() - time.monotonic_ns() if anchor_ns is None else anchor_ns

    def now_us(self) -> int:
        """Now."""
        return (time.monotonic_ns() + self.anchor_ns) // 1000

    def now_ms(self) -> int:
        """Now, as records have it."""
        return self.now_us() // 1000
