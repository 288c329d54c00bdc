"""The shipped rules: complete, documented, and correct on series with a known verdict."""

from pathlib import Path

import numpy as np
import pytest

from clusterscape.analyze.rules.checking import check_rule
from clusterscape.analyze.rules.evaluation import evaluate
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.rules.replay import scale_times
from clusterscape.analyze.rules.shipped import ShippedRule, find_shipped_rule, shipped_rules
from clusterscape.analyze.rules.writing import explain_in_words, format_rule
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.model import UnitId, WorkloadId

DOCS = Path(__file__).parents[4] / "docs/reference/rules.md"
MINUTES = np.arange(240, dtype=np.int64)  # a life of four hours, a sample a minute
BUSY = np.ones(240)
ONE_GPU = 80 * 2.0**30


def broken(key: str, *rows: dict[str, np.ndarray], minutes: int = 240) -> list[bool]:
    """Whether the rule is broken by each GPU of one workload."""
    shipped_rule = find_shipped_rule(key)
    assert shipped_rule is not None
    time_ms = MINUTES[:minutes] * 60_000
    metrics = {metric for row in rows for metric in row}
    nothing = np.full(minutes, np.nan)
    series = {
        metric: Series.from_table(time_ms, np.array([row.get(metric, nothing)[:minutes] for row in rows]))
        for metric in metrics
    }
    limits = {"power_watts": np.full(len(rows), 700.0), "memory_used_bytes": np.full(len(rows), ONE_GPU)}
    at_ms = (minutes - 1) * 60_000
    columns = ExactColumns(series, len(rows), limits=limits, at_ms=at_ms)
    facts = LifeFacts(
        units=[UnitId(f"n:{row}") for row in range(len(rows))],
        workload=np.zeros(len(rows), np.int32),
        age_ms=np.full(len(rows), at_ms),
        workloads=[WorkloadId("w")],
        users=["u"],
        projects=["p"],
        partitions=["large"],
        machine_types=["H200"],
        names=["train"],
        gpus=np.array([len(rows)]),
    )
    return [bool(state) for state in evaluate([shipped_rule.rule], columns, facts).is_broken[0]]


def util(values: np.ndarray, **metrics: np.ndarray) -> dict[str, np.ndarray]:
    return {"gpu_util_ratio": values} | metrics


def steps(*parts: tuple[int, float]) -> np.ndarray:
    """A series of constant parts, given as (minutes, value)."""
    return np.concatenate([np.full(minutes, value) for minutes, value in parts])


@pytest.mark.parametrize("shipped", shipped_rules(), ids=lambda shipped: shipped.rule.key)
def test_rule_is_complete_and_documented_when_shipped(shipped: ShippedRule) -> None:
    check_rule(shipped.rule)
    assert shipped.rule.is_shipped
    assert len(shipped.rule.reason) > 60
    assert len(shipped.false_alarms) > 60
    assert shipped.source
    assert explain_in_words(shipped.rule)
    page = DOCS.read_text(encoding="utf-8")
    assert f"### {shipped.rule.key}" in page
    assert format_rule(shipped.rule) in page


def test_keys_are_unique_when_listed() -> None:
    keys = [shipped.rule.key for shipped in shipped_rules()]
    assert len(keys) == len(set(keys))


def test_tensor_activity_decides_when_it_is_measured() -> None:
    warm = np.full(240, 350.0)  # half of the limit: power alone does not decide
    silent, working, few = np.zeros(240), np.full(240, 0.3), np.full(240, 0.07)
    stalled = util(BUSY, power_watts=warm, tensor_active_ratio=silent, sm_active_ratio=few)
    training = util(BUSY, power_watts=warm, tensor_active_ratio=working, sm_active_ratio=BUSY * 0.8)
    simulation = util(BUSY, power_watts=warm, tensor_active_ratio=silent, sm_active_ratio=BUSY * 0.8)
    unmeasured = util(BUSY, power_watts=warm)
    cold = util(BUSY, power_watts=np.full(240, 121.0))
    assert broken("stalled-training", stalled, training, simulation, unmeasured, cold) == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_late_stall_is_found_when_good_hours_hide_it() -> None:
    power = steps((200, 650.0), (40, 121.0))
    life = util(BUSY, power_watts=power)
    assert broken("stalled-training", life) == [False]
    assert broken("stalled-lately", life) == [True]
    assert broken("stalled-lately", util(BUSY, power_watts=steps((220, 650.0), (20, 121.0)))) == [False]


def test_idle_tail_is_found_when_it_worked_before() -> None:
    worked = util(steps((205, 1.0), (35, 0.0)))
    never = util(np.zeros(240))
    pausing = util(steps((220, 1.0), (20, 0.0)))
    assert broken("idle-after-activity", worked, never, pausing) == [True, False, False]
    assert broken("never-used", worked, never, pausing) == [False, True, False]


def test_steady_growth_is_a_leak_when_steps_are_not() -> None:
    def memory(values: np.ndarray) -> dict[str, np.ndarray]:
        return {"memory_used_bytes": values * ONE_GPU}

    leaking = memory(np.linspace(0.5, 0.8, 240))
    loading = memory(steps((10, 0.01), (230, 0.9)))
    stepping = memory(steps((180, 0.5), (60, 0.9)))
    small = memory(np.linspace(0.1, 0.4, 240))
    wild = memory(np.random.default_rng(5).uniform(0.2, 1.0, 240) + np.linspace(-0.1, 0.1, 240))
    assert broken("memory-leak", leaking, loading, stepping, small, wild) == [True, False, False, False, False]


def test_workload_is_uneven_when_one_gpu_waits() -> None:
    assert broken("gpu-imbalance", util(BUSY), util(BUSY * 0.5)) == [True, True]
    assert broken("gpu-imbalance", util(BUSY), util(BUSY * 0.9)) == [False, False]
    assert broken("gpu-imbalance", util(BUSY * 0.4), util(BUSY * 0.0)) == [False, False]
    assert broken("gpu-imbalance", util(BUSY)) == [False]


def test_hot_gpu_is_found_when_it_throttles_or_is_near_its_limit() -> None:
    throttled = {"thermal_throttle_seconds": np.cumsum(np.full(240, 10.0))}
    cool = {"thermal_throttle_seconds": np.full(240, 5000.0), "gpu_temperature_celsius": np.full(240, 65.0)}
    hot = {"gpu_temperature_celsius": np.full(240, 88.0)}
    assert broken("thermal-throttling", throttled, cool, hot) == [True, False, True]


def test_hardware_error_is_found_when_it_happens_during_the_life() -> None:
    whole = {
        "xid_hardware_code": np.full(240, 0.0),
        "ecc_dbe_volatile_count": np.full(240, 3.0),
        "remapped_rows_uncorrectable_count": np.full(240, 1.0),
        "row_remap_failure": np.zeros(240),
    }
    fell = whole | {"xid_hardware_code": steps((100, 0.0), (140, 79.0))}
    old = whole | {"xid_hardware_code": np.full(240, 79.0)}
    own_fault = whole | {"xid_error_code": steps((100, 0.0), (140, 31.0))}
    double_bit = whole | {"ecc_dbe_volatile_count": steps((200, 3.0), (40, 4.0))}
    assert broken("gpu-error", whole, fell, old, own_fault, double_bit) == [False, True, False, False, True]


def test_low_utilization_ignores_a_job_with_pauses_when_its_busy_times_are_full() -> None:
    pauses = np.tile(steps((2, 1.0), (4, 0.0)), 40)
    assert broken("low-utilization", util(BUSY * 0.07), util(pauses), util(BUSY)) == [True, False, False]
    assert broken("low-utilization", util(BUSY * 0.07), minutes=15) == [False]


def test_times_shrink_and_slopes_grow_when_a_recording_runs_faster() -> None:
    leak = find_shipped_rule("memory-leak")
    assert leak is not None
    assert format_rule(scale_times(leak.rule, 60)) == (
        "memory_used slope over last 2m > 60%/h and memory_used slope over last 30s > 30%/h "
        "and memory_used std over last 30s < 5% and memory_used now > 50% after 150s"
    )
