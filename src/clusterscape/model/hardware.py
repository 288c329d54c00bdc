"""What rules may judge beside workloads: nodes with their GPUs, and sources. Violations name them as a workload is named."""

from collections.abc import Iterable

from clusterscape.model.ids import NodeId, UnitId, WorkloadId
from clusterscape.model.observations import SourceStatus

_NODE = "node:"
_SOURCE = "source:"


def node_subject(node: NodeId) -> WorkloadId:
    """Whom violations by a node, or by a GPU of it, name."""
    return WorkloadId(f"{_NODE}{node}")


def source_subject(kind: str) -> WorkloadId:
    """Whom violations by a source name."""
    return WorkloadId(f"{_SOURCE}{kind}")


def source_unit(kind: str) -> UnitId:
    """Under which name the metrics of a source stand. A node's stand under the node's own name."""
    return UnitId(f"{_SOURCE}{kind}")


def find_node(subject: str) -> NodeId | None:
    """The node that a violation names; None where it names a workload or a source."""
    return NodeId(subject.removeprefix(_NODE)) if subject.startswith(_NODE) else None


def is_hardware(subject: str) -> bool:
    """Whether a violation names a node or a source, and no workload."""
    return subject.startswith((_NODE, _SOURCE))


def find_answering(statuses: Iterable[SourceStatus]) -> dict[NodeId, bool]:
    """Nodes that have exporters, and whether any of these answers."""
    found: dict[NodeId, bool] = {}
    for status in statuses:
        if status.node is not None:
            found[status.node] = found.get(status.node, False) or status.is_ok
    return found
