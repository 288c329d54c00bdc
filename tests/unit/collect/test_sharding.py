"""Shards: every target has exactly one, they are of about equal size, and few move when one is added."""

from collections import Counter

import pytest

from clusterscape.collect.sharding import Shard, parse_shard
from clusterscape.collect.targets import parse_target
from clusterscape.errors import ConfigError

NODES = [f"gpu-{number:04d}" for number in range(1250)]


def owner(name: str, count: int) -> int:
    (found,) = [number for number in range(1, count + 1) if Shard(number, count).owns_name(name)]
    return found


def test_each_target_has_one_shard_when_there_are_several() -> None:
    sizes = Counter(owner(node, 3) for node in NODES)
    assert sum(sizes.values()) == len(NODES)
    assert max(sizes.values()) < 1.2 * len(NODES) / 3


def test_few_targets_move_when_a_shard_is_added() -> None:
    moved = [node for node in NODES if owner(node, 3) != owner(node, 4)]
    assert all(owner(node, 4) == 4 for node in moved), "nothing moves between the old ones"
    assert len(moved) < 1.3 * len(NODES) / 4


def test_a_target_goes_by_its_node_when_it_has_one() -> None:
    (by_name,) = parse_target("gpu-0007:9400", "test")
    (by_url,) = parse_target("http://10.0.0.7:9400/metrics node=gpu-0007", "test")
    (nameless,) = parse_target("10.0.0.7:9400", "test")
    shards = [Shard(number, 3) for number in (1, 2, 3)]
    assert [shard.owns(by_name) for shard in shards] == [shard.owns(by_url) for shard in shards]
    assert sum(shard.owns(nameless) for shard in shards) == 1


def test_one_shard_owns_everything_when_it_is_alone() -> None:
    assert all(parse_shard("1/1").owns_name(node) for node in NODES)


def test_the_number_is_refused_when_it_is_above_the_count() -> None:
    assert parse_shard("2/3") == Shard(2, 3)
    with pytest.raises(ConfigError, match="there are 3 shards"):
        parse_shard("4/3")
