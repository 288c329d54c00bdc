"""A site is written to one file while its server runs and comes back whole, from SQLite and from PostgreSQL."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from contract.record_samples import T0, job
from servers.postgres import PostgresServer, postgres_server
from servers.reliability import note
from stores.batches import batch_of
from typer.testing import CliRunner

from clusterscape.cli.entry import app
from clusterscape.errors import StoreError
from clusterscape.model import UnitId, UnixMs
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.backup import read_contents, restore_backup, write_backup
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records import WorkloadFilter, open_record_store
from clusterscape.store.records.contract import RecordStore

pytestmark = pytest.mark.server

UNIT = UnitId("gpu-1:0")
SCRAPES = 40


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def storages(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[StorageSettings, StorageSettings]:
    """Where a site is, and an empty place of the same kind."""
    records = ["sqlite", "sqlite"]
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        records = [server.new_database(), server.new_database()]
    first, second = (
        StorageSettings(data_dir=tmp_path / name, records=address) for name, address in zip("ab", records, strict=True)
    )
    return first, second


def quiet(_: str) -> None:
    """Ignores progress."""


def fill(metrics: MetricStore, records: RecordStore, storage: StorageSettings) -> None:
    for scrape in range(SCRAPES):
        metrics.append(batch_of(("gpu_util_ratio", UNIT, T0 + scrape * 15_000, scrape / SCRAPES)))
        if scrape == SCRAPES // 2:
            metrics.maintain(now_ms=UnixMs(T0 + 3_600_000))  # some samples in segments, some in recent files
    records.write_workloads([job(1), job(2, name="Größe “1”")], at_ms=T0)
    records.write_document("views", "mine", {"title": "Mine"}, at_ms=T0)
    FolderArtifactStore(storage.data_dir / "artifacts").put("traces/a/spans.parquet", [b"spans"])


def samples(metrics: MetricStore) -> pl.DataFrame:
    return metrics.series(["gpu_util_ratio"], [UNIT], start_ms=T0, end_ms=UnixMs(T0 + 3_600_000))


def test_a_site_is_restored_whole_when_it_was_backed_up_while_serving(
    storages: tuple[StorageSettings, StorageSettings], tmp_path: Path
) -> None:
    here, there = storages
    metrics, records = open_metric_store(here, RetentionSettings()), open_record_store(here)
    fill(metrics, records, here)
    target = tmp_path / "site.tar"
    written = write_backup(here, target, at=T0, progress=quiet)  # both stores are still open
    assert read_contents(target) == written
    restore_backup(there, target, progress=quiet)

    restored, kept = open_metric_store(there, RetentionSettings()), open_record_store(there)
    assert samples(restored).equals(samples(metrics))
    assert samples(restored).height == SCRAPES
    assert kept.workloads(WorkloadFilter()) == records.workloads(WorkloadFilter())
    assert kept.document("views", "mine") == records.document("views", "mine")
    with FolderArtifactStore(there.data_dir / "artifacts").open("traces/a/spans.parquet") as file:
        assert file.read() == b"spans"
    assert list(here.data_dir.glob(".backup-*")) == []
    for store in (metrics, records, restored, kept):
        store.close()


def test_nothing_is_overwritten_when_the_place_is_not_empty(
    storages: tuple[StorageSettings, StorageSettings], tmp_path: Path
) -> None:
    here, _ = storages
    metrics, records = open_metric_store(here, RetentionSettings()), open_record_store(here)
    fill(metrics, records, here)
    target = tmp_path / "site.tar"
    write_backup(here, target, at=T0, progress=quiet)
    with pytest.raises(StoreError, match="not empty"):
        restore_backup(here, target, progress=quiet)
    elsewhere = here.model_copy(update={"data_dir": tmp_path / "c"})
    if here.records != "sqlite":
        with pytest.raises(StoreError, match="already has records"):
            restore_backup(elsewhere, target, progress=quiet)
    assert samples(metrics).height == SCRAPES
    assert records.workload(job(1).id) is not None
    metrics.close()
    records.close()


def test_damage_is_found_before_anything_is_restored_when_the_file_is_cut_or_changed(tmp_path: Path) -> None:
    here = StorageSettings(data_dir=tmp_path / "a")
    metrics, records = open_metric_store(here, RetentionSettings()), open_record_store(here)
    fill(metrics, records, here)
    target = tmp_path / "site.tar"
    write_backup(here, target, at=T0, progress=quiet)
    metrics.close()
    records.close()
    whole = target.read_bytes()
    there = StorageSettings(data_dir=tmp_path / "b")
    place = whole.index(b"PAR1") + 40
    for damaged in (
        whole[: len(whole) // 2],
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :],
        b"no tar",
    ):
        target.write_bytes(damaged)
        with pytest.raises(StoreError):
            restore_backup(there, target, progress=quiet)
        assert not there.data_dir.exists()
    note(
        "fault",
        what="a backup is cut or changed",
        promised="found before anything is restored",
        measured="found",
    )


def test_the_commands_say_what_was_done_when_used_one_after_the_other(tmp_path: Path) -> None:
    here = StorageSettings(data_dir=tmp_path / "a")
    metrics, records = open_metric_store(here, RetentionSettings()), open_record_store(here)
    fill(metrics, records, here)
    metrics.close()
    records.close()
    run = CliRunner()
    target = str(tmp_path / "site.tar")

    def invoke(place: str, *words: str) -> dict[str, object]:
        env = {"CLUSTERSCAPE_STORAGE__DATA_DIR": str(tmp_path / place)}
        answer = run.invoke(app, [*words, "--json"], env=env, catch_exceptions=False)
        assert answer.exit_code == 0, answer.output
        return dict(json.loads(answer.stdout))

    assert invoke("a", "backup", target)["rows"] == {"workloads": 2, "documents": 1}
    invoke("b", "restore", target, "--check")
    assert not (tmp_path / "b").exists()
    invoke("b", "restore", target)
    kept = open_record_store(StorageSettings(data_dir=tmp_path / "b"))
    assert kept.workload(job(2).id) is not None
    kept.close()
    with pytest.raises(StoreError, match="already exists"):
        run.invoke(app, ["backup", target], catch_exceptions=False)
