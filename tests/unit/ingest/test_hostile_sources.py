"""Sources that keep naming new GPUs, pods and jobs: known ones stay, the rest is counted and reported, memory is bounded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile.memory import MIB, measure

from clusterscape.collect.exposition import ExpositionParser
from clusterscape.ingest.drops import Drops
from clusterscape.ingest.ledger import Ledger
from clusterscape.ingest.normalize import Normalized, Normalizer
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.source_limits import SchedulerLimiter
from clusterscape.model import (
    Allocation,
    HistoryObserved,
    InventoryObserved,
    Node,
    NodeId,
    Partition,
    QueueObserved,
    ScrapeObserved,
    SourceStatus,
    Unit,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.model.durations import DAY_MS
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.settings.limits import SourceLimits
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

NOW = UnixMs(1_790_000_000_000)
URL = "http://n1:9400/metrics"


def gpu_line(node: str, gpu: int = 0, pod: str | None = None) -> str:
    holder = "" if pod is None else f',namespace="x",pod="{pod}"'
    return f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",Hostname="{node}"{holder}}} 50\n'


class Rounds:
    """An exporter without a configured node and a normalizer, for several rounds."""

    def __init__(self, limits: SourceLimits, known_units: list[Unit] | None = None) -> None:
        self.drops = Drops()
        self.normalizer = Normalizer(self.drops, limits=limits, known_units=lambda: known_units or [])
        self.parser = ExpositionParser(URL)
        self.now = NOW

    def round(self, text: str, after_ms: int = 15_000) -> Normalized:
        self.now = UnixMs(self.now + after_ms)
        return self.normalizer.normalize([self.parser.parse(text.encode(), fetched_at=self.now)], now_ms=self.now)


def units_of(normalized: Normalized) -> set[str]:
    return {normalized.batch.units.values[code] for code in normalized.batch.unit.tolist()}


def known_unit(node: str, index: int = 0) -> Unit:
    return Unit(id=gpu_unit_id(NodeId(node), index), kind=UnitKind.GPU, node=NodeId(node), index=index)


# units that exporters name


def test_known_units_are_stored_when_an_exporter_names_too_many() -> None:
    rounds = Rounds(SourceLimits(units=100))
    honest = "".join(gpu_line("honest", gpu) for gpu in range(8))
    rounds.round(honest)
    hostile = "".join(gpu_line(f"made-up-{number}") for number in range(500))
    normalized = rounds.round(hostile + honest)
    assert units_of(normalized) >= {f"honest:{gpu}" for gpu in range(8)}
    assert len(units_of(normalized)) == 100
    assert normalized.dropped == {"too_many_units": 408}
    assert normalized.exceeded == {URL: frozenset({"too_many_units"})}


def test_units_of_an_earlier_run_come_first_after_a_restart() -> None:
    stored_units = [known_unit("honest", gpu) for gpu in range(8)]
    rounds = Rounds(SourceLimits(units=10), stored_units)
    hostile = "".join(gpu_line(f"made-up-{number}") for number in range(50))
    normalized = rounds.round(hostile + "".join(gpu_line("honest", gpu) for gpu in range(8)))
    assert units_of(normalized) >= {f"honest:{gpu}" for gpu in range(8)}


def test_units_of_one_node_are_limited_when_it_names_too_many() -> None:
    rounds = Rounds(SourceLimits(units_per_node=16))
    text = "".join(gpu_line("greedy", gpu) for gpu in range(2000)) + gpu_line("honest")
    assert len(units_of(rounds.round(text))) == 17


def test_new_units_are_accepted_over_several_rounds_when_there_are_many() -> None:
    stored_units: list[Unit] = []
    rounds = Rounds(SourceLimits(new_units_per_round=40), stored_units)
    text = "".join(gpu_line(f"n{number}") for number in range(100))
    counts = []
    for _ in range(4):
        named = units_of(rounds.round(text))
        counts.append(len(named))
        stored_units[:] = [known_unit(name.partition(":")[0]) for name in named]
    assert counts == [40, 80, 100, 100]


def test_new_units_per_day_are_limited_when_an_exporter_names_many() -> None:
    rounds = Rounds(SourceLimits(new_units_per_day=10))
    text = "".join(gpu_line(f"n{number}") for number in range(30))
    assert len(units_of(rounds.round(text))) == 10
    assert len(units_of(rounds.round(text))) == 10
    assert len(units_of(rounds.round(text, after_ms=DAY_MS))) == 20


def test_new_units_are_accepted_when_old_ones_are_removed() -> None:
    stored_units = [known_unit(f"old{number}") for number in range(10)]
    rounds = Rounds(SourceLimits(units=10), stored_units)
    assert units_of(rounds.round(gpu_line("new"))) == set()
    stored_units.clear()
    assert units_of(rounds.round(gpu_line("new"), after_ms=60_000)) == {"new:0"}


# holders that labels name


def test_known_holders_stay_when_labels_name_ever_new_ones() -> None:
    rounds = Rounds(SourceLimits(holders_per_unit=4))
    rounds.round(gpu_line("n1", pod="honest"))
    text = gpu_line("n1", pod="honest") + "".join(gpu_line("n1", pod=f"a{number}") for number in range(20_000))
    normalized = rounds.round(text)
    assert normalized.facts is not None
    (held,) = normalized.facts.labels.values()
    assert len(held) == 4
    assert "kubernetes:x/honest" in held
    assert normalized.exceeded == {URL: frozenset({"too_many_holders"})}
    assert rounds.drops.notes()["exporter", "too_many_holders"] == 20_001 - 4


def test_new_holders_of_a_unit_are_limited_per_day_when_labels_name_many() -> None:
    rounds = Rounds(SourceLimits(new_holders_per_unit_per_day=10))

    def new_holders(turn: int) -> int:
        facts = rounds.round(gpu_line("n1", pod=f"p{turn}") + gpu_line("n2", pod="honest")).facts
        return 0 if facts is None else len(facts.labels.get(gpu_unit_id(NodeId("n1"), 0), ()))

    assert sum(new_holders(turn) for turn in range(50)) == 10
    rounds.now = UnixMs(rounds.now + DAY_MS)
    assert new_holders(100) == 1


def test_holder_is_accepted_later_when_the_limit_was_reached_at_first() -> None:
    rounds = Rounds(SourceLimits(new_holders_per_day=1))
    both = gpu_line("n1", pod="a") + gpu_line("n2", pod="b")
    first = rounds.round(both).facts
    assert first is not None
    assert sum(map(len, first.labels.values())) == 1
    later = rounds.round(both, after_ms=DAY_MS).facts
    assert later is not None
    assert sum(map(len, later.labels.values())) == 2


def normalize_new_pods(rounds_count: int) -> int:
    rounds = Rounds(SourceLimits())
    changes = 0
    for turn in range(rounds_count):
        text = "".join(gpu_line("n1", number % 8, f"p{turn}-{number}") for number in range(20_000))
        facts = rounds.round(text).facts
        changes += 0 if facts is None else sum(map(len, facts.labels.values()))
    return changes


def test_memory_and_allocations_are_bounded_when_20000_pod_labels_are_new_in_every_scrape() -> None:
    few, many = measure(normalize_new_pods, 6), measure(normalize_new_pods, 20)
    assert many.peak_bytes < few.peak_bytes + 40 * MIB
    assert many.value <= 8 * SourceLimits().new_holders_per_unit_per_day


def normalize_new_xids(rounds_count: int) -> int:
    rounds = Rounds(SourceLimits())
    for turn in range(rounds_count):
        text = "".join(f'DCGM_FI_DEV_XID_ERRORS{{gpu="0",Hostname="n",xid="{turn}-{n}"}} 1\n' for n in range(20_000))
        rounds.round(text)
    return len(rounds.normalizer._shared.parts)


def test_labels_that_split_a_value_are_limited_when_there_are_many() -> None:
    assert normalize_new_xids(2) <= 10_001


# schedulers


def nodes(prefix: str, count: int) -> list[Node]:
    return [Node(id=NodeId(f"{prefix}{number}")) for number in range(count)]


def test_known_nodes_stay_when_a_scheduler_names_too_many() -> None:
    bounds = SchedulerLimiter(SourceLimits(nodes=100, partitions=10, units_per_node=4))
    ledger = Ledger(nodes=nodes("old", 60))
    inventory = InventoryObserved(
        source="slurm",
        at=NOW,
        nodes=[*nodes("new", 500), *nodes("old", 60)],
        units=[known_unit("old1", index) for index in range(50)],
        partitions=[Partition(name=f"p{number}", nodes=()) for number in range(50)],
    )
    limited = bounds.limit_inventory(inventory, ledger)
    assert {node.id for node in limited.nodes} >= {f"old{number}" for number in range(60)}
    assert (len(limited.nodes), len(limited.units), len(limited.partitions)) == (100, 4, 10)
    assert limited.dropped == {"too_many_nodes": 460, "too_many_units": 46, "too_many_partitions": 40}
    status = bounds.status("slurm", NOW)
    assert status is not None
    assert status.is_ok
    assert "limits.sources.nodes" in str(status.hint)


def workload(native: str, **texts: str) -> Workload:
    return Workload(id=WorkloadId(f"slurm:{native}"), state=WorkloadState.RUNNING, **texts)  # type: ignore[arg-type]


def test_known_workloads_stay_when_a_scheduler_names_too_many() -> None:
    bounds = SchedulerLimiter(SourceLimits(workloads=100))
    ledger = Ledger(workloads=[workload(f"old{number}") for number in range(60)])
    names = [*(f"new{number}" for number in range(500)), *(f"old{number}" for number in range(60))]
    queue = QueueObserved(
        source="slurm",
        at=NOW,
        workloads=[workload(name) for name in names],
        allocations=[Allocation(workload=workload(n).id, unit=gpu_unit_id(NodeId("a"), 0), from_at=NOW) for n in names],
    )
    limited = bounds.limit_queue(queue, ledger)
    assert len(limited.workloads) == len(limited.allocations) == 100
    assert {workload.id for workload in limited.workloads} >= {f"slurm:old{number}" for number in range(60)}
    assert limited.dropped == {"too_many_workloads": 460}


def test_new_workloads_per_day_are_limited_when_a_scheduler_names_many() -> None:
    bounds = SchedulerLimiter(SourceLimits(new_workloads_per_day=10))

    def accepted(turn: int, at: int) -> int:
        workloads = [workload(f"{turn}-{number}") for number in range(4)]
        queue = QueueObserved(source="slurm", at=UnixMs(at), workloads=workloads, allocations=[])
        return len(bounds.limit_queue(queue, Ledger()).workloads)

    assert [accepted(turn, NOW) for turn in range(4)] == [4, 4, 2, 0]
    assert accepted(9, NOW + DAY_MS) == 4


def test_texts_are_cut_and_ids_refused_when_they_are_too_long() -> None:
    bounds = SchedulerLimiter(SourceLimits(label_length=64))
    workloads = [workload("1", name="n" * 5000, user="u" * 5000), workload("2" * 100)]
    queue = QueueObserved(source="slurm", at=NOW, workloads=workloads, allocations=[])
    limited = bounds.limit_queue(queue, Ledger())
    assert [(workload.name, workload.user) for workload in limited.workloads] == [("n" * 64, "u" * 64)]
    assert limited.dropped == {"workload_id_too_long": 1}


def test_workloads_are_limited_when_a_history_holds_too_many() -> None:
    bounds = SchedulerLimiter(SourceLimits(workloads=10))
    history = HistoryObserved(source="slurm", at=NOW, workloads=[workload(str(number)) for number in range(30)])
    limited = bounds.limit_history(history)
    assert len(limited.workloads) == 10
    assert limited.dropped == {"too_many_workloads": 20}


# the whole pipeline


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    storage = StorageSettings(data_dir=tmp_path, min_free_bytes=0)
    metrics, records = open_metric_store(storage, RetentionSettings()), open_record_store(storage)
    limits = SourceLimits(units=100, nodes=100, holders_per_unit=4)
    yield Ingest(metrics, records, Changes(), clock=lambda: NOW, limits=limits)
    metrics.close()
    records.close()


def test_status_names_the_limit_when_a_source_exceeds_it(ingest: Ingest) -> None:
    parser = ExpositionParser(URL)
    text = "".join(gpu_line(f"n{number}") for number in range(500))
    status = SourceStatus(source=f"dcgm {URL}", kind="dcgm", is_ok=True, at=NOW)
    raw = parser.parse(text.encode(), fetched_at=NOW)
    ingest.accept(ScrapeObserved(at=NOW, scrapes=[raw], statuses=[status]))
    ingest.accept(InventoryObserved(source="slurm", at=NOW, nodes=nodes("x", 200)))
    noted = {status.source: status for status in ingest.statuses}
    assert "more GPUs than are accepted" in str(noted[f"dcgm {URL}"].message)
    assert "limits.sources.units" in str(noted[f"dcgm {URL}"].hint)
    assert "limits.sources.nodes" in str(noted["slurm limits"].hint)
    assert all(status.is_ok for status in noted.values())
    ingest.accept(InventoryObserved(source="slurm", at=NOW, nodes=nodes("x", 50)))
    assert {status.source: status.message for status in ingest.statuses}["slurm limits"] is None
    assert ("slurm", "too_many_nodes") in ingest.drops.counts()
