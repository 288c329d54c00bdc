"""Samples that ingest derives itself about GPUs, nodes and sources."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from clusterscape.ingest.hardware_state import MISSING_AFTER_MS, HardwareState, add_hardware_xids
from clusterscape.model import (
    METRICS,
    Names,
    Node,
    NodeId,
    NodeState,
    SampleBatch,
    SourceStatus,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    gpu_unit_id,
    mig_unit_id,
)

START = UnixMs(1_790_000_000_000)
N1 = NodeId("n1")
GPUS = [Unit(id=gpu_unit_id(N1, i), node=N1, index=i) for i in range(3)]


def exporter(node: str, *, is_ok: bool = True) -> SourceStatus:
    return SourceStatus(
        source=f"dcgm {node}", kind="dcgm", is_ok=is_ok, at=START, node=NodeId(node), address=f"{node}:9400"
    )


def part(name: str, *, is_ok: bool = True) -> SourceStatus:
    return SourceStatus(source=f"slurm {name}", kind="slurm", is_ok=is_ok, at=START)


class Site:
    """Samples by (unit, metric) at successive times."""

    def __init__(self) -> None:
        self.state = HardwareState()
        self.now = START

    def sample(
        self,
        *,
        after_ms: int = 0,
        nodes: Sequence[Node] = (),
        units: Sequence[Unit] = (),
        statuses: Sequence[SourceStatus] = (),
        indirect_nodes: Mapping[NodeId, UnixMs] | None = None,
        seen_ago_ms: Mapping[UnitId, int] | None = None,
    ) -> dict[tuple[str, str], float]:
        """``seen_ago_ms``: time since each unit was last reported."""
        self.now = UnixMs(self.now + after_ms)
        batch = self.state.sample(
            self.now,
            nodes=nodes,
            units=units,
            statuses=statuses,
            indirect_nodes=indirect_nodes or {},
            last_seen=lambda: {unit: UnixMs(self.now - ago) for unit, ago in (seen_ago_ms or {}).items()},
        )
        assert set(batch.time_ms.tolist()) <= {self.now}
        return rows(batch)


def rows(batch: SampleBatch) -> dict[tuple[str, str], float]:
    return {
        (batch.units.values[unit], batch.metrics.values[metric]): value
        for unit, metric, value in zip(batch.unit, batch.metric, batch.value.tolist(), strict=True)
    }


def test_node_states_become_samples_when_a_scheduler_reports_them() -> None:
    states = [NodeState.IDLE, NodeState.DOWN, NodeState.DRAINING, NodeState.DRAINED, NodeState.UNKNOWN]
    values = Site().sample(nodes=[Node(id=NodeId(state.value), state=state) for state in states])

    assert {unit for (unit, metric), value in values.items() if metric == "node_down" and value} == {"down"}
    drained = {unit for (unit, metric), value in values.items() if metric == "node_drained" and value}
    assert drained == {"draining", "drained"}
    assert not any(unit == "unknown" for unit, _ in values)


def test_node_is_silent_when_none_of_its_exporters_answers() -> None:
    statuses = [exporter("n1"), exporter("n1", is_ok=False), exporter("n2", is_ok=False), part("nodes")]
    values = Site().sample(statuses=statuses)

    assert values["n1", "exporter_silent"] == 0.0
    assert values["n2", "exporter_silent"] == 1.0


def test_silence_is_not_reported_when_the_node_is_down() -> None:
    down = Node(id=N1, state=NodeState.DOWN)
    assert ("n1", "exporter_silent") not in Site().sample(nodes=[down], statuses=[exporter("n1", is_ok=False)])
    assert Site().sample(nodes=[down], statuses=[exporter("n1")])["n1", "exporter_silent"] == 0.0


def test_share_of_failing_parts_is_reported_when_a_source_has_several() -> None:
    statuses = [part("nodes"), part("queue"), part("partitions"), part("accounting", is_ok=False)]
    assert Site().sample(statuses=statuses)["source:slurm", "source_failing_ratio"] == 0.25
    away = [part(name, is_ok=False) for name in ("nodes", "queue", "partitions", "accounting")]
    assert Site().sample(statuses=away)["source:slurm", "source_failing_ratio"] == 1.0


def test_gpu_is_missing_when_its_exporter_answers_without_it_for_long() -> None:
    site = Site()
    well = {gpu.id: 1_000 for gpu in GPUS}
    first = site.sample(units=GPUS, statuses=[exporter("n1")], seen_ago_ms=well)
    assert [first[gpu.id, "gpu_missing"] for gpu in GPUS] == [0.0, 0.0, 0.0]
    seen_ago_ms = {**well, GPUS[1].id: MISSING_AFTER_MS - 1_000}
    site.sample(after_ms=MISSING_AFTER_MS, units=GPUS, statuses=[exporter("n1")], seen_ago_ms=seen_ago_ms)
    seen_ago_ms[GPUS[1].id] += 2_000
    later = site.sample(after_ms=MISSING_AFTER_MS, units=GPUS, statuses=[exporter("n1")], seen_ago_ms=seen_ago_ms)
    assert [later[gpu.id, "gpu_missing"] for gpu in GPUS] == [0.0, 1.0, 0.0]


def test_gpu_is_missing_when_the_scheduler_counts_it_and_no_exporter_ever_showed_it() -> None:
    site = Site()
    shown = {GPUS[0].id: 1_000, GPUS[1].id: 1_000}
    assert site.sample(units=GPUS, statuses=[exporter("n1")], seen_ago_ms=shown)["n1:2", "gpu_missing"] == 0.0
    values = site.sample(after_ms=MISSING_AFTER_MS + 1, units=GPUS, statuses=[exporter("n1")], seen_ago_ms=shown)
    assert [values[gpu.id, "gpu_missing"] for gpu in GPUS] == [0.0, 0.0, 1.0]


def test_gpu_is_not_missing_when_its_exporter_is_silent_or_came_back_just_now() -> None:
    site = Site()
    long_ago = {gpu.id: 10 * MISSING_AFTER_MS for gpu in GPUS}
    silent = site.sample(units=GPUS, statuses=[exporter("n1", is_ok=False)], seen_ago_ms=long_ago)
    assert not any(metric == "gpu_missing" for _, metric in silent)
    back = site.sample(after_ms=60_000, units=GPUS, statuses=[exporter("n1")], seen_ago_ms=long_ago)
    assert [back[gpu.id, "gpu_missing"] for gpu in GPUS] == [0.0, 0.0, 0.0]


def test_gpu_is_not_missing_when_only_its_instances_are_shown() -> None:
    instance = Unit(id=mig_unit_id(N1, 0, 1), kind=UnitKind.MIG, node=N1, index=0, parent=GPUS[0].id)
    units = [GPUS[0], instance]
    site = Site()
    site.sample(units=units, statuses=[exporter("n1")], seen_ago_ms={instance.id: 1_000})
    values = site.sample(
        after_ms=2 * MISSING_AFTER_MS, units=units, statuses=[exporter("n1")], seen_ago_ms={instance.id: 1_000}
    )
    assert values["n1:0", "gpu_missing"] == 0.0
    assert ("n1:0/1", "gpu_missing") not in values


def test_samples_are_due_when_the_clock_went_back() -> None:
    state = HardwareState()
    state.sample(START, nodes=[], units=[], statuses=[], indirect_nodes={}, last_seen=dict)
    assert not state.is_due(UnixMs(START + 1_000))
    assert state.is_due(UnixMs(START + 15_000))
    assert state.is_due(UnixMs(START - 3_600_000))


@pytest.mark.parametrize(
    ("code", "hardware"),
    [(0, 0), (31, 0), (43, 0), (63, 0), (69, 0), (92, 0), (94, 0), (48, 48), (64, 64), (79, 79), (95, 95), (999, 999)],
)
def test_xid_counts_as_hardware_when_the_catalogue_assigns_it_to_the_operator(code: int, hardware: int) -> None:
    metrics = Names(METRICS)
    values = {"xid_error_code": float(code), "power_watts": 94.0}
    scraped = SampleBatch(
        Names([GPUS[0].id]),
        metrics,
        np.zeros(len(values), np.int32),
        np.array([metrics.code(name) for name in values], np.int32),
        np.full(len(values), START, np.int64),
        np.array(list(values.values())),
    )

    batch = add_hardware_xids(scraped)

    added = {metrics.values[metric]: value for metric, value in zip(batch.metric, batch.value, strict=True)}
    assert added == values | {"xid_hardware_code": float(hardware)}


def test_batch_is_unchanged_when_it_has_no_xid() -> None:
    empty = np.zeros(0, np.int32)
    scraped = SampleBatch(Names(), Names(METRICS), empty, empty, empty.astype(np.int64), np.zeros(0))
    assert add_hardware_xids(scraped) is scraped
