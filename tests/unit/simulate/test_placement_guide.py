"""The placement that the guide adds works as it is printed there, and its cluster file is understood."""

import re
import tomllib
from pathlib import Path

import numpy as np

from clusterscape.cli.sched_cluster import parse_cluster
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest, choose_nodes

GUIDE = Path(__file__).parents[3] / "docs/guide/gpu-clusters.md"


def test_node_with_most_processors_is_taken_when_the_placement_of_the_guide_is() -> None:
    printed = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, object] = {"__name__": "spare_cpus"}
    exec(compile(printed[0], str(GUIDE), "exec"), names)
    placement = as_placement(names["PLACEMENT"])
    free = np.array([8, 2, 4]) * UNITS_PER_GPU
    state = NodeLoads(free, np.full(3, 8), cpu_milli=np.array([1_000, 64_000, 8_000]))
    chosen = choose_nodes(placement, state, np.arange(3), 2, PodRequest(1))
    assert chosen is not None
    assert chosen.tolist() == [1, 2]


def test_cluster_of_the_guide_is_understood_when_it_is_read() -> None:
    printed = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    described = parse_cluster(tomllib.loads(printed[0]), "guide")
    assert (len(described.cluster), described.cluster.total_gpus) == (97, 96 * 8 + 4)
    assert described.faults[0].node == "node-0007"
    assert described.priority_of == {"urgent": 10}


def as_placement(placement: object) -> Placement:
    """Check that the guide's object is a placement."""
    assert hasattr(placement, "score")
    assert hasattr(placement, "begin")
    assert hasattr(placement, "pick_gpu")
    return placement
