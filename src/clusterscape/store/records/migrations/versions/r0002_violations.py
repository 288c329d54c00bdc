"""Violations of rules, past and present."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "violations",
        Column("rule", TEXT, primary_key=True),
        Column("workload", TEXT, primary_key=True),
        Column("unit", TEXT, primary_key=True),
        Column("since", BigInteger, primary_key=True, autoincrement=False),
        Column("until", BigInteger),
        Column("gpus", BigInteger, nullable=False),
        Column("values", TEXT, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("violations_by_workload", "violations", ["workload", "since"])
    op.create_index("violations_by_end", "violations", ["until"])
