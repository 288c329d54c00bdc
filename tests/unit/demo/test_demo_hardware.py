import pytest

from clusterscape.demo.hardware import LARGE, SMALL, V100, build_hardware


@pytest.mark.parametrize("gpus", [4, 8, 11, 31, 32, 64, 100, 1024, 10_000])
def test_cluster_has_exactly_the_requested_gpus_when_it_is_built(gpus: int) -> None:
    hardware = build_hardware(gpus, seed=1)
    assert hardware.unit_count == gpus == len(set(hardware.unit_ids))
    assert all(hardware.capacity(name) > 0 for name in (SMALL, LARGE, V100))
    assert hardware.unit_ids == sorted(hardware.unit_ids)


@pytest.mark.parametrize("gpus", [64, 1024, 8000])
def test_partitions_have_a_quarter_a_half_and_a_quarter_when_nodes_allow(gpus: int) -> None:
    hardware = build_hardware(gpus, seed=1)
    assert [hardware.capacity(name) * 4 / gpus for name in (SMALL, LARGE, V100)] == [1, 2, 1]


def test_nodes_are_smaller_when_the_cluster_is_tiny() -> None:
    hardware = build_hardware(8, seed=1)
    assert [(node.name, node.gpu_count) for node in hardware.nodes] == [(f"gpu-00{n}", 2) for n in (1, 2, 3, 4)]


def test_uuids_are_distinct_and_stay_when_the_cluster_is_built_again() -> None:
    uuids = [[h.uuid(node, 0) for node in h.nodes] for h in (build_hardware(64, 3), build_hardware(64, 3))]
    assert uuids[0] == uuids[1]
    assert len(set(uuids[0])) == 8
    assert uuids[0] != [h.uuid(node, 0) for h in (build_hardware(64, 4),) for node in h.nodes]


@pytest.mark.parametrize("gpus", [0, 3, 1_000_000])
def test_size_is_refused_when_it_is_out_of_range(gpus: int) -> None:
    with pytest.raises(ValueError, match="GPUs, not"):
        build_hardware(gpus, seed=1)
