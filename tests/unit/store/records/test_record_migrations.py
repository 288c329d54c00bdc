import hashlib
import sqlite3
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from contract.record_samples import T0, job

from clusterscape.errors import StoreError, StoreVersionError
from clusterscape.settings import StorageSettings
from clusterscape.store.records import engines, migrations, open_record_store, tables


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_migrated_schema_equals_the_tables_when_run_to_the_end(tmp_path: Path) -> None:
    engine = engines.sqlite_engine(tmp_path / "records.db")
    migrations.upgrade_schema(engine, "records.db")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": tables.VERSION_TABLE})
        assert compare_metadata(context, tables.metadata) == []
    assert migrations.stored_revision(engine) == tables.REVISION
    engine.dispose()


@pytest.mark.parametrize("revision", sorted(migrations.known_revisions()))
def test_an_older_schema_is_upgraded_when_opened(tmp_path: Path, revision: str) -> None:
    engine = engines.sqlite_engine(tmp_path / "records.db")
    with engine.execution_options(writes=True).begin() as connection:
        migrations.upgrade(connection, revision)
    engine.dispose()
    store = open_record_store(StorageSettings(data_dir=tmp_path))
    store.write_workloads([job(1)], at_ms=T0)
    assert store.active_workloads() == [job(1)]
    store.close()
    assert migrations.stored_revision(engine) == tables.REVISION


def test_a_newer_store_is_refused_untouched_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    open_record_store(StorageSettings(data_dir=tmp_path)).close()
    execute(path, f"UPDATE {tables.VERSION_TABLE} SET version_num = '9999'")
    path.chmod(0o640)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(StoreVersionError, match="newer ClusterScape") as caught:
        open_record_store(StorageSettings(data_dir=tmp_path))
    assert "nothing was changed" in str(caught.value.hint)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_nothing_is_created_when_the_database_holds_foreign_tables(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    execute(path, "CREATE TABLE workloads (mine TEXT)")
    with pytest.raises(StoreError, match="of another application") as caught:
        open_record_store(StorageSettings(data_dir=tmp_path))
    assert "separate database" in str(caught.value.hint)
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    connection.close()
    assert names == [("workloads",)]


def test_newest_revision_is_the_programs_own_when_compared() -> None:
    assert max(migrations.known_revisions()) == tables.REVISION
