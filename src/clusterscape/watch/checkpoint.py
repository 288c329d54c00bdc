"""The statistics of all lives in one file, so that a restart does not read weeks from the store.

A zip archive (its checksums tell damage) of a header and Arrow columns. Each metric is taken at a moment of its own: every
series knows its last sample, and what is later is read from the store. The last samples themselves are not in the file: the
store has them. A file that cannot be read is set aside, and everything is counted anew.
"""

import io
import json
import logging
import os
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.stats.bins import bins_of
from clusterscape.analyze.stats.kernels import MOMENTS, RUNS
from clusterscape.analyze.stats.needs import Threshold
from clusterscape.model import UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Basis, Quantity
from clusterscape.watch.lives import Kept, Lives

log = logging.getLogger(__name__)

VERSION = 1
HEADER = "header.json"
SLOTS = "slots.arrow"


UNREADABLE = (zipfile.BadZipFile, OSError, ValueError, KeyError, TypeError, EOFError, pl.exceptions.PolarsError)
"""What reading a file that was damaged or written by another version can raise."""


def write_checkpoint(lives: Lives, path: Path) -> None:
    """Write, sync, rename. The lives are locked only while one metric at a time is copied."""
    partial = path.with_name(f"{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(SLOTS, _packed(_slots_frame(lives)))
            with lives.lock:
                shown = list(lives.serving.values())
            metrics = [_write_metric(lives, kept, archive) for kept in shown]
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
    """Fill ``lives``, which follow nothing yet and know what is needed; returns whether there was a good file.

    Every row is pending afterwards: what came after the checkpoint is still to be read from the store.
    """
    if not path.exists():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            _load(lives, archive)
    except UNREADABLE as error:
        aside = path.with_name(f"{path.name}.damaged")
        path.replace(aside)
        log.warning("%s cannot be used (%s): kept as %s; counting anew from the store", path, error, aside.name)
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


def _write_metric(lives: Lives, kept: Kept, archive: zipfile.ZipFile) -> dict[str, object]:
    """Rows that lack nothing; the others are counted anew after a restart."""
    sketch = kept.sketch
    with lives.lock:
        rows = np.flatnonzero(lives.slots.is_used & ~kept.is_pending)
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
        raise ValueError(f"it is of version {header['version']}, not {VERSION}")
    # All is read before anything is believed.
    frames = {about["metric"]: (about, _unpacked(archive, f"{about['metric']}.arrow")) for about in header["metrics"]}
    slots = _unpacked(archive, SLOTS)
    with lives.lock:
        keys = [
            (WorkloadId(workload), UnitId(unit), UnixMs(from_at))
            for workload, unit, from_at in slots.select("workload", "unit", "from_at").iter_rows()
        ]
        lives.restore(slots["row"].to_list(), keys, slots["until_at"].to_numpy(), slots["generation"].to_numpy())
        for kept in lives.all_kept():
            about, frame = frames.get(kept.sketch.metric, (None, None))
            if about is not None and frame is not None and _is_alike(kept, about):
                _load_metric(lives, kept, frame)


def _is_alike(kept: Kept, about: dict[str, object]) -> bool:
    """Whether it was counted as it is counted now."""
    thresholds = tuple(
        Threshold(kept.sketch.metric, is_above, Quantity(number, Basis(basis)))
        for is_above, number, basis in _triples(about["thresholds"])
    )
    return thresholds == kept.sketch.thresholds and about["bins"] == repr(bins_of(kept.sketch.metric))


def _triples(written: object) -> list[tuple[bool, float, str]]:
    if not isinstance(written, list):
        raise TypeError("thresholds are a list")
    return [(bool(above), float(number), str(basis)) for above, number, basis in written]


def _load_metric(lives: Lives, kept: Kept, frame: pl.DataFrame) -> None:
    rows, generation = frame["row"].to_numpy(), frame["generation"].to_numpy()
    # A row that was given out or changed hands while the file was written is counted anew.
    known = np.where(rows < lives.slots.row_count, rows, 0)
    same = (rows == known) & lives.slots.is_used[known] & (lives.slots.generation[known] == generation)
    rows, arrays = rows[same], kept.sketch.arrays
    kept.sketch.clear(rows, frame["limit"].to_numpy()[same])
    arrays.moments[rows] = frame["moments"].to_numpy().reshape(-1, MOMENTS)[same]
    if kept.sketch.bins.count:
        arrays.histogram[rows] = frame["histogram"].to_numpy().reshape(-1, kept.sketch.bins.count)[same]
    for place in range(len(kept.sketch.thresholds)):
        arrays.runs[place, rows] = frame[f"runs{place}"].to_numpy().reshape(-1, RUNS)[same]
    kept.sketch.lose_rings()
