from collections import Counter
from itertools import pairwise

import pytest

from clusterscape.demo.hardware import LARGE, SMALL, V100
from clusterscape.demo.jobs import Behavior, Life
from clusterscape.demo.planted import PRETRAIN_NAME
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.slurm_values import look_at_cluster
from clusterscape.model import UnixMs, WorkloadKind, WorkloadState
from clusterscape.simulate.faults import FaultKind

DAY_MS = 86_400_000


def course(scenario: DemoScenario) -> list[tuple[object, ...]]:
    return [(life.demo, life.waits, life.attempts, life.withdrawn_s) for life in scenario.lives.values()]


def lives_in(scenario: DemoScenario, state: WorkloadState, at_ms: int) -> list[Life]:
    return [life for life in scenario.lives.values() if life.state_at(at_ms // 1000) is state]


def test_course_is_the_same_when_played_again_in_pieces(small: DemoScenario, anchor: UnixMs) -> None:
    again = DemoScenario(128, 7, anchor)
    for part in range(10, 0, -1):
        again.advance(anchor - part * 3_600_000)
    again.advance(small.end_s * 1000 - 1)
    assert course(again) == course(small)
    assert again.outages == small.outages
    assert again.xid_errors == small.xid_errors


def test_course_differs_when_the_seed_does(small: DemoScenario, anchor: UnixMs) -> None:
    other = DemoScenario(128, 8, anchor)
    other.advance(anchor)
    assert course(other) != course(small)


@pytest.mark.parametrize("gpus", [4, 8, 20, 64, 300])
def test_cluster_is_busy_when_its_size_varies(gpus: int, anchor: UnixMs) -> None:
    scenario = DemoScenario(gpus, 5, anchor)
    running = look_at_cluster(scenario, anchor // 1000).running
    assert sum(life.demo.job.gpus for life, _ in running) >= 0.5 * gpus
    assert any(life.demo.name == PRETRAIN_NAME for life, _ in running)


def test_course_is_computed_when_there_are_ten_thousand_gpus(anchor: UnixMs) -> None:
    scenario = DemoScenario(10_000, 7, anchor)
    moment = look_at_cluster(scenario, anchor // 1000)
    held = sum(life.demo.job.gpus for life, _ in moment.running)
    assert 0.8 * 10_000 < held < 10_000
    assert len(moment.waiting) > 50


@pytest.mark.parametrize("seed", [1, 7, 23])
def test_cluster_is_busy_with_a_queue_when_the_seed_varies(seed: int, anchor: UnixMs) -> None:
    scenario = DemoScenario(1024, seed, anchor)
    for hours in (-18, -6, 0):
        moment = look_at_cluster(scenario, anchor // 1000 + hours * 3600)
        held = sum(life.demo.job.gpus for life, _ in moment.running)
        assert 0.7 * 1024 < held < 0.98 * 1024
        assert len(moment.waiting) >= 5
        assert {life.demo.job.partition for life, _ in moment.running} == {SMALL, LARGE, V100}


def test_no_gpu_is_held_twice_when_all_attempts_are_compared(usual: DemoScenario) -> None:
    held: dict[int, list[tuple[int, int]]] = {}
    for life in usual.lives.values():
        for attempt in life.attempts:
            assert len(attempt.units) == life.demo.job.gpus
            for unit in attempt.units:
                held.setdefault(unit, []).append((attempt.start_s, attempt.end_s or usual.end_s))
    for spans in held.values():
        spans.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_no_job_runs_on_a_node_when_that_has_failed(usual: DemoScenario) -> None:
    for outage in usual.outages:
        if outage.kind is not FaultKind.FAIL:
            continue
        node = usual.hardware.nodes[outage.node]
        units = set(range(node.first_unit, node.first_unit + node.gpu_count))
        for life in usual.lives.values():
            for attempt in life.attempts:
                if units & set(attempt.units):
                    assert (attempt.end_s or usual.end_s) <= outage.from_s or attempt.start_s >= outage.to_s


def test_small_partition_has_only_small_jobs_when_drawn(usual: DemoScenario) -> None:
    sizes = {
        name: {life.demo.job.gpus for life in usual.lives.values() if life.demo.job.partition == name}
        for name in (SMALL, LARGE)
    }
    assert max(sizes[SMALL]) == 8
    assert {16, 32, 64, 128} <= sizes[LARGE]


@pytest.mark.parametrize("days", [0, 1, 2, 4])
def test_long_run_holds_64_gpus_when_read_on_any_day(days: int, anchor: UnixMs, usual: DemoScenario) -> None:
    at_ms = anchor + days * DAY_MS
    usual.advance(at_ms)
    (life,) = [life for life in lives_in(usual, WorkloadState.RUNNING, at_ms) if life.demo.name == PRETRAIN_NAME]
    attempt = life.attempts[-1]
    assert life.demo.behavior is Behavior.NODE_MASTER
    assert life.demo.job.partition == LARGE
    assert len(attempt.grants) == 8
    assert len(attempt.units) == 64
    if days == 0:
        assert at_ms // 1000 - attempt.start_s == 28 * 3600
        assert attempt.start_s - life.demo.job.submit_s == 2 * 3600 + 11 * 60


@pytest.mark.parametrize("seed", range(5))
def test_every_behavior_is_running_when_the_seed_varies(seed: int, anchor: UnixMs) -> None:
    scenario = DemoScenario(1024, seed, anchor)
    moment = look_at_cluster(scenario, anchor // 1000)
    shown = {life.demo.behavior for life, _ in moment.running}
    assert set(Behavior) <= shown
    kinds = {outage.kind for outage in moment.outages.values()}
    assert kinds == {FaultKind.FAIL, FaultKind.DRAIN}
    assert all(outage.reason for outage in moment.outages.values())


def test_history_has_every_kind_of_job_and_ending_when_a_day_has_passed(usual: DemoScenario, anchor: UnixMs) -> None:
    states = Counter(life.state_at(anchor // 1000) for life in usual.lives.values())
    endings = {
        WorkloadState.COMPLETED,
        WorkloadState.FAILED,
        WorkloadState.CANCELLED,
        WorkloadState.TIMEOUT,
        WorkloadState.OUT_OF_MEMORY,
        WorkloadState.NODE_FAILED,
    }
    assert endings <= states.keys()
    lives = usual.lives.values()
    assert any(life.demo.kind is WorkloadKind.SESSION for life in lives)
    assert any(life.demo.array is not None for life in lives)
    assert any(len(life.attempts) > 1 for life in lives)
    reasons = {life.reason_at(anchor // 1000 - hours * 3600) for life in lives for hours in (0, 6, 12, 18)}
    assert {"Resources", "Priority", "QOSMaxGRESPerUser", "Dependency"} <= reasons


def test_ids_rise_with_submission_when_numbered(usual: DemoScenario) -> None:
    submitted = [life.demo.job.submit_s for life in usual.lives.values()]
    assert list(usual.lives) == sorted(usual.lives)
    assert submitted == sorted(submitted)
    for life in usual.lives.values():
        array = life.demo.array
        if array is not None:
            assert life.demo.job.id == array.array_id + array.task_id


def test_state_is_reported_for_any_moment_when_a_job_has_ended(usual: DemoScenario) -> None:
    life = next(
        life
        for life in usual.lives.values()
        if life.attempts and life.ended_s and life.attempts[0].start_s > life.demo.job.submit_s
    )
    submit_s, start_s = life.demo.job.submit_s, life.attempts[0].start_s
    assert life.state_at(submit_s - 1) is None
    assert life.state_at(submit_s) is WorkloadState.WAITING
    assert life.state_at(start_s) is WorkloadState.RUNNING
    assert life.ended_s is not None
    ended = life.state_at(life.ended_s)
    assert ended is not None
    assert not ended.is_active
