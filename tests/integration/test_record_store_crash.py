"""A writer killed at any moment: the store opens again, whole, with every write that had returned."""

import random
import sqlite3
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from servers.postgres import postgres_server
from servers.reliability import note
from stores.killing import run_and_kill

from clusterscape.model import Allocation, UnitId, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.settings import StorageSettings
from clusterscape.store.records import WorkloadFilter, open_record_store

BATCH = 40
T0 = 1_700_000_000_000


def write_until_killed(storage: StorageSettings, first: int, acknowledge: "Connection[int, None]") -> None:
    """Write batches first, first + 1, …; after each, its number goes into the pipe ``acknowledge``."""
    store = open_record_store(storage)
    batch = first
    while True:
        ids = [WorkloadId(f"slurm:{batch}_{i}") for i in range(BATCH)]
        at = UnixMs(T0 + batch)
        store.write_workloads(
            [Workload(id=workload, state=WorkloadState.RUNNING, submitted_at=at, name="x" * 300) for workload in ids],
            at_ms=at,
        )
        store.write_allocations([Allocation(workload=workload, unit=UnitId("n1:0"), from_at=at) for workload in ids])
        acknowledge.send(batch)
        batch += 1


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorageSettings]:
    if request.param == "sqlite":
        yield StorageSettings(data_dir=tmp_path)
        return
    with postgres_server() as server:
        yield StorageSettings(data_dir=tmp_path, records=server.new_database())


@pytest.mark.server
def test_no_acknowledged_write_is_lost_when_the_writer_is_killed_twenty_times(storage: StorageSettings) -> None:
    randomly = random.Random(7)
    open_record_store(storage).close()
    acknowledged: set[int] = set()
    first = 0
    for _ in range(20):
        last = run_and_kill(write_until_killed, storage, first, randomly.uniform(0.0, 0.15))
        acknowledged.update(range(first, last + 1))
        first = last + 2  # the one after the last may be there or not, but only whole
        if storage.records == "sqlite":
            check_integrity(storage.data_dir / "records.db")
        store = open_record_store(storage)
        workloads = store.active_workloads()
        held = store.open_allocations()
        total = store.workloads(WorkloadFilter(), limit=1).total
        store.close()
        stored: dict[int, int] = {}
        for workload in workloads:
            batch = int(workload.id.removeprefix("slurm:").split("_")[0])
            stored[batch] = stored.get(batch, 0) + 1
        assert total == len(workloads)
        assert set(stored.values()) == {BATCH}
        assert acknowledged <= set(stored)
        assert {allocation.workload for allocation in held} >= {
            w.id for w in workloads if int(w.id[6:].split("_")[0]) in acknowledged
        }
        assert len(held) % BATCH == 0
    note(
        "fault",
        what="kill −9 of the record writer, twenty times",
        promised="no acknowledged write is lost",
        measured="none lost",
    )


def check_integrity(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()
