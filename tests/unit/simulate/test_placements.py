import numpy as np
import pytest

from clusterscape.simulate import Placement
from clusterscape.simulate.placements.pack import Pack
from clusterscape.simulate.placements.spread import Spread

FREE = np.array([8, 2, 0, 5, 2, 8])


@pytest.mark.parametrize(
    ("placement", "nodes", "gpus", "expected"),
    [
        (Pack(), 1, 2, [1]),
        (Pack(), 3, 2, [1, 4, 3]),
        (Pack(), 1, 6, [0]),
        (Spread(), 1, 2, [0]),
        (Spread(), 3, 2, [0, 5, 3]),
    ],
)
def test_nodes_follow_the_rule_when_several_would_do(
    placement: Placement, nodes: int, gpus: int, expected: list[int]
) -> None:
    chosen = placement.choose(FREE, nodes, gpus)
    assert chosen is not None
    assert chosen.tolist() == expected


@pytest.mark.parametrize("placement", [Pack(), Spread()])
def test_nothing_is_chosen_when_too_few_nodes_have_room(placement: Placement) -> None:
    assert placement.choose(FREE, 3, 8) is None
