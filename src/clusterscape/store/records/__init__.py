"""Inventory, workloads, allocations and documents: SQLite and PostgreSQL behind one contract.

``advisory_locks``: leader election of collectors, and leases.
``contract``: the interface of record stores.
``dump``: exports and imports all rows.
``engines``: connections, and translation of database errors.
``migrations``: schemas, one file per revision.
``mirror``: cache of current records in memory.
``relay``: notifies other processes of changes.
``rows``: records to rows and back.
``sql``: the store itself.
``statements``: conditions and upserts that work in both engines.
``tables``: tables and indices.
"""

from clusterscape.settings import StorageSettings
from clusterscape.store.records.advisory_locks import Fence
from clusterscape.store.records.contract import Document, RecordStore, WorkloadFilter, WorkloadPage
from clusterscape.store.records.engines import database_errors, record_engine
from clusterscape.store.records.migrations import upgrade_schema
from clusterscape.store.records.sql import SqlRecordStore

__all__ = ["Document", "RecordStore", "WorkloadFilter", "WorkloadPage", "open_record_store"]


def open_record_store(storage: StorageSettings, *, fence: Fence | None = None) -> RecordStore:
    """Open the record store of ``storage.records``; creates or upgrades the schema.

    ``fence``: checks in every writing transaction that this process may still write.

    Raises StoreVersionError, without changes, if a newer ClusterScape wrote the records; StoreError if they cannot be opened;
    ConfigError if the driver is not installed or the address is invalid.
    """
    engine = record_engine(storage)
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string(hide_password=True)
    try:
        with database_errors(str(where)):
            upgrade_schema(engine, str(where))
    except BaseException:
        engine.dispose()
        raise
    return SqlRecordStore(engine, where=str(where), fence=fence)
