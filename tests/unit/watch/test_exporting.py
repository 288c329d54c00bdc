"""Remote write to a Prometheus: the state of the cluster, violations, figures of runs, and selected samples."""

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from contract.record_samples import FULL_NODE, FULL_UNIT, T0, job
from stores.batches import batch_of

from clusterscape.model import Allocation, SampleBatch, UnixMs, WorkloadId, WorkloadState
from clusterscape.model.rules import Violation
from clusterscape.model.runs import RunAbout, RunEnergy, RunFigures, RunRecord, RunSummary, StoredRun
from clusterscape.settings import RemoteWriteSettings, RetentionSettings, StorageSettings
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.spool import SampleSpool, SpoolSender, frame_of
from clusterscape.store.records import open_record_store
from clusterscape.watch.exporting import RemoteWriteExporter
from clusterscape.watch.rulebook import RuleBook

Row = tuple[str, dict[str, str], float]


class Receiver:
    """Keeps the batches it receives."""

    def __init__(self) -> None:
        self.batches: list[SampleBatch] = []

    def rows(self) -> list[Row]:
        rows = []
        for batch in self.batches:
            for row in frame_of(batch).iter_rows(named=True):
                unit = row["unit"]
                labels = orjson.loads(unit) if unit.startswith("{") else {"unit": unit}
                rows.append((row["metric"], labels, row["value"]))
        return rows


@pytest.fixture
def exporting(tmp_path: Path) -> Iterator[Callable[..., tuple[RemoteWriteExporter, Receiver]]]:
    storage = StorageSettings(data_dir=tmp_path, min_free_bytes=0)
    metrics, records = open_metric_store(storage, RetentionSettings()), open_record_store(storage)
    records.write_inventory(nodes=[FULL_NODE], partitions=[], units=[FULL_UNIT], at_ms=T0)
    records.write_workloads([job(1, state=WorkloadState.WAITING)], at_ms=T0)
    records.write_allocations([Allocation(workload=WorkloadId("slurm:2"), unit=FULL_UNIT.id, from_at=T0)])
    metrics.append(batch_of(("power_watts", FULL_UNIT.id, T0, 300.0)))
    book = RuleBook(records, clock=lambda: T0)
    rule = book.enabled()[0].key
    records.write_violations([Violation(rule=rule, workload=WorkloadId("slurm:1"), unit=None, since=T0, gpus=8)])
    energy = RunEnergy(joules=7, scope="process", method="measured")
    summary = RunSummary(about=RunAbout(experiment="e"), figures=RunFigures(cpu_joules=5.0, energy=energy))
    records.write_run(StoredRun(record=RunRecord(run="r1", summary=summary)), at_ms=T0)
    senders: list[SpoolSender] = []

    def make(**settings: object) -> tuple[RemoteWriteExporter, Receiver]:
        receiver = Receiver()
        spool = SampleSpool(tmp_path / f"spool-{len(senders)}", max_bytes=2**20)
        senders.append(SpoolSender(spool, receiver.batches.append, server="test"))
        parsed = RemoteWriteSettings.model_validate({"url": "http://127.0.0.1:9", **settings})
        clock = iter(range(T0, T0 + 1000, 1))
        exporter = RemoteWriteExporter(
            parsed, senders[-1], records=records, metrics=metrics, book=book, clock=lambda: UnixMs(next(clock))
        )
        return exporter, receiver

    yield make
    for sender in senders:
        sender.close()
    metrics.close()
    records.close()


def test_state_violations_and_runs_are_sent_when_the_exporter_runs(
    exporting: Callable[..., tuple[RemoteWriteExporter, Receiver]],
) -> None:
    exporter, receiver = exporting()
    exporter.export()
    rows = receiver.rows()
    assert ("cluster_units", {"state": "allocated"}, 1.0) in rows
    assert ("cluster_workloads", {"state": "waiting"}, 1.0) in rows
    assert ("cluster_power_watts", {}, 300.0) in rows
    broken = {labels["rule"]: value for name, labels, value in rows if name == "violations_gpus"}
    assert sorted(set(broken.values())) == [0.0, 8.0], "rules without violations are sent as zero"
    assert ("run_energy_joules", {"experiment": "e", "run": "r1"}, 7.0) in rows
    assert ("run_cpu_joules", {"experiment": "e", "run": "r1"}, 5.0) in rows
    assert not [name for name, _, _ in rows if ("power" in name and name.startswith("run_")) or "method" in name]

    receiver.batches.clear()
    exporter.export()
    assert not [name for name, _, _ in receiver.rows() if name.startswith("run_")], "a run is sent only when it changed"


def test_only_chosen_samples_are_passed_on_when_a_scrape_is_stored(
    exporting: Callable[..., tuple[RemoteWriteExporter, Receiver]],
) -> None:
    scrape = batch_of(("power_watts", "n1:0", T0, 1.0), ("gpu_util_ratio", "n1:0", T0, 0.5))
    exporter, receiver = exporting(samples=["power_*"])
    exporter.on_samples(scrape)
    assert receiver.rows() == [("power_watts", {"unit": "n1:0"}, 1.0)]
    silent, nothing = exporting()
    silent.on_samples(scrape)
    assert nothing.rows() == []
