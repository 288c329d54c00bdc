"""A metric store on a server that may be unreachable: samples that cannot be sent wait on disk and are sent later, in order.

Every batch is one file, synced before ``put`` returns. Beyond ``max_bytes`` the oldest batches are dropped and counted. While
the server is unreachable, reads fail, and only samples that the spool cannot hold are lost.
"""

import io
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model import Names, SampleBatch, UnitId, UnixMs
from clusterscape.store.files import TEMPORARY_SUFFIX, make_folder, storage_errors, write_file
from clusterscape.store.metrics.contract import MetricStore, MetricStoreInfo, SeriesStatistic
from clusterscape.store.metrics.prometheus_api import RefusedSamplesError
from clusterscape.supervision import BackgroundLoops


def frame_of(batch: SampleBatch) -> pl.DataFrame:
    """``unit``, ``metric`` (String), ``time_ms`` (Int64), ``value`` (Float64), in the batch's order."""
    units = pl.Series("unit", batch.units.values, dtype=pl.String).gather(batch.unit)
    metrics = pl.Series("metric", batch.metrics.values, dtype=pl.String).gather(batch.metric)
    return pl.DataFrame([units, metrics, pl.Series("time_ms", batch.time_ms), pl.Series("value", batch.value)])


def batch_of(frame: pl.DataFrame) -> SampleBatch:
    """The samples of a table of ``frame_of``."""
    units, metrics = (frame[name].unique(maintain_order=True).to_list() for name in ("unit", "metric"))
    return SampleBatch(
        Names(units),
        Names(metrics),
        frame["unit"].cast(pl.Enum(units)).to_physical().cast(pl.Int32).to_numpy(),
        frame["metric"].cast(pl.Enum(metrics)).to_physical().cast(pl.Int32).to_numpy(),
        frame["time_ms"].to_numpy(),
        frame["value"].to_numpy(),
    )


_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class _Waiting:
    seq: int
    size_bytes: int
    samples: int

    @property
    def name(self) -> str:
        # The number of samples is in the name, so that counting needs no reading.
        return f"{self.seq:012d}-{self.samples}{_SUFFIX}"


class SampleSpool:
    """A queue of batches. Thread-safe; one process at a time."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._waiting = self._find()
        self._next = max((waiting.seq for waiting in self._waiting), default=0) + 1
        self.dropped_samples = 0
        """Samples dropped since the start because the spool was full."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def samples(self) -> int:
        """Number of waiting samples."""
        with self._lock:
            return sum(waiting.samples for waiting in self._waiting)

    def put(self, batch: SampleBatch) -> int:
        """Append ``batch`` durably; returns the number of older samples dropped for it."""
        if not len(batch):
            return 0
        buffer = io.BytesIO()
        frame_of(batch).write_parquet(buffer, compression="zstd", compression_level=1, statistics=False)
        content = buffer.getvalue()
        with self._lock:
            new = _Waiting(self._next, len(content), len(batch))
            self._next += 1
            dropped = 0
            while (
                self._waiting and sum(waiting.size_bytes for waiting in self._waiting) + len(content) > self._max_bytes
            ):
                oldest = self._waiting.pop(0)
                (self._folder / oldest.name).unlink(missing_ok=True)
                dropped += oldest.samples
            make_folder(self._folder)
            write_file(self._folder / new.name, content)
            self._waiting.append(new)
            self.dropped_samples += dropped
            return dropped

    def first(self) -> tuple[int, SampleBatch] | None:
        """The oldest batch and its number; None if empty. A damaged file is counted as dropped and skipped."""
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                oldest = self._waiting[0]
            try:
                return oldest.seq, batch_of(pl.read_parquet(io.BytesIO((self._folder / oldest.name).read_bytes())))
            except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
                with self._lock:
                    if oldest in self._waiting:  # else it was dropped for a newer one meanwhile
                        self.dropped_samples += oldest.samples
                self.remove(oldest.seq)

    def remove(self, seq: int) -> None:
        """Remove a batch that was sent."""
        with self._lock:
            for sent in [waiting for waiting in self._waiting if waiting.seq == seq]:
                self._waiting.remove(sent)
                with storage_errors(self._folder):
                    (self._folder / sent.name).unlink(missing_ok=True)

    def _find(self) -> list[_Waiting]:
        waiting = []
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            seq, _, samples = path.stem.partition("-")
            if path.suffix == _SUFFIX and seq.isdecimal() and samples.isdecimal():
                waiting.append(_Waiting(int(seq), path.stat().st_size, int(samples)))
            elif path.name.endswith(TEMPORARY_SUFFIX):
                path.unlink(missing_ok=True)
        return sorted(waiting, key=lambda batch: batch.seq)


log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0


class SpoolSender:
    """Sends batches in order through a spool: ``accept`` never waits for an unreachable server.

    ``send`` raises StoreError if the server does not accept a batch now, RefusedSamplesError if it never will.
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
        """``is_direct``: ``accept`` sends directly while the spool is empty; otherwise it never waits for the server."""
        self._is_direct = is_direct
        self.refused_samples = 0
        """Samples lost since the start because the server rejected them."""
        self._spool = spool
        self._send = send
        self._server = server
        self._is_unreachable = len(spool) > 0
        self.trouble: str | None = None
        """The error of the last attempt, while the server accepts nothing."""
        self._order = threading.Lock()  # held while a batch is sent directly, to keep the order
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
        """The queue of waiting batches."""
        return self._spool

    def accept(self, batch: SampleBatch) -> None:
        """Send ``batch`` or spool it; durable when it returns."""
        with self._order:
            if self._is_direct and not len(self._spool):
                try:
                    self._try(batch)
                except StoreError as error:
                    self._note_unreachable(error)
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
        """Stop sending; waiting batches are sent after the next start."""
        self._is_stopping = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_stopping:
            is_unreachable = False
            with self._loop:
                try:
                    self._send_waiting()
                except StoreError as error:  # the server's error, which the store reports
                    self._note_unreachable(error)
                    is_unreachable = True
            if is_unreachable or self._loop.is_failing:
                self._wake.clear()  # a new batch does not mean that the server is back
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
        while not self._is_stopping and (oldest := self._spool.first()) is not None:
            seq, batch = oldest
            self._try(batch)
            self._spool.remove(seq)
            sent += len(batch)
        if self._is_unreachable and not self._is_stopping:
            self._is_unreachable, self.trouble = False, None
            log.warning("%s accepts samples again; %d spooled samples were sent", self._server, sent)

    def _try(self, batch: SampleBatch) -> None:
        try:
            self._send(batch)
        except RefusedSamplesError as error:
            self.refused_samples += len(batch)
            log.warning("%d samples are lost: %s %s", len(batch), error.message, error.hint or "")

    def _note_unreachable(self, error: StoreError) -> None:
        self.trouble = error.message
        if not self._is_unreachable:
            self._is_unreachable = True
            log.warning("samples wait on disk: %s %s", error.message, error.hint or "")


class SpooledMetricStore:
    """A :class:`MetricStore` that spools writes to a store on a server."""

    def __init__(
        self, store: MetricStore, spool: SampleSpool, *, server: str, loops: BackgroundLoops | None = None
    ) -> None:
        self._store = store
        self._sender = SpoolSender(spool, store.append, server=server, loops=loops)

    def append(self, batch: SampleBatch) -> None:
        """Send ``batch``, or spool it until the server is back."""
        self._sender.accept(batch)

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Send older data; raises if the server is unreachable."""
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
        statistics: Sequence[SeriesStatistic],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        units: Sequence[UnitId] | None = None,
    ) -> pl.DataFrame:
        """One row per unit."""
        return self._store.statistics(metric, statistics, start_ms=start_ms, end_ms=end_ms, units=units)

    def remove_unit(self, unit: UnitId, *, start_ms: UnixMs, end_ms: UnixMs) -> bool:
        """Remove samples on the server; spooled ones are still sent."""
        return self._store.remove_unit(unit, start_ms=start_ms, end_ms=end_ms)

    def maintain(self, *, now_ms: UnixMs) -> None:
        """Maintain the store of the server."""
        self._store.maintain(now_ms=now_ms)

    def info(self) -> MetricStoreInfo:
        """Contents of the server, and spooled samples."""
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
