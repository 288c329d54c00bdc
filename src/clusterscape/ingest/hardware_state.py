"""Samples of the hardware state that ingest derives: missing GPUs, silent exporters, nodes out of service, XIDs of hardware.

As samples, they have a history and rules apply to them as to any metric. Stores nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from clusterscape.model import Names, Node, NodeId, NodeState, SampleBatch, SourceStatus, Unit, UnitId, UnitKind, UnixMs
from clusterscape.model.rules import find_exporters_up, source_unit
from clusterscape.model.xids import XIDS

SAMPLE_EVERY_MS = 15_000
SAMPLE_GPUS_EVERY_MS = 60_000
"""Less often than nodes, because there are many more GPUs."""

MISSING_AFTER_MS = 120_000
"""A GPU without samples for this long, while its exporter responds, is missing: eight scrapes at the usual 15 s."""

Row = tuple[str, str, float]  # unit, metric, value
LastSeen = Callable[[], Mapping[UnitId, UnixMs]]
"""Returns the time of the latest sample of each unit; called only if needed."""


_PROGRAM_XIDS = np.array([code for code, xid in XIDS.items() if not xid.needs_operator], np.float64)


def add_hardware_xids(batch: SampleBatch) -> SampleBatch:
    """The batch, with one sample of ``xid_hardware_code`` for each sample of ``xid_error_code``."""
    code = batch.metrics.find("xid_error_code")
    rows = np.flatnonzero(batch.metric == code) if code is not None else ()
    if not len(rows):
        return batch
    value = batch.value[rows]
    hardware = np.full(len(rows), batch.metrics.code("xid_hardware_code"), np.int32)
    return SampleBatch(
        batch.units,
        batch.metrics,
        np.concatenate([batch.unit, batch.unit[rows]]),
        np.concatenate([batch.metric, hardware]),
        np.concatenate([batch.time_ms, batch.time_ms[rows]]),
        np.concatenate([batch.value, np.where(np.isin(value, _PROGRAM_XIDS), 0.0, value)]),
    )


class HardwareState:
    """Computes the samples; remembers since when the exporters of each node respond."""

    def __init__(self) -> None:
        self._units = Names()
        self._metrics = Names()
        self._up_since: dict[NodeId, UnixMs] = {}
        self._sampled_at: UnixMs | None = None
        self._sampled_gpus_at: UnixMs | None = None

    def is_due(self, now_ms: UnixMs) -> bool:
        """Whether the next samples are due; also if the clock went back."""
        return _has_passed(self._sampled_at, now_ms, SAMPLE_EVERY_MS)

    def sample(
        self,
        now_ms: UnixMs,
        *,
        nodes: Iterable[Node],
        units: Iterable[Unit],
        statuses: Sequence[SourceStatus],
        indirect_nodes: Mapping[NodeId, UnixMs],
        last_seen: LastSeen,
    ) -> SampleBatch:
        """``nodes``: those whose scheduler responds; ``indirect_nodes``: those whose exporters a Prometheus scrapes.

        The exporter of a node that is down is not reported as silent.
        """
        self._sampled_at = now_ms
        is_up = dict.fromkeys(indirect_nodes, True) | find_exporters_up(statuses)
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
            (node, "exporter_silent", float(not is_responding))
            for node, is_responding in is_up.items()
            if is_responding or node not in down
        ]
        rows += [
            (source_unit(kind), "source_failing_ratio", share) for kind, share in _failing_shares(statuses).items()
        ]
        self._note_responding(is_up, now_ms)
        if _has_passed(self._sampled_gpus_at, now_ms, SAMPLE_GPUS_EVERY_MS):
            self._sampled_gpus_at = now_ms
            rows += self._find_missing(units, last_seen(), now_ms)
        return self._batch(rows, now_ms)

    def _note_responding(self, is_up: Mapping[NodeId, bool], now_ms: UnixMs) -> None:
        self._up_since = {
            node: self._up_since.get(node, now_ms) for node, is_responding in is_up.items() if is_responding
        }

    def _find_missing(self, units: Iterable[Unit], last_seen: Mapping[UnitId, UnixMs], now_ms: UnixMs) -> list[Row]:
        """Rows for whole GPUs of nodes whose exporters respond; samples of a MIG instance count for its GPU."""
        gpus: list[tuple[UnitId, NodeId]] = []
        instances: dict[UnitId, list[UnitId]] = defaultdict(list)
        for unit in units:
            if unit.kind is UnitKind.MIG and unit.parent is not None:
                instances[unit.parent].append(unit.id)
            elif unit.kind is UnitKind.GPU and unit.node is not None and unit.node in self._up_since:
                gpus.append((unit.id, unit.node))
        rows: list[Row] = []
        for gpu, node in gpus:
            sample_times = [last_seen[key] for key in (gpu, *instances.get(gpu, ())) if key in last_seen]
            since = max(sample_times, default=self._up_since[node])
            is_missing = now_ms - max(since, self._up_since[node]) > MISSING_AFTER_MS
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
    """The share of failing parts by kind of source, without exporters, which belong to nodes."""
    parts: dict[str, list[bool]] = defaultdict(list)
    for status in statuses:
        if status.node is None and status.address is None:
            parts[status.kind].append(status.is_ok)
    return {kind: are_ok.count(False) / len(are_ok) for kind, are_ok in parts.items()}


def _has_passed(since: UnixMs | None, now_ms: UnixMs, every_ms: int) -> bool:
    return since is None or not 0 <= now_ms - since < every_ms
