"""A metric store on a server that may be away: what cannot be sent waits on disk and follows later, in order.

Owns when a batch goes to the server and when to the spool. While the server is away nothing is lost but what the spool cannot
hold; answers fail, since what is asked for is on the server.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model import SampleBatch, UnitId, UnixMs
from clusterscape.store.metrics.contract import MetricStore, MetricStoreInfo, Statistic
from clusterscape.store.metrics.prometheus_api import RefusedSamplesError
from clusterscape.store.metrics.spool import SampleSpool
from clusterscape.supervision import BackgroundLoops

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0


class SpoolSender:
    """Sends batches in order, through a spool: ``accept`` never waits for a server that is known to be away.

    ``send`` raises StoreError where the server does not take a batch now, RefusedSamplesError where it never will.
    """

    def __init__(
        self,
        spool: SampleSpool,
        send: Callable[[SampleBatch], None],
        *,
        server: str,
        is_direct: bool = True,
        loops: BackgroundLoops | None = None,
    ) -> None:
        """``is_direct``: while nothing waits, ``accept`` sends by itself; else it never waits for the server."""
        self._is_direct = is_direct
        self.refused_samples = 0
        """Lost since the start, because the server does not want them."""
        self._spool = spool
        self._send = send
        self._server = server
        self._is_away = len(spool) > 0
        self.trouble: str | None = None
        """Why the server takes nothing now, as it was at the last attempt."""
        self._order = threading.Lock()  # held while a batch is sent at once, so that none overtakes it
        self._wake = threading.Event()
        self._is_stopping = False
        self._loop = (loops or BackgroundLoops()).loop(
            "sample spool" if is_direct else "remote write spool",
            log,
            fails=f"samples for {server} wait",
            works=f"samples are sent to {server} again",
        )
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    @property
    def spool(self) -> SampleSpool:
        """What waits."""
        return self._spool

    def accept(self, batch: SampleBatch) -> None:
        """Send ``batch``, or keep it for later; on the server or on the disk when it returns."""
        with self._order:
            if self._is_direct and not len(self._spool):
                try:
                    self._try(batch)
                except StoreError as error:
                    self._note_away(error)
                else:
                    return
            dropped = self._spool.put(batch)
        if dropped:
            log.warning(
                "the spool for %s is full: %d old samples were dropped (%d since the start)",
                self._server,
                dropped,
                self._spool.dropped_samples,
            )
        self._wake.set()

    def close(self) -> None:
        """Stop sending; what waits is sent after the next start."""
        self._is_stopping = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_stopping:
            is_away = False
            with self._loop:
                try:
                    self._send_waiting()
                except StoreError as error:  # the server's trouble, which the store reports as its own
                    self._note_away(error)
                    is_away = True
            if is_away or self._loop.is_failing:
                self._wake.clear()  # a new batch is no sign that the server is back
                self._sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                pause_s = FIRST_PAUSE_S
                self._wake.wait()
                self._wake.clear()

    def _sleep(self, pause_s: float) -> None:
        waited = threading.Event()
        while not self._is_stopping and pause_s > 0:
            waited.wait(min(pause_s, 0.2))
            pause_s -= 0.2

    def _send_waiting(self) -> None:
        sent = 0
        while not self._is_stopping and (found := self._spool.first()) is not None:
            seq, batch = found
            self._try(batch)
            self._spool.remove(seq)
            sent += len(batch)
        if self._is_away and not self._is_stopping:
            self._is_away, self.trouble = False, None
            log.warning("%s takes samples again; %d that had waited were sent", self._server, sent)

    def _try(self, batch: SampleBatch) -> None:
        try:
            self._send(batch)
        except RefusedSamplesError as error:
            self.refused_samples += len(batch)
            log.warning("%d samples are lost: %s %s", len(batch), error.message, error.hint or "")

    def _note_away(self, error: StoreError) -> None:
        self.trouble = error.message
        if not self._is_away:
            self._is_away = True
            log.warning("samples wait on disk: %s %s", error.message, error.hint or "")


class SpooledMetricStore:
    """A :class:`MetricStore` over one on a server."""

    def __init__(
        self, store: MetricStore, spool: SampleSpool, *, server: str, loops: BackgroundLoops | None = None
    ) -> None:
        self._store = store
        self._sender = SpoolSender(spool, store.append, server=server, loops=loops)

    def append(self, batch: SampleBatch) -> None:
        """Send ``batch``, or keep it on disk until the server is back."""
        self._sender.accept(batch)

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Send much older data; raises where the server is away."""
        self._store.append_history(batches)

    def latest(self, metrics: Sequence[str], *, at_ms: UnixMs, lookback_ms: int) -> pl.DataFrame:
        """The last value of each unit in [at − lookback, at], of what has reached the server."""
        return self._store.latest(metrics, at_ms=at_ms, lookback_ms=lookback_ms)

    def series(
        self,
        metrics: Sequence[str],
        units: Sequence[UnitId],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        step_ms: int | None = None,
    ) -> pl.DataFrame:
        """Samples, or steps, of the named units."""
        return self._store.series(metrics, units, start_ms=start_ms, end_ms=end_ms, step_ms=step_ms)

    def statistics(
        self,
        metric: str,
        statistics: Sequence[Statistic],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        units: Sequence[UnitId] | None = None,
    ) -> pl.DataFrame:
        """One row per unit."""
        return self._store.statistics(metric, statistics, start_ms=start_ms, end_ms=end_ms, units=units)

    def remove_unit(self, unit: UnitId, *, start_ms: UnixMs, end_ms: UnixMs) -> bool:
        """Forget samples on the server; those that wait here still reach it."""
        return self._store.remove_unit(unit, start_ms=start_ms, end_ms=end_ms)

    def maintain(self, *, now_ms: UnixMs) -> None:
        """Whatever the server's store needs."""
        self._store.maintain(now_ms=now_ms)

    def info(self) -> MetricStoreInfo:
        """What the server holds, and what waits here."""
        spool = self._sender.spool
        return replace(
            self._store.info(),
            spooled_samples=spool.samples,
            lost_samples=spool.dropped_samples + self._sender.refused_samples,
            trouble=self._sender.trouble,
        )

    def close(self) -> None:
        """Stop sending, then close the connections."""
        self._sender.close()
        self._store.close()
