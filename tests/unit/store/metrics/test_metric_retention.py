"""The embedded store over days: compaction, downsampling, retention, and readers meanwhile."""

import json
import threading
from pathlib import Path

import polars as pl
import pytest
from stores.batches import DAY, NOON, batch_of, window
from stores.embedded import EAGER, UNITS, opened, samples_of, scrape

from clusterscape.model import UnixMs
from clusterscape.store.metrics import EmbeddedMetricStore, SeriesStatistic
from clusterscape.store.metrics.embedded import CompactionPolicy

# -- retention and downsampling ----------------------------------------------------------------------------------------


def fill_days(store: EmbeddedMetricStore, days: range) -> None:
    """Every minute of the named days: gauges 0 to 4 in turn, counters rising by one."""
    samples = []
    for day in days:
        for minute in range(1440):
            at = NOON + day * DAY - DAY // 2 + minute * 60_000
            samples.append(("power_watts", "n1:0", at, float(minute % 5)))
            samples.append(("energy_joules", "n1:0", at, float(day * 1440 + minute)))
    store.append_history([batch_of(*samples)])


def test_samples_become_coarse_when_they_are_older_than_raw_days(tmp_path: Path) -> None:
    start, end = NOON - DAY // 2, NOON + 3 * DAY + DAY // 2
    with opened(tmp_path / "metrics", raw_days=1, coarse_days=30) as store:
        fill_days(store, range(4))

        def steps() -> pl.DataFrame:
            return store.series(["power_watts", "energy_joules"], UNITS, **window(start, end), step_ms=900_000)

        before = steps()
        requested = [
            SeriesStatistic.MIN,
            SeriesStatistic.MAX,
            SeriesStatistic.MEAN,
            SeriesStatistic.COUNT,
            SeriesStatistic.LAST,
        ]
        whole = window(start, end)
        figures = store.statistics("power_watts", requested, **whole)
        gain = store.statistics("energy_joules", [SeriesStatistic.INCREASE], **whole)["increase"].item()
        raw_bytes = store.info().bytes_on_disk
        store.maintain(now_ms=UnixMs(end))
        info = store.info()
        assert info.samples == 2 * 1440  # the last day's
        assert info.bytes_on_disk is not None
        assert raw_bytes is not None
        assert info.bytes_on_disk < raw_bytes
        assert info.oldest_at == start
        assert steps().equals(before)
        after = store.statistics("power_watts", requested, **whole)
        assert after.rows() == figures.rows()
        assert store.statistics("energy_joules", [SeriesStatistic.INCREASE], **whole)["increase"].item() == gain - 4
        old = store.series(["power_watts"], UNITS, **window(start, start + 600_000))
        assert old.rows() == [("power_watts", "n1:0", start, 2.0), ("power_watts", "n1:0", start + 300_000, 2.0)]
        travel = store.latest(["power_watts", "energy_joules"], at_ms=UnixMs(start + 290_000), lookback_ms=60_000)
        assert travel.rows() == [("n1:0", 2.0, 4.0)]


def test_coarse_values_are_dropped_when_they_are_older_than_coarse_days(tmp_path: Path) -> None:
    with opened(tmp_path / "metrics", raw_days=1, coarse_days=3) as store:
        fill_days(store, range(4))
        store.maintain(now_ms=UnixMs(NOON + 4 * DAY))
        assert store.info().oldest_at == NOON - DAY // 2 + DAY
        store.maintain(now_ms=UnixMs(NOON + 30 * DAY))
        store.maintain(now_ms=UnixMs(NOON + 30 * DAY))
        assert store.info().samples == 0
        assert samples_of(store) == []
    assert not list((tmp_path / "metrics").glob("raw/*"))
    assert not list((tmp_path / "metrics").glob("coarse/*"))


def test_late_samples_join_coarse_values_when_their_day_is_coarse_already(tmp_path: Path) -> None:
    at = NOON - DAY // 2
    with opened(tmp_path / "metrics", CompactionPolicy(wait_ms=0), raw_days=1, coarse_days=30) as store:
        fill_days(store, range(1))
        store.maintain(now_ms=UnixMs(NOON + 3 * DAY))
        assert store.info().samples == 0
        store.append(batch_of(("power_watts", "n1:0", at + 30_000, 100.0), ("power_watts", "n2:0", at, 1.0)))

        def figures() -> list[tuple[object, ...]]:
            requested = [SeriesStatistic.COUNT, SeriesStatistic.MAX, SeriesStatistic.MEAN]
            whole = window(at, at + 300_000)
            return store.statistics("power_watts", requested, **whole).sort("unit").rows()

        expected = [("n1:0", 6.0, 100.0, pytest.approx(110 / 6)), ("n2:0", 1.0, 1.0, 1.0)]
        assert figures() == expected
        for _ in range(2):
            store.maintain(now_ms=UnixMs(NOON + 3 * DAY))
            assert store.info().samples == 0
            assert figures() == expected


def test_coarse_values_follow_when_late_samples_come_before_the_day_is_dropped(tmp_path: Path) -> None:
    start = NOON - DAY // 2
    with opened(tmp_path / "metrics", CompactionPolicy(wait_ms=0)) as store:
        fill_days(store, range(1))
        store.maintain(now_ms=UnixMs(NOON + DAY))
        store.append(batch_of(("power_watts", "n1:0", start + 1, 50.0)))

        def first_step() -> tuple[object, ...]:
            end = UnixMs(start + 300_000)
            rows = store.series(["power_watts"], UNITS, start_ms=UnixMs(start), end_ms=end, step_ms=300_000)
            return rows.select("value", "max").row(0)

        assert first_step() == (10.0, 50.0)
        for _ in range(2):
            store.maintain(now_ms=UnixMs(NOON + DAY))
            assert first_step() == (10.0, 50.0)


# -- compaction --------------------------------------------------------------------------------------------------------


def test_few_files_remain_when_many_scrapes_were_compacted(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    with opened(folder, CompactionPolicy(wait_ms=60_000)) as store:
        for index in range(400):
            store.append(batch_of(*scrape(index)))
            store.maintain(now_ms=UnixMs(NOON + index * 15_000))
        assert len(list(folder.glob("recent/*"))) <= 5
        assert len(list(folder.glob("raw/*/*"))) <= 8
        store.maintain(now_ms=UnixMs(NOON + DAY))
        assert len(list(folder.glob("raw/*/*"))) == 1
        assert len(samples_of(store)) == 1200
        manifest = json.loads((folder / "manifest.json").read_text())
        assert sum(entry["samples"] for entry in manifest["raw"]) == 1200


def test_segments_stay_small_when_a_day_holds_more_than_fits(tmp_path: Path) -> None:
    policy = CompactionPolicy(segment_cells=500)
    with opened(tmp_path / "metrics", policy) as store:
        fill_days(store, range(2))
        store.maintain(now_ms=UnixMs(NOON + 3 * DAY))
        manifest = json.loads((tmp_path / "metrics/manifest.json").read_text())
        assert max(entry["rows"] * len(entry["metrics"]) for entry in manifest["raw"]) <= 500
        assert len(samples_of(store)) == 2880
        steps = store.series(["power_watts"], UNITS, **window(NOON - DAY, NOON + 3 * DAY), step_ms=300_000)
        assert steps["value"].to_list() == [2.0] * 576


def test_readers_see_every_sample_once_when_files_change_under_them(tmp_path: Path) -> None:
    scrapes = 150
    with opened(tmp_path / "metrics", EAGER) as store:
        written, wrong = [0], list[str]()
        is_done = threading.Event()

        def read() -> None:
            while not is_done.is_set():
                at_least = written[0]
                count = len(samples_of(store))
                latest = store.latest(["power_watts"], at_ms=UnixMs(NOON + DAY), lookback_ms=DAY)
                oldest = min(latest["power_watts"].to_list(), default=-1.0)
                if not 3 * at_least <= count <= 3 * (written[0] + 1) or oldest < at_least - 1:
                    wrong.append(f"{at_least} scrapes written, {count} samples read, latest {oldest}")

        def maintain() -> None:
            while not is_done.is_set():
                store.maintain(now_ms=UnixMs(NOON + DAY))

        threads = [threading.Thread(target=target) for target in (read, read, maintain)]
        for thread in threads:
            thread.start()
        for index in range(scrapes):
            store.append(batch_of(*scrape(index)))
            written[0] = index + 1
        is_done.set()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(samples_of(store)) == 3 * scrapes


def test_appending_compacts_by_itself_when_nobody_maintains(tmp_path: Path) -> None:
    with opened(tmp_path / "metrics", CompactionPolicy(wait_cells=10)) as store:
        for index in range(100):
            store.append(batch_of(*scrape(index)))
        assert len(list((tmp_path / "metrics").glob("recent/*"))) <= 14
        assert len(samples_of(store)) == 300


def test_rotten_segment_is_not_copied_on_when_it_still_decodes(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    with opened(folder) as store:
        store.append_history([batch_of(*(sample for index in range(50) for sample in scrape(index)))])
        store.append_history([batch_of(*scrape(60))])
    path = min(folder.glob("raw/*/*.parquet"))
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    with opened(folder, EAGER) as store:
        store.maintain(now_ms=UnixMs(NOON))
        assert samples_of(store) == scrape(60)
    assert [path.name for path in folder.glob("damaged/*")] == [f"raw_{path.parent.name}_{path.name}"]
