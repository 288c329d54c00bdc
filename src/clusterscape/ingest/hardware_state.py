"""What ingest itself finds out of GPUs, nodes and sources, as samples: missing GPUs, silent exporters, nodes out of service.

So rules can judge hardware by the same language as workloads, and its past is stored like any other. Stores nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from clusterscape.model import Names, Node, NodeId, NodeState, SampleBatch, SourceStatus, Unit, UnitId, UnitKind, UnixMs
from clusterscape.model.hardware import find_answering, source_unit

SAMPLE_EVERY_MS = 15_000
SAMPLE_GPUS_EVERY_MS = 60_000
"""There are many more of them than nodes."""

MISSING_AFTER_MS = 120_000
"""A GPU that its exporter has not shown for so long is missing: eight scrapes of the usual 15 s."""

Row = tuple[str, str, float]  # unit, metric, value
LastSeen = Callable[[], Mapping[UnitId, UnixMs]]
"""When the newest sample of each unit was taken; asked for only where it is needed."""


class HardwareState:
    """Samples of the present; remembers since when the exporters of each node answer."""

    def __init__(self) -> None:
        self._units = Names()
        self._metrics = Names()
        self._answering_since: dict[NodeId, UnixMs] = {}
        self._sampled_at: UnixMs | None = None
        self._sampled_gpus_at: UnixMs | None = None

    def is_due(self, now_ms: UnixMs) -> bool:
        """Whether it is time for the next samples. A clock that went back makes it so."""
        return _has_passed(self._sampled_at, now_ms, SAMPLE_EVERY_MS)

    def sample(
        self,
        now_ms: UnixMs,
        *,
        nodes: Iterable[Node],
        units: Iterable[Unit],
        statuses: Sequence[SourceStatus],
        heard_nodes: Mapping[NodeId, UnixMs],
        last_seen: LastSeen,
    ) -> SampleBatch:
        """``nodes``: those whose scheduler is read here and answers; ``heard_nodes``: those whose exporters others ask.

        That the exporter of a node that is down says nothing is no news, and not told.
        """
        self._sampled_at = now_ms
        answering = dict.fromkeys(heard_nodes, True) | find_answering(statuses)
        rows: list[Row] = []
        down: set[NodeId] = set()
        for node in nodes:
            if node.state is NodeState.DOWN:
                down.add(node.id)
            if node.state is not NodeState.UNKNOWN:
                is_drained = node.state in (NodeState.DRAINED, NodeState.DRAINING)
                rows.append((node.id, "node_down", float(node.state is NodeState.DOWN)))
                rows.append((node.id, "node_drained", float(is_drained)))
        rows += [
            (node, "exporter_silent", float(not is_answering))
            for node, is_answering in answering.items()
            if is_answering or node not in down
        ]
        rows += [
            (source_unit(kind), "source_failing_ratio", share) for kind, share in _failing_shares(statuses).items()
        ]
        self._note_answering(answering, now_ms)
        if _has_passed(self._sampled_gpus_at, now_ms, SAMPLE_GPUS_EVERY_MS):
            self._sampled_gpus_at = now_ms
            rows += self._find_missing(units, last_seen(), now_ms)
        return self._batch(rows, now_ms)

    def _note_answering(self, answering: Mapping[NodeId, bool], now_ms: UnixMs) -> None:
        self._answering_since = {
            node: self._answering_since.get(node, now_ms) for node, is_answering in answering.items() if is_answering
        }

    def _find_missing(self, units: Iterable[Unit], last_seen: Mapping[UnitId, UnixMs], now_ms: UnixMs) -> list[Row]:
        """Whole GPUs of nodes whose exporters answer; one that is cut into instances is seen where one of these is."""
        gpus: list[tuple[UnitId, NodeId]] = []
        instances: dict[UnitId, list[UnitId]] = defaultdict(list)
        for unit in units:
            if unit.kind is UnitKind.MIG and unit.parent is not None:
                instances[unit.parent].append(unit.id)
            elif unit.kind is UnitKind.GPU and unit.node is not None and unit.node in self._answering_since:
                gpus.append((unit.id, unit.node))
        rows: list[Row] = []
        for gpu, node in gpus:
            seen = [last_seen[key] for key in (gpu, *instances.get(gpu, ())) if key in last_seen]
            since = max(seen, default=self._answering_since[node])
            is_missing = now_ms - max(since, self._answering_since[node]) > MISSING_AFTER_MS
            rows.append((gpu, "gpu_missing", float(is_missing)))
        return rows

    def _batch(self, rows: Sequence[Row], now_ms: UnixMs) -> SampleBatch:
        return SampleBatch(
            self._units,
            self._metrics,
            np.array([self._units.code(unit) for unit, _, _ in rows], np.int32),
            np.array([self._metrics.code(metric) for _, metric, _ in rows], np.int32),
            np.full(len(rows), now_ms, np.int64),
            np.array([value for _, _, value in rows], np.float64),
        )


def _failing_shares(statuses: Iterable[SourceStatus]) -> dict[str, float]:
    """By kind of source, the share of its parts that fail; exporters are their nodes' matter."""
    parts: dict[str, list[bool]] = defaultdict(list)
    for status in statuses:
        if status.node is None and status.address is None:
            parts[status.kind].append(status.is_ok)
    return {kind: are_ok.count(False) / len(are_ok) for kind, are_ok in parts.items()}


def _has_passed(since: UnixMs | None, now_ms: UnixMs, every_ms: int) -> bool:
    return since is None or not 0 <= now_ms - since < every_ms
