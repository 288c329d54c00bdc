"""The statistics of lives killed between scrapes, while they checkpoint and catch up: the same as without a crash."""

import random
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from servers.reliability import note
from stores.batches import NOON, Sample, batch_of
from stores.killing import run_and_kill

from clusterscape.analyze.stats.contract import Needs, Threshold
from clusterscape.ingest.pipeline import IngestListener
from clusterscape.model import Allocation, SampleBatch, Unit, UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Basis, Quantity, Statistic, StatisticKind
from clusterscape.settings import RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore
from clusterscape.watch.life_statistics import LifeStatistics

KILLS = 5
STEP = 15_000
K = StatisticKind
UNITS = [Unit(id=UnitId(f"n{node}:{gpu}"), power_limit_watts=700.0) for node in range(4) for gpu in range(8)]
METRICS = ("energy_joules", "gpu_util_ratio", "power_watts")
IDLE = Quantity(0.3, Basis.LIMIT)
NEEDS = Needs(frozenset(METRICS), frozenset({Threshold("power_watts", False, IDLE)}))
STATISTICS = (
    *(Statistic(kind) for kind in (K.MIN, K.MAX, K.MEAN, K.STD, K.NOW, K.SLOPE, K.INCREASE)),
    *(Statistic(K.PERCENTILE, number) for number in (5.0, 50.0, 95.0)),
    Statistic(K.LONGEST_BELOW, threshold=IDLE),
)


def scrape(number: int) -> SampleBatch:
    rng = np.random.default_rng(number)
    power = 700 * rng.random(len(UNITS))
    columns = (1e9 + number * 9e3 + np.arange(len(UNITS)), rng.integers(0, 101, len(UNITS)) * 0.01, power)
    samples: list[Sample] = [
        (metric, unit.id, NOON + number * STEP, float(value))
        for metric, values in zip(METRICS, columns, strict=True)
        for unit, value in zip(UNITS, values, strict=True)
    ]
    return batch_of(*samples)


def held(number: int) -> list[Allocation]:
    """Each node's workload begins again every 50 scrapes, the nodes one after another."""
    return [
        Allocation(
            workload=WorkloadId(f"w{place // 8}"),
            unit=unit.id,
            from_at=UnixMs(NOON + max(0, (number - place // 8 * 10) // 50 * 50 + place // 8 * 10) * STEP),
        )
        for place, unit in enumerate(UNITS)
    ]


def begin(folder: Path, number: int) -> tuple[EmbeddedMetricStore, LifeStatistics]:
    store = EmbeddedMetricStore(folder / "metrics", RetentionSettings())
    statistics = LifeStatistics(store, folder / "lives.zip", needs=NEEDS)
    statistics.start(UNITS, held(number), UnixMs(NOON + number * STEP))
    return store, statistics


def take_in(store: EmbeddedMetricStore, listener: IngestListener, number: int) -> None:
    batch = scrape(number)
    store.append(batch)
    listener.on_allocations(held(number), UnixMs(NOON + number * STEP))
    listener.on_samples(batch)


def follow_until_killed(folder: Path, first: int, acknowledge: "Connection[int, None]") -> None:
    """Scrape and judge; a checkpoint at every third scrape. After each, its number goes into the pipe."""
    store, statistics = begin(folder, first)
    number = first
    while True:
        take_in(store, statistics, number)
        statistics.tick(UnixMs(0))
        if number % 3 == 0:
            statistics.checkpoint()
        acknowledge.send(number)
        number += 1


def read_lives(statistics: LifeStatistics) -> dict[tuple[str, str, int], list[float]]:
    statistics.tick(UnixMs(0))
    columns = statistics.columns()
    assert columns.is_complete.all()
    values = [columns.samples(metric).astype(np.float64) for metric in METRICS]
    for window_ms in (None, 10 * STEP):
        values += [
            columns.column(metric, statistic, window_ms=window_ms) for metric in METRICS for statistic in STATISTICS
        ]
    return {
        (columns.workloads[w], columns.units[u], int(from_at)): [float(column[row]) for column in values]
        for row, (w, u, from_at) in enumerate(zip(columns.workload, columns.unit, columns.from_at, strict=True))
        if columns.is_open[row]
    }


def test_statistics_equal_an_uninterrupted_run_when_the_process_is_killed_again_and_again(tmp_path: Path) -> None:
    randomly = random.Random(5)
    crashed, calm = tmp_path / "crashed", tmp_path / "calm"
    first = 0
    calm_store, calm_statistics = begin(calm, 0)
    for _ in range(KILLS):
        last = run_and_kill(follow_until_killed, crashed, first, randomly.uniform(0.0, 0.6))
        store, statistics = begin(crashed, last)
        newest = store.info().newest_at
        assert newest is not None
        # The scrape after the last acknowledged one may have been stored before the end.
        stop = (newest - NOON) // STEP + 1
        assert stop - 1 in (last, last + 1)
        for number in range(first, stop):
            take_in(calm_store, calm_statistics, number)
        statistics.on_allocations(held(stop - 1), UnixMs(newest))
        expected = read_lives(calm_statistics)
        lives = read_lives(statistics)
        assert lives.keys() == expected.keys()
        for life, numbers in expected.items():
            np.testing.assert_array_equal(lives[life], numbers, err_msg=str(life))
        store.close()
        first = stop
    calm_store.close()
    assert first > KILLS
    note(
        "fault",
        what="kill −9 of the process that keeps statistics of lives",
        promised="they equal an uninterrupted run",
        measured="equal",
    )
