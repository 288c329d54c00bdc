"""What each scheduler says of a node, joined where two of them share it (Slurm and Kubernetes on the same hosts). Pure."""

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


class NodeWords:
    """The last word of every scheduler on every node."""

    def __init__(self) -> None:
        self._words: dict[str, dict[NodeId, Node]] = {}

    def hear(self, seen: InventoryObserved) -> Sequence[Node]:
        """The nodes of an observation, each with what other schedulers say of it. A complete one replaces what it said before."""
        told = {node.id: node for node in seen.nodes}
        if seen.is_complete and told:
            self._words[seen.source] = told
        else:
            self._words.setdefault(seen.source, {}).update(told)
        if len(self._words) == 1:
            return seen.nodes
        return [self._join(node) for node in seen.nodes]

    def named_by_others(self, source: str) -> set[NodeId]:
        """Nodes that other schedulers have."""
        return {node for name, words in self._words.items() if name != source for node in words}

    def _join(self, node: Node) -> Node:
        # By name of the source, so that it is the same whoever was heard last.
        words = [told[node.id] for _, told in sorted(self._words.items()) if node.id in told]
        if len(words) < 2:
            return node
        worst = min(words, key=lambda word: _WORST_FIRST.index(word.state))
        return replace(
            node,
            partitions=tuple(dict.fromkeys(name for word in words for name in word.partitions)),
            machine_type=next((word.machine_type for word in words if word.machine_type), None),
            state=worst.state,
            reason=worst.reason,
            gpu_count=max(word.gpu_count for word in words),
            cpu_count=max((word.cpu_count for word in words if word.cpu_count), default=None),
            memory_bytes=max((word.memory_bytes for word in words if word.memory_bytes), default=None),
            features=tuple(dict.fromkeys(name for word in words for name in word.features)),
            rack=next((word.rack for word in words if word.rack), None),
        )
