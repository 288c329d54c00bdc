"""A full disk: writing says so and leaves nothing behind, reading goes on, and writing goes on once there is space."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from servers.reliability import note
from stores.batches import NOON, batch_of, window

from clusterscape.errors import StoreFullError
from clusterscape.model import Names, SampleBatch, UnitId, UnixMs
from clusterscape.settings import RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore

DISK_BYTES = 4 * 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted by root; the quota test in this file runs everywhere")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"this machine mounts no tmpfs: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def noise(index: int, gpus: int = 2_000) -> SampleBatch:
    """A scrape that does not compress: about 40 KB."""
    rng = np.random.default_rng(index)
    units = Names(f"n{gpu}:0" for gpu in range(gpus))
    metrics = Names(["power_watts", "energy_joules"])
    return SampleBatch(
        units=units,
        metrics=metrics,
        unit=np.tile(np.arange(gpus, dtype=np.int32), 2),
        metric=np.repeat(np.arange(2, dtype=np.int32), gpus),
        time_ms=np.full(2 * gpus, NOON + index * 15_000, dtype=np.int64),
        value=rng.random(2 * gpus),
    )


def count(store: EmbeddedMetricStore) -> int:
    return store.series(["power_watts"], [UnitId("n7:0")], **window(NOON, NOON + 10**9)).height


def fill(store: EmbeddedMetricStore) -> int:
    """Append until the disk is full; how many appends went through."""
    for index in range(10_000):
        try:
            store.append(noise(index))
        except StoreFullError:
            return index
    raise AssertionError("the disk never became full")


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.glob("**/*")}


def assert_no_leftovers(folder: Path) -> None:
    """No temporary file, and no segment that the manifest does not name."""
    manifest = json.loads((folder / "manifest.json").read_text())
    listed = {entry["file"] for entry in manifest["raw"]}
    assert {name for name in files_of(folder) if name.startswith("raw/") and name.endswith(".parquet")} == listed
    assert not [name for name in files_of(folder) if name.endswith(".tmp")]


@pytest.mark.server
def test_appending_pauses_and_goes_on_when_the_disk_is_full_for_a_while(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(DISK_BYTES // 2))
    folder = small_disk / "metrics"
    store = EmbeddedMetricStore(folder, RetentionSettings())
    written = fill(store)
    assert written > 3
    before = files_of(folder)
    for _ in range(3):
        with pytest.raises(StoreFullError, match="full") as caught:
            store.append(noise(written))
        assert caught.value.hint
    assert files_of(folder) == before
    assert count(store) == written
    with pytest.raises(StoreFullError):
        store.append_history([noise(written + index) for index in range(20)])
    assert count(store) == written
    assert_no_leftovers(folder)
    with pytest.raises(StoreFullError):
        store.maintain(now_ms=UnixMs(NOON + 10**8))
    assert_no_leftovers(folder)
    assert count(store) == written
    ballast.unlink()
    store.append(noise(written))
    store.maintain(now_ms=UnixMs(NOON + 10**8))
    assert count(store) == written + 1
    store.close()
    store = EmbeddedMetricStore(folder, RetentionSettings())
    assert count(store) == written + 1
    assert store.info().samples == (written + 1) * 4_000
    store.close()
    note(
        "fault",
        what="the disk is full for a while",
        promised="appending pauses, says so, goes on",
        measured="paused and went on; stored samples stayed",
    )


@pytest.mark.server
def test_store_opens_and_reads_when_the_disk_is_full(small_disk: Path) -> None:
    folder = small_disk / "metrics"
    store = EmbeddedMetricStore(folder, RetentionSettings())
    written = fill(store)
    store.close()
    store = EmbeddedMetricStore(folder, RetentionSettings())
    assert count(store) == written
    with pytest.raises(StoreFullError):
        store.append(noise(written))
    store.close()


def test_appending_pauses_when_less_than_the_reserve_is_free(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    free_bytes = disk.f_bavail * disk.f_frsize
    store = EmbeddedMetricStore(tmp_path / "metrics", RetentionSettings(), min_free_bytes=2 * free_bytes)
    with pytest.raises(StoreFullError, match="must stay free"):
        store.append(batch_of(("power_watts", "n7:0", NOON, 1.0)))
    with pytest.raises(StoreFullError, match="must stay free"):
        store.append_history([batch_of(("power_watts", "n7:0", NOON, 1.0))])
    assert count(store) == 0
    assert store.info().samples == 0
    store.maintain(now_ms=UnixMs(NOON))
    store.close()
    store = EmbeddedMetricStore(tmp_path / "metrics", RetentionSettings(), min_free_bytes=1)
    store.append(batch_of(("power_watts", "n7:0", NOON, 1.0)))
    assert count(store) == 1
    store.close()
