"""The statistics of all lives as the rest of the program uses them: fed by ingest, read by rules, kept over restarts.

Hands out ``LifeColumns``. Importing this imports numba: import it late where the start must be quick.
"""

import logging
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from clusterscape.analyze.stats.needs import Needs
from clusterscape.analyze.stats.sketch import RING_SAMPLES
from clusterscape.model import Allocation, SampleBatch, Unit, UnixMs
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.watch.catching_up import catch_up
from clusterscape.watch.checkpoint import load_checkpoint, write_checkpoint
from clusterscape.watch.life_columns import LifeView, LifeViews
from clusterscape.watch.lives import Lives
from clusterscape.watch.long_windows import LongWindows

log = logging.getLogger(__name__)

CHECKPOINT_EVERY_MS = 5 * 60_000

EXACT_WINDOW_MS = 32 * 60_000
"""The longest window that is exact at every judgement, from memory: the half hour that rules ask for, and two minutes."""


def ring_samples_for(interval_s: float) -> int:
    """How many samples to keep as they are where units are scraped every ``interval_s``; 12 bytes each."""
    return max(32, math.ceil(EXACT_WINDOW_MS / 1000 / interval_s))


class LifeStatistics:
    """An ``IngestListener``. Ingest's thread calls ``on_…``; one other thread calls the rest."""

    def __init__(
        self,
        store: MetricStore,
        path: Path | None = None,
        *,
        needs: Needs | None = None,
        ring_samples: int = RING_SAMPLES,
    ) -> None:
        self.lives = Lives(needs, ring_samples=ring_samples)
        self._store = store
        self._path = path
        self._views = LifeViews(self.lives, long_window=LongWindows(store))
        self._written_at: UnixMs | None = None

    @property
    def metrics(self) -> frozenset[str]:
        """What lives are counted in."""
        with self.lives.lock:
            return frozenset(kept.sketch.metric for kept in self.lives.all_kept())

    def start(self, units: Iterable[Unit], open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Take up the lives of the last run and those that are open now; ``tick`` then reads what was missed.

        Before ingest begins: what it stores from then on is told, what it stored before is read.
        """
        begin = time.monotonic()
        if self._path is not None and load_checkpoint(self.lives, self._path):
            log.info(
                "took up the statistics of %d lives in %.1f s", len(self.lives.slots.keys), time.monotonic() - begin
            )
        self.lives.newest_ms = self._store.info().newest_at or at_ms
        self.lives.follow_units(units)
        self.lives.follow_allocations(open_allocations, at_ms)
        self._written_at = at_ms

    def require(self, needs: Needs) -> None:
        """Keep what these rules need; new metrics and thresholds show after the next ``tick``."""
        self.lives.require(needs)

    def on_samples(self, batch: SampleBatch) -> None:
        """A scrape was stored."""
        self.lives.add(batch)

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        """A past was stored."""
        self.lives.add_history(batches)

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Allocations began or ended; these are all that are open."""
        self.lives.follow_allocations(open_allocations, at_ms)

    def on_units(self, units: Iterable[Unit]) -> None:
        """Units are new or changed."""
        self.lives.follow_units(units)

    def tick(self, now_ms: UnixMs) -> None:
        """Read what was missed, write a checkpoint when it is time; call it before each judgement."""
        catch_up(self.lives, self._store)
        if self._written_at is None or now_ms - self._written_at >= CHECKPOINT_EVERY_MS:
            self.checkpoint()
            self._written_at = now_ms

    def columns(self, at_ms: UnixMs | None = None) -> LifeView:
        """Statistics of all lives as they are now; see ``LifeViews.columns``."""
        return self._views.columns(at_ms)

    def checkpoint(self) -> None:
        """Write the file now, as at the end. A full disk is told of and does no harm."""
        if self._path is None:
            return
        try:
            write_checkpoint(self.lives, self._path)
        except OSError as error:
            log.warning("the statistics of lives cannot be written to %s: %s", self._path, error)
