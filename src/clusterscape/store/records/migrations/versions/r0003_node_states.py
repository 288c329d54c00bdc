"""States of nodes over time: what was down or drained then."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table; the states of now are its first rows."""
    op.create_table(
        "node_states",
        Column("node", TEXT, primary_key=True),
        Column("from_at", BigInteger, primary_key=True, autoincrement=False),
        Column("state", TEXT, nullable=False),
        Column("reason", TEXT),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO node_states SELECT id, seen_at, state, reason FROM nodes")
