"""A site of the previous schema version is opened with all its data."""

import shutil
import sqlite3
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

from clusterscape.model import UnixMs
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.artifacts import open_artifact_store
from clusterscape.store.backup import restore_backup, write_backup
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.migrations import stored_revision
from clusterscape.store.records.tables import REVISION

OLD = Path(__file__).parents[2] / "data/site-0003"


@pytest.fixture
def storage(tmp_path: Path) -> StorageSettings:
    """A copy of the old site, with its records as an SQLite file."""
    folder = tmp_path / "site"
    shutil.copytree(OLD, folder)
    connection = sqlite3.connect(folder / "records.db")
    connection.executescript((folder / "records.sql").read_text())
    connection.close()
    return StorageSettings(data_dir=folder, min_free_bytes=0)


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
    elsewhere = storage.model_copy(update={"data_dir": tmp_path / "elsewhere"})
    restore_backup(elsewhere, tmp_path / "site.tar", progress=lambda _: None)
    check(elsewhere)
