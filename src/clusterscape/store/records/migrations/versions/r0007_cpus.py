"""CPU cores and memory of workloads."""

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns; of workloads known before, the accounting tells them when it is read again."""
    op.add_column("workloads", Column("cpus", BigInteger))
    op.add_column("workloads", Column("memory_requested_bytes", BigInteger))
