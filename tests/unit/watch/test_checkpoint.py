"""The checkpoint of lives: the same statistics after a restart, and a recount if the file is invalid."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from stores.batches import NOON, batch_of
from stores.embedded import opened

from clusterscape.analyze.stats.contract import Needs, Threshold
from clusterscape.model import Allocation, Unit, UnitId, UnixMs, WorkloadId
from clusterscape.model.arrays import Float64s
from clusterscape.model.rules import Basis, Quantity, Statistic, StatisticKind
from clusterscape.store.metrics import EmbeddedMetricStore
from clusterscape.watch.life_statistics import LifeStatistics

K = StatisticKind
STEP = 15_000
METRICS = ("gpu_util_ratio", "power_watts", "energy_joules")
UNITS = [Unit(id=UnitId(f"n1:{gpu}"), power_limit_watts=700.0, memory_bytes=2**36) for gpu in range(4)]
BELOW = Quantity(0.4, Basis.LIMIT)
NEEDS = Needs(frozenset(METRICS), frozenset({Threshold("power_watts", False, BELOW)}))
STATISTICS = (
    *(Statistic(kind) for kind in (K.MIN, K.MAX, K.MEAN, K.STD, K.NOW, K.SLOPE, K.INCREASE)),
    Statistic(K.PERCENTILE, 5.0),
    Statistic(K.PERCENTILE, 50.0),
    Statistic(K.LONGEST_BELOW, threshold=BELOW),
    Statistic(K.BELOW, threshold=BELOW),
)
WINDOW_MS = 20 * STEP


def held(upto: int) -> list[Allocation]:
    """Each GPU is held by a workload, one of them only from scrape 30 on."""
    starts = (0, 5, 10, 30)
    return [
        Allocation(workload=WorkloadId(f"w{gpu}"), unit=UNITS[gpu].id, from_at=UnixMs(NOON + start * STEP))
        for gpu, start in enumerate(starts)
        if start <= upto
    ]


def scrape_into(store: EmbeddedMetricStore, statistics: LifeStatistics | None, first: int, stop: int) -> None:
    for scrape in range(first, stop):
        rng = np.random.default_rng(scrape)
        samples = [
            (metric, unit.id, NOON + scrape * STEP, float(value))
            for unit in UNITS
            for metric, value in zip(METRICS, (rng.random(), 700 * rng.random(), 1e9 + scrape * 9e3), strict=True)
        ]
        batch = batch_of(*samples)
        store.append(batch)
        if statistics is not None:
            statistics.on_allocations(held(scrape), UnixMs(NOON + scrape * STEP))
            statistics.on_samples(batch)


def begin(store: EmbeddedMetricStore, path: Path | None, at_scrape: int, needs: Needs = NEEDS) -> LifeStatistics:
    statistics = LifeStatistics(store, path, needs=needs, ring_samples=32)
    statistics.start(UNITS, held(at_scrape), UnixMs(NOON + at_scrape * STEP))
    return statistics


def table(statistics: LifeStatistics) -> dict[str, Float64s]:
    statistics.tick(UnixMs(NOON))
    columns = statistics.columns()
    assert columns.is_complete.all()
    order = np.argsort([columns.workloads[code] for code in columns.workload])
    columns_by_name = {"from": columns.from_at[order].astype(np.float64)}
    for metric in METRICS:
        for window_ms in (None, WINDOW_MS):
            columns_by_name[f"{metric} {window_ms}"] = columns.samples(metric, window_ms=window_ms)[order].astype(
                np.float64
            )
            for statistic in STATISTICS:
                column = columns.column(metric, statistic, window_ms=window_ms)
                columns_by_name[f"{metric} {statistic} {window_ms}"] = column[order]
    return columns_by_name


def assert_same(actual: dict[str, Float64s], expected: dict[str, Float64s]) -> None:
    for name, column in expected.items():
        np.testing.assert_array_equal(actual[name], column, err_msg=name)


@pytest.fixture
def uninterrupted(tmp_path: Path) -> dict[str, Float64s]:
    with opened(tmp_path / "other") as store:
        statistics = begin(store, None, 0)
        scrape_into(store, statistics, 0, 100)
        return table(statistics)


def test_statistics_are_the_same_when_the_program_starts_again_from_a_checkpoint(
    tmp_path: Path, uninterrupted: dict[str, Float64s], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lives.zip"
    with opened(tmp_path / "metrics") as store:
        first = begin(store, path, 0)
        scrape_into(store, first, 0, 60)
        first.tick(UnixMs(NOON))
        first.checkpoint()
        scrape_into(store, first, 60, 80)  # after the checkpoint, before the end
        second = begin(store, path, 80)
        assert len(second.lives.slots.keys) == 4
        scrape_into(store, second, 80, 90)  # before it has caught up
        table(second)
        scrape_into(store, second, 90, 100)
        reads: list[int] = []
        monkeypatch.setattr(store, "series", lambda *_, **__: reads.append(1))
        assert_same(table(second), uninterrupted)
        assert not reads


def test_statistics_are_the_same_when_there_is_no_checkpoint(
    tmp_path: Path, uninterrupted: dict[str, Float64s]
) -> None:
    with opened(tmp_path / "metrics") as store:
        scrape_into(store, None, 0, 100)
        assert_same(table(begin(store, tmp_path / "none.zip", 100)), uninterrupted)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other version", "not an archive"])
def test_everything_is_counted_again_when_the_file_is_invalid(
    tmp_path: Path, uninterrupted: dict[str, Float64s], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "lives.zip"
    with opened(tmp_path / "metrics") as store:
        first = begin(store, path, 0)
        scrape_into(store, first, 0, 100)
        first.tick(UnixMs(NOON))
        first.checkpoint()
        _damage(path, damage)
        assert_same(table(begin(store, path, 100)), uninterrupted)
    assert (tmp_path / "lives.zip.damaged").exists()
    assert "counting again" in caplog.text


def _damage(path: Path, how: str) -> None:
    whole = path.read_bytes()
    if how == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "flipped":
        place = whole.index(b"power_watts.arrow") + 2_000
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "not an archive":
        path.write_bytes(b"x" * 1000)
    else:
        with zipfile.ZipFile(path) as old:
            parts = {name: old.read(name) for name in old.namelist()}
        with zipfile.ZipFile(path, "w") as new:
            for name, part in parts.items():
                new.writestr(name, part.replace(b'"version": 1', b'"version": 99'))


def test_only_the_metric_is_counted_again_when_its_thresholds_changed(
    tmp_path: Path, uninterrupted: dict[str, Float64s]
) -> None:
    path = tmp_path / "lives.zip"
    with opened(tmp_path / "metrics") as store:
        first = begin(store, path, 0, Needs(frozenset(METRICS)))
        scrape_into(store, first, 0, 100)
        first.tick(UnixMs(NOON))
        first.checkpoint()
        assert_same(table(begin(store, path, 100)), uninterrupted)


def test_lives_that_ended_meanwhile_are_ended_when_the_program_starts_again(tmp_path: Path) -> None:
    path = tmp_path / "lives.zip"
    with opened(tmp_path / "metrics") as store:
        first = begin(store, path, 0)
        scrape_into(store, first, 0, 60)
        first.tick(UnixMs(NOON))
        first.checkpoint()
        second = LifeStatistics(store, path, needs=NEEDS, ring_samples=32)
        second.start(UNITS, held(60)[1:], UnixMs(NOON + 60 * STEP))
        second.tick(UnixMs(NOON))
        columns = second.columns()
        open_ones = {
            columns.workloads[w] for w, is_open in zip(columns.workload, columns.is_open, strict=True) if is_open
        }
        assert open_ones == {"w1", "w2", "w3"}
        assert columns.row_count == 4


def test_full_disk_is_reported_when_the_checkpoint_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path / "metrics") as store:
        (tmp_path / "file").write_text("")
        statistics = begin(store, tmp_path / "file" / "lives.zip", 0)
        statistics.checkpoint()
    assert "cannot write" in caplog.text
