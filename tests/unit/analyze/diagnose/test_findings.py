import csv
from importlib.resources import files

import numpy as np
import pytest
from clusters.odd_gpus import Oddness, make_power
from numpy.typing import NDArray

from clusterscape.analyze.diagnose import Diagnosis, Limits, Options, diagnose, read_thumb_rules
from clusterscape.analyze.diagnose.explain import Value
from clusterscape.model.findings import Finding, FindingKind, SizeUnit
from clusterscape.model.ids import UnitId

GPUS, POINTS, STEP_MS = 32, 960, 15_000
TIMES_MS = np.arange(POINTS) * STEP_MS + 1_700_000_000_000
Floats = NDArray[np.float64]


def units(gpus: int = GPUS) -> list[UnitId]:
    return [UnitId(f"n{place // 8}:{place % 8}") for place in range(gpus)]


def steady(level: float, spread: float, seed: int = 0) -> Floats:
    return level + np.random.default_rng(seed).normal(0, spread, (POINTS, GPUS))


def run(metrics: dict[str, Floats], limits: Limits | None = None, options: Options | None = None) -> Diagnosis:
    attributes: dict[str, list[Value | None]] = {
        "node": [f"n{place // 8}" for place in range(GPUS)],
        "local rank": [place % 8 for place in range(GPUS)],
    }
    return diagnose(TIMES_MS, metrics, units(), attributes=attributes, limits=limits, options=options)


def only(diagnosis: Diagnosis, kind: FindingKind) -> Finding:
    findings = [finding for finding in diagnosis.findings if finding.kind is kind]
    assert len(findings) == 1, [finding.title for finding in diagnosis.findings]
    return findings[0]


def recorded(mode: str, points: int) -> tuple[Floats, Floats]:
    """Utilization and power of a recorded mode, repeated."""
    text = files("clusterscape.demo").joinpath("shapes/h200.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["mode"] == mode]
    util = np.array([float(row["util_percent"]) / 100.0 for row in rows])
    power = np.array([float(row["power_watts"]) for row in rows])
    return np.resize(util, points), np.resize(power, points)


def test_findings_are_empty_when_all_gpus_are_healthy() -> None:
    assert run({"gpu_util_ratio": steady(0.97, 0.01), "power_watts": steady(650.0, 10.0)}).findings == ()


def test_stall_start_is_found_when_recorded_training_turns_into_a_recorded_hang() -> None:
    healthy, hang = recorded("healthy", 600), recorded("hang", 360)
    util, power = (np.concatenate(pair)[:, None].repeat(GPUS, axis=1) for pair in zip(healthy, hang, strict=True))
    finding = only(run({"gpu_util_ratio": util, "power_watts": power}), FindingKind.STALL)
    start = finding.numbers["start"]
    assert start.low is not None
    assert start.high is not None
    assert start.low <= TIMES_MS[600] <= start.high
    assert abs(finding.start_at - TIMES_MS[600]) <= 3 * STEP_MS
    assert finding.size == pytest.approx(GPUS * 360 * 15 / 3600, rel=0.02)


def test_dips_are_found_when_checkpoints_come_evenly() -> None:
    util = steady(0.97, 0.01)
    util[np.arange(POINTS) % 80 < 4] = 0.1
    finding = only(run({"gpu_util_ratio": util}), FindingKind.PERIODIC_DIPS)
    assert "every 20 min" in finding.title
    assert "checkpoints" in finding.title
    assert finding.numbers["period_s"].value == pytest.approx(1_200.0, abs=15.0)


def test_time_to_full_memory_is_reported_when_memory_leaks() -> None:
    used = steady(20e9, 1e8)
    used[:, 5] += 4e6 * np.arange(POINTS) * 15.0 / 3.0
    finding = only(
        run({"memory_used_bytes": used, "gpu_util_ratio": steady(0.97, 0.01)}, Limits(memory_bytes=80e9)),
        FindingKind.MEMORY_GROWTH,
    )
    left = finding.numbers["time_to_full_s"]
    assert left.low is not None
    assert left.high is not None
    expected_s = (80e9 - 20e9) / (4e6 / 3.0) - (POINTS - 1) * 15.0
    assert left.low * 0.99 <= expected_s <= left.high * 1.01
    assert finding.units == (UnitId("n0:5"),)
    assert finding.size_unit is SizeUnit.SECONDS


def test_throttled_gpus_are_named_when_their_counters_grow() -> None:
    counter = np.zeros((POINTS, GPUS))
    counter[:, 3] = np.arange(POINTS) * 15.0 * 0.4
    finding = only(
        run({"thermal_throttle_seconds": counter, "gpu_util_ratio": steady(0.97, 0.01)}), FindingKind.THROTTLING
    )
    assert finding.title.startswith("1 of 32 GPUs throttled (thermal) up to 40% of the time")
    assert finding.units == (UnitId("n0:3"),)


def test_communication_is_blamed_when_links_are_busy_and_multiprocessors_are_not() -> None:
    metrics = {"sm_active_ratio": steady(0.2, 0.02), "nvlink_tx_bytes_per_second": steady(1.5e11, 1e9)}
    assert "wait for NVLink 100% of the time" in only(run(metrics), FindingKind.COMMUNICATION_BOUND).title
    assert not run(metrics | {"sm_active_ratio": steady(0.8, 0.02)}).findings


def test_idle_tail_is_counted_when_gpus_are_held_unused() -> None:
    util = np.clip(steady(0.97, 0.01), 0, 1)
    util[POINTS // 2 :] = 0.0
    finding = only(run({"gpu_util_ratio": util}), FindingKind.IDLE_TAIL)
    assert finding.size == pytest.approx(GPUS * POINTS / 2 * 15 / 3600, rel=0.01)
    assert finding.start_at == TIMES_MS[POINTS // 2 - 1]


def test_imbalance_is_explained_when_masters_work_and_the_others_wait() -> None:
    util = steady(0.45, 0.05)
    util[:, ::8] = steady(0.8, 0.05, seed=1)[:, ::8]
    diagnosis = run({"gpu_util_ratio": util})
    finding = only(diagnosis, FindingKind.IMBALANCE)
    assert "All 4 differ from the other 28; they are exactly local rank 0." in finding.title
    assert finding.units == tuple(units()[::8])
    by_timelines = run({"gpu_util_ratio": util}, options=Options(by="euclidean"))
    assert np.array_equal(by_timelines.clustering.labels, diagnosis.clustering.labels)


def test_node_is_named_when_all_of_its_gpus_are_slow() -> None:
    attributes = {"node": [f"n{place // 4}" for place in range(GPUS)]}
    clock = 1.9e9 + np.random.default_rng(0).normal(0, 2e6, (POINTS, GPUS))
    clock[:, 8:12] *= 0.7
    diagnosis = diagnose(TIMES_MS, {"sm_clock_hertz": clock}, units(), attributes=attributes)
    finding = only(diagnosis, FindingKind.SLOW_NODE)
    assert "all 4 GPUs of node n2 is 30%" in finding.title


def test_odd_gpu_is_named_when_one_lags() -> None:
    times, watts, odd = make_power(np.random.default_rng(3), 256, oddness=Oddness.LAGGING)
    diagnosis = diagnose(times, {"power_watts": watts}, units(256))
    assert odd is not None
    assert only(diagnosis, FindingKind.ODD_GPU).units == (units(256)[odd],)


def test_findings_are_sorted_by_severity_and_size_when_there_are_several() -> None:
    util = np.clip(steady(0.97, 0.01), 0, 1)
    util[POINTS // 2 :] = 0.0
    counter = np.cumsum(np.full((POINTS, GPUS), 2.0), axis=0)
    findings = run({"gpu_util_ratio": util, "power_throttle_seconds": counter}).findings
    assert [finding.kind for finding in findings] == [FindingKind.IDLE_TAIL, FindingKind.THROTTLING]


def test_every_kind_has_a_rule_with_a_reason_when_the_rules_are_read() -> None:
    rules = read_thumb_rules()
    assert set(rules) == set(FindingKind)
    assert all(len(rule.reason) > 40 for rule in rules.values())
