"""One append-only file of a run: events are written at once, samples in batches several times per second; and the clock of the
run: wall time at its start plus the monotonic clock, so that changes of the wall clock have no effect.

Handles buffering, full disks and redaction. The format of frames is defined in ``model.run_frames``.
"""

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from clusterscape.model.run_frames import NO_STEP, SampleMethod, SampleScope, encode_event, encode_samples
from clusterscape.track.redaction import Redactor


class RunClock:
    """Microseconds since 1970 that never go back. ``anchor_ns`` is shared by all processes of a run on one machine."""

    __slots__ = ("anchor_ns",)

    def __init__(self, anchor_ns: int | None = None) -> None:
        self.anchor_ns = time.time_ns() - time.monotonic_ns() if anchor_ns is None else anchor_ns

    def now_us(self) -> int:
        """Now."""
        return (time.monotonic_ns() + self.anchor_ns) // 1000

    def now_ms(self) -> int:
        """Now, in Unix ms."""
        return self.now_us() // 1000


FLUSH_EVERY_S = 0.25
MOST_WAITING = 2_000_000
"""Most samples in memory; further ones are dropped and counted."""
MOST_IN_FRAME = 100_000

SeriesKey = tuple[str, str | None, str, str]
_Row = tuple[int, int, "str | SeriesKey", float]


class Spool:
    """A file that only this process appends to. ``add`` and ``sample`` never block and never raise for the disk.

    Events and names of series pass ``redactor`` before they are written.
    """

    def __init__(self, path: Path, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor(os.environ)
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._good_bytes = os.fstat(self._fd).st_size
        self._rows: deque[_Row] = deque()
        self._codes: dict[str | SeriesKey, int] = {}
        self._write_lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closing = False
        self._dropped = 0
        self._is_full = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Write samples in the background from now on."""
        self._thread = threading.Thread(target=self._run, name=f"spool {self._path.name}", daemon=True)
        self._thread.start()

    def event(self, event: str, **fields: object) -> bool:
        """Write an event now; returns whether that succeeded."""
        frame = encode_event({"event": event, **self._redactor.fields(fields)})
        with self._write_lock:
            return self._write(frame)

    def add(self, time_us: int, step: int | None, metrics: Mapping[str, float]) -> None:
        """Add an event of the script."""
        rows = self._rows
        if len(rows) >= MOST_WAITING:
            self._dropped += len(metrics)
            return
        stored_step = NO_STEP if step is None else step
        for name, value in metrics.items():
            rows.append((time_us, stored_step, name, value))

    def sample(
        self,
        time_us: int,
        name: str,
        value: float,
        *,
        unit: str | None = None,
        scope: SampleScope = SampleScope.TREE,
        method: SampleMethod = SampleMethod.MEASURED,
    ) -> None:
        """Add a sample of a listener; ``unit`` None is the run itself."""
        if len(self._rows) < MOST_WAITING:
            self._rows.append((time_us, NO_STEP, (name, unit, scope, method), value))
        else:
            self._dropped += 1

    def flush(self) -> None:
        """Write buffered data; it stays buffered if the write fails."""
        with self._write_lock:
            while self._rows:
                rows = [self._rows.popleft() for _ in range(min(len(self._rows), MOST_IN_FRAME))]
                if not self._write(self._encode(rows)):
                    self._rows.extendleft(reversed(rows))
                    return
            if self._dropped and self._write(encode_event({"event": "dropped", "samples": self._dropped})):
                self._dropped = 0

    def close(self) -> None:
        """Write everything and sync it."""
        self._is_closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()
        if self._rows:
            _print_error(
                f"clusterscape: the disk is full: {len(self._rows):,} samples of {self._path.parent.name} are lost"
            )
        with contextlib.suppress(OSError):
            os.fsync(self._fd)
        os.close(self._fd)

    def abandon(self) -> None:
        """Close without writing: after a fork, the file belongs to the other process."""
        self._rows.clear()
        os.close(self._fd)

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(FLUSH_EVERY_S)
            self.flush()

    def _encode(self, rows: list[_Row]) -> bytes:
        codes = self._codes
        parts = []
        for _, _, key, _ in rows:
            if key not in codes:
                codes[key] = len(codes)
                parts.append(encode_event(self._redactor.fields(_series_event(codes[key], key))))
        times, steps, keys, values = zip(*rows, strict=True)
        parts.append(encode_samples([codes[key] for key in keys], times, steps, values))
        return b"".join(parts)

    def _write(self, data: bytes) -> bool:
        """Write all of ``data`` or nothing."""
        try:
            written = 0
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._good_bytes)
            if not self._is_full:
                _print_error(
                    f"clusterscape: cannot write {self._path}: {error.strerror}; the run goes on, samples wait in memory"
                )
            self._is_full = True
            return False
        self._good_bytes += len(data)
        self._is_full = False
        return True


def _series_event(code: int, key: str | SeriesKey) -> dict[str, object]:
    name, unit, scope, method = (key, None, SampleScope.RUN, SampleMethod.MEASURED) if isinstance(key, str) else key
    return {"event": "series", "code": code, "name": name, "unit": unit, "scope": scope, "method": method}


def _print_error(message: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(message + "\n")
