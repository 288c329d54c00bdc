from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client.parser import text_string_to_metric_families

from clusterscape.demo.exporter import Exporters
from clusterscape.demo.jobs import Attempt, Behavior, Life
from clusterscape.demo.planted import PRETRAIN_NAME
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.slurm_values import look_at_cluster
from clusterscape.demo.telemetry import FIELDS, DemoTelemetry
from clusterscape.model import ALIASES, METRICS, UnixMs
from clusterscape.simulate.faults import FaultKind

MINUTE_MS = 60_000
HOUR_MS = 3_600_000

Series = Mapping[str, NDArray[np.float64]]


def read_series(
    telemetry: DemoTelemetry, unit: int, start_ms: int, end_ms: int, step_ms: int = MINUTE_MS
) -> dict[str, NDArray[np.float64]]:
    """Canonical values of one unit, by metric; including ``time_ms``."""
    pieces: dict[str, list[NDArray[np.float64]]] = {}
    for batches in telemetry.history(start_ms, end_ms, step_ms):
        for batch in batches:
            kept = batch.unit == unit
            pieces.setdefault(batch.metrics.values[batch.metric[0]], []).append(batch.value[kept])
        pieces.setdefault("time_ms", []).append(batches[0].time_ms[batches[0].unit == unit].astype(np.float64))
    return {name: np.concatenate(parts) for name, parts in pieces.items()}


def find_running(scenario: DemoScenario, behavior: Behavior, at_ms: int) -> tuple[Life, Attempt]:
    """The planted job of that behavior."""
    running = [pair for pair in look_at_cluster(scenario, at_ms // 1000).running if pair[0].demo.behavior is behavior]
    return max(running, key=lambda pair: pair[0].demo.job.priority)


def relative_power(scenario: DemoScenario, unit: int, watts: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 at idle, 1 at the limit."""
    machine = scenario.hardware.nodes[scenario.hardware.node_of_unit[unit]].machine
    relative: NDArray[np.float64] = (watts - machine.idle_watts) / (machine.power_limit_watts - machine.idle_watts)
    return relative


def test_history_equals_exposition_when_taken_at_the_same_moment(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    times = [anchor - 20 * HOUR_MS, anchor - 3 * HOUR_MS, anchor - 2 * MINUTE_MS]
    exporters = Exporters(small, small_telemetry)
    for at_ms in times:
        (batches,) = small_telemetry.history(at_ms, at_ms + 1, MINUTE_MS)
        past = {
            (batch.metrics.values[batch.metric[0]], batch.units.values[unit]): value
            for batch in batches
            for unit, value in zip(batch.unit, batch.value, strict=True)
        }
        exposed = {}
        for node in small.hardware.nodes:
            text = exporters.render(node.name, at_ms)
            for family in text_string_to_metric_families((text or b"").decode()):
                for sample in family.samples:
                    alias = ALIASES[sample.name.removesuffix("_total")]
                    unit = f"{sample.labels['Hostname']}:{sample.labels['gpu']}"
                    exposed[alias.metric.name, unit] = sample.value * alias.scale
        assert past.items() <= exposed.items()
        assert len(exposed) * sum(field.in_history for field in FIELDS) == len(past) * len(FIELDS)


def test_values_do_not_depend_on_the_range_when_read_in_pieces(small_telemetry: DemoTelemetry, anchor: UnixMs) -> None:
    whole = read_series(small_telemetry, 70, anchor - 6 * HOUR_MS, anchor)
    pieces = [
        read_series(small_telemetry, 70, anchor - hours * HOUR_MS, anchor - (hours - 1) * HOUR_MS)
        for hours in range(6, 0, -1)
    ]
    for name, values in whole.items():
        assert np.array_equal(values, np.concatenate([piece[name] for piece in pieces]))


def test_values_are_the_same_when_the_scenario_is_built_again(small: DemoScenario, anchor: UnixMs) -> None:
    other = DemoScenario(128, 7, anchor)
    first = DemoTelemetry(small).at(anchor - HOUR_MS)
    second = DemoTelemetry(other).at(anchor - HOUR_MS)
    assert np.array_equal(first.units, second.units)
    assert np.array_equal(first.jobs, second.jobs)
    for name, values in first.values.items():
        assert np.array_equal(values, second.values[name]), name


def test_batches_are_sorted_and_within_a_day_when_history_is_made(
    small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    windows = list(small_telemetry.history(anchor - 24 * HOUR_MS, anchor, MINUTE_MS))
    moments = 0
    for batches in windows:
        names = [batch.metrics.values[batch.metric[0]] for batch in batches]
        assert names == sorted(names)
        for batch in batches:
            assert len(set(batch.metric.tolist())) == 1
            order = np.lexsort((batch.time_ms, batch.unit))
            assert np.array_equal(order, np.arange(len(batch)))
            assert batch.time_ms.min() // 86_400_000 == batch.time_ms.max() // 86_400_000
            assert not (batch.time_ms % MINUTE_MS).any()
        moments += len(np.unique(batches[0].time_ms))
    assert moments == 24 * 60


def test_values_are_possible_when_compared_with_the_catalogue(small_telemetry: DemoTelemetry, anchor: UnixMs) -> None:
    for batches in small_telemetry.history(anchor - 24 * HOUR_MS, anchor, 5 * MINUTE_MS):
        for batch in batches:
            metric = METRICS[batch.metrics.values[batch.metric[0]]]
            assert batch.value.min() >= metric.lower, metric.name
            assert np.isfinite(batch.value).all()
            if metric.upper is not None:
                assert batch.value.max() <= metric.upper, metric.name


def test_gpu_is_idle_when_no_job_holds_it(small_telemetry: DemoTelemetry, anchor: UnixMs) -> None:
    snapshot = small_telemetry.at(anchor - 30 * MINUTE_MS)
    free = snapshot.jobs == 0
    assert free.any()
    assert (snapshot.values["DCGM_FI_DEV_GPU_UTIL"][free] == 0).all()
    assert (snapshot.values["DCGM_FI_DEV_POWER_USAGE"][free] < 60).all()
    assert (snapshot.values["DCGM_FI_DEV_FB_USED"][free] < 100).all()


def test_samples_are_missing_when_a_node_is_down(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    outage = next(o for o in small.outages if o.kind is FaultKind.FAIL and o.from_s * 1000 > anchor - 24 * HOUR_MS)
    unit = small.hardware.nodes[outage.node].first_unit
    times = read_series(
        small_telemetry, unit, outage.from_s * 1000 - 10 * MINUTE_MS, outage.to_s * 1000 + 10 * MINUTE_MS
    )["time_ms"]
    assert 0 < len(times) <= 20
    assert not ((times >= outage.from_s * 1000) & (times < outage.to_s * 1000)).any()


def test_healthy_job_has_the_recorded_signature_when_it_is_fully_busy(
    small_telemetry: DemoTelemetry, small: DemoScenario, anchor: UnixMs
) -> None:
    # The training phases of the validation job are healthy; so is any fully busy healthy job of the past.
    life, attempt = next(
        (life, attempt)
        for life in small.lives.values()
        for attempt in life.attempts
        if life.demo.behavior is Behavior.HEALTHY
        and life.demo.draws[3] < 0.6
        and (attempt.end_s or 0) - attempt.start_s > 3 * 3600
    )
    unit = attempt.units[0]
    start_ms = attempt.start_s * 1000 + 10 * MINUTE_MS
    series = read_series(small_telemetry, unit, start_ms, start_ms + 2 * HOUR_MS, 5000)
    assert np.percentile(series["gpu_util_ratio"], (5, 50, 95)) == pytest.approx((0.99, 1.0, 1.0), abs=0.005)
    power = relative_power(small, unit, series["power_watts"]) / (0.72 + 0.28 * life.demo.draws[4])
    assert np.percentile(power, (5, 50, 95)) == pytest.approx((0.92, 0.99, 1.06), abs=0.07)
    assert series["tensor_active_ratio"].mean() > 0.15


def test_stalled_job_has_the_recorded_signature_when_it_has_stalled(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    _, attempt = find_running(small, Behavior.STALLED, anchor)
    unit = attempt.units[-1]
    stalled = read_series(small_telemetry, unit, anchor - 30 * MINUTE_MS, anchor, 5000)
    assert (stalled["gpu_util_ratio"] == 1.0).all()
    assert np.percentile(relative_power(small, unit, stalled["power_watts"]), (5, 95)) == pytest.approx(
        (0.07, 0.07), abs=0.02
    )
    assert stalled["power_watts"].max() < 0.25 * 400
    assert stalled["sm_active_ratio"].max() < 0.1
    assert not stalled["tensor_active_ratio"].any()
    assert not stalled["nvlink_tx_bytes_per_second"].any()
    before = read_series(
        small_telemetry, unit, attempt.start_s * 1000 + 10 * MINUTE_MS, attempt.start_s * 1000 + HOUR_MS
    )
    assert before["power_watts"].mean() > 2.5 * stalled["power_watts"].mean()


def test_input_bound_job_has_the_recorded_signature_when_scaled_back(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    life, attempt = find_running(small, Behavior.INPUT_BOUND, anchor)
    level = 1.0 + 4.0 * life.demo.draws[4]
    series = read_series(small_telemetry, attempt.units[0], anchor - 4 * HOUR_MS, anchor, 5000)
    assert np.percentile(series["gpu_util_ratio"] / level, (5, 50, 95)) == pytest.approx((0.03, 0.04, 0.07), abs=0.01)
    assert series["power_watts"].max() < 0.6 * 400


def test_validating_job_dips_regularly_and_all_its_gpus_together_when_it_runs(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    _, attempt = find_running(small, Behavior.VALIDATION, anchor)
    first, last = (
        read_series(small_telemetry, unit, anchor - 10 * HOUR_MS, anchor)
        for unit in (attempt.units[0], attempt.units[-1])
    )
    assert np.percentile(first["gpu_util_ratio"], (1, 60, 95)) == pytest.approx((0.0, 1.0, 1.0), abs=0.05)
    dips = first["gpu_util_ratio"] < 0.1
    assert 0.05 < dips.mean() < 0.35
    assert (dips == (last["gpu_util_ratio"] < 0.1)).mean() > 0.98
    assert not np.array_equal(first["power_watts"], last["power_watts"])
    assert first["pcie_tx_bytes_per_second"][dips].max() > 4e9  # checkpoints leave through PCIe


def test_idle_tail_keeps_its_memory_and_nothing_else_when_work_is_over(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    _, attempt = find_running(small, Behavior.IDLE_TAIL, anchor)
    start_ms = attempt.start_s * 1000
    active = read_series(small_telemetry, attempt.units[0], start_ms + 10 * MINUTE_MS, start_ms + HOUR_MS)
    idle = read_series(small_telemetry, attempt.units[0], anchor - HOUR_MS, anchor)
    assert np.median(active["gpu_util_ratio"]) > 0.4
    assert idle["gpu_util_ratio"].max() <= 0.02
    assert idle["memory_used_bytes"].mean() == pytest.approx(active["memory_used_bytes"].mean(), rel=0.02)


def test_memory_only_grows_when_it_leaks(small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs) -> None:
    _, attempt = find_running(small, Behavior.MEMORY_LEAK, anchor)
    used = read_series(small_telemetry, attempt.units[0], attempt.start_s * 1000 + 10 * MINUTE_MS, anchor)[
        "memory_used_bytes"
    ]
    assert (np.diff(used) >= 0).all()
    assert used[-1] > used[0] * 1.2


def test_node_masters_stand_out_when_the_long_run_is_analyzed(usual: DemoScenario, anchor: UnixMs) -> None:
    telemetry = DemoTelemetry(usual)
    (attempt,) = [
        attempt for life, attempt in look_at_cluster(usual, anchor // 1000).running if life.demo.name == PRETRAIN_NAME
    ]
    means: dict[int, float] = {}
    for batches in telemetry.history(anchor - 4 * HOUR_MS, anchor, MINUTE_MS):
        util = next(batch for batch in batches if batch.metrics.values[batch.metric[0]] == "gpu_util_ratio")
        for unit in attempt.units:
            means[unit] = float(util.value[util.unit == unit].mean())
    masters = [means.pop(unit) for unit in attempt.units[::8]]
    others = list(means.values())
    assert len(masters) == 8
    assert min(masters) > max(others) + 0.15
    assert max(others) - min(others) > 0  # similar, not identical


def test_node_masters_stay_busy_while_the_others_wait(usual: DemoScenario, anchor: UnixMs) -> None:
    telemetry = DemoTelemetry(usual)
    (attempt,) = [
        attempt for life, attempt in look_at_cluster(usual, anchor // 1000).running if life.demo.name == PRETRAIN_NAME
    ]
    masters = set(attempt.units[::8])
    by_time: dict[int, tuple[list[float], list[float]]] = {}
    for batches in telemetry.history(anchor - 2 * HOUR_MS, anchor, MINUTE_MS):
        util = next(batch for batch in batches if batch.metrics.values[batch.metric[0]] == "gpu_util_ratio")
        is_held = np.isin(util.unit, attempt.units)
        for unit, at, value in zip(util.unit[is_held], util.time_ms[is_held], util.value[is_held], strict=True):
            by_time.setdefault(int(at), ([], []))[int(unit) in masters].append(float(value))
    waiting = [busy for others, busy in by_time.values() if np.median(others) < 0.05]
    assert len(waiting) >= 3
    assert min(min(busy) for busy in waiting) > 0.6


def test_energy_is_the_integral_of_power_when_summed_over_hours(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    for behavior in (Behavior.VALIDATION, Behavior.STALLED, Behavior.NODE_MASTER, Behavior.INPUT_BOUND):
        _, attempt = find_running(small, behavior, anchor)
        series = read_series(small_telemetry, attempt.units[0], anchor - 12 * HOUR_MS, anchor, 15_000)
        assert (np.diff(series["energy_joules"]) >= 0).all()
        used = series["energy_joules"][-1] - series["energy_joules"][0]
        assert used == pytest.approx(series["power_watts"][:-1].sum() * 15, rel=0.03)


def test_energy_counter_restarts_when_a_node_recovers_from_a_failure(
    small: DemoScenario, small_telemetry: DemoTelemetry
) -> None:
    outage = next(o for o in small.outages if o.kind is FaultKind.FAIL and o.from_s > small.origin_s)
    unit = small.hardware.nodes[outage.node].first_unit
    before = read_series(small_telemetry, unit, outage.from_s * 1000 - HOUR_MS, outage.from_s * 1000)["energy_joules"]
    after = read_series(small_telemetry, unit, outage.to_s * 1000, outage.to_s * 1000 + HOUR_MS)["energy_joules"]
    assert after[0] < 60 * 400
    assert after[0] < before[-1]


def test_xid_error_is_shown_for_a_while_when_a_gpu_reported_one(
    small: DemoScenario, small_telemetry: DemoTelemetry
) -> None:
    counts = Counter(error.unit for error in small.xid_errors)
    error = next(error for error in small.xid_errors if counts[error.unit] == 1)
    series = read_series(small_telemetry, error.unit, error.from_ms - 10 * MINUTE_MS, error.to_ms + 10 * MINUTE_MS)
    shown = (series["time_ms"] >= error.from_ms) & (series["time_ms"] < error.to_ms)
    assert shown.any()
    assert (series["xid_error_code"][shown] == error.code).all()
    assert not series["xid_error_code"][~shown].any()


def test_nvlink_is_silent_when_a_job_has_a_single_gpu(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    snapshot = small_telemetry.at(anchor)
    gpus = np.array([small.lives[job].demo.job.gpus if job else 0 for job in snapshot.jobs.tolist()])
    sent = snapshot.values["DCGM_FI_PROF_NVLINK_TX_BYTES"]
    assert not sent[gpus <= 1].any()
    assert sent[gpus > 1].any()
