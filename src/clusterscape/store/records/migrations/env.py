"""Alembic's entry: runs the migrations on the connection it is handed, inside that connection's transaction."""

from alembic import context

from clusterscape.store.records.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,  # SQLite's too: its connections begin explicitly here
)
context.run_migrations()
