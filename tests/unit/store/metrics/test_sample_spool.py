"""The spool: a bounded queue on disk that survives restarts and damaged files."""

from pathlib import Path

from stores.batches import NOON, batch_of

from clusterscape.model import SampleBatch
from clusterscape.store.metrics.spool import SampleSpool, frame_of

LARGE = 2**30


def batch(index: int, size: int = 1) -> SampleBatch:
    return batch_of(*(("power_watts", f"n{i}:0", NOON + index, float(index)) for i in range(size)))


def drain(spool: SampleSpool) -> list[float]:
    values = []
    while (oldest := spool.first()) is not None:
        values.append(float(oldest[1].value[0]))
        spool.remove(oldest[0])
    return values


def test_batches_come_back_in_order_when_opened_again(tmp_path: Path) -> None:
    spool = SampleSpool(tmp_path / "spool", max_bytes=LARGE)
    for index in range(3):
        spool.put(batch(index, 2))
    again = SampleSpool(tmp_path / "spool", max_bytes=LARGE)
    assert (len(again), again.samples) == (3, 6)
    again.put(batch(3, 2))
    oldest = again.first()
    assert oldest is not None
    assert frame_of(oldest[1]).equals(frame_of(batch(0, 2)))
    assert drain(again) == [0.0, 1.0, 2.0, 3.0]
    assert again.first() is None
    assert list((tmp_path / "spool").iterdir()) == []


def test_the_oldest_go_and_are_counted_when_there_is_too_much(tmp_path: Path) -> None:
    first = SampleSpool(tmp_path / "measure", max_bytes=LARGE)
    first.put(batch(0, 10))
    size = next((tmp_path / "measure").iterdir()).stat().st_size
    spool = SampleSpool(tmp_path / "spool", max_bytes=size * 3 + size // 2)
    dropped = [spool.put(batch(index, 10)) for index in range(5)]
    assert dropped == [0, 0, 0, 10, 10]
    assert (spool.dropped_samples, spool.samples) == (20, 30)
    assert drain(spool) == [2.0, 3.0, 4.0]


def test_others_are_sent_when_one_file_is_damaged(tmp_path: Path) -> None:
    spool = SampleSpool(tmp_path, max_bytes=LARGE)
    for index in range(3):
        spool.put(batch(index, 4))
    sorted(tmp_path.iterdir())[1].write_bytes(b"no parquet")
    (tmp_path / "000000000009-1.parquet.tmp").write_bytes(b"cut short")
    again = SampleSpool(tmp_path, max_bytes=LARGE)
    assert drain(again) == [0.0, 2.0]
    assert again.dropped_samples == 4
