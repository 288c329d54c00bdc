"""Contract of metric stores, against the embedded store, a real VictoriaMetrics and a real Prometheus.

Prometheus is written by remote write; it refuses what is equal in time, so cases about that are not its.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from servers.prometheus import prometheus_server
from servers.victoria import VictoriaServer, run_victoria
from stores.batches import DAY, NOON, Sample, batch_of, window

from clusterscape.model import UnitId, UnixMs
from clusterscape.settings import MetricsServerSettings, RetentionSettings
from clusterscape.store.metrics import EmbeddedMetricStore, MetricStore, SeriesStatistic, VictoriaMetricStore
from clusterscape.store.metrics.victoria import open_server_store

SCRAPE = 15_000


@dataclass(frozen=True, slots=True)
class Engine:
    """A store, and how to make its writes visible."""

    store: MetricStore
    settle: Callable[[], None]
    is_exact: bool  # VictoriaMetrics chooses among equal samples, and counts what it holds with a delay

    def write(self, *samples: Sample) -> None:
        """Append and show."""
        self.store.append(batch_of(*samples))
        self.settle()


@pytest.fixture(scope="module")
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaServer]:
    with run_victoria(tmp_path_factory.mktemp("victoria") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def prometheus() -> Iterator[str]:
    with prometheus_server([], receives=True) as url:
        yield url


@pytest.fixture(
    params=["embedded", *(pytest.param(name, marks=pytest.mark.server) for name in ("victoria", "prometheus"))]
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    store: MetricStore
    if request.param == "embedded":
        store = EmbeddedMetricStore(tmp_path / "metrics", RetentionSettings())
        yield Engine(store, lambda: None, is_exact=True)
    elif request.param == "prometheus":
        server_settings = MetricsServerSettings(write_protocol="remote_write")
        address: str = request.getfixturevalue("prometheus")
        store = open_server_store(address, server_settings, cluster=request.node.name)
        yield Engine(store, lambda: None, is_exact=False)
    else:
        server: VictoriaServer = request.getfixturevalue("victoria")
        # One server for all tests: each test is a cluster of its own.
        store = VictoriaMetricStore(server.url, cluster=request.node.name)
        yield Engine(store, server.flush, is_exact=False)
    store.close()


def series(engine: Engine, metric: str, unit: str, start: int, end: int) -> list[tuple[int, float]]:
    frame = engine.store.series([metric], [UnitId(unit)], **window(start, end))
    return list(zip(frame["time_ms"].to_list(), frame["value"].to_list(), strict=True))


def table(frame: pl.DataFrame) -> dict[str, tuple[float | None, ...]]:
    return {row[0]: row[1:] for row in frame.iter_rows()}


# -- empty and unknown -------------------------------------------------------------------------------------------------


def test_answers_are_empty_but_typed_when_store_is_empty(engine: Engine) -> None:
    latest = engine.store.latest(["power_watts"], at_ms=UnixMs(NOON), lookback_ms=60_000)
    assert latest.schema == {"unit": pl.String, "power_watts": pl.Float64}
    assert latest.height == 0
    rows = engine.store.series(["power_watts"], [UnitId("n1:0")], **window(0, NOON))
    assert rows.schema == {"metric": pl.String, "unit": pl.String, "time_ms": pl.Int64, "value": pl.Float64}
    assert rows.height == 0
    steps = engine.store.series(["x"], [UnitId("n1:0")], **window(NOON - DAY, NOON), step_ms=60_000)
    assert steps.columns == ["metric", "unit", "time_ms", "value", "min", "max"]
    statistics = engine.store.statistics("x", [SeriesStatistic.P50, SeriesStatistic.INCREASE], **window(0, NOON))
    assert statistics.schema == {"unit": pl.String, "p50": pl.Float64, "increase": pl.Float64}
    assert statistics.height == 0


def test_answers_are_empty_when_names_are_unknown(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, 300.0))
    assert series(engine, "power_watts", "n9:9", NOON, NOON + 1) == []
    assert series(engine, "nonsense", "n1:0", NOON, NOON + 1) == []
    latest = engine.store.latest(["nonsense"], at_ms=UnixMs(NOON), lookback_ms=60_000)
    assert latest.height == 0
    rows = engine.store.statistics(
        "power_watts", [SeriesStatistic.MAX], **window(NOON, NOON + 1), units=[UnitId("n9:9")]
    )
    assert rows.height == 0


def test_nothing_is_asked_for_when_lists_are_empty(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, 300.0))
    period = window(NOON, NOON + 1)
    assert engine.store.series([], [UnitId("n1:0")], **period).height == 0
    assert engine.store.series(["power_watts"], [], **period).height == 0
    assert engine.store.statistics("power_watts", [SeriesStatistic.MAX], units=[], **period).height == 0
    assert engine.store.latest([], at_ms=UnixMs(NOON), lookback_ms=1).height == 0


def test_range_without_length_is_empty_when_samples_stand_at_its_border(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, 300.0))
    assert series(engine, "power_watts", "n1:0", NOON, NOON) == []
    rows = engine.store.statistics("power_watts", [SeriesStatistic.MAX], **window(NOON, NOON))
    assert rows.height == 0


def test_batch_is_accepted_when_it_is_empty(engine: Engine) -> None:
    engine.store.append(batch_of())
    engine.store.append_history([])
    engine.store.append_history([batch_of()])
    assert series(engine, "power_watts", "n1:0", 0, NOON) == []


def test_names_survive_when_they_hold_odd_characters(engine: Engine) -> None:
    odd = 'n-1.x:0/"7|(é)\\'
    engine.write(("power_watts", odd, NOON, 1.0), ("power_watts", "n-1yx:0", NOON, 2.0))
    assert series(engine, "power_watts", odd, NOON, NOON + 1) == [(NOON, 1.0)]
    assert table(engine.store.latest(["power_watts"], at_ms=UnixMs(NOON), lookback_ms=1))[odd] == (1.0,)


# -- ranges, order, duplicates -----------------------------------------------------------------------------------------


def test_range_is_half_open_when_samples_stand_on_its_borders(engine: Engine) -> None:
    engine.write(*(("power_watts", "n1:0", NOON + i * SCRAPE, float(i)) for i in range(4)))
    rows = series(engine, "power_watts", "n1:0", NOON + SCRAPE, NOON + 3 * SCRAPE)
    assert rows == [(NOON + SCRAPE, 1.0), (NOON + 2 * SCRAPE, 2.0)]
    statistics = engine.store.statistics(
        "power_watts", [SeriesStatistic.COUNT], **window(NOON + SCRAPE, NOON + 3 * SCRAPE)
    )
    assert table(statistics) == {"n1:0": (2.0,)}


def test_milliseconds_are_kept_when_times_are_odd(engine: Engine) -> None:
    times = [NOON + offset for offset in range(0, 1000, 7)]
    engine.write(*(("power_watts", "n1:0", time, 1.0) for time in times))
    for time in times[::17]:
        assert series(engine, "power_watts", "n1:0", time, time + 1) == [(time, 1.0)]
        rows = engine.store.statistics("power_watts", [SeriesStatistic.COUNT], **window(time, time + 8))
        assert table(rows) == {"n1:0": (2.0 if time + 7 <= times[-1] else 1.0,)}


def test_samples_come_in_order_when_written_late(engine: Engine) -> None:
    for index in (3, 0, 2, 1):
        engine.write(("power_watts", "n1:0", NOON + index * SCRAPE, float(index)))
    rows = series(engine, "power_watts", "n1:0", NOON, NOON + DAY)
    assert rows == [(NOON + index * SCRAPE, float(index)) for index in range(4)]
    latest = engine.store.latest(["power_watts"], at_ms=UnixMs(NOON + DAY), lookback_ms=DAY)
    assert table(latest) == {"n1:0": (3.0,)}


def test_one_sample_stays_when_the_same_time_is_written_twice(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, 1.0), ("power_watts", "n1:0", NOON + SCRAPE, 5.0))
    engine.write(("power_watts", "n1:0", NOON, 2.0), ("temperature_celsius", "n1:0", NOON, 40.0))
    rows = series(engine, "power_watts", "n1:0", NOON, NOON + 1)
    assert len(rows) == 1
    if engine.is_exact:
        assert rows == [(NOON, 2.0)]
    statistics = engine.store.statistics(
        "power_watts", [SeriesStatistic.COUNT, SeriesStatistic.MAX], **window(NOON, NOON + DAY)
    )
    assert table(statistics) == {"n1:0": (2.0, 5.0)}


def test_one_sample_stays_when_a_batch_holds_it_twice(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, 1.0), ("power_watts", "n1:0", NOON, 2.0))
    rows = series(engine, "power_watts", "n1:0", NOON, NOON + 1)
    assert len(rows) == 1
    if engine.is_exact:
        assert rows == [(NOON, 2.0)]


def test_series_are_sorted_by_metric_unit_time_when_asked_in_another_order(engine: Engine) -> None:
    samples = [
        (metric, unit, NOON + index * SCRAPE, float(index))
        for metric in ("power_watts", "gpu_util_ratio")
        for unit in ("n2:0", "n1:1", "n1:0")
        for index in (1, 0)
    ]
    engine.write(*samples)
    names = [UnitId("n2:0"), UnitId("n1:1"), UnitId("n1:0"), UnitId("n1:1")]
    rows = engine.store.series(["power_watts", "gpu_util_ratio"], names, **window(NOON, NOON + DAY))
    assert rows.rows() == sorted(samples)


def test_missing_sample_is_no_row_when_it_is_nan(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, float("nan")), ("power_watts", "n1:0", NOON + 1, 7.0))
    assert series(engine, "power_watts", "n1:0", NOON, NOON + 2) == [(NOON + 1, 7.0)]


def test_counter_keeps_its_digits_when_it_is_large(engine: Engine) -> None:
    values = [123_456_789_012.345, 123_456_789_012.346]
    engine.write(*(("energy_joules", "n1:0", NOON + i * SCRAPE, value) for i, value in enumerate(values)))
    rows = series(engine, "energy_joules", "n1:0", NOON, NOON + DAY)
    assert [value for _, value in rows] == values


# -- latest ------------------------------------------------------------------------------------------------------------


def test_latest_has_one_row_per_unit_when_metrics_differ(engine: Engine) -> None:
    engine.write(
        ("power_watts", "n1:0", NOON - SCRAPE, 100.0),
        ("power_watts", "n1:0", NOON, 110.0),
        ("temperature_celsius", "n1:0", NOON - SCRAPE, 50.0),
        ("power_watts", "n1:1", NOON - SCRAPE, 90.0),
        ("temperature_celsius", "n1:2", NOON, 40.0),
    )
    latest = engine.store.latest(["power_watts", "temperature_celsius"], at_ms=UnixMs(NOON), lookback_ms=60_000)
    assert latest.columns == ["unit", "power_watts", "temperature_celsius"]
    assert table(latest) == {"n1:0": (110.0, 50.0), "n1:1": (90.0, None), "n1:2": (None, 40.0)}


def test_latest_looks_back_inclusively_when_samples_stand_on_its_borders(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, 1.0), ("power_watts", "n1:1", NOON + 60_000, 2.0))

    def units_at(at: int, lookback: int) -> set[str]:
        return set(table(engine.store.latest(["power_watts"], at_ms=UnixMs(at), lookback_ms=lookback)))

    assert units_at(NOON + 60_000, 60_000) == {"n1:0", "n1:1"}
    assert units_at(NOON + 60_001, 60_000) == {"n1:1"}
    assert units_at(NOON + 59_999, 60_000) == {"n1:0"}
    assert units_at(NOON - 1, 60_000) == set()


def test_latest_answers_for_the_past_when_newer_samples_exist(engine: Engine) -> None:
    for index in range(8):
        engine.write(("power_watts", "n1:0", NOON + index * 600_000, float(index)))
    for at, expected in ((NOON + 600_000, 1.0), (NOON + 1_799_999, 2.0), (NOON + 1_800_000, 3.0)):
        latest = engine.store.latest(["power_watts"], at_ms=UnixMs(at), lookback_ms=600_000)
        assert table(latest) == {"n1:0": (expected,)}


# -- statistics --------------------------------------------------------------------------------------------------------


def test_statistics_equal_numpy_when_series_have_different_lengths(engine: Engine) -> None:
    rng = np.random.default_rng(7)
    lengths = {"n1:0": 1, "n1:1": 2, "n1:2": 17, "n1:3": 18, "n1:4": 40}
    values = {unit: rng.integers(0, 10_000, length) / 100 for unit, length in lengths.items()}
    engine.write(
        *(
            ("power_watts", unit, NOON + i * SCRAPE, float(value))
            for unit, of_unit in values.items()
            for i, value in enumerate(of_unit)
        )
    )
    statistics = [statistic for statistic in SeriesStatistic if statistic is not SeriesStatistic.INCREASE]
    rows = engine.store.statistics("power_watts", statistics, **window(NOON, NOON + DAY))
    assert rows.columns == ["unit", *map(str, statistics)]
    assert set(rows["unit"]) == set(lengths)
    for row in rows.iter_rows(named=True):
        of_unit = values[row["unit"]]
        expected = {
            "min": of_unit.min(),
            "max": of_unit.max(),
            "mean": of_unit.mean(),
            "std": of_unit.std(),
            "count": len(of_unit),
            "first": of_unit[0],
            "last": of_unit[-1],
        } | {f"p{p}": np.percentile(of_unit, p) for p in (5, 25, 50, 75, 95)}
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_statistics_are_of_named_units_when_units_are_named(engine: Engine) -> None:
    engine.write(*(("power_watts", f"n{i}:0", NOON, float(i)) for i in range(300)))
    period = window(NOON, NOON + 1)
    few = [UnitId("n7:0"), UnitId("n3:0"), UnitId("n3:0"), UnitId("nowhere")]
    rows = engine.store.statistics("power_watts", [SeriesStatistic.MEAN], units=few, **period)
    assert table(rows) == {"n3:0": (3.0,), "n7:0": (7.0,)}
    many = [UnitId(f"n{i}:0") for i in range(290)]
    rows = engine.store.statistics("power_watts", [SeriesStatistic.MEAN], units=many, **period)
    assert set(rows["unit"]) == set(many)


def test_increase_adds_up_resets_when_counter_restarts(engine: Engine) -> None:
    readings = {"n1:0": [10.0, 15.0, 25.0], "n1:1": [90.0, 100.0, 3.0, 8.0, 0.0, 4.0], "n1:2": [42.0]}
    engine.write(
        *(
            ("energy_joules", unit, NOON + i * SCRAPE, value)
            for unit, values in readings.items()
            for i, value in enumerate(values)
        ),
        ("energy_joules", "n1:0", NOON - SCRAPE, 1.0),
    )
    rows = engine.store.statistics(
        "energy_joules", [SeriesStatistic.INCREASE, SeriesStatistic.LAST], **window(NOON, NOON + DAY)
    )
    assert rows.columns == ["unit", "increase", "last"]
    assert table(rows) == {"n1:0": (15.0, 25.0), "n1:1": (22.0, 4.0), "n1:2": (0.0, 42.0)}


# -- steps -------------------------------------------------------------------------------------------------------------


def test_steps_hold_mean_min_max_when_metric_is_a_gauge(engine: Engine) -> None:
    values = [1.0, 2.0, 6.0, 3.0, 8.0, 10.0, 20.0, 7.0, 5.0]
    start = NOON + 30_000
    engine.write(*(("power_watts", "n1:0", start + i * SCRAPE, value) for i, value in enumerate(values)))
    steps = engine.store.series(["power_watts"], [UnitId("n1:0")], **window(start + 1, NOON + DAY), step_ms=60_000)
    assert steps.select("time_ms", "value", "min", "max").rows() == [
        (NOON, 2.0, 2.0, 2.0),
        (NOON + 60_000, 6.75, 3.0, 10.0),
        (NOON + 120_000, pytest.approx(32 / 3), 5.0, 20.0),
    ]


def test_steps_hold_last_when_metric_is_a_counter(engine: Engine) -> None:
    engine.write(*(("energy_joules", "n1:0", NOON + i * SCRAPE, float(10 * i)) for i in range(8)))
    steps = engine.store.series(["energy_joules"], [UnitId("n1:0")], **window(NOON, NOON + 120_000), step_ms=60_000)
    assert steps.select("time_ms", "value", "min", "max").rows() == [
        (NOON, 30.0, 0.0, 30.0),
        (NOON + 60_000, 70.0, 40.0, 70.0),
    ]


def test_steps_without_samples_are_absent_when_series_has_a_gap(engine: Engine) -> None:
    engine.write(("power_watts", "n1:0", NOON, 1.0), ("power_watts", "n1:0", NOON + 3_600_000, 2.0))
    steps = engine.store.series(["power_watts"], [UnitId("n1:0")], **window(NOON, NOON + 2 * 3_600_000), step_ms=60_000)
    assert steps["time_ms"].to_list() == [NOON, NOON + 3_600_000]


def test_step_is_cut_when_range_ends_within_it(engine: Engine) -> None:
    engine.write(*(("power_watts", "n1:0", NOON + i * SCRAPE, float(i)) for i in range(4)))
    steps = engine.store.series(
        ["power_watts"],
        [UnitId("n1:0")],
        **window(NOON + 1, NOON + 3 * SCRAPE),
        step_ms=3_600_000,
    )
    assert steps.select("time_ms", "value", "min", "max").rows() == [(NOON, 1.5, 1.0, 2.0)]


# -- history, maintenance ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouping", ["one", "by metric", "by hour", "shuffled"])
def test_history_equals_appends_when_it_comes_in_any_shape(engine: Engine, grouping: str) -> None:
    rng = np.random.default_rng(3)
    samples = [
        (metric, f"n{unit}:0", NOON + step * 60_000, float(rng.integers(0, 1000)))
        for metric in ("gpu_util_ratio", "power_watts")
        for unit in range(4)
        for step in range(13 * 60)  # over midnight
        if not (metric == "power_watts" and unit == 3)
    ]
    expected = sorted(samples)
    if grouping == "shuffled":
        rng.shuffle(samples)
        samples = [(str(m), str(u), int(t), float(v)) for m, u, t, v in samples]
    groups: dict[object, list[Sample]] = {}
    for sample in samples:
        key = {"by metric": sample[0], "by hour": sample[2] // 3_600_000}.get(grouping)
        groups.setdefault(key, []).append(sample)
    engine.store.append_history([batch_of(*group) for group in groups.values()])
    engine.settle()
    rows = engine.store.series(
        ["power_watts", "gpu_util_ratio"],
        [UnitId(f"n{unit}:0") for unit in range(4)],
        **window(NOON, NOON + DAY),
    )
    assert rows.rows() == expected
    at = NOON + (13 * 60 - 1) * 60_000
    latest = engine.store.latest(["gpu_util_ratio"], at_ms=UnixMs(at), lookback_ms=60_000)
    assert table(latest) == {u: (v,) for m, u, t, v in expected if m == "gpu_util_ratio" and t == at}


def test_answers_stay_when_store_is_maintained(engine: Engine) -> None:
    rng = np.random.default_rng(5)
    units = [f"n{i}:0" for i in range(6)]
    for scrape in range(40):
        engine.store.append(
            batch_of(
                *(
                    (metric, unit, NOON + scrape * 600_000 + int(rng.integers(0, 1000)), float(rng.integers(0, 100)))
                    for metric in ("power_watts", "energy_joules")
                    for unit in units
                )
            )
        )
    engine.settle()
    end = NOON + 40 * 600_000

    def answers() -> list[pl.DataFrame]:
        period = window(NOON + 100, end - 100)
        names = [UnitId(unit) for unit in units]
        both = ["power_watts", "energy_joules"]
        return [
            engine.store.latest(both, at_ms=UnixMs(end), lookback_ms=900_000).sort("unit"),
            engine.store.latest(both, at_ms=UnixMs(NOON + 6_000_000), lookback_ms=900_000).sort("unit"),
            engine.store.series(both, names, **period),
            engine.store.series(both, names, step_ms=900_000, **period),
            engine.store.statistics(
                "power_watts", [s for s in SeriesStatistic if s != SeriesStatistic.STD], **period
            ).sort("unit"),
        ]

    before = answers()
    for now in (end, end + 3_600_000, end + DAY, end + DAY):
        engine.store.maintain(now_ms=UnixMs(now))
        for old, new in zip(before, answers(), strict=True):
            assert_frame_equal(old, new)


def test_info_counts_what_was_written_when_asked(engine: Engine) -> None:
    before = engine.store.info().samples or 0
    engine.write(*(("power_watts", f"n{i}:0", NOON, float(i)) for i in range(50)))
    info = engine.store.info()
    if info.engine == "prometheus":  # it does not say
        return
    assert info.samples is not None
    assert info.samples - before == 50 or not engine.is_exact
    assert info.bytes_on_disk is not None
    assert info.bytes_on_disk > 0


# -- removing ----------------------------------------------------------------------------------------------------------


def test_samples_of_a_unit_and_below_it_are_gone_when_it_is_removed(engine: Engine) -> None:
    units = ("run:a", "run:a/rank1", "run:a/at/n1:0", "run:ab", "n1:0")
    engine.write(*(("power_watts", unit, NOON + at, 1.0) for unit in units for at in (0, 1000)))
    is_removed = engine.store.remove_unit(UnitId("run:a"), **window(NOON, NOON + 2000))
    engine.settle()
    rows = {unit for unit in units if series(engine, "power_watts", unit, NOON, NOON + 2000)}
    assert rows == ({"run:ab", "n1:0"} if is_removed else set(units)), "Prometheus removes nothing unless configured to"
    if engine.is_exact:
        assert is_removed
        assert set(engine.store.latest(["power_watts"], at_ms=UnixMs(NOON + 2000), lookback_ms=60_000)["unit"]) == rows
