"""The placement of a scheduler is recognized from its starts, and past starts are placed again with another."""

import numpy as np
import polars as pl
import pytest

from clusterscape.query.scheduling.live_queue import QueueNode
from clusterscape.query.scheduling.placement_history import infer_placement, replay_starts
from clusterscape.simulate.placements import find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, PodRequest, choose_nodes

GPUS = 8
SCHEMA = {"workload": pl.String, "unit": pl.String, "from_at": pl.Int64, "to_at": pl.Int64}


def nodes_of(count: int) -> list[QueueNode]:
    return [QueueNode(f"n{at:02}", GPUS, "A100", ("main",), True) for at in range(count)]


def units_of(nodes: list[QueueNode]) -> dict[str, str]:
    return {f"{node.name}:{at}": node.name for node in nodes for at in range(node.gpus)}


def simulate(name: str, *, nodes: int, starts: int, seed: int, noise: float = 0.0) -> pl.DataFrame:
    """Allocations of a scheduler with that placement that starts 1, 2 or 4 GPUs every minute where they fit."""
    random = np.random.default_rng(seed)
    placement = find_placement(name)
    free = [set(range(GPUS)) for _ in range(nodes)]
    running: list[tuple[int, int, list[int]]] = []
    rows = []
    for minute in range(1, starts + 1):
        for end, at, ended in [row for row in running if row[0] <= minute]:
            free[at].update(ended)
            running.remove((end, at, ended))
        gpus = int(random.choice([1, 2, 4]))
        counts = np.array([len(left) for left in free])
        candidates = np.flatnonzero(counts >= gpus)
        loads = NodeLoads(counts * UNITS_PER_GPU, np.full(nodes, GPUS))
        chosen = choose_nodes(placement, loads, candidates, 1, PodRequest(gpus))
        if chosen is None:
            continue
        node = int(random.choice(candidates)) if random.random() < noise else int(chosen[0])
        held = [free[node].pop() for _ in range(gpus)]
        end = minute + int(random.integers(5, 60))
        running.append((end, node, held))
        to_at = end * 60_000 if end <= starts else None
        rows += [(f"job{minute}", f"n{node:02}:{gpu}", minute * 60_000, to_at) for gpu in held]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ["most-allocated", "least-allocated", "first-fit", "random"])
def test_placement_is_recognized_when_its_starts_were_recorded(name: str, seed: int) -> None:
    nodes = nodes_of(12)
    evidence = infer_placement(
        simulate(name, nodes=12, starts=200, seed=seed, noise=0.15), nodes, units_of(nodes), since_ms=0
    )
    assert (evidence.placement, evidence.certainty) == (name, "sure")
    assert evidence.by_chance <= evidence.fitting <= evidence.starts


def test_placement_with_the_same_choices_goes_by_the_common_name_when_gpus_alone_decide() -> None:
    nodes = nodes_of(12)
    evidence = infer_placement(simulate("best-fit", nodes=12, starts=200, seed=3), nodes, units_of(nodes), since_ms=0)
    assert evidence.placement == "most-allocated"


def test_placement_is_assumed_when_no_start_had_a_choice() -> None:
    nodes = nodes_of(1)
    spans = simulate("least-allocated", nodes=1, starts=50, seed=1)
    evidence = infer_placement(spans, nodes, units_of(nodes), since_ms=0)
    assert (evidence.placement, evidence.certainty, evidence.starts) == ("most-allocated", "assumed", 0)
    assert "assumed" in evidence.text


def test_placement_is_not_sure_when_only_few_starts_are_known() -> None:
    nodes = nodes_of(12)
    spans = simulate("least-allocated", nodes=12, starts=4, seed=1)
    assert infer_placement(spans, nodes, units_of(nodes), since_ms=0).certainty != "sure"


def free_gpus(spans: pl.DataFrame, nodes: list[QueueNode]) -> dict[str, int]:
    held = spans.filter(pl.col("to_at").is_null())["unit"].str.split(":").list.first().to_list()
    return {node.name: node.gpus - held.count(node.name) for node in nodes}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_changes_when_starts_are_replayed_with_the_placement_they_had(seed: int) -> None:
    nodes = nodes_of(12)
    spans = simulate("most-allocated", nodes=12, starts=200, seed=seed)
    moved = replay_starts(spans, nodes, units_of(nodes), find_placement("most-allocated"), since_ms=0)
    assert set(moved.values()) == {0}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whole_nodes_become_free_when_spread_starts_are_packed(seed: int) -> None:
    nodes = nodes_of(12)
    spans = simulate("least-allocated", nodes=12, starts=200, seed=seed)
    free = free_gpus(spans, nodes)
    moved = replay_starts(spans, nodes, units_of(nodes), find_placement("most-allocated"), since_ms=0)
    packed = {name: free[name] + moved[name] for name in free}
    assert sum(moved.values()) == 0
    assert min(packed.values()) >= 0
    assert max(packed.values()) <= GPUS
    assert sum(left == GPUS for left in packed.values()) > sum(left == GPUS for left in free.values())


def test_no_gpu_is_gained_when_a_gang_lands_where_others_were_moved_to() -> None:
    """Two jobs of 4 GPUs are packed on one node; then a gang of 2 × 8 GPUs starts, for which only its own nodes are left."""
    nodes = nodes_of(3)
    rows = [(f"a{at}", f"n0{at}:{gpu}", 60_000 * (at + 1), None) for at in (1, 2) for gpu in range(4)]
    rows += [("gang", f"n0{at}:{gpu}", 300_000, None) for at in (0,) for gpu in range(8)]
    spans = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    moved = replay_starts(spans, nodes, units_of(nodes), find_placement("first-fit"), since_ms=0)
    assert sum(moved.values()) == 0
    free = free_gpus(spans, nodes)
    assert {name: free[name] + moved[name] for name in free} == {"n00": 0, "n01": 0, "n02": 8}


def test_replay_ends_where_it_should_when_a_workload_gives_its_gpus_back_one_by_one() -> None:
    nodes = nodes_of(2)
    rows = [("job", "n00:0", 60_000, 120_000), ("job", "n00:1", 60_000, 180_000), ("other", "n01:0", 240_000, None)]
    spans = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    moved = replay_starts(spans, nodes, units_of(nodes), find_placement("first-fit"), since_ms=0)
    assert moved == {"n00": -1, "n01": 1}
