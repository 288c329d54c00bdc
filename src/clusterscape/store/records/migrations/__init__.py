"""Upgrades a database's schema to the revision of this version; rejects a newer schema without changes.

``versions`` has one file per revision; released ones never change.
"""

import logging
import sqlite3
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlalchemy import Connection, Engine, String, column, inspect, select, table

from clusterscape.errors import StoreVersionError
from clusterscape.store.records.tables import REVISION, VERSION_TABLE

if TYPE_CHECKING:  # Alembic is imported only when there is something to migrate
    from alembic.config import Config

log = logging.getLogger(__name__)

_VERSION = select(column("version_num", String)).select_from(table(VERSION_TABLE))


def upgrade_schema(engine: Engine, where: str) -> None:
    """Create or upgrade the schema in one transaction; raises StoreVersionError if it is newer than this version."""
    revision = stored_revision(engine)
    if revision == REVISION:
        return  # the usual start: Alembic is not imported
    _refuse_newer(revision, where)
    # If several processes start, one upgrades under the writers' lock, and the others wait.
    with engine.execution_options(writes=True, unhurried=True).begin() as connection:
        revision = _read_revision(connection)  # again under the lock: another process may have been first
        if revision == REVISION:
            return
        _refuse_newer(revision, where)
        if revision is not None:
            log.info("upgrading the records in %s from revision %s to %s", where, revision, REVISION)
        upgrade(connection, REVISION)


def stored_revision(engine: Engine) -> str | None:
    """The schema's revision, None for an empty database; reads only."""
    if engine.dialect.name != "sqlite":
        with engine.connect() as connection:
            return _read_revision(connection)
    path = Path(str(engine.url.database))
    if not path.exists():
        return None
    # Not through the engine, whose connections switch the file to WAL and checkpoint it when they close.
    file = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    try:
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if (VERSION_TABLE,) not in tables:
            return None
        row = file.execute(str(_VERSION)).fetchone()
    finally:
        file.close()
    return None if row is None else str(row[0])


def upgrade(connection: Connection, revision: str) -> None:
    """Run the migrations up to ``revision`` inside the connection's transaction."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def known_revisions() -> Set[str]:
    """Every revision that this version can upgrade from, including its own."""
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def _read_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(_VERSION).scalar()


def _refuse_newer(revision: str | None, where: str) -> None:
    if revision is None or revision in known_revisions():
        return
    raise StoreVersionError(
        f"the records in {where} were written by a newer ClusterScape (schema {revision}, this version has {REVISION})",
        hint="Install that version or a later one; nothing was changed.",
    )
