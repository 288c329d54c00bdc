"""The default demo in the scheduling engine: spread jobs fragment a partition, packed ones do not."""

from collections import Counter

import pytest

from clusterscape.demo.hardware import SMALL
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.slurm_values import look_at_cluster
from clusterscape.model import UnixMs

HOUR_MS = 3_600_000
MOMENTS_MS = [hours * HOUR_MS for hours in (0, 0.5, 1, 2, 4)]


@pytest.fixture(scope="module")
def spread(anchor: UnixMs) -> DemoScenario:
    return DemoScenario(1024, 7, anchor)


@pytest.fixture(scope="module")
def packed(anchor: UnixMs) -> DemoScenario:
    return DemoScenario(1024, 7, anchor, "most-allocated")


def free_by_node(scenario: DemoScenario, at_ms: float) -> list[int]:
    """Free GPUs of each node of the partition of small jobs that is in service."""
    moment = look_at_cluster(scenario, int(at_ms) // 1000)
    held = Counter(scenario.hardware.node_of_unit[unit] for _, attempt in moment.running for unit in attempt.units)
    return [
        node.gpu_count - held[place]
        for place, node in enumerate(scenario.hardware.nodes)
        if node.partition == SMALL and place not in moment.outages
    ]


def waits_h(scenario: DemoScenario, at_ms: float, *, whole_node: bool) -> list[float]:
    return [
        (at_ms / 1000 - life.demo.job.submit_s) / 3600
        for life in look_at_cluster(scenario, int(at_ms) // 1000).waiting
        if life.demo.job.partition == SMALL and (life.demo.job.gpus == 8) == whole_node
    ]


@pytest.mark.parametrize("later_ms", MOMENTS_MS)
def test_no_whole_node_is_free_though_many_gpus_are_when_jobs_are_spread(
    spread: DemoScenario, anchor: UnixMs, later_ms: float
) -> None:
    free = free_by_node(spread, anchor + later_ms)
    assert max(free) < 8 <= sum(free)
    whole, part = (waits_h(spread, anchor + later_ms, whole_node=kind) for kind in (True, False))
    assert len(whole) >= 5 * max(1, len(part))
    assert sum(whole) / len(whole) > 1.5


@pytest.mark.parametrize("later_ms", MOMENTS_MS)
def test_whole_nodes_are_free_and_nobody_queues_for_them_when_jobs_are_packed(
    packed: DemoScenario, anchor: UnixMs, later_ms: float
) -> None:
    assert max(free_by_node(packed, anchor + later_ms)) == 8
    assert len(waits_h(packed, anchor + later_ms, whole_node=True)) <= 1


def test_small_jobs_stand_on_most_nodes_when_they_are_spread(spread: DemoScenario, anchor: UnixMs) -> None:
    small = {
        spread.hardware.node_of_unit[unit]
        for life, attempt in look_at_cluster(spread, anchor // 1000).running
        if life.demo.job.partition == SMALL and life.demo.job.gpus < 8
        for unit in attempt.units
    }
    assert len(small) > 0.6 * len(spread.hardware.partition(SMALL))


def test_jobs_and_outages_are_the_same_when_only_the_placement_differs(
    spread: DemoScenario, packed: DemoScenario, anchor: UnixMs
) -> None:
    for scenario in (spread, packed):
        scenario.advance(anchor + 6 * HOUR_MS)
    assert [life.demo for life in spread.lives.values()] == [life.demo for life in packed.lives.values()]
    assert spread.outages == packed.outages


def test_course_is_the_same_when_the_demo_starts_at_another_time(spread: DemoScenario, anchor: UnixMs) -> None:
    later_s = 1_234_567
    other = DemoScenario(1024, 7, UnixMs(anchor + later_s * 1000))
    spread.advance(anchor)
    other.advance((spread.end_s + later_s) * 1000 - 1)
    assert other.lives.keys() == spread.lives.keys()
    for mine, theirs in zip(spread.lives.values(), other.lives.values(), strict=True):
        assert theirs.demo.job.submit_s - mine.demo.job.submit_s == later_s
        assert [attempt.units for attempt in mine.attempts] == [attempt.units for attempt in theirs.attempts]
