import pytest

from clusterscape.ingest.drops import DropReason
from clusterscape.ingest.exporter_labels import find_hardware, find_holder, find_node, find_part, find_place
from clusterscape.model import NodeId


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "gpu-001"}, "gpu-001"),
        ({"hostname": "gpu-001.cluster.local"}, "gpu-001"),
        ({"host_name": "gpu-001"}, "gpu-001"),
        ({"node": "gpu-001", "Hostname": "dcgm-exporter-x7k2p"}, "gpu-001"),
        ({"instance": "gpu-001.cluster.local:9400"}, "gpu-001"),
        ({"instance": "10.0.0.5:9400"}, "10.0.0.5"),
        ({"instance": "[fd00::5]:9400"}, "fd00::5"),
        ({"instance": "fd00::5"}, "fd00::5"),
        ({"Hostname": "", "instance": "gpu-002:9400"}, "gpu-002"),
        ({"Hostname": "<<<NULL>>>"}, None),
        ({"Hostname": ":9400"}, None),
        ({}, None),
    ],
)
def test_node_is_found_when_spelled_any_way(labels: dict[str, str], node: str | None) -> None:
    assert find_node(labels) == node


@pytest.mark.parametrize(
    ("labels", "unit"),
    [
        ({"gpu": "3"}, "gpu-001:3"),
        ({"minor_number": "3"}, "gpu-001:3"),
        ({"device": "nvidia3"}, "gpu-001:3"),
        ({"gpu": "GPU-9ef1b6d0", "device": "nvidia3"}, "gpu-001:3"),
        ({"gpu": "3", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.10gb"}, "gpu-001:3/7"),
    ],
)
def test_unit_is_found_when_spelled_any_way(labels: dict[str, str], unit: str) -> None:
    place = find_place(labels, NodeId("gpu-001"))

    assert not isinstance(place, DropReason)
    assert place.unit == unit


def test_configured_node_wins_when_the_exporter_runs_in_a_container() -> None:
    place = find_place({"Hostname": "424773df46e0", "gpu": "0"}, NodeId("gpu-001"))

    assert not isinstance(place, DropReason)
    assert place.node == "gpu-001"


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"gpu": "0"}, DropReason.NO_NODE),
        ({"Hostname": "gpu-001"}, DropReason.NO_GPU),
        ({"Hostname": "gpu-001", "nvswitch": "0"}, DropReason.NO_GPU),
        ({"Hostname": "gpu-001", "gpu": "٣"}, DropReason.NO_GPU),
        ({"Hostname": "gpu-001", "gpu": "0", "GPU_I_ID": "first"}, DropReason.NO_GPU),
    ],
)
def test_reason_is_given_when_a_row_belongs_nowhere(labels: dict[str, str], reason: DropReason) -> None:
    assert find_place(labels, None) is reason


def test_hardware_is_read_when_labels_name_it() -> None:
    hardware = find_hardware(
        {
            "gpu_uuid": "GPU-1",
            "model_name": "Tesla T4",
            "pci_bus_id": "0:1",
            "DCGM_FI_DRIVER_VERSION": "<<<NOT_FOUND>>>",
        }
    )

    assert hardware.uuid == "GPU-1"
    assert hardware.model_name == "Tesla T4"
    assert hardware.pci_bus_id == "0:1"
    assert hardware.driver_version is None


@pytest.mark.parametrize(
    ("labels", "holder"),
    [
        ({"hpc_job": "4711"}, "slurm:4711"),
        ({"hpc_job": "4711", "pod": "slurmd-0", "namespace": "slurm"}, "slurm:4711"),
        ({"pod": "train-0", "namespace": "team", "container": "main"}, "kubernetes:team/train-0"),
        ({"pod": "train-0"}, "kubernetes:train-0"),
        ({"pod": "", "namespace": "", "container": ""}, None),
        ({"pod": "dcgm-exporter-x", "namespace": "monitoring", "instance": "10.0.0.5:9400"}, None),
        (
            {"pod": "dcgm-exporter-x", "exported_pod": "train-0", "exported_namespace": "team", "instance": "a:1"},
            "kubernetes:team/train-0",
        ),
        ({"hpc_job": ""}, None),
        ({}, None),
    ],
)
def test_holder_is_found_when_labels_name_one(labels: dict[str, str], holder: str | None) -> None:
    assert find_holder(labels, "slurm") == holder


def test_part_is_named_when_a_number_is_split_by_a_label() -> None:
    assert find_part({"gpu": "0", "xid": "43"}) == "xid=43"
    assert find_part({"gpu": "0", "hpc_job": "1"}) is None
