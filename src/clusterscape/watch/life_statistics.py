"""The statistics of all lives: updated by ingest, read by rules, and kept across restarts in a checkpoint file, so that a restart
does not read weeks of samples from the store.

The checkpoint is a zip archive (its checksums detect damage) of a header and Arrow columns. Each metric is copied at its own
time: every series records its last sample, and later samples are read from the store. The samples in memory are not in the file.
A file that cannot be read is renamed, and everything is counted again from the store.

Returns ``LifeColumns``. Importing this imports numba: import it lazily for a fast start.
"""

import io
import json
import logging
import math
import os
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.stats.bins import bins_of
from clusterscape.analyze.stats.contract import Needs, Threshold
from clusterscape.analyze.stats.kernels import MOMENTS, RUNS
from clusterscape.analyze.stats.sketch import RING_SAMPLES
from clusterscape.model import Allocation, SampleBatch, Unit, UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Basis, Quantity
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.watch.catching_up import LongWindows, catch_up
from clusterscape.watch.life_columns import LifeView, LifeViews
from clusterscape.watch.lives import Lives, TrackedSketch

log = logging.getLogger(__name__)

VERSION = 1
HEADER = "header.json"
SLOTS = "slots.arrow"


UNREADABLE = (zipfile.BadZipFile, OSError, ValueError, KeyError, TypeError, EOFError, pl.exceptions.PolarsError)
"""Errors of reading a file that is damaged or was written by another version."""


def write_checkpoint(lives: Lives, path: Path) -> None:
    """Write, sync and rename the file. Lives are locked only while a single metric is copied."""
    partial = path.with_name(f"{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(SLOTS, _packed(_slots_frame(lives)))
            with lives.lock:
                serving = list(lives.serving.values())
            metrics = [_write_metric(lives, tracked, archive) for tracked in serving]
            archive.writestr(HEADER, json.dumps({"version": VERSION, "metrics": metrics}))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load_checkpoint(lives: Lives, path: Path) -> bool:
    """Fill empty ``lives``; returns whether there was a valid file.

    All rows are pending afterwards: later samples must be read from the store.
    """
    if not path.exists():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            _load(lives, archive)
    except UNREADABLE as error:
        damaged = path.with_name(f"{path.name}.damaged")
        path.replace(damaged)
        log.warning("cannot read %s (%s): renamed to %s; counting again from the store", path, error, damaged.name)
        return False
    return True


def _slots_frame(lives: Lives) -> pl.DataFrame:
    with lives.lock:
        slots = lives.slots
        rows = list(slots.keys.values())
        return pl.DataFrame(
            {
                "row": np.array(rows, np.int64),
                "workload": [key[0] for key in slots.keys],
                "unit": [key[1] for key in slots.keys],
                "from_at": np.array([key[2] for key in slots.keys], np.int64),
                "until_at": slots.until_at[rows],
                "generation": slots.generation[rows],
            },
            schema_overrides={"workload": pl.String, "unit": pl.String},
        )


def _write_metric(lives: Lives, tracked: TrackedSketch, archive: zipfile.ZipFile) -> dict[str, object]:
    """Write the complete rows of a metric; the others are counted again after a restart."""
    sketch = tracked.sketch
    with lives.lock:
        rows = np.flatnonzero(lives.slots.is_used & ~tracked.is_pending)
        arrays = sketch.arrays
        columns: dict[str, NDArray[np.int64] | NDArray[np.float64] | NDArray[np.uint32]] = {
            "row": rows,
            "generation": lives.slots.generation[rows],
            "limit": arrays.limit[rows],
            "moments": arrays.moments[rows],
        }
        if sketch.bins.count:
            columns["histogram"] = arrays.histogram[rows]
        columns |= {f"runs{place}": runs[rows] for place, runs in enumerate(arrays.runs)}
    archive.writestr(f"{sketch.metric}.arrow", _packed(pl.DataFrame(columns)))
    thresholds = [(t.is_above, t.quantity.number, t.quantity.basis.value) for t in sketch.thresholds]
    return {"metric": sketch.metric, "thresholds": thresholds, "bins": repr(sketch.bins)}


def _packed(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def _unpacked(archive: zipfile.ZipFile, name: str) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(archive.read(name)))


def _load(lives: Lives, archive: zipfile.ZipFile) -> None:
    header = json.loads(archive.read(HEADER))
    if header["version"] != VERSION:
        raise ValueError(f"format version {header['version']}, expected {VERSION}")
    # Read everything before changing any state.
    frames = {about["metric"]: (about, _unpacked(archive, f"{about['metric']}.arrow")) for about in header["metrics"]}
    slots = _unpacked(archive, SLOTS)
    with lives.lock:
        keys = [
            (WorkloadId(workload), UnitId(unit), UnixMs(from_at))
            for workload, unit, from_at in slots.select("workload", "unit", "from_at").iter_rows()
        ]
        lives.restore(slots["row"].to_list(), keys, slots["until_at"].to_numpy(), slots["generation"].to_numpy())
        for tracked in lives.all_sketches():
            about, frame = frames.get(tracked.sketch.metric, (None, None))
            if about is not None and frame is not None and _has_same_layout(tracked, about):
                _load_metric(lives, tracked, frame)


def _has_same_layout(tracked: TrackedSketch, about: dict[str, object]) -> bool:
    """Whether the checkpoint used the current thresholds and bins."""
    thresholds = tuple(
        Threshold(tracked.sketch.metric, is_above, Quantity(number, Basis(basis)))
        for is_above, number, basis in _parse_thresholds(about["thresholds"])
    )
    return thresholds == tracked.sketch.thresholds and about["bins"] == repr(bins_of(tracked.sketch.metric))


def _parse_thresholds(written: object) -> list[tuple[bool, float, str]]:
    if not isinstance(written, list):
        raise TypeError("thresholds must be a list")
    return [(bool(above), float(number), str(basis)) for above, number, basis in written]


def _load_metric(lives: Lives, tracked: TrackedSketch, frame: pl.DataFrame) -> None:
    rows, generation = frame["row"].to_numpy(), frame["generation"].to_numpy()
    # A row that changed its life while the file was written is counted again.
    valid = np.where(rows < lives.slots.row_count, rows, 0)
    same = (rows == valid) & lives.slots.is_used[valid] & (lives.slots.generation[valid] == generation)
    rows, arrays = rows[same], tracked.sketch.arrays
    tracked.sketch.clear(rows, frame["limit"].to_numpy()[same])
    arrays.moments[rows] = frame["moments"].to_numpy().reshape(-1, MOMENTS)[same]
    if tracked.sketch.bins.count:
        arrays.histogram[rows] = frame["histogram"].to_numpy().reshape(-1, tracked.sketch.bins.count)[same]
    for place in range(len(tracked.sketch.thresholds)):
        arrays.runs[place, rows] = frame[f"runs{place}"].to_numpy().reshape(-1, RUNS)[same]
    tracked.sketch.lose_rings()


CHECKPOINT_EVERY_MS = 5 * 60_000

EXACT_WINDOW_MS = 32 * 60_000
"""The longest window that is computed from memory at every judgement: the half hour that rules use, and two minutes."""


def ring_samples_for(interval_s: float) -> int:
    """Number of samples to keep in memory if units are scraped every ``interval_s``; 12 bytes each."""
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
        """The metrics with statistics."""
        with self.lives.lock:
            return frozenset(tracked.sketch.metric for tracked in self.lives.all_sketches())

    def start(self, units: Iterable[Unit], open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Load the checkpoint and add the open lives; ``tick`` then reads missed samples.

        Call it before ingest starts: later samples arrive through the hooks, earlier ones are read from the store.
        """
        begin = time.monotonic()
        if self._path is not None and load_checkpoint(self.lives, self._path):
            log.info(
                "loaded the statistics of %d lives in %.1f s", len(self.lives.slots.keys), time.monotonic() - begin
            )
        self.lives.newest_ms = self._store.info().newest_at or at_ms
        self.lives.follow_units(units)
        self.lives.follow_allocations(open_allocations, at_ms)
        self._written_at = at_ms

    def require(self, needs: Needs) -> None:
        """Keep the statistics that these rules need; new metrics and thresholds are available after the next ``tick``."""
        self.lives.require(needs)

    def on_samples(self, batch: SampleBatch) -> None:
        """A scrape was stored."""
        self.lives.add(batch)

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        """Past samples were stored."""
        self.lives.add_history(batches)

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Allocations started or ended; ``open_allocations`` are all that are open."""
        self.lives.follow_allocations(open_allocations, at_ms)

    def on_units(self, units: Iterable[Unit]) -> None:
        """Units are new or changed."""
        self.lives.follow_units(units)

    def tick(self, now_ms: UnixMs) -> None:
        """Read missed samples, and write a checkpoint if it is due; call it before each judgement."""
        catch_up(self.lives, self._store)
        if self._written_at is None or now_ms - self._written_at >= CHECKPOINT_EVERY_MS:
            self.checkpoint()
            self._written_at = now_ms

    def columns(self, at_ms: UnixMs | None = None) -> LifeView:
        """The current statistics of all lives; see ``LifeViews.columns``."""
        return self._views.columns(at_ms)

    def checkpoint(self) -> None:
        """Write the checkpoint now, such as at shutdown. Errors, such as a full disk, are only logged."""
        if self._path is None:
            return
        try:
            write_checkpoint(self.lives, self._path)
        except OSError as error:
            log.warning("cannot write the statistics of lives to %s: %s", self._path, error)
