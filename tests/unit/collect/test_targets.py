import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.collect.targets import Shard, TargetList, expand_ranges, parse_shard, parse_target
from clusterscape.errors import ConfigError
from clusterscape.settings import DcgmSettings


def parsed(text: str) -> list[tuple[str, str | None]]:
    return [(target.url, target.node) for target in parse_target(text, "collect.dcgm.targets")]


@pytest.mark.parametrize(
    ("text", "url", "node"),
    [
        ("gpu-001", "http://gpu-001:9400/metrics", "gpu-001"),
        ("gpu-001:9500", "http://gpu-001:9500/metrics", "gpu-001"),
        ("gpu-001.cluster.local", "http://gpu-001.cluster.local:9400/metrics", "gpu-001"),
        ("gpu-001-mgmt node=gpu-001", "http://gpu-001-mgmt:9400/metrics", "gpu-001"),
        ("10.0.0.5", "http://10.0.0.5:9400/metrics", None),
        ("10.0.0.5:9500 node=gpu-001", "http://10.0.0.5:9500/metrics", "gpu-001"),
        ("[fd00::5]:9500", "http://[fd00::5]:9500/metrics", None),
        ("http://gpu-001:9400/metrics", "http://gpu-001:9400/metrics", None),
        ("https://gpu-001", "https://gpu-001/metrics", None),
        ("http://gpu-001:9400/x?y=z node=gpu-001", "http://gpu-001:9400/x?y=z", "gpu-001"),
        (
            "http://127.0.0.1:9400/nodes/gpu-001/metrics#gpu-001",
            "http://127.0.0.1:9400/nodes/gpu-001/metrics",
            "gpu-001",
        ),
    ],
)
def test_target_is_understood_when_written_in_any_form(text: str, url: str, node: str | None) -> None:
    assert parsed(text) == [(url, node)]


def test_ranges_are_expanded_with_their_zeros_when_a_host_list_is_given() -> None:
    assert [node for _, node in parsed("gpu-[001-003,010,7]:9400")] == [
        "gpu-001",
        "gpu-002",
        "gpu-003",
        "gpu-010",
        "gpu-7",
    ]
    assert [node for _, node in parsed("r[1-2]n[09-10]")] == ["r1n09", "r1n10", "r2n09", "r2n10"]


@given(st.integers(0, 2000), st.integers(0, 50), st.integers(1, 6))
def test_every_number_of_a_range_appears_once_when_expanded(low: int, more: int, width: int) -> None:
    text = f"n[{low:0{width}d}-{low + more:0{width}d}]"

    names = list(expand_ranges(text, "a test"))

    assert [int(name[1:]) for name in names] == list(range(low, low + more + 1))
    assert all(len(name) >= width + 1 for name in names)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu 001",
        "gpu-[001-",
        "gpu-[5-1]",
        "gpu-[1-999999999]",
        "gpu-[1-1000][1-1000]",
        "gpu-001:0",
        "gpu-001:99999",
        "gpu-001:port",
        "-gpu",
        "ftp://gpu-001/metrics",
        "http://",
        "http://gpu-001:port/",
        "gpu-001 name=x",
        "gpu-[1-2] node=x",
        "[zz]:9400",
        "gpu_001/metrics",
    ],
)
def test_settings_are_refused_with_a_hint_when_a_target_is_wrong(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_target(text, "collect.dcgm.targets")

    assert "collect.dcgm.targets" in caught.value.message
    assert caught.value.hint


def test_password_is_hidden_when_a_target_is_shown() -> None:
    (target,) = parse_target("http://user:secret@gpu-001:9400/metrics", "collect.dcgm.targets")

    assert "secret" in target.url
    assert target.shown_url == "http://gpu-001:9400/metrics"


async def test_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "targets"
    path.write_text("# comment\n\ngpu-001 # the first\nhttp://127.0.0.1:9400/nodes/a/metrics#a\n  10.0.0.5 node=b\n")
    targets = TargetList(DcgmSettings(targets_file=path))

    first, problems = await targets.read()
    path.write_text("gpu-002\ngpu-001:9400\n")
    os.utime(path, ns=(1, 1))
    second, _ = await targets.read()

    assert [target.node for target in first] == ["gpu-001", "a", "b"]
    assert not problems
    assert [target.node for target in second] == ["gpu-002", "gpu-001"]
    assert {target.origin for target in second} == {str(path)}


async def test_good_lines_are_used_and_bad_ones_named_when_a_file_is_partly_wrong(tmp_path: Path) -> None:
    path = tmp_path / "targets"
    path.write_text("gpu-001\ngpu-[3-1]\n")
    targets = TargetList(DcgmSettings(targets_file=path))

    for _ in range(2):  # also when the file was not read again
        read_targets, problems = await targets.read()
        assert [target.node for target in read_targets] == ["gpu-001"]
        assert [problem.message.partition(":")[0] for problem in problems] == ["line 2"]


async def test_last_list_is_kept_when_the_file_vanishes_or_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "targets"
    path.write_text("gpu-001\n")
    targets = TargetList(DcgmSettings(targets_file=path, targets=("gpu-002",)))
    await targets.read()

    path.write_bytes(b"\xff\xfe\xff")
    garbled = await targets.read()
    path.unlink()
    vanished = await targets.read()

    for kept_targets, problems in (garbled, vanished):
        assert [target.node for target in kept_targets] == ["gpu-002", "gpu-001"]
        assert [problem.origin for problem in problems] == [str(path)]


async def test_every_address_is_a_target_when_a_dns_name_is_given() -> None:
    targets, problems = await TargetList(DcgmSettings(dns="localhost:9500")).read()

    assert "http://127.0.0.1:9500/metrics" in [target.url for target in targets]
    assert {target.node for target in targets} == {None}
    assert not problems


async def test_problem_is_reported_when_a_dns_name_is_not_known() -> None:
    targets, problems = await TargetList(DcgmSettings(dns="no-such-name.invalid:9400")).read()

    assert targets == []
    assert problems[0].origin == "collect.dcgm.dns"
    assert "no-such-name.invalid" in problems[0].message


async def test_exporter_is_scraped_once_when_named_twice() -> None:
    targets, _ = await TargetList(DcgmSettings(targets=("gpu-001", "gpu-[001-002]"))).read()

    assert [target.node for target in targets] == ["gpu-001", "gpu-002"]


@pytest.mark.parametrize("name", ["a b:9400", "name:port", ""])
def test_settings_are_refused_when_the_dns_name_is_wrong(name: str) -> None:
    with pytest.raises(ConfigError):
        TargetList(DcgmSettings(dns=name))


NODES = [f"gpu-{number:04d}" for number in range(1250)]


def owner(name: str, count: int) -> int:
    (shard,) = [number for number in range(1, count + 1) if Shard(number, count).owns_name(name)]
    return shard


def test_each_target_has_one_shard_when_there_are_several() -> None:
    sizes = Counter(owner(node, 3) for node in NODES)
    assert sum(sizes.values()) == len(NODES)
    assert max(sizes.values()) < 1.2 * len(NODES) / 3


def test_few_targets_move_when_a_shard_is_added() -> None:
    moved = [node for node in NODES if owner(node, 3) != owner(node, 4)]
    assert all(owner(node, 4) == 4 for node in moved), "nothing moves between the old ones"
    assert len(moved) < 1.3 * len(NODES) / 4


def test_shard_follows_the_node_name_when_a_target_has_one() -> None:
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
    with pytest.raises(ConfigError, match="there are only 3 shards"):
        parse_shard("4/3")
