"""Samples of tracked runs in the embedded store: many names take little space, and impossible times are ignored."""

import logging
from pathlib import Path

import numpy as np
import pytest

from clusterscape.model import Names, SampleBatch, UnitId, UnixMs
from clusterscape.settings import RetentionSettings
from clusterscape.store.metrics.embedded.blocks import pivot
from clusterscape.store.metrics.embedded.manifest import read_manifest
from clusterscape.store.metrics.embedded.segments import UnitNames, write_segment
from clusterscape.store.metrics.embedded.store import EmbeddedMetricStore

NOW = UnixMs(1_790_000_000_000)
ABSURD_MS = 9 * 10**15


def open_store(folder: Path) -> EmbeddedMetricStore:
    return EmbeddedMetricStore(folder, RetentionSettings())


def batch(units: list[str], names: list[str], time_ms: int) -> SampleBatch:
    """One value of every name for every unit at one time."""
    unit, metric = np.divmod(np.arange(len(units) * len(names), dtype=np.int32), len(names))
    times = np.full(len(unit), time_ms, np.int64)
    return SampleBatch(Names(units), Names(names), unit, metric.astype(np.int32), times, np.ones(len(unit)))


def test_tables_stay_small_when_runs_have_names_of_their_own(tmp_path: Path) -> None:
    """Before, a compaction made one table of all rows and all names: 58,000,000 cells for these 117,600 samples."""
    gpus, metrics = [f"n{node}:0" for node in range(1000)], [f"gpu_{number}" for number in range(5)]
    most_cells = 3_000_000
    store = open_store(tmp_path)
    for minute in range(12):
        at = NOW - (60 - minute) * 60_000
        store.append(batch(gpus, metrics, at))
        for run in range(6):
            store.append(batch([f"run:r{run}"], [f"of run {run}, layer {layer}" for layer in range(800)], at + run))
    assert max(block.block.cells for block in store._live.view.ring.blocks) <= most_cells
    store.maintain(now_ms=NOW)
    entries = read_manifest(tmp_path).raw
    samples = sum(entry.samples for entry in entries)
    assert samples == 12 * (5000 + 4800)
    assert sum(entry.rows * len(entry.metrics) for entry in entries) <= most_cells
    day_later = UnixMs(NOW + 3 * 86_400_000)
    store.maintain(now_ms=day_later)
    store.maintain(now_ms=day_later)
    entries = read_manifest(tmp_path).raw
    assert sum(entry.rows * len(entry.metrics) for entry in entries) <= most_cells
    series = store.series(["of run 3, layer 7"], [UnitId("run:r3")], start_ms=UnixMs(0), end_ms=NOW)
    assert len(series) == 12
    store.close()
    reopened = open_store(tmp_path)
    assert len(reopened.series(["gpu_3"], [UnitId("n7:0")], start_ms=UnixMs(0), end_ms=NOW)) == 12
    reopened.close()


def test_segments_of_gpus_are_merged_when_runs_write_between_them(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for hour in range(8):
        at = NOW - (9 - hour) * 3_600_000
        store.append(batch(["n1:0"], ["gpu_util_ratio"], at))
        store.append(batch(["run:r1"], ["loss"], at))
        store.maintain(now_ms=UnixMs(at + 3_600_000))
    store.maintain(now_ms=UnixMs(NOW + 3 * 86_400_000))
    entries = read_manifest(tmp_path).raw
    assert len({entry.file.split("/")[1] for entry in entries}) * 2 == len(entries), "one of GPUs, one of runs a day"
    store.close()


@pytest.mark.parametrize("absurd_ms", [ABSURD_MS, -ABSURD_MS, 2**63 - 1, -(2**63)])
def test_samples_are_left_out_when_their_time_is_impossible(tmp_path: Path, absurd_ms: int) -> None:
    store = open_store(tmp_path)
    store.append(batch(["n1:0"], ["gpu_util_ratio"], NOW - 3_600_000))
    store.append(batch(["run:r1", "n1:0"], ["gpu_util_ratio"], absurd_ms))
    store.maintain(now_ms=NOW)
    assert [entry.samples for entry in read_manifest(tmp_path).raw] == [1]
    assert store.info().newest_at == NOW - 3_600_000
    store.close()


@pytest.mark.parametrize("absurd_ms", [ABSURD_MS, -ABSURD_MS])
def test_store_goes_on_and_says_so_when_impossible_times_were_stored_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, absurd_ms: int
) -> None:
    store = open_store(tmp_path)
    store.append(batch(["n1:0"], ["gpu_util_ratio"], NOW - 3_600_000))
    store.close()
    units = UnitNames()
    codes = units.encode(["run:r1", "run:r2"])
    for seq, times in ((2, [absurd_ms, NOW - 3_500_000]), (3, [absurd_ms, absurd_ms])):
        block = pivot(codes, np.zeros(2, np.int32), np.array(times), np.ones(2), ["loss"])
        write_segment(tmp_path / f"recent/{seq:010d}.parquet", block, units, is_kept=False)
    with caplog.at_level(logging.WARNING):
        store = open_store(tmp_path)
    assert "times are before 1970 or after 2100" in caplog.text
    store.append(batch(["n1:0"], ["gpu_util_ratio"], NOW - 3_400_000))
    store.maintain(now_ms=NOW)
    samples = store.read_all(["gpu_util_ratio", "loss"], start_ms=UnixMs(0), end_ms=NOW).sort("time_ms")
    assert samples.select("unit", "metric").rows() == [
        ("n1:0", "gpu_util_ratio"),
        ("run:r2", "loss"),
        ("n1:0", "gpu_util_ratio"),
    ]
    assert not list((tmp_path / "recent").iterdir())
    store.close()
