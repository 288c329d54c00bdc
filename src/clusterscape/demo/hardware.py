"""Machine types, nodes, racks and GPUs of the demo cluster. Nothing here changes over time."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clusterscape.demo.scheduler import SimNode
from clusterscape.model import GpuUuid, NodeId, UnitId, gpu_unit_id

MIN_GPUS = 4
MAX_GPUS = 100_000
SMALL, LARGE, V100 = "a100-small", "a100-large", "v100"
PARTITION_SHARES = ((SMALL, 0.25), (LARGE, 0.5), (V100, 0.25))
NODES_PER_RACK = 4
DRIVER_VERSION = "570.133.20"
_PCI_BUSES = ("07", "0F", "47", "4E", "87", "90", "B7", "BD")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """A node type and the specification of its GPUs."""

    name: str
    gres_type: str
    model_name: str
    memory_mib: int
    reserved_mib: int
    power_limit_watts: float
    idle_watts: float
    sm_clock_mhz: float  # maximum
    memory_clock_mhz: float
    nvlink_bytes_per_s: float  # one direction, all links
    cpus: int
    node_memory_mib: int


A100_80G = MachineType(
    name="A100-80G",
    gres_type="a100",
    model_name="NVIDIA A100-SXM4-80GB",
    memory_mib=81_920,
    reserved_mib=633,
    power_limit_watts=400.0,
    idle_watts=54.0,
    sm_clock_mhz=1410.0,
    memory_clock_mhz=1593.0,
    nvlink_bytes_per_s=300e9,
    cpus=128,
    node_memory_mib=1_031_000,
)
V100_32G = MachineType(
    name="V100-32G",
    gres_type="v100",
    model_name="Tesla V100-SXM2-32GB",
    memory_mib=32_768,
    reserved_mib=281,
    power_limit_watts=300.0,
    idle_watts=41.0,
    sm_clock_mhz=1530.0,
    memory_clock_mhz=877.0,
    nvlink_bytes_per_s=150e9,
    cpus=80,
    node_memory_mib=515_000,
)
MACHINE_OF_PARTITION: Mapping[str, MachineType] = {SMALL: A100_80G, LARGE: A100_80G, V100: V100_32G}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoNode:
    """A node; its GPUs are the units ``first_unit`` … ``first_unit + gpu_count − 1`` of the cluster."""

    name: NodeId
    partition: str
    machine: MachineType
    gpu_count: int
    rack: str
    first_unit: int


@dataclass(frozen=True)
class Hardware:
    """All nodes, ordered by name; nodes of a partition are adjacent."""

    nodes: tuple[DemoNode, ...]
    gpus_per_node: int
    seed: int

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Node name → index in ``nodes``."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    @cached_property
    def unit_count(self) -> int:
        """Number of GPUs."""
        return sum(node.gpu_count for node in self.nodes)

    @cached_property
    def unit_ids(self) -> list[UnitId]:
        """The id of every GPU, in the order of ``nodes``."""
        return [gpu_unit_id(node.name, index) for node in self.nodes for index in range(node.gpu_count)]

    @cached_property
    def node_of_unit(self) -> NDArray[np.int64]:
        """The index of each GPU's node, shape (unit_count,)."""
        return np.repeat(np.arange(len(self.nodes)), [node.gpu_count for node in self.nodes])

    @cached_property
    def sim_nodes(self) -> list[SimNode]:
        """The nodes as input of the scheduling engine."""
        return [SimNode(node.name, node.partition, node.gpu_count) for node in self.nodes]

    def partition(self, name: str) -> list[DemoNode]:
        """The nodes of a partition."""
        return [node for node in self.nodes if node.partition == name]

    def capacity(self, partition: str) -> int:
        """GPUs of a partition."""
        return sum(node.gpu_count for node in self.partition(partition))

    def uuid(self, node: DemoNode, index: int) -> GpuUuid:
        """The GPU's UUID, deterministic in seed, node and index."""
        digits = hashlib.blake2b(f"{self.seed}/{node.name}/{index}".encode(), digest_size=16).hexdigest()
        return GpuUuid(f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}")


def pci_bus_id(index: int) -> str:
    """The PCI bus id of a GPU, in NVML's format."""
    return f"00000000:{_PCI_BUSES[index % len(_PCI_BUSES)]}:00.0"


def build_hardware(gpus: int, seed: int) -> Hardware:
    """A cluster of exactly ``gpus`` GPUs: about a quarter, a half and a quarter in the three partitions.

    Nodes have 8 GPUs; below 32 GPUs they have fewer, so that every partition has a node.
    """
    if not MIN_GPUS <= gpus <= MAX_GPUS:
        raise ValueError(f"a demo cluster has {MIN_GPUS} to {MAX_GPUS} GPUs, not {gpus}")
    per_node = min(8, gpus // 4)
    node_count = -(-gpus // per_node)
    width = max(3, len(str(node_count)))
    outer = max(1, round(node_count * PARTITION_SHARES[0][1]))
    partitions = [SMALL] * outer + [LARGE] * (node_count - 2 * outer) + [V100] * outer
    nodes = []
    for place, partition in enumerate(partitions):
        first_unit = place * per_node
        nodes.append(
            DemoNode(
                name=NodeId(f"gpu-{place + 1:0{width}d}"),
                partition=partition,
                machine=MACHINE_OF_PARTITION[partition],
                gpu_count=min(per_node, gpus - first_unit),
                rack=f"r{place // NODES_PER_RACK + 1:02d}",
                first_unit=first_unit,
            )
        )
    return Hardware(tuple(nodes), per_node, seed)
