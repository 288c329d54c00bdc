"""Accounts, sessions, API tokens and the audit log, in the record database, which all replicas share."""

from clusterscape.settings import StorageSettings
from clusterscape.store.access.sql import AccessStore, AuditFilter
from clusterscape.store.records.engines import database_errors, record_engine
from clusterscape.store.records.migrations import upgrade_schema

__all__ = ["AccessStore", "AuditFilter", "open_access_store"]


def open_access_store(storage: StorageSettings) -> AccessStore:
    """Open the access store in the database of ``storage.records``; creates or upgrades the schema.

    Raises the same errors as ``open_record_store``.
    """
    engine = record_engine(storage)
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string(hide_password=True)
    try:
        with database_errors(str(where)):
            upgrade_schema(engine, str(where))
    except BaseException:
        engine.dispose()
        raise
    return AccessStore(engine, where=str(where))
