"""Inventory, workloads, allocations and documents: SQLite and PostgreSQL behind one contract."""

from clusterscape.settings import StorageSettings
from clusterscape.store.records.contract import Document, RecordStore, WorkloadFilter, WorkloadPage
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.faults import explained
from clusterscape.store.records.leadership import Fence
from clusterscape.store.records.migrations import bring_up_to_date
from clusterscape.store.records.sql import SqlRecordStore

__all__ = ["Document", "RecordStore", "WorkloadFilter", "WorkloadPage", "open_record_store"]


def open_record_store(storage: StorageSettings, *, fence: Fence | None = None) -> RecordStore:
    """Open the records that ``storage.records`` names, with its schema created or upgraded as needed.

    ``fence``: asked in every writing transaction whether this process may still write.

    Raises StoreVersionError, having changed nothing, where a newer ClusterScape wrote them; StoreError where they cannot be
    opened; ConfigError where the driver is not installed or the address is none.
    """
    engine = record_engine(storage)
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string(hide_password=True)
    try:
        with explained(str(where)):
            bring_up_to_date(engine, str(where))
    except BaseException:
        engine.dispose()
        raise
    return SqlRecordStore(engine, where=str(where), fence=fence)
