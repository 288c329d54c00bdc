"""Summaries of ended jobs."""

from alembic import op
from sqlalchemy import BigInteger, Column, Double, Text
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table; ended jobs that are still stored are summarized in the background."""
    op.create_table(
        "job_summaries",
        Column("workload", TEXT, primary_key=True),
        Column("state", TEXT, nullable=False),
        Column("kind", TEXT, nullable=False),
        Column("name", TEXT),
        Column("family", TEXT, nullable=False),
        *(Column(name, TEXT) for name in ("user", "project", "partition", "qos", "resource_type")),
        Column("submitted_at", BigInteger),
        Column("started_at", BigInteger, nullable=False),
        Column("ended_at", BigInteger, nullable=False),
        Column("run_s", Double, nullable=False),
        Column("time_limit_s", BigInteger),
        Column("nodes", BigInteger, nullable=False),
        Column("gpus", BigInteger, nullable=False),
        Column("cpus", BigInteger),
        Column("memory_requested_bytes", BigInteger),
        Column("source", TEXT, nullable=False),
        *(Column(name, Double) for name in ("cpu_s", "peak_cores", "memory_used_bytes", "memory_limit_bytes")),
        Column("memory_peak_bytes", Double),
        Column("nodes_unused", BigInteger),
        Column("gpu_util_ratio", Double),
        Column("gpus_idle", BigInteger),
        Column("gpus_unused", BigInteger),
        Column("gpu_memory_peak_bytes", Double),
        Column("gpu_memory_total_bytes", Double),
        Column("detail", TEXT, nullable=False),
    )
    op.create_index("job_summaries_by_end", "job_summaries", ["ended_at"])
    op.create_index("job_summaries_by_family", "job_summaries", ["user", "family", "ended_at"])
