"""Accounts, sessions, API tokens and the audit log, in the database of the records. The same for every replica of the server."""

from clusterscape.settings import StorageSettings
from clusterscape.store.access.sql import AccessStore, AuditFilter
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.faults import explained
from clusterscape.store.records.migrations import bring_up_to_date

__all__ = ["AccessStore", "AuditFilter", "open_access_store"]


def open_access_store(storage: StorageSettings) -> AccessStore:
    """Open it in the database that ``storage.records`` names, with the schema created or upgraded as needed.

    Raises what ``open_record_store`` raises.
    """
    engine = record_engine(storage)
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string(hide_password=True)
    try:
        with explained(str(where)):
            bring_up_to_date(engine, str(where))
    except BaseException:
        engine.dispose()
        raise
    return AccessStore(engine, where=str(where))
