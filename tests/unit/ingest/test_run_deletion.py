"""Deleted runs leave nothing behind, cannot be sent again for a while, and are deleted completely after a crash."""

from pathlib import Path

import pytest
from tracking.site import NOW, overwrite_stored, spooled

from clusterscape.errors import ForbiddenError, GoneError, NotFoundError, StoreError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_usage import erase_deleted_runs
from clusterscape.ingest.runs import RunIntake
from clusterscape.model import UnixMs, WorkloadId
from clusterscape.model.rules import Violation
from clusterscape.model.run_frames import encode_event
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.settings.limits import RunLimits
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

DAY_MS = 86_400_000
SERIES: dict[tuple[str, str | None, str], list[float]] = {
    ("loss", None, "run"): [3.0, 2.0, 1.0],
    ("power_watts", "n1:0", "device"): [100.0, 200.0],
}


class Site:
    """Stores with runs of two users."""

    def __init__(self, folder: Path) -> None:
        self.storage = storage = StorageSettings(data_dir=folder)
        self.metrics = open_metric_store(storage, RetentionSettings(), cluster="c")
        self.records = open_record_store(storage)
        self.changes = Changes()
        self.ingest = Ingest(self.metrics, self.records, self.changes, clock=lambda: NOW)
        self.intake = RunIntake(self.ingest, self.records, clock=lambda: NOW, limits=RunLimits(per_user=1))
        for run, user in (("r1", "ada"), ("r12", "bob")):
            self.send(run, user)

    def send(self, run: str, user: str) -> None:
        about = {"user": user}
        self.intake.take(run, "tracker.spool", 0, spooled(run, series=SERIES, steps=True, about=about), user=user)

    def erase(self, now: int = NOW) -> None:
        erase_deleted_runs(self.records, self.metrics, RunLimits(), now=UnixMs(now))

    def units(self) -> set[str]:
        names = ["loss", "power_watts", "step"]
        return set(self.metrics.read_all(names, start_ms=UnixMs(0), end_ms=UnixMs(NOW * 2))["unit"])  # type: ignore[attr-defined]

    def check_gone(self, run: str) -> None:
        assert self.records.run(run) is None
        assert self.records.workload(WorkloadId(f"run:{run}")) is None
        assert self.records.allocations(workload=WorkloadId(f"run:{run}")) == []


@pytest.fixture
def site(tmp_path: Path):  # type: ignore[no-untyped-def]
    site = Site(tmp_path)
    yield site
    site.metrics.close()
    site.records.close()


def test_nothing_is_left_of_a_run_when_it_is_deleted(site: Site) -> None:
    versions = site.changes.versions
    before = site.units()
    site.intake.delete("r1", user="ada")
    site.check_gone("r1")
    assert site.changes.versions.runs > versions.runs
    assert site.changes.versions.inventory > versions.inventory
    site.erase()
    assert site.units() == {unit for unit in before if unit.startswith("run:r12")}
    assert len(site.units()) == 2
    site.metrics.maintain(now_ms=UnixMs(NOW + 3 * DAY_MS))
    assert len(site.units()) == 2
    assert site.records.run_record("r12") is not None


def test_samples_are_gone_from_segments_when_they_were_compacted_and_downsampled(site: Site) -> None:
    site.metrics.maintain(now_ms=UnixMs(NOW + 3 * DAY_MS))
    site.intake.delete("r1", user="ada")
    site.erase()
    assert {unit.partition("/")[0] for unit in site.units()} == {"run:r12"}
    site.metrics.close()
    site.metrics = open_metric_store(site.storage, RetentionSettings(), cluster="c")
    assert {unit.partition("/")[0] for unit in site.units()} == {"run:r12"}


def test_only_the_owner_deletes_a_run_when_a_user_is_named(site: Site) -> None:
    with pytest.raises(ForbiddenError, match="does not belong to bob"):
        site.intake.delete("r1", user="bob")
    with pytest.raises(NotFoundError):
        site.intake.delete("none", user="bob")
    assert site.records.run_record("r1") is not None
    site.intake.delete("r1")  # an admin
    site.check_gone("r1")


def test_nobody_sends_a_run_again_when_it_was_deleted(site: Site) -> None:
    site.intake.delete("r1", user="ada")
    for user in ("ada", "bob", None):
        about = {"user": user or "ada"}
        with pytest.raises(GoneError, match="was deleted"):
            site.intake.take("r1", "tracker.spool", 0, spooled("r1", about=about), user=user)
        with pytest.raises(GoneError):
            site.intake.take("r1", "more.spool", 0, encode_event({"event": "tags", "tags": {}}), user=user)
    with pytest.raises(GoneError):
        site.intake.offsets("r1")
    site.check_gone("r1")
    site.erase(NOW + 29 * DAY_MS)
    with pytest.raises(GoneError):
        site.intake.offsets("r1")
    site.erase(NOW + 31 * DAY_MS)
    site.erase(NOW + 31 * DAY_MS)
    assert site.records.documents("run-deleted") == []
    site.send("r1", "ada")


def test_there_is_room_for_another_run_when_one_was_deleted(site: Site) -> None:
    site.intake.delete("r1", user="ada")
    site.send("r2", "ada")


def test_run_can_be_deleted_when_its_record_is_damaged(site: Site) -> None:
    overwrite_stored(site.records, "r1", "summary", {"about": {"user": "ada", "workload": []}})
    overwrite_stored(site.records, "r1", "detail", {"series": {"x": 5}, "steps": "?"})
    site.intake.delete("r1", user="ada")
    site.check_gone("r1")


def test_deletion_is_finished_by_upkeep_when_it_was_cut_off(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(site.records, "remove_run", fail)
        with pytest.raises(StoreError):
            site.intake.delete("r1", user="ada")
    assert site.records.run_record("r1") is not None
    with monkeypatch.context() as away:
        away.setattr(site.metrics, "remove_unit", fail)
        site.erase()
    site.check_gone("r1")
    assert "run:r1" in site.units(), "its metrics server was away"
    site.erase()
    assert "run:r1" not in site.units()


def test_late_violation_goes_when_its_run_was_deleted(site: Site) -> None:
    site.intake.delete("r1", user="ada")
    site.erase()
    late = Violation(rule="idle", workload=WorkloadId("run:r1"), unit=None, since=NOW, until=NOW)
    site.records.write_violations([late])
    site.erase(NOW + 60_000)
    assert site.records.violations() == []


def fail(*_: object, **__: object) -> None:
    raise StoreError("away", hint="Wait.")
