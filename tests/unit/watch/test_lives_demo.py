"""Percentiles of lives compared with exact ones on the demo's telemetry: within one point of full scale for all jobs."""

import numpy as np
import pytest

from clusterscape.analyze.stats.bins import error_bound
from clusterscape.analyze.stats.contract import Needs
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.demo.records import iter_allocations
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.telemetry import DemoTelemetry
from clusterscape.model import SampleBatch, Unit, UnixMs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.rules import Statistic, StatisticKind
from clusterscape.watch.life_columns import LifeView, LifeViews
from clusterscape.watch.lives import Lives

END_MS = UnixMs(1_794_736_800_000)
HOURS = 5
STEP_MS = 15_000
POINT = 0.01
METRICS = (
    "gpu_util_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "power_watts",
    "memory_used_bytes",
    "gpu_temperature_celsius",
    "nvlink_tx_bytes_per_second",
)
PERCENTILES = (1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0)


class Demo:
    """Five hours of the demo, counted by lives, and the same samples."""

    def __init__(self) -> None:
        scenario = DemoScenario(64, 7, END_MS)
        scenario.advance(END_MS)
        start_ms = END_MS - HOURS * 3_600_000
        machines = [node.machine for node in scenario.hardware.nodes for _ in range(node.gpu_count)]
        units = [
            Unit(id=unit, power_limit_watts=machine.power_limit_watts, memory_bytes=machine.memory_mib * 2**20)
            for unit, machine in zip(scenario.hardware.unit_ids, machines, strict=True)
        ]
        lives = Lives(Needs(frozenset(METRICS)))
        lives.follow_units(units)
        lives.follow_allocations([a for a in iter_allocations(scenario, start_ms, END_MS) if a.to_at is None], END_MS)
        self.samples: dict[str, list[SampleBatch]] = {metric: [] for metric in METRICS}
        for batches in DemoTelemetry(scenario).history(start_ms, END_MS, STEP_MS):
            for batch in batches:
                metric = batch.metrics.values[batch.metric[0]]
                if metric in self.samples:
                    self.samples[metric].append(batch)
                    lives.add(batch)
        self.columns: LifeView = LifeViews(lives).columns()

    def exact(self, metric: str) -> ExactColumns:
        columns = self.columns
        rows: list[Int64s] = []
        times: list[Int64s] = []
        values: list[Float64s] = []
        for batch in self.samples[metric]:
            for row in range(columns.row_count):
                code = batch.units.find(columns.units[columns.unit[row]])
                mine = (batch.unit == code) & (batch.time_ms >= columns.from_at[row])
                rows.append(np.full(int(mine.sum()), row))
                times.append(batch.time_ms[mine])
                values.append(batch.value[mine])
        series = Series.from_rows(
            np.concatenate(rows), np.concatenate(times), np.concatenate(values), columns.row_count
        )
        return ExactColumns({metric: series}, columns.row_count)


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


@pytest.mark.parametrize("metric", METRICS)
def test_percentiles_are_within_a_point_of_exact_when_the_demo_runs(demo: Demo, metric: str) -> None:
    exact, columns = demo.exact(metric), demo.columns
    assert columns.row_count > 20
    assert columns.samples(metric).tolist() == exact.samples(metric).tolist()
    bound = error_bound(metric)
    scale = np.nan_to_num(columns.limits(metric), nan=bound.full_scale)
    for number in PERCENTILES:
        statistic = Statistic(StatisticKind.PERCENTILE, number)
        actual, expected = columns.column(metric, statistic), exact.column(metric, statistic)
        off = np.abs(actual - expected)
        if bound.of_value:
            assert np.nanmax(off - bound.of_value * expected) <= 2**14  # below 16 KiB/s it is idle
        else:
            assert np.nanmax(off / scale) <= bound.of_full_scale + 1e-9 <= POINT
