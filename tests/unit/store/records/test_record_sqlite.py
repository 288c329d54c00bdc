import sqlite3
from pathlib import Path

import pytest
from contract.record_samples import T0, at, job
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection

from clusterscape.errors import StoreBusyError, StoreFullError
from clusterscape.model import Node, NodeId, UnixMs
from clusterscape.settings import StorageSettings
from clusterscape.store.records import engines, open_record_store
from clusterscape.store.records.migrations import upgrade_schema
from clusterscape.store.records.sql import SqlRecordStore

NODES = [Node(id=NodeId(f"n{i:03}")) for i in range(100)]


def query(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_unchanged_rows_are_not_written_again_when_seen_within_ten_minutes(tmp_path: Path) -> None:
    store = open_record_store(StorageSettings(data_dir=tmp_path))
    seen_at_query = "SELECT DISTINCT seen_at FROM nodes"
    for at_ms, expected in ((T0, T0), (T0 + 15_000, T0), (T0 + 600_000, T0 + 600_000)):
        store.write_inventory(nodes=NODES, partitions=[], units=[], at_ms=UnixMs(at_ms))
        assert query(tmp_path / "records.db", seen_at_query) == [(expected,)]
    store.close()


def test_reading_goes_on_and_nothing_is_half_written_when_the_device_is_full(tmp_path: Path) -> None:
    engine = engines.sqlite_engine(tmp_path / "records.db")
    upgrade_schema(engine, "records.db")
    engine.dispose()

    @event.listens_for(engine, "connect")
    def _limit(connection: DBAPIConnection, _: object) -> None:
        connection.cursor().execute("PRAGMA max_page_count = 120")

    store = SqlRecordStore(engine, where=str(tmp_path / "records.db"))
    store.write_workloads([job(1)], at_ms=T0)
    with pytest.raises(StoreFullError, match="no space left") as caught:
        store.write_workloads([job(i, name="x" * 1000) for i in range(2, 2000)], at_ms=T0)
    assert "Free space" in str(caught.value.hint)
    assert store.active_workloads() == [job(1)]
    store.write_workloads([job(2)], at_ms=T0)  # there is room for this one
    store.close()


def test_the_store_is_busy_when_another_process_keeps_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BUSY_TIMEOUT_S", 0.05)
    store = open_record_store(StorageSettings(data_dir=tmp_path))
    other = sqlite3.connect(tmp_path / "records.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="another process"):
        store.write_workloads([job(1)], at_ms=T0)
    assert store.active_workloads() == []
    other.execute("ROLLBACK")
    other.close()
    store.write_workloads([job(1)], at_ms=T0)
    assert store.active_workloads() == [job(1)]
    store.close()


def test_commits_are_synced_when_the_store_is_open(tmp_path: Path) -> None:
    engine = engines.sqlite_engine(tmp_path / "records.db")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("SELECT * FROM workloads WHERE state IN ('waiting', 'running', 'suspended')", "workloads_by_state"),
        ("SELECT * FROM workloads ORDER BY begins_at DESC, id DESC LIMIT 100", "workloads_by_begin"),
        ("SELECT * FROM workloads WHERE user = 'ann' ORDER BY begins_at DESC LIMIT 100", "workloads_by_user"),
        ("DELETE FROM workloads WHERE ends_at < 5", "workloads_by_end"),
        ("SELECT * FROM allocations WHERE to_at IS NULL", "allocations_by_end"),
        ("SELECT * FROM allocations WHERE unit = 'n1:0' AND from_at < 5", "allocations_by_unit"),
        ("SELECT * FROM allocations WHERE (to_at IS NULL OR to_at > 5)", "allocations_by_end"),
    ],
)
def test_an_index_serves_the_query_when_views_ask_it(tmp_path: Path, statement: str, index: str) -> None:
    open_record_store(StorageSettings(data_dir=tmp_path)).close()
    plan = query(tmp_path / "records.db", f"EXPLAIN QUERY PLAN {statement}")
    assert any(index in str(step[3]) for step in plan)


def test_a_file_may_be_named_when_records_is_an_sqlite_address(tmp_path: Path) -> None:
    path = tmp_path / "own place" / "r 1.db"
    store = open_record_store(StorageSettings(data_dir=tmp_path / "other", records=f"sqlite:///{path}"))
    store.write_workloads([job(1)], at_ms=at(0))
    store.close()
    assert path.exists()
    again = open_record_store(StorageSettings(records=f"sqlite:///{path}"))
    assert again.active_workloads() == [job(1)]
    again.close()
