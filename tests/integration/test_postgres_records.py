"""Faults specific to PostgreSQL: logins, rights, lost connections, foreign tables."""

from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from contract.record_samples import T0, job
from servers.postgres import PostgresServer, postgres_server
from sqlalchemy import make_url, text

from clusterscape.errors import StoreError, StoreVersionError
from clusterscape.settings import StorageSettings
from clusterscape.store.records import engines, migrations, open_record_store, tables

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def refusal(url: str) -> StoreError:
    with pytest.raises(StoreError) as caught:
        open_record_store(StorageSettings(records=url))
    return caught.value


def test_the_login_is_named_without_password_when_it_is_refused(postgres: PostgresServer) -> None:
    error = refusal(postgres.url("postgres", password="not-the-word"))
    assert "rejected the login" in error.message
    assert "not-the-word" not in error.message
    assert "pg_hba.conf" in str(error.hint)


def test_createdb_is_proposed_when_there_is_no_such_database(postgres: PostgresServer) -> None:
    error = refusal(postgres.url("nowhere"))
    assert "database does not exist" in error.message
    assert "createdb" in str(error.hint)


def test_the_grant_is_named_when_the_user_may_not_create_tables(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    error = refusal(url.replace(f"clusterscape:{postgres.password}@", "guest:guest@"))
    assert "denied permission" in error.message
    assert "GRANT CREATE" in str(error.hint)


def test_a_newer_store_is_refused_when_opened(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    open_record_store(StorageSettings(records=url)).close()
    postgres.execute(f"UPDATE {tables.VERSION_TABLE} SET version_num = '9999'", url=url)
    assert isinstance(refusal(url), StoreVersionError)


def test_nothing_is_created_when_the_database_holds_foreign_tables(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    postgres.execute("CREATE TABLE workloads (mine TEXT)", url=url)
    assert "of another application" in refusal(url).message
    engine = engines.postgres_engine(make_url(url))
    with engine.connect() as connection:
        names = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
    engine.dispose()
    assert names == ["workloads"]


def test_migrated_schema_equals_the_tables_when_run_to_the_end(postgres: PostgresServer) -> None:
    engine = engines.postgres_engine(make_url(postgres.new_database()))
    migrations.upgrade_schema(engine, "postgres")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": tables.VERSION_TABLE})
        assert compare_metadata(context, tables.metadata) == []
    engine.dispose()


def test_the_store_connects_again_when_its_connections_were_cut(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    store = open_record_store(StorageSettings(records=url))
    store.write_workloads([job(1)], at_ms=T0)
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'clusterscape'")
    store.write_workloads([job(2)], at_ms=T0)
    assert len(store.active_workloads()) == 2
    store.close()
