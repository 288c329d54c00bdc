"""All executions of a workload, its time in suspension, the GPUs it was given, and the exit code of its steps."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns; of workloads known before, the accounting tells them when it is read again."""
    for column in (
        Column("gpus_allocated", BigInteger),
        Column("suspended_s", BigInteger, nullable=False, server_default="0"),
        Column("suspended_at", BigInteger),
        Column("earlier", TEXT, nullable=False, server_default="[]"),
        Column("derived_exit_code", BigInteger),
        Column("derived_exit_signal", BigInteger),
    ):
        op.add_column("workloads", column)
