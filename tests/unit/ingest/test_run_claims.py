"""GPUs that tracked runs claim, compared with schedulers: a claim never counts if the GPU belongs to another user."""

from pathlib import Path

import pytest
from tracking.site import NOW, spooled

from clusterscape.errors import ForbiddenError, NotFoundError, QueryError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.runs import RunIntake
from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    QueueObserved,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.model.run_frames import encode_event
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore

GPU = gpu_unit_id(NodeId("n1"), 0)
BEGAN = UnixMs(NOW - 1_000_000)


class Site:
    """Stores of a cluster that knows n1:0."""

    def __init__(self, ingest: Ingest, records: RecordStore) -> None:
        self.ingest = ingest
        self.records = records
        self.intake = RunIntake(ingest, records, clock=lambda: NOW)

    def give(self, user: str, from_at: int, *, is_over: bool = False) -> None:
        """The scheduler says that a job of ``user`` holds n1:0."""
        job = Workload(id=WorkloadId(f"slurm:{user}"), state=WorkloadState.RUNNING, user=user)
        held = Allocation(workload=job.id, unit=GPU, from_at=UnixMs(from_at))
        jobs, allocations = ([], []) if is_over else ([job], [held])
        self.ingest.accept(QueueObserved(source="slurm", at=NOW, workloads=jobs, allocations=allocations))

    def claims(self, run: str = "r1") -> list[tuple[str, int, int | None]]:
        allocations = self.records.allocations(workload=WorkloadId(f"run:{run}"))
        return [
            (held.unit, held.from_at - BEGAN, None if held.to_at is None else held.to_at - BEGAN)
            for held in allocations
        ]


@pytest.fixture
def site(tmp_path: Path):  # type: ignore[no-untyped-def]
    storage = StorageSettings(data_dir=tmp_path)
    metrics, records = open_metric_store(storage, RetentionSettings(), cluster="c"), open_record_store(storage)
    records.write_inventory(
        nodes=[Node(id=NodeId("n1"), gpu_count=1)],
        partitions=[],
        units=[Unit(id=GPU, node=NodeId("n1"), index=0)],
        at_ms=NOW,
    )
    yield Site(Ingest(metrics, records, Changes(), clock=lambda: NOW), records)
    metrics.close()
    records.close()


def running(run: str, user: str) -> bytes:
    whole = spooled(run, about={"user": user})
    end = encode_event({"event": "end", "state": "completed", "cause": None, "exit_code": 0, "at": BEGAN + 10_000})
    assert whole.endswith(end)
    return whole[: -len(end)]


def test_run_holds_a_known_gpu_when_nobody_else_has_it(site: Site) -> None:
    site.intake.take("r1", "tracker.spool", 0, spooled("r1", about={"user": "ada"}))
    assert site.claims() == [("n1:0", 0, 10_000)]


def test_run_holds_a_gpu_when_it_is_within_a_job_of_the_same_user(site: Site) -> None:
    site.give("ada", BEGAN - 5000)
    site.intake.take("r1", "tracker.spool", 0, running("r1", "ada"))
    assert site.claims() == [("n1:0", 0, None)]


def test_run_holds_nothing_when_the_scheduler_gave_the_gpu_to_somebody_else(site: Site) -> None:
    site.give("bob", BEGAN - 5000)
    site.intake.take("r1", "tracker.spool", 0, running("r1", "mallory"))
    site.intake.take("r2", "tracker.spool", 0, spooled("r2", about={"user": "mallory"}))
    assert site.claims() == []
    assert site.claims("r2") == []


def test_claim_ends_when_the_scheduler_gives_the_gpu_to_somebody_else(site: Site) -> None:
    data = running("r1", "mallory")
    site.intake.take("r1", "tracker.spool", 0, data)
    assert site.claims() == [("n1:0", 0, None)]
    site.give("bob", BEGAN + 3000)
    assert site.claims() == [("n1:0", 0, 3000)]
    site.intake.take("r1", "tracker.spool", len(data), encode_event({"event": "tags", "tags": {"a": "b"}}))
    assert site.claims() == [("n1:0", 0, 3000)], "sending more must not open it again"


def test_claim_goes_on_when_the_scheduler_gives_the_gpu_to_the_same_user(site: Site) -> None:
    site.intake.take("r1", "tracker.spool", 0, running("r1", "ada"))
    site.give("ada", BEGAN + 3000)
    assert site.claims() == [("n1:0", 0, None)]


def test_gpu_is_held_in_the_runs_own_namespace_when_the_site_does_not_know_it(site: Site) -> None:
    site.intake.take("r1", "tracker.spool", 0, spooled("r1", about={"user": "ada", "host": "laptop"}))
    assert site.claims() == [("run:r1/at/laptop:0", 0, 10_000)]


def test_owner_is_the_sender_when_a_run_is_new(site: Site) -> None:
    with pytest.raises(ForbiddenError, match="names the user 'bob'"):
        site.intake.take("r1", "tracker.spool", 0, spooled("r1", about={"user": "bob"}), user="ada")
    assert site.records.runs().records == []
    assert site.records.workload(WorkloadId("run:r1")) is None
    site.intake.take("r1", "tracker.spool", 0, spooled("r1", about={"user": None}), user="ada")
    assert site.records.run_record("r1").owned_by == "ada"  # type: ignore[union-attr]
    assert site.records.workload(WorkloadId("run:r1")).user == "ada"  # type: ignore[union-attr]


def test_owner_stays_when_an_operator_sends_what_names_another(site: Site) -> None:
    site.intake.take("r1", "tracker.spool", 0, spooled("r1", about={"user": "ada"}))
    with pytest.raises(ForbiddenError, match="belongs to ada"):
        site.intake.take("r1", "zz.spool", 0, spooled("r1", about={"user": "bob"}))
    with pytest.raises(ForbiddenError, match="does not belong to bob"):
        site.intake.take("r1", "zz.spool", 0, spooled("r1", about={"user": "bob"}), user="bob")
    with pytest.raises(QueryError, match="belongs to another run"):
        site.intake.take("r1", "zz.spool", 0, spooled("r2", about={"user": "ada"}), user="ada")
    assert site.records.run_record("r1").owned_by == "ada"  # type: ignore[union-attr]
    assert site.intake.offsets("r1").keys() == {"tracker.spool"}


def test_samples_go_to_the_runs_own_units_when_a_series_names_others(site: Site) -> None:
    series: dict[tuple[str, str | None, str], list[float]] = {("power_watts", "n1:0", "device"): [1.0, 2.0]}
    site.intake.take("r1", "tracker.spool", 0, spooled("r1", series=series))
    stored = site.records.run("r1")
    assert stored is not None
    assert stored.detail.series.keys() == {"run:r1/at/n1:0 power_watts"}
    foreign: dict[tuple[str, str | None, str], list[float]] = {("loss", "run:r1", "run"): [1.0, 2.0]}
    with pytest.raises(QueryError, match="may not write samples of run:r1"):
        site.intake.take("r2", "tracker.spool", 0, spooled("r2", series=foreign))
    with pytest.raises(NotFoundError):
        site.intake.take("r2", "more.spool", 0, encode_event({"event": "tags", "tags": {}}))
    assert site.records.run_record("r2") is None
    assert UnitId("run:r1/at/n1:0") not in {held.unit for held in site.records.open_allocations()}
