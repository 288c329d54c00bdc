"""The embedded metric store killed at any moment while it writes and compacts: acknowledged writes are there once."""

import contextlib
import random
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from servers.reliability import note
from stores.batches import DAY, NOON, Sample, batch_of, window
from stores.killing import run_and_kill

from clusterscape.model import UnitId, UnixMs
from clusterscape.settings import RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore
from clusterscape.store.metrics.embedded import CompactionPolicy

KILLS = 20
UNITS = [f"n{node}:{gpu}" for node in range(8) for gpu in range(8)]
METRICS = ("energy_joules", "gpu_util_ratio", "power_watts")
HISTORY_EVERY = 7
# Something is compacted, merged or downsampled nearly all the time.
EAGER = CompactionPolicy(wait_ms=0, fan_in=2, small_cells=64, segment_cells=20_000)


def samples_of(write: int) -> list[Sample]:
    """Samples of write number ``write``; every seventh is of the day before."""
    at = NOON + write * 15_000 - (DAY if write % HISTORY_EVERY == 0 else 0)
    return [(metric, unit, at, float(write)) for metric in METRICS for unit in UNITS]


def open_store(folder: Path) -> EmbeddedMetricStore:
    return EmbeddedMetricStore(folder, RetentionSettings(), policy=EAGER)


def write_until_killed(folder: Path, first: int, acknowledge: "Connection[int, None]") -> None:
    """Write first, first + 1, … while another thread maintains; after each, its number goes into the pipe."""
    store = open_store(folder)

    def maintain() -> None:
        while True:
            store.maintain(now_ms=UnixMs(NOON + DAY))

    threading.Thread(target=maintain, daemon=True).start()
    write = first
    while True:
        batch = batch_of(*samples_of(write))
        if write % HISTORY_EVERY == 0:
            store.append_history([batch])
        else:
            store.append(batch)
        acknowledge.send(write)
        write += 1


def read_all(store: EmbeddedMetricStore) -> list[Sample]:
    frame = store.series(METRICS, [UnitId(unit) for unit in UNITS], **window(NOON - 2 * DAY, NOON + 2 * DAY))
    return [(str(m), str(u), int(t), float(v)) for m, u, t, v in frame.iter_rows()]


def test_every_acknowledged_write_is_there_once_when_the_writer_is_killed_twenty_times(tmp_path: Path) -> None:
    randomly = random.Random(11)
    folder = tmp_path / "metrics"
    present: set[int] = set()
    first = 0
    for _ in range(KILLS):
        last = run_and_kill(write_until_killed, folder, first, randomly.uniform(0.0, 0.3))
        present |= set(range(first, last + 1))
        store = open_store(folder)
        samples = read_all(store)
        if any(sample[3] == last + 1 for sample in samples):
            present.add(last + 1)  # durable, but killed before it could say so: all of it or nothing
        expected = sorted(sample for write in present for sample in samples_of(write))
        assert samples == expected
        assert store.info().samples == len(expected)
        store.close()
        assert not list(folder.glob("damaged/*"))
        first = last + 2
    with contextlib.closing(open_store(folder)) as store:
        store.maintain(now_ms=UnixMs(NOON + 2 * DAY))
        assert read_all(store) == expected
    note(
        "fault",
        what="kill −9 of the metric writer, twenty times",
        promised="every acknowledged write is there, once",
        measured="all there",
    )
