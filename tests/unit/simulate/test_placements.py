"""Nodes that placements choose, in cases worked out by hand."""

import numpy as np
import pytest

from clusterscape.errors import QueryError
from clusterscape.simulate.placements import find_placement, placement_names
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest, choose_nodes

FREE_GPUS = [8, 2, 1, 4, 3, 5]


def make_state(
    gpu_units: list[list[int]], cpu_milli: list[int] | None = None, held: list[list[int]] | None = None
) -> NodeLoads:
    """One node per row of ``gpu_units``: the free thousandths of each of its GPUs."""
    units = np.array(gpu_units, np.int64) * (UNITS_PER_GPU // 1000)
    count = len(gpu_units)
    return NodeLoads(
        free_units=units.sum(axis=1),
        gpu_counts=np.full(count, units.shape[1]),
        gpu_units=units,
        cpu_milli=np.array(cpu_milli or [96_000] * count),
        memory_mib=np.full(count, 10**6),
        held_by_gpus=np.array(held or [[0] * (units.shape[1] + 1)] * count),
    )


def choose(placement: str, state: NodeLoads, count: int, request: PodRequest) -> list[int] | None:
    assert state.gpu_units is not None
    candidates = np.flatnonzero((state.gpu_units >= request.units).sum(axis=1) >= request.gpus)
    chosen = choose_nodes(find_placement(placement), state, candidates, count, request)
    return None if chosen is None else chosen.tolist()


@pytest.mark.parametrize(
    ("placement", "nodes", "gpus", "expected"),
    [
        ("most-allocated", 1, 2, [1]),
        ("most-allocated", 3, 2, [1, 4, 3]),
        ("most-allocated", 1, 6, [0]),
        ("least-allocated", 1, 2, [0]),
        ("least-allocated", 3, 2, [0, 5, 3]),
        ("best-fit", 2, 2, [1, 4]),
        ("first-fit", 3, 3, [0, 3, 4]),
    ],
)
def test_nodes_follow_the_rule_when_several_would_do(
    placement: str, nodes: int, gpus: int, expected: list[int]
) -> None:
    state = make_state([[1000] * free + [0] * (8 - free) for free in FREE_GPUS])
    assert choose(placement, state, nodes, PodRequest(gpus)) == expected


@pytest.mark.parametrize("placement", placement_names())
def test_nothing_is_chosen_when_too_few_nodes_have_room(placement: str) -> None:
    state = make_state([[1000] * free + [0] * (8 - free) for free in FREE_GPUS])
    assert choose(placement, state, 3, PodRequest(5)) is None


def test_fuller_processors_decide_when_best_fit_finds_equal_gpus() -> None:
    state = make_state([[1000, 1000], [1000, 1000]], cpu_milli=[64_000, 8_000])
    assert choose("best-fit", state, 1, PodRequest(1, cpu_milli=4_000)) == [1]


def test_shared_gpu_comes_before_free_gpu_before_unused_node_when_packing() -> None:
    state = make_state([[1000, 1000], [1000, 0], [500, 0], [300, 0]])
    half = PodRequest(1, UNITS_PER_GPU // 4)
    assert choose("gpu-packing", state, 1, half) == [3]
    assert choose("gpu-packing", make_state([[1000, 1000], [1000, 0]]), 1, half) == [1]
    assert choose("gpu-packing", state, 1, PodRequest(1)) == [1]


def test_jobs_of_a_kind_share_nodes_when_clustering() -> None:
    held = [[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]]
    state = make_state([[1000, 1000], [1000, 0], [500, 200], [500, 1000]], held=held)
    assert choose("gpu-clustering", state, 1, PodRequest(1)) == [1]
    assert choose("gpu-clustering", state, 1, PodRequest(1, UNITS_PER_GPU // 4)) == [3]


def test_choices_are_named_when_a_placement_is_not_known() -> None:
    with pytest.raises(QueryError, match="unknown placement 'tight'"):
        find_placement("tight")


def test_every_placement_is_one_when_it_has_a_file() -> None:
    assert {"fgd", "best-fit", "random"} <= set(placement_names())
    placements: list[Placement] = [find_placement(name) for name in placement_names()]
    assert len(placements) == len(placement_names())
