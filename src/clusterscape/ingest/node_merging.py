"""Merges the reports of several schedulers on the same node (Slurm and Kubernetes on shared hosts). Pure."""

from collections.abc import Sequence
from dataclasses import replace

from clusterscape.model import InventoryObserved, Node, NodeId, NodeState

_WORST_FIRST = (
    NodeState.DOWN,
    NodeState.DRAINING,
    NodeState.DRAINED,
    NodeState.ALLOCATED,
    NodeState.MIXED,
    NodeState.IDLE,
    NodeState.UNKNOWN,
)


class NodeMerger:
    """The latest report of every scheduler on every node."""

    def __init__(self) -> None:
        self._reports: dict[str, dict[NodeId, Node]] = {}

    def merge(self, inventory: InventoryObserved) -> Sequence[Node]:
        """The nodes of an observation, merged with other schedulers' reports. A complete one replaces the previous report."""
        nodes = {node.id: node for node in inventory.nodes}
        if inventory.is_complete and nodes:
            self._reports[inventory.source] = nodes
        else:
            self._reports.setdefault(inventory.source, {}).update(nodes)
        if len(self._reports) == 1:
            return inventory.nodes
        return [self._join(node) for node in inventory.nodes]

    def nodes_of_others(self, source: str) -> set[NodeId]:
        """Nodes that other schedulers report."""
        return {node for name, nodes in self._reports.items() if name != source for node in nodes}

    def _join(self, node: Node) -> Node:
        # Sorted by source, so that the result does not depend on the order of reports.
        reports = [nodes[node.id] for _, nodes in sorted(self._reports.items()) if node.id in nodes]
        if len(reports) < 2:
            return node
        worst = min(reports, key=lambda report: _WORST_FIRST.index(report.state))
        return replace(
            node,
            partitions=tuple(dict.fromkeys(name for report in reports for name in report.partitions)),
            machine_type=next((report.machine_type for report in reports if report.machine_type), None),
            state=worst.state,
            reason=worst.reason,
            gpu_count=max(report.gpu_count for report in reports),
            cpu_count=max((report.cpu_count for report in reports if report.cpu_count), default=None),
            memory_bytes=max((report.memory_bytes for report in reports if report.memory_bytes), default=None),
            features=tuple(dict.fromkeys(name for report in reports for name in report.features)),
            rack=next((report.rack for report in reports if report.rack), None),
        )
