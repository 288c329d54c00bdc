"""The GPU that delays a synchronous training, from telemetry alone."""

import numpy as np
import pytest
from clusters.odd_gpus import make_utilization
from clusters.stragglers import KINDS, Delay, PlantedRun, make_run

from clusterscape.analyze.diagnose import diagnose
from clusterscape.model.findings import Finding, FindingKind
from clusterscape.model.ids import UnitId


def find(planted: PlantedRun) -> list[Finding]:
    units = [UnitId(f"n{at // 8}:{at % 8}") for at in range(planted.metrics["power_watts"].shape[1])]
    diagnosis = diagnose(planted.times_ms, planted.metrics, units)
    return [finding for finding in diagnosis.findings if finding.kind is FindingKind.STRAGGLER]


WORDS = {"clock": "MHz", "host": "is held up by its host", "work": "works longer than the others"}


@pytest.mark.parametrize("delay", list(Delay))
def test_gpu_kind_and_start_are_named_when_one_gpu_delays_the_others(delay: Delay) -> None:
    planted = make_run(np.random.default_rng([1001, list(Delay).index(delay)]), delay)
    (finding,) = find(planted)
    guilty = planted.guilty
    assert guilty is not None
    assert finding.units == (f"n{guilty // 8}:{guilty % 8}",)
    assert WORDS[KINDS[delay]] in finding.title
    late = finding.start_at - planted.times_ms[planted.onset]
    assert abs(late) <= 0.05 * (planted.times_ms[-1] - planted.times_ms[0])
    assert ("copies more" in finding.title) == (delay is Delay.COPIES)


@pytest.mark.parametrize("seed", range(4))
def test_no_gpu_is_named_when_the_run_is_healthy(seed: int) -> None:
    assert not find(make_run(np.random.default_rng([1002, seed]), None))


def test_no_single_gpu_is_named_when_half_of_them_are_slow() -> None:
    planted = make_run(np.random.default_rng([1003, 0]), None)
    gpus = planted.metrics["sm_clock_hertz"].shape[1]
    planted.metrics["sm_clock_hertz"][:, : gpus // 2] *= 0.7
    assert not find(planted)


def test_no_gpu_is_named_when_the_run_is_idle() -> None:
    planted = make_run(np.random.default_rng([1004, 0]), Delay.CLOCK)
    planted.metrics["gpu_util_ratio"] *= 0.1
    assert not find(planted)


def test_nothing_is_said_when_there_are_too_few_samples() -> None:
    times_ms, util = make_utilization(np.random.default_rng(5), 8, points=60)
    util[:, 3] -= 0.5
    assert find(PlantedRun(times_ms[:4], {"gpu_util_ratio": util[:4], "power_watts": util[:4]}, 3, 0)) == []
