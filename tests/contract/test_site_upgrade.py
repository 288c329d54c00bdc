"""A site of an earlier version is opened with all its data: its folder, and its records in SQLite and in a real PostgreSQL."""

import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from contract.record_samples import (
    FULL_ALLOCATION,
    FULL_NODE,
    FULL_PARTITION,
    FULL_STATUS,
    FULL_UNIT,
    FULL_WORKLOAD,
    T0,
    job,
)
from servers.postgres import PostgresServer, postgres_server
from sqlalchemy import MetaData, insert

from clusterscape.model import UnixMs
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.artifacts import open_artifact_store
from clusterscape.store.backup import restore_backup, write_backup
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.migrations import stored_revision, upgrade
from clusterscape.store.records.tables import REVISION, VERSION_TABLE

OLD = Path(__file__).parents[1] / "data/site-0003"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> StorageSettings:
    """A copy of the old site, with its records as an SQLite file or in a PostgreSQL of the same schema."""
    folder = tmp_path / "site"
    shutil.copytree(OLD, folder)
    connection = sqlite3.connect(folder / "records.db")
    connection.executescript((folder / "records.sql").read_text())
    connection.close()
    site = StorageSettings(data_dir=folder, min_free_bytes=0)
    if request.param == "sqlite":
        return site
    server: PostgresServer = request.getfixturevalue("postgres")
    on_postgres = site.model_copy(update={"records": server.new_database()})
    move_as_they_are(site, on_postgres, "0003")
    (folder / "records.db").unlink()
    return on_postgres


def move_as_they_are(source: StorageSettings, target: StorageSettings, revision: str) -> None:
    """Copy all rows of this revision into an empty database, without upgrading them."""
    old, new = record_engine(source), record_engine(target)
    with old.connect() as reader, new.execution_options(writes=True).begin() as writer:
        upgrade(writer, revision)
        tables = MetaData()
        tables.reflect(writer)
        for table in tables.sorted_tables:
            rows = [dict(row) for row in reader.execute(table.select()).mappings()]
            if rows and table.name != VERSION_TABLE:
                writer.execute(insert(table), rows)
    old.dispose()
    new.dispose()


SINCE = {
    "gpus_allocated": None,
    "suspended_s": 0,
    "suspended_at": None,
    "earlier": (),
    "derived_exit_code": None,
    "derived_exit_signal": None,
    "cpus": None,
    "memory_requested_bytes": None,
}
"""What workloads have had since that version, and what is there in its place."""


def check(storage: StorageSettings) -> None:
    records = open_record_store(storage)
    assert records.nodes() == [FULL_NODE]
    assert records.partitions() == [FULL_PARTITION]
    assert records.units() == [FULL_UNIT]
    named = job(2, name="Größe “1”")
    older = replace(FULL_WORKLOAD, **{name: SINCE[name] for name in SINCE})  # type: ignore[arg-type]
    assert [records.workload(workload.id) for workload in (FULL_WORKLOAD, job(1), named)] == [older, job(1), named]
    assert records.allocations() == [FULL_ALLOCATION]
    assert [(violation.rule, violation.gpus) for violation in records.violations()] == [("idle", 1)]
    assert records.sources() == [FULL_STATUS]
    view = records.document("views", "mine")
    assert view is not None
    assert view.body == {"title": "Mine"}
    assert [turn.node for turn in records.node_states(at_ms=T0)] == [FULL_NODE.id]
    records.close()
    metrics = open_metric_store(storage, RetentionSettings())
    rows = metrics.series(["gpu_util_ratio"], [FULL_UNIT.id], start_ms=T0, end_ms=UnixMs(T0 + 3_600_000))
    assert rows["value"].to_list() == [*(i / 10 for i in range(10)), 1.0]
    metrics.close()
    with open_artifact_store(storage).open("traces/a/about.json") as file:
        assert file.read() == b'{"old": true}'


def test_all_of_an_older_site_is_there_when_it_is_opened(storage: StorageSettings) -> None:
    engine = record_engine(storage)
    assert stored_revision(engine) == "0003"
    check(storage)
    assert stored_revision(engine) == REVISION
    engine.dispose()


def test_an_upgraded_site_can_be_backed_up_and_restored_when_it_was_opened_once(
    storage: StorageSettings, tmp_path: Path
) -> None:
    open_record_store(storage).close()
    write_backup(storage, tmp_path / "site.tar", at=T0, progress=lambda _: None)
    elsewhere = StorageSettings(data_dir=tmp_path / "elsewhere", min_free_bytes=0)
    restore_backup(elsewhere, tmp_path / "site.tar", progress=lambda _: None)
    check(elsewhere)
