"""Samples that count for each life, with a real store: preemption, restart, sharing, late and duplicate samples, history."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from stores.batches import NOON, Sample, batch_of
from stores.embedded import opened

from clusterscape.analyze.stats.contract import Needs, Threshold, needs_of
from clusterscape.model import Allocation, Unit, UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Basis, Condition, Operator, Quantity, Statistic, StatisticKind
from clusterscape.store.metrics import EmbeddedMetricStore
from clusterscape.watch.life_columns import LifeView
from clusterscape.watch.life_statistics import LifeStatistics

K = StatisticKind
STEP = 15_000
UTIL, POWER = "gpu_util_ratio", "power_watts"
MEAN, COUNTED = Statistic(K.MEAN), Statistic(K.MAX)
LOW_RUN = Statistic(K.LONGEST_BELOW, threshold=Quantity(0.5, Basis.LIMIT))


def at(scrape: float) -> UnixMs:
    return UnixMs(NOON + int(scrape * STEP))


def allocation(workload: str, unit: str, scrape: float) -> Allocation:
    return Allocation(workload=WorkloadId(workload), unit=UnitId(unit), from_at=at(scrape))


class Site:
    """A store and the statistics that listen to what goes into it."""

    def __init__(self, store: EmbeddedMetricStore, *, ring_samples: int = 128) -> None:
        self.store = store
        self.statistics = LifeStatistics(store, needs=Needs(frozenset({UTIL, POWER})), ring_samples=ring_samples)

    def hold(self, scrape: float, *allocations: Allocation) -> None:
        self.statistics.on_allocations(allocations, at(scrape))

    def store_samples(self, *samples: Sample) -> None:
        batch = batch_of(*samples)
        self.store.append(batch)
        self.statistics.on_samples(batch)

    def scrape(self, first: int, stop: int, unit: str = "n1:0", *, util: float = 0.5) -> None:
        for scrape in range(first, stop):
            self.store_samples((UTIL, unit, at(scrape), util), (POWER, unit, at(scrape), util * 700))

    def columns(self) -> LifeView:
        self.statistics.tick(at(0))
        return self.statistics.columns()

    def read(self, metric: str = UTIL) -> dict[tuple[str, str, int], tuple[int, float]]:
        """(workload, unit, first scrape) → samples and mean, to nine decimals."""
        columns = self.columns()
        return {
            (columns.workloads[w], columns.units[u], int(from_at - NOON) // STEP): (int(count), round(float(mean), 9))
            for w, u, from_at, count, mean in zip(
                columns.workload,
                columns.unit,
                columns.from_at,
                columns.samples(metric),
                columns.column(metric, MEAN),
                strict=True,
            )
        }


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedMetricStore]:
    with opened(tmp_path / "metrics") as store:
        yield store


@pytest.fixture
def site(store: EmbeddedMetricStore) -> Site:
    return Site(store)


def test_samples_count_from_the_start_when_a_life_begins(site: Site) -> None:
    site.scrape(0, 4, util=0.9)
    site.hold(4, allocation("a", "n1:0", 4))
    site.scrape(4, 10, util=0.3)
    assert site.read() == {("a", "n1:0", 4): (6, 0.3)}


def test_missed_samples_are_read_from_the_store_when_an_allocation_is_reported_late(site: Site) -> None:
    site.scrape(0, 6)
    site.hold(6, allocation("a", "n1:0", 2))
    assert not site.statistics.columns().is_complete.any()
    site.scrape(6, 8)
    assert site.read() == {("a", "n1:0", 2): (6, 0.5)}
    assert site.columns().is_complete.all()
    site.scrape(8, 9)
    assert site.read()[("a", "n1:0", 2)][0] == 7


def test_new_life_begins_when_a_workload_is_preempted_and_starts_again(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.scrape(0, 4, util=0.8)
    site.hold(4, allocation("b", "n1:0", 4))  # a was pre-empted
    site.scrape(4, 6, util=0.1)
    site.hold(6, allocation("a", "n1:0", 6))
    site.scrape(6, 9, util=0.4)
    assert site.read() == {
        ("a", "n1:0", 0): (4, 0.8),
        ("b", "n1:0", 4): (2, 0.1),
        ("a", "n1:0", 6): (3, 0.4),
    }
    columns = site.columns()
    assert sorted(zip(columns.from_at.tolist(), columns.is_open.tolist(), strict=True)) == [
        (at(0), False),
        (at(4), False),
        (at(6), True),
    ]
    assert sorted(columns.until_at.tolist()) == [at(4), at(6), at(8)]


def test_samples_count_for_each_when_two_workloads_share_a_unit(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.scrape(0, 4)
    site.hold(4, allocation("a", "n1:0", 0), allocation("b", "n1:0", 4))
    site.scrape(4, 6)
    assert {key: count for key, (count, _) in site.read().items()} == {("a", "n1:0", 0): 6, ("b", "n1:0", 4): 2}


def test_sample_does_not_count_when_it_is_late_or_duplicated(site: Site) -> None:
    site.hold(5, allocation("a", "n1:0", 5))
    site.store_samples((UTIL, "n1:0", at(4), 0.9))  # before the life
    site.scrape(5, 8)
    site.store_samples((UTIL, "n1:0", at(7), 0.9), (UTIL, "n1:0", at(6), 0.9))
    assert site.read() == {("a", "n1:0", 5): (3, 0.5)}


def test_all_count_when_one_batch_holds_several_scrapes_in_any_order(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.store_samples(*[(UTIL, "n1:0", at(scrape), scrape / 10) for scrape in (3, 1, 0, 2)])
    assert site.read() == {("a", "n1:0", 0): (4, 0.15)}


def test_row_is_used_again_when_its_life_ended_long_ago(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.scrape(0, 4, util=0.9)
    site.hold(4)
    rows = site.statistics.lives.slots.row_count
    stale = site.columns()
    assert site.read()[("a", "n1:0", 0)][0] == 4
    site.hold(60)  # eleven minutes after
    assert site.read() == {}
    site.hold(61, *(allocation(f"b{i}", f"n2:{i}", 61) for i in range(rows)))
    site.scrape(61, 64, unit="n2:0", util=0.2)
    assert site.statistics.lives.slots.row_count == rows
    assert site.read()[("b0", "n2:0", 61)] == (3, 0.2)
    assert np.isnan(stale.column(POWER, MEAN)).all()  # not the values of the life that has the row now
    assert stale.samples(POWER).tolist() == [0]


def test_life_continues_without_a_gap_when_a_source_missed_it(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.scrape(0, 4)
    site.hold(4)
    site.scrape(4, 8)
    site.hold(8, allocation("a", "n1:0", 0))
    site.scrape(8, 10)
    assert site.read() == {("a", "n1:0", 0): (10, 0.5)}


def test_history_counts_for_open_lives_when_it_is_filled_in_later(site: Site) -> None:
    site.hold(10, allocation("a", "n1:0", 0), allocation("b", "n1:1", 0))
    site.scrape(10, 12, util=0.4)
    past = batch_of(*[(UTIL, "n1:0", at(scrape), 0.1) for scrape in range(-5, 10)])
    site.store.append_history([past])
    site.statistics.on_history([past])
    site.scrape(12, 14, util=0.4)
    assert site.read()[("a", "n1:0", 0)] == (14, round((10 * 0.1 + 4 * 0.4) / 14, 9))
    assert site.read()[("b", "n1:1", 0)][0] == 0


def test_limits_are_those_of_the_unit_when_they_become_known_later(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.scrape(0, 8)
    assert np.isnan(site.columns().limits(POWER)).all()
    site.statistics.on_units([Unit(id=UnitId("n1:0"), power_limit_watts=400.0, memory_bytes=2**36)])
    columns = site.columns()
    assert columns.limits(POWER).tolist() == [400.0]
    assert columns.limits("memory_used_bytes").tolist() == [2.0**36]
    assert columns.limits(UTIL).tolist() == [1.0]
    assert columns.column(POWER, Statistic(K.PERCENTILE, 50.0))[0] == pytest.approx(350.0, abs=2.0)
    assert columns.samples(POWER).tolist() == [8]


def test_new_thresholds_and_metrics_count_the_whole_life_when_a_rule_is_added(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.scrape(0, 6, util=0.2)
    site.scrape(6, 9, util=0.9)
    site.store_samples(*[("sm_active_ratio", "n1:0", at(scrape), 0.7) for scrape in range(9)])
    assert np.isnan(site.columns().column(UTIL, LOW_RUN)).all()
    condition = Condition(metric=UTIL, statistic=LOW_RUN, operator=Operator.MORE, value=Quantity(60.0))
    site.statistics.require(Needs(frozenset({UTIL, "sm_active_ratio"})) | needs_of([condition]))
    before = site.statistics.columns()
    assert before.column(UTIL, MEAN)[0] == pytest.approx((6 * 0.2 + 3 * 0.9) / 9)  # nothing is lost meanwhile
    columns = site.columns()
    assert columns.column(UTIL, LOW_RUN).tolist() == [90.0]
    assert columns.samples("sm_active_ratio").tolist() == [9]
    assert columns.samples(POWER).tolist() == [0]  # no rule needs it any more
    site.scrape(9, 20, util=0.1)
    assert site.columns().column(UTIL, LOW_RUN).tolist() == [165.0]


def test_needs_name_thresholds_only_when_the_whole_life_counts() -> None:
    whole = Condition(metric=UTIL, statistic=LOW_RUN, operator=Operator.MORE, value=Quantity(60.0))
    recent = Condition(metric=POWER, statistic=LOW_RUN, operator=Operator.MORE, value=Quantity(60.0), window_ms=600_000)
    needs = needs_of([whole, recent])
    assert needs.metrics == {UTIL, POWER}
    assert needs.thresholds == {Threshold(UTIL, False, Quantity(0.5, Basis.LIMIT))}
    assert needs_of([recent]) <= needs


def test_window_is_exact_when_the_last_samples_hold_it(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    for scrape in range(40):
        site.store_samples((UTIL, "n1:0", at(scrape), scrape / 100))
    columns = site.columns()
    window = 10 * STEP
    assert columns.samples(UTIL, window_ms=window).tolist() == [10]
    assert columns.column(UTIL, Statistic(K.MIN), window_ms=window)[0] == 0.30
    p50 = columns.column(UTIL, Statistic(K.PERCENTILE, 50.0), window_ms=window)[0]
    assert p50 == pytest.approx(np.percentile(np.arange(30, 40) / 100, 50))


def test_window_comes_from_the_store_when_it_reaches_beyond_the_last_samples(store: EmbeddedMetricStore) -> None:
    site = Site(store, ring_samples=8)
    site.hold(0, allocation("a", "n1:0", 0), allocation("b", "n1:0", 0), allocation("c", "n1:1", 0))
    for scrape in range(40):
        site.store_samples((UTIL, "n1:0", at(scrape), scrape / 100), (UTIL, "n1:1", at(scrape), 0.7))
    columns = site.columns()
    window = 20 * STEP
    lowest = columns.column(UTIL, Statistic(K.MIN), window_ms=window)
    highest = columns.column(UTIL, Statistic(K.MAX), window_ms=window)
    units = [columns.units[code] for code in columns.unit]
    assert dict(zip(units, lowest.tolist(), strict=True)) == {"n1:0": 0.20, "n1:1": 0.7}
    assert dict(zip(units, highest.tolist(), strict=True)) == {"n1:0": 0.39, "n1:1": 0.7}
    # One that holds the whole life needs no store.
    longer = columns.column(UTIL, Statistic(K.MIN), window_ms=100 * STEP)
    assert dict(zip(units, longer.tolist(), strict=True)) == {"n1:0": 0.0, "n1:1": 0.7}


def test_columns_are_the_same_object_when_nothing_happened(site: Site) -> None:
    site.hold(0, allocation("a", "n1:0", 0))
    site.scrape(0, 3)
    before = site.columns()
    assert site.statistics.columns() is before
    site.scrape(3, 4)
    after = site.columns()
    assert after is not before
    assert (before.samples(UTIL).tolist(), after.samples(UTIL).tolist()) != ([0], [0])


def test_past_is_read_in_pieces_when_there_is_much_of_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterscape.watch.catching_up.UNITS_AT_ONCE", 2)
    monkeypatch.setattr("clusterscape.watch.catching_up.SAMPLES_AT_ONCE", 1)
    units = [f"n{node}:{gpu}" for node in range(2) for gpu in range(4)]
    past = batch_of(*[(UTIL, unit, at(scrape), scrape / 100) for unit in units for scrape in range(100)])
    site.store.append_history([past])
    site.statistics.on_history([past])
    site.hold(100, *(allocation("a", unit, place * 5) for place, unit in enumerate(units)))
    assert site.read() == {
        ("a", unit, place * 5): (100 - place * 5, round(float(np.arange(place * 5, 100).mean()) / 100, 9))
        for place, unit in enumerate(units)
    }
