"""Decides which stretch of accounting to read next: the past once, newest first, then small increments. Pure."""

import itertools

from clusterscape.model import UnixMs

WINDOW_S = 6 * 3600
"""A day of a large cluster's accounting as JSON would fill hundreds of megabytes."""

INCREMENT_S = 300
OVERLAP_S = 900
"""Accounting arrives late: slurmctld keeps records while slurmdbd is away, and sends them in bulk."""

AHEAD_S = 60
"""Asked for beyond a window's end: jobs of this very second, and of a controller whose clock is ahead."""

RETRY_S = 60

SETTLE_S = 10
"""After an end that the queue did not report: slurmctld sends its record to slurmdbd a little later."""

MIN_INCREMENT_S = 60
"""Between two increments, however many jobs are requeued."""

Window = tuple[int, int]
"""[start, end) in Unix seconds."""


class HistoryWindows:
    """Asked for the next window and told how it went; a failed one is asked for again after a while."""

    def __init__(self, history_days: float) -> None:
        self._history_s = round(history_days * 86_400)
        self._backlog: list[Window] | None = None if self._history_s else []
        self._read_until_s = 0
        self._not_before_s = 0
        self._is_urgent = False
        self._due_s: int | None = None

    def hasten(self) -> None:
        """The queue was away, and only accounting knows what ended meanwhile: do not wait for the next increment."""
        self._is_urgent, self._not_before_s = True, 0

    def expect_record(self, now_ms: UnixMs) -> None:
        """An execution ended and only accounting knows when: read the next increment as soon as its record can be there."""
        if self._due_s is None:
            self._due_s = max(now_ms // 1000 + SETTLE_S, self._read_until_s + MIN_INCREMENT_S)

    def next_window(self, now_ms: UnixMs) -> Window | None:
        """What to read now, or None."""
        now_s = now_ms // 1000
        # Where the clock went back, what was read or planned is of a time that has yet to come.
        if now_s < self._read_until_s - OVERLAP_S:
            self._read_until_s = now_s
        if now_s < self._not_before_s - RETRY_S:
            self._not_before_s = 0
        if self._due_s is not None and now_s < self._due_s - MIN_INCREMENT_S:
            self._due_s = now_s
        if not self._history_s or now_s < self._not_before_s:
            return None
        if self._backlog is None:
            self._backlog = _split(now_s - self._history_s, now_s)
            self._read_until_s = now_s
        is_due = self._due_s is not None and now_s >= self._due_s
        if self._is_urgent or is_due or now_s - self._read_until_s >= INCREMENT_S:
            return (self._read_until_s - OVERLAP_S, now_s)
        return self._backlog[-1] if self._backlog else None

    def succeeded(self, window: Window) -> None:
        """The window was read."""
        if self._backlog and window == self._backlog[-1]:
            self._backlog.pop()
        else:
            self._read_until_s = max(self._read_until_s, window[1])
            self._is_urgent = False
            if self._due_s is not None and window[1] >= self._due_s:
                self._due_s = None

    def failed(self, now_ms: UnixMs) -> None:
        """The window could not be read."""
        self._not_before_s = now_ms // 1000 + RETRY_S


def _split(start_s: int, end_s: int) -> list[Window]:
    """Windows from start to end, the oldest first: they are taken from the back."""
    edges = [*range(end_s, start_s, -WINDOW_S), start_s]
    return [(earlier, later) for later, earlier in itertools.pairwise(edges)][::-1]
