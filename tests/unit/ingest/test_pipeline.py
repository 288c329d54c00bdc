"""The ingest pipeline with real stores: writes, log lines, and a full disk."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from clusterscape.collect.exposition import ExpositionParser
from clusterscape.errors import StoreFullError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import (
    Allocation,
    InventoryObserved,
    Names,
    Node,
    NodeId,
    QueueObserved,
    RawScrape,
    SampleBatch,
    ScrapeObserved,
    SourceStatus,
    Unit,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.query.sources import OpenNames, read_open_names
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore

NOW = UnixMs(1_790_000_000_000)
NODE = NodeId("n1")
TEXT = b"""# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1",hpc_job="7"} 80
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1",hpc_job="7"} 9223372036854775794
"""


class Place:
    """Stores, versions and ingest over one folder."""

    def __init__(self, folder: Path) -> None:
        storage = StorageSettings(data_dir=folder, min_free_bytes=0)
        self.metrics: MetricStore = open_metric_store(storage, RetentionSettings())
        self.records: RecordStore = open_record_store(storage)
        self.changes = Changes()
        self.ingest = Ingest(self.metrics, self.records, self.changes, clock=lambda: NOW)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.metrics.close()
    place.records.close()


def scrape(text: bytes = TEXT, at: UnixMs = NOW) -> ScrapeObserved:
    parser = ExpositionParser("http://n1:9400/metrics", NODE)
    raw: RawScrape = parser.parse(text, fetched_at=at, duration_s=0.01)
    status = SourceStatus(source="http://n1:9400/metrics", kind="dcgm", is_ok=True, at=at, node=NODE)
    return ScrapeObserved(at=at, scrapes=[raw], statuses=[status])


def test_sample_unit_and_drop_are_there_when_a_scrape_is_accepted(place: Place) -> None:
    place.ingest.accept(scrape())
    latest = place.metrics.latest(["gpu_util_ratio", "power_watts"], at_ms=NOW, lookback_ms=60_000)
    assert latest.to_dicts() == [{"unit": "n1:0", "gpu_util_ratio": pytest.approx(0.8), "power_watts": None}]
    (unit,) = place.records.units()
    assert (unit.id, unit.uuid) == ("n1:0", "GPU-1")
    (allocation,) = place.records.open_allocations()
    assert (allocation.workload, allocation.unit) == ("slurm:7", "n1:0")
    assert [(row.reason, row.count) for row in place.ingest.drop_table()] == [("blank_value", 1)]
    assert place.changes.versions.newest_sample_at == NOW


def test_versions_move_only_with_changes_when_the_same_is_accepted_again(place: Place) -> None:
    inventory = InventoryObserved(source="slurm", at=NOW, nodes=[Node(id=NODE)], units=[])
    place.ingest.accept(inventory)
    before = place.changes.versions.inventory
    place.ingest.accept(inventory)
    assert place.changes.versions.inventory == before


def test_state_is_logged_once_when_a_source_keeps_failing(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    ill = SourceStatus(source="slurm", kind="slurm", is_ok=False, at=NOW, message="slurmctld is down", hint="start it")
    well = SourceStatus(source="slurm", kind="slurm", is_ok=True, at=NOW)
    with caplog.at_level(logging.WARNING):
        for status in (ill, ill, ill, well, well):
            place.ingest.accept(status)
    assert [record.getMessage() for record in caplog.records] == [
        "slurm: slurmctld is down. start it",
        "slurm responds again",
    ]


def test_many_are_logged_as_one_when_they_fail_together(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    ill = [
        SourceStatus(source=f"t{i}", kind="dcgm", is_ok=False, at=NOW, node=NodeId(f"n{i}"), message="no route")
        for i in range(9)
    ]
    with caplog.at_level(logging.WARNING):
        place.ingest.accept(ScrapeObserved(at=NOW, scrapes=[], statuses=ill))
    assert [record.getMessage() for record in caplog.records] == [
        "9 sources failed: n0, n1, n2 and 6 more; first error: no route"
    ]


class FullStore:
    """A metric store whose disk is full until changed; everything else is the real one's."""

    def __init__(self, store: MetricStore) -> None:
        self.is_full = True
        self._store = store

    def append(self, batch: SampleBatch) -> None:
        if self.is_full:
            raise StoreFullError("no space left", hint="Make room.")
        self._store.append(batch)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def why_paused(place: Place) -> str | None:
    return place.changes.versions.paused


def test_ingest_pauses_and_goes_on_when_the_disk_was_full(place: Place) -> None:
    full = FullStore(place.metrics)
    ingest = Ingest(full, place.records, place.changes, clock=lambda: NOW)  # type: ignore[arg-type]
    ingest.accept(scrape())
    assert why_paused(place) == "no space left Make room."
    assert place.records.units(), "reading goes on"
    full.is_full = False
    ingest.accept(scrape(at=UnixMs(NOW + 15_000)))
    assert why_paused(place) is None
    stored = place.metrics.series(["gpu_util_ratio"], [gpu_unit_id(NODE, 0)], start_ms=NOW, end_ms=UnixMs(NOW + 60_000))
    assert len(stored) == 1


def test_allocation_stays_true_when_the_program_starts_again(place: Place) -> None:
    job = Workload(id=WorkloadId("slurm:1"), state=WorkloadState.RUNNING, gpus_requested=1, started_at=NOW)
    held = Allocation(workload=job.id, unit=gpu_unit_id(NODE, 0), from_at=NOW)
    place.ingest.accept(QueueObserved(source="slurm", at=NOW, workloads=[job], allocations=[held]))
    again = Ingest(place.metrics, place.records, place.changes, clock=lambda: NOW)
    again.accept(QueueObserved(source="slurm", at=UnixMs(NOW + 9000), workloads=[], allocations=[]))
    assert place.records.open_allocations() == []
    (closed,) = place.records.allocations(workload=job.id)
    assert closed.to_at == NOW + 9000


def test_past_is_readable_when_history_is_accepted(place: Place) -> None:
    unit = Unit(id=gpu_unit_id(NODE, 0), node=NODE, index=0)
    times = np.arange(10, dtype=np.int64) * 60_000 + NOW - 600_000
    batch = SampleBatch(
        Names([unit.id]),
        Names(["power_watts"]),
        np.zeros(10, np.int32),
        np.zeros(10, np.int32),
        times,
        np.full(10, 99.0),
    )
    ended = Workload(id=WorkloadId("slurm:1"), state=WorkloadState.COMPLETED, ended_at=NOW)
    place.ingest.accept_history([batch], [ended], [])
    series = place.metrics.series(["power_watts"], [unit.id], start_ms=UnixMs(0), end_ms=NOW)
    assert len(series) == 10
    assert place.records.workload(ended.id) is not None


class RecordingListener:
    """A listener that records its calls and the contents of the stores at that time."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.calls: list[tuple[str, object]] = []

    def on_samples(self, batch: SampleBatch) -> None:
        stored = self.place.metrics.latest(["gpu_util_ratio"], at_ms=NOW, lookback_ms=60_000).height
        self.calls.append(("samples", (len(batch), stored)))

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        self.calls.append(("history", sum(map(len, batches))))

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        stored = len(self.place.records.open_allocations())
        self.calls.append(("allocations", ([a.workload for a in open_allocations], at_ms, stored)))

    def on_units(self, units: Iterable[Unit]) -> None:
        self.calls.append(("units", [unit.id for unit in units]))


def test_listener_hears_of_everything_when_the_store_has_it(place: Place) -> None:
    listener = RecordingListener(place)
    ingest = Ingest(place.metrics, place.records, place.changes, clock=lambda: NOW, listeners=[listener])
    ingest.accept(scrape())
    assert listener.calls == [
        ("units", ["n1:0"]),
        ("allocations", (["slurm:7"], NOW, 1)),
        ("samples", (1, 1)),
    ]
    listener.calls.clear()
    ingest.accept(QueueObserved(source="slurm", at=NOW, workloads=[], allocations=[], is_complete=True))
    assert listener.calls == []  # the label is the exporter's, and nothing changed
    units, metrics = Names(["n1:0"]), Names(["gpu_util_ratio"])
    past = SampleBatch(
        units, metrics, np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([NOW - 5]), np.array([0.5])
    )
    ingest.accept_history([past], [], [])
    assert listener.calls == [("history", 1)]


def test_storing_goes_on_when_a_listener_fails(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(RecordingListener):
        def on_samples(self, batch: SampleBatch) -> None:
            raise RuntimeError("broken")

    ingest = Ingest(place.metrics, place.records, place.changes, clock=lambda: NOW, listeners=[Broken(place)])
    ingest.accept(scrape())
    assert place.changes.versions.newest_sample_at == NOW
    assert "Broken failed to process stored data" in caplog.text


def test_listener_hears_nothing_when_the_store_took_nothing(place: Place) -> None:
    full, listener = FullStore(place.metrics), RecordingListener(place)
    ingest = Ingest(
        full,  # type: ignore[arg-type]
        place.records,
        place.changes,
        clock=lambda: NOW,
        listeners=[listener],
    )
    ingest.accept(scrape())
    assert [kind for kind, _ in listener.calls] == ["units", "allocations"]
    full.is_full = False
    ingest.accept(scrape(at=UnixMs(NOW + 15_000)))
    assert [kind for kind, _ in listener.calls] == ["units", "allocations", "allocations", "samples"]


def exporter_at(address: str, host: str, *, is_ok: bool = True, at: UnixMs = NOW) -> ScrapeObserved:
    """One exporter's response, or its failure, at an address that names no node."""
    text = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",UUID="GPU-{host}-{gpu}",Hostname="{host}"}} 80\n' for gpu in range(2)
    )
    parser = ExpositionParser(f"http://{address}/metrics", address=address)
    status = SourceStatus(
        source=f"dcgm http://{address}/metrics",
        kind="dcgm",
        is_ok=is_ok,
        at=at,
        address=address,
        message=None if is_ok else "connection refused",
    )
    scrapes = [parser.parse(text.encode(), fetched_at=at)] if is_ok else []
    return ScrapeObserved(at=at, scrapes=scrapes, statuses=[status])


def slurm_nodes(*names: str) -> InventoryObserved:
    nodes = [Node(id=NodeId(name), gpu_count=2, partitions=("all",)) for name in names]
    units = [Unit(id=gpu_unit_id(node.id, i), node=node.id, index=i) for node in nodes for i in range(2)]
    return InventoryObserved(source="slurm", at=NOW, nodes=nodes, units=units)


def open_names(place: Place) -> OpenNames:
    return read_open_names(place.records)


def test_wrong_node_goes_when_the_scheduler_answers_after_the_exporters(place: Place) -> None:
    place.ingest.accept(exporter_at("alias-7:9400", "gpu01"))
    assert [node.id for node in place.records.nodes()] == ["alias-7"]
    place.ingest.accept(slurm_nodes("gpu01", "gpu02"))

    assert [node.id for node in place.records.nodes()] == ["gpu01", "gpu02"]
    assert [(unit.id, unit.uuid) for unit in place.records.units()][:2] == [
        ("gpu01:0", "GPU-gpu01-0"),
        ("gpu01:1", "GPU-gpu01-1"),
    ]
    assert (open_names(place).questions, open_names(place).nodes_without_exporter) == ([], ["gpu02"])


def test_silence_belongs_to_the_node_when_its_exporter_is_asked_by_address(place: Place) -> None:
    place.ingest.accept(slurm_nodes("gpu01", "gpu02"))
    place.ingest.accept(exporter_at("10.0.0.5:9400", "gpu01"))
    place.ingest.accept(exporter_at("10.0.0.5:9400", "gpu01", is_ok=False, at=UnixMs(NOW + 15_000)))

    (status,) = place.records.sources()
    assert (status.node, status.is_ok) == ("gpu01", False)


def test_silence_belongs_to_the_node_when_only_an_earlier_run_read_the_exporter(place: Place) -> None:
    place.ingest.accept(slurm_nodes("gpu01", "gpu02"))
    place.ingest.accept(exporter_at("10.0.0.5:9400", "gpu01"))
    again = Ingest(place.metrics, place.records, place.changes, clock=lambda: NOW)
    again.accept(exporter_at("10.0.0.5:9400", "gpu01", is_ok=False))

    (status,) = place.records.sources()
    assert (status.node, status.is_ok) == ("gpu01", False)


def test_question_is_stored_and_pages_notified_when_an_exporter_cannot_be_matched(place: Place) -> None:
    place.ingest.accept(slurm_nodes("gpu01", "gpu02"))
    before = place.changes.versions.inventory
    place.ingest.accept(exporter_at("10.0.0.5:9400", "c7a9"))

    (question,) = open_names(place).questions
    assert (question.exporter, question.host_name, question.is_counted) == ("10.0.0.5:9400", "c7a9", False)
    assert place.changes.versions.inventory > before
    assert [node.id for node in place.records.nodes()] == ["gpu01", "gpu02"]
    version = place.changes.versions.inventory
    place.ingest.accept(exporter_at("10.0.0.5:9400", "c7a9", at=UnixMs(NOW + 15_000)))
    assert place.changes.versions.inventory == version


def test_node_is_silent_and_recovers_when_its_exporter_is_read_through_prometheus(place: Place) -> None:
    """Prometheus always responds; only the samples of one node are missing."""
    now = NOW
    ingest = Ingest(place.metrics, place.records, place.changes, clock=lambda: now)
    parser = ExpositionParser("prometheus http://prometheus:9090")

    def look(*hosts: str, after_s: int) -> dict[str, bool]:
        nonlocal now
        now = UnixMs(now + after_s * 1000)
        lines = (
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-{host}",Hostname="{host}",instance="10.0.0.1:9400"}} {now % 97}\n'
            for host in hosts
        )
        status = SourceStatus(source="prometheus http://prometheus:9090", kind="prometheus", is_ok=True, at=now)
        raw = parser.parse("".join(lines).encode(), fetched_at=now)
        ingest.accept(ScrapeObserved(at=now, scrapes=[raw], statuses=[status]))
        return {str(status.node): status.is_ok for status in place.records.sources() if status.node is not None}

    assert look("n1", "n2", after_s=0) == {}
    assert look("n1", after_s=120) == {}
    assert look("n1", after_s=120) == {"n2": False}
    assert look("n1", "n2", after_s=15) == {"n2": True}
