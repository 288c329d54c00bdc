"""PostgreSQL as a service that restarts, is slow, and has several processes: the store goes on, and one process leads."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from contract.record_samples import T0, job
from servers.postgres import PostgresServer, postgres_server
from servers.reliability import note
from sqlalchemy import Engine, text

from clusterscape.errors import StoreBusyError, StoreError
from clusterscape.model import UnixMs
from clusterscape.settings import PostgresSettings, StorageSettings
from clusterscape.store.changes import Changes, Versions
from clusterscape.store.records import migrations, open_record_store, tables
from clusterscape.store.records.advisory_locks import Fence, Leadership
from clusterscape.store.records.engines import database_errors, record_engine
from clusterscape.store.records.mirror import MirroredRecordStore
from clusterscape.store.records.relay import ChangeRelay

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def storage(postgres: PostgresServer) -> StorageSettings:
    return StorageSettings(records=postgres.new_database())


@pytest.fixture
def engine(storage: StorageSettings) -> Iterator[Engine]:
    open_record_store(storage).close()
    opened = record_engine(storage)
    yield opened
    opened.dispose()


def wait_for(event: threading.Event) -> None:
    assert event.wait(60), "waited too long"


def test_the_store_goes_on_when_the_server_was_restarted(postgres: PostgresServer, storage: StorageSettings) -> None:
    store = open_record_store(storage)
    store.write_workloads([job(1)], at_ms=T0)
    postgres.stop()
    with pytest.raises(StoreError, match="does not answer"):
        store.write_workloads([job(2)], at_ms=T0)
    with pytest.raises(StoreError, match="does not answer"):
        store.active_workloads()
    postgres.start()
    store.write_workloads([job(2)], at_ms=T0)
    assert len(store.active_workloads()) == 2
    store.close()
    note(
        "fault",
        what="PostgreSQL is restarted",
        promised="the store goes on by itself",
        measured="went on",
    )


def test_a_statement_is_ended_when_it_takes_too_long(postgres: PostgresServer) -> None:
    hasty = StorageSettings(records=postgres.new_database(), postgres=PostgresSettings(statement_timeout_s=0.2))
    store = open_record_store(hasty)
    engine = record_engine(hasty)
    with (
        pytest.raises(StoreBusyError, match="statement timeout"),
        database_errors("here"),
        engine.connect() as connection,
    ):
        connection.execute(text("SELECT pg_sleep(30)"))
    store.write_workloads([job(1)], at_ms=T0)  # the connection is as good as before
    engine.dispose()
    store.close()


def test_a_reader_gets_a_busy_error_when_all_connections_are_in_use(postgres: PostgresServer) -> None:
    small = PostgresSettings(pool_size=1, max_overflow=0, pool_timeout_s=0.2)
    engine = record_engine(StorageSettings(records=postgres.new_database(), postgres=small))
    with engine.connect(), pytest.raises(StoreBusyError, match="too many readers"), database_errors("here"):
        engine.connect()
    engine.dispose()


def test_the_schema_is_made_once_when_many_processes_start_at_the_same_time(storage: StorageSettings) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: open_record_store(storage), range(6)))
    stores[0].write_workloads([job(1)], at_ms=T0)
    assert all(len(store.active_workloads()) == 1 for store in stores)
    for store in stores:
        store.close()


@pytest.mark.parametrize("revision", sorted(migrations.known_revisions()))
def test_an_older_schema_is_upgraded_when_opened(storage: StorageSettings, revision: str) -> None:
    engine = record_engine(storage)
    with engine.execution_options(writes=True).begin() as connection:
        migrations.upgrade(connection, revision)
    store = open_record_store(storage)
    store.write_workloads([job(1)], at_ms=T0)
    assert store.active_workloads() == [job(1)]
    store.close()
    assert migrations.stored_revision(engine) == tables.REVISION
    engine.dispose()


def test_one_leads_and_another_takes_over_when_its_connection_breaks(
    postgres: PostgresServer, engine: Engine, storage: StorageSettings
) -> None:
    fences = [Fence(), Fence()]
    first, second = (Leadership(engine, "collector 1/1", fence) for fence in fences)
    stores = [open_record_store(storage, fence=fence) for fence in fences]
    assert first.try_acquire()
    assert not second.try_acquire()
    assert first.wait(0.05)
    stores[0].write_workloads([job(1)], at_ms=T0)

    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'clusterscape collector 1/1'"
    )
    assert not first.wait(60)
    assert second.try_acquire()
    # The first has not released its lock yet: its pending writes are refused.
    with pytest.raises(StoreError, match="another process collects now"):
        stores[0].write_workloads([job(2)], at_ms=T0)
    stores[1].write_workloads([job(3)], at_ms=T0)
    first.release()
    stores[0].write_document("views", "mine", {}, at_ms=T0)  # writes of users pass
    assert {workload.id for workload in stores[1].active_workloads()} == {job(1).id, job(3).id}
    assert not first.try_acquire()
    second.release()
    assert first.try_acquire()
    first.release()
    for store in stores:
        store.close()


def test_locks_of_different_shards_are_held_side_by_side_when_there_are_several(engine: Engine) -> None:
    shards = [Leadership(engine, f"collector {number}/2", Fence()) for number in (1, 2)]
    assert all(shard.try_acquire() for shard in shards)
    for shard in shards:
        shard.release()


def test_a_process_is_notified_of_another_processes_write_when_both_listen(
    engine: Engine, storage: StorageSettings
) -> None:
    here, there = Changes(first=100), Changes(first=200)
    mirror, writer = MirroredRecordStore(open_record_store(storage)), open_record_store(storage)
    heard, ticked = threading.Event(), threading.Event()

    def refresh(changed: frozenset[str], _: Versions) -> None:
        if "inventory" in changed:
            mirror.refresh()

    def note(versions: Versions) -> None:
        if mirror.active_workloads():
            heard.set()  # the mirror is fresh before the number is reported
        if versions.newest_sample_at == 5:
            ticked.set()

    here.listen(note)
    relays = [
        ChangeRelay(engine, here, refresh, collects=lambda: False),
        ChangeRelay(engine, there, lambda *_: None, collects=lambda: True),
    ]
    for relay in relays:
        relay.start()
    writer.write_workloads([job(1)], at_ms=T0)
    deadline = time.monotonic() + 60
    while not heard.is_set():  # a listener receives notifications sent after it began
        there.bump_inventory()
        assert time.monotonic() < deadline
        heard.wait(0.2)
    there.pause("the disk is full")
    there.bump_tick(UnixMs(5))
    wait_for(ticked)
    while here.versions.inventory != there.versions.inventory:  # pages may ask either
        assert time.monotonic() < deadline
        there.bump_tick(UnixMs(6))
        time.sleep(0.1)
    assert here.versions.paused == "the disk is full"
    for relay in relays:
        relay.close()
    mirror.close()
    writer.close()
