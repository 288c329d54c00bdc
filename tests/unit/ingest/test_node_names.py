import pytest

from clusterscape.ingest.node_names import NodeNames, is_loopback, split_address
from clusterscape.model import NodeId

NODES = [NodeId("gpu01"), NodeId("gpu02"), NodeId("big.site-a.org"), NodeId("twin.a"), NodeId("twin.b")]


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("gpu01", "gpu01"),
        ("gpu01:9400", "gpu01"),
        ("10.0.0.5:9400", "10.0.0.5"),
        ("[fd00::5]:9400", "fd00::5"),
        ("fd00::5", "fd00::5"),
        ("gateway:8080/gpu01/metrics", "gateway"),
    ],
)
def test_host_is_found_when_an_address_has_a_port_or_a_path(address: str, host: str) -> None:
    assert split_address(address) == host


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("gpu01", "gpu01"),
        ("GPU01", "gpu01"),
        ("gpu01.site-a.org", "gpu01"),
        ("big", "big.site-a.org"),
        ("big.site-a.org", "big.site-a.org"),
        ("big.site-b.org", None),  # two full names are two hosts
        ("twin", None),  # two nodes are called so
        ("gpu1", None),
        ("gpu", None),
        ("10.0.0.1", None),
    ],
)
def test_node_is_found_by_its_short_or_full_name_when_that_is_unique(name: str, node: str | None) -> None:
    assert NodeNames(NODES).find(name) == node


def test_node_is_found_by_an_address_when_no_other_node_has_it() -> None:
    names = NodeNames(
        NODES,
        {
            NodeId("gpu01"): ["10.0.0.1", "ib-gpu01.site-a.org"],
            NodeId("gpu02"): ["10.0.0.9", "localhost"],
            NodeId("twin.a"): ["10.0.0.9"],
            NodeId("gone"): ["10.0.0.7"],
        },
    )

    assert names.find_address("10.0.0.1") == "gpu01"
    assert names.find_address("IB-gpu01.site-a.org") == "gpu01"
    assert names.find_address("10.0.0.9") is None
    assert names.find_address("localhost") is None
    assert names.find_address("10.0.0.7") is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.0.1", "::1", "localhost.localdomain"])
def test_host_is_loopback_when_it_names_the_local_machine(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback("gpu01")
