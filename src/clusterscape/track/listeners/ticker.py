"""Samples one listener at its rate, in a separate thread, without drift; reports errors and continues."""

import threading
import time
from collections.abc import Sequence

from clusterscape.track.listeners.contract import ListenedRun, Listener, ListenerUnavailableError
from clusterscape.track.spool import RunClock

GIVE_UP_AFTER = 20


class Ticker:
    """Ticks fall on start + n × period. A late tick is skipped and counted, not repeated."""

    def __init__(self, listener: Listener, clock: RunClock, runs: Sequence[ListenedRun]) -> None:
        self.listener = listener
        self.ticks = 0
        self.missed = 0
        self._clock = clock
        self._runs = list(runs)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._failures = 0
        self._is_open = False
        self._state = "waiting"
        self._message: str | None = None
        self._thread = threading.Thread(target=self._loop, name=f"listener {listener.name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self, run: ListenedRun) -> None:
        """Take the last sample of a run and stop sampling it."""
        with self._lock:
            if run not in self._runs:
                return
            self._runs.remove(run)
            if self._is_open:
                try:
                    self.listener.finish(run, self._clock.now_us())
                except Exception as error:
                    self._note("failed", error)
                self._write_state(run, ticks=self.ticks, missed=self.missed)

    def stop(self, timeout_s: float) -> None:
        """End the thread; a thread that hangs in a driver is abandoned."""
        self._stop.set()
        self._thread.join(timeout_s)

    def _loop(self) -> None:
        try:
            self.listener.open(self._runs)
        except ListenerUnavailableError as error:
            self._report(self._runs, "unavailable", error)
            return
        except Exception as error:
            self._report(self._runs, "failed", error)
            return
        self._is_open = True
        self._report(self._runs, "running", None)
        start = time.monotonic()
        number = 0
        while self._failures < GIVE_UP_AFTER:
            self._tick()
            number += 1
            late = int((time.monotonic() - start) / self.listener.period_s) - number
            if late > 0:
                self.missed += late
                number += late
            if self._stop.wait(max(0.0, start + number * self.listener.period_s - time.monotonic())):
                break
        with self._lock:
            self._is_open = False
            self.listener.close()

    def _tick(self) -> None:
        with self._lock:
            if not self._runs:
                return
            self.ticks += 1
            try:
                self.listener.sample(self._runs, self._clock.now_us())
                self._failures = 0
            except Exception as error:
                self._failures += 1
                if self._failures == 1:
                    self._report(self._runs, "failed", error)

    def _report(self, runs: Sequence[ListenedRun], state: str, error: Exception | None) -> None:
        self._note(state, error)
        for run in runs:
            self._write_state(run)

    def _note(self, state: str, error: Exception | None) -> None:
        self._state = state
        self._message = None if error is None else f"{error}" or type(error).__name__

    def _write_state(self, run: ListenedRun, **counts: int) -> None:
        """Write the listener's state, at the end with the numbers of ticks and of skipped ticks."""
        fields = {"state": self._state, "message": self._message, **counts}
        run.spool.event("listener", listener=self.listener.name, at=self._clock.now_ms(), **fields)
