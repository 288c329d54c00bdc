"""The first schema: inventory, workloads, allocations, source states and documents."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Text
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Create everything."""
    _create_inventory()
    _create_workloads()
    _create_allocations()
    _create_sources_and_documents()


def _create_inventory() -> None:
    op.create_table(
        "nodes",
        Column("id", TEXT, primary_key=True),
        Column("partitions", TEXT, nullable=False),
        Column("machine_type", TEXT),
        Column("state", TEXT, nullable=False),
        Column("reason", TEXT),
        Column("gpu_count", BigInteger, nullable=False),
        Column("cpu_count", BigInteger),
        Column("memory_bytes", BigInteger),
        Column("features", TEXT, nullable=False),
        Column("rack", TEXT),
        Column("driver_version", TEXT),
        Column("seen_at", BigInteger, nullable=False),
    )
    op.create_table(
        "partitions",
        Column("name", TEXT, primary_key=True),
        Column("nodes", TEXT, nullable=False),
        Column("is_up", Boolean, nullable=False),
        Column("is_default", Boolean, nullable=False),
        Column("max_time_s", BigInteger),
        Column("seen_at", BigInteger, nullable=False),
    )
    op.create_table(
        "units",
        Column("id", TEXT, primary_key=True),
        Column("kind", TEXT, nullable=False),
        Column("node", TEXT),
        Column("index", BigInteger),
        Column("uuid", TEXT),
        Column("machine_type", TEXT),
        Column("memory_bytes", BigInteger),
        Column("power_limit_watts", Double),
        Column("pci_bus_id", TEXT),
        Column("parent", TEXT),
        Column("mig_profile", TEXT),
        Column("workload", TEXT),
        Column("seen_at", BigInteger, nullable=False),
    )
    op.create_index("units_by_node", "units", ["node"])


def _create_workloads() -> None:
    op.create_table(
        "workloads",
        Column("id", TEXT, primary_key=True),
        Column("state", TEXT, nullable=False),
        Column("kind", TEXT, nullable=False),
        Column("name", TEXT),
        Column("user", TEXT),
        Column("project", TEXT),
        Column("experiment", TEXT),
        Column("partition", TEXT),
        Column("resource_type", TEXT),
        Column("qos", TEXT),
        Column("priority", BigInteger),
        Column("gpus_requested", BigInteger, nullable=False),
        Column("nodes_requested", BigInteger),
        Column("time_limit_s", BigInteger),
        Column("submitted_at", BigInteger),
        Column("eligible_at", BigInteger),
        Column("started_at", BigInteger),
        Column("ended_at", BigInteger),
        Column("expected_start_at", BigInteger),
        Column("pending_reason", TEXT),
        Column("exit_code", BigInteger),
        Column("exit_signal", BigInteger),
        Column("restarts", BigInteger, nullable=False),
        Column("nodes", TEXT, nullable=False),
        Column("tags", TEXT, nullable=False),
        Column("begins_at", BigInteger, nullable=False),
        Column("ends_at", BigInteger),
        Column("search", TEXT, nullable=False),
        Column("seen_at", BigInteger, nullable=False),
    )
    op.create_index("workloads_by_state", "workloads", ["state"])
    op.create_index("workloads_by_begin", "workloads", ["begins_at"])
    op.create_index("workloads_by_end", "workloads", ["ends_at"])
    op.create_index("workloads_by_user", "workloads", ["user", "begins_at"])
    op.create_index("workloads_by_project", "workloads", ["project", "begins_at"])
    op.create_index("workloads_by_partition", "workloads", ["partition", "begins_at"])
    op.create_table(
        "workload_nodes",
        Column("node", TEXT, primary_key=True),
        Column("workload", TEXT, ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_index("workload_nodes_by_workload", "workload_nodes", ["workload"])


def _create_allocations() -> None:
    op.create_table(
        "allocations",
        Column("workload", TEXT, primary_key=True),
        Column("unit", TEXT, primary_key=True),
        Column("from_at", BigInteger, primary_key=True, autoincrement=False),
        Column("to_at", BigInteger),
        Column("source", TEXT, nullable=False),
        Column("confidence", Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("allocations_by_unit", "allocations", ["unit", "from_at"])
    op.create_index("allocations_by_begin", "allocations", ["from_at"])
    op.create_index("allocations_by_end", "allocations", ["to_at"])


def _create_sources_and_documents() -> None:
    op.create_table(
        "sources",
        Column("source", TEXT, primary_key=True),
        Column("kind", TEXT, nullable=False),
        Column("is_ok", Boolean, nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("node", TEXT),
        Column("message", TEXT),
        Column("hint", TEXT),
        Column("duration_s", Double),
    )
    op.create_table(
        "documents",
        Column("kind", TEXT, primary_key=True),
        Column("key", TEXT, primary_key=True),
        Column("body", TEXT, nullable=False),
        Column("written_at", BigInteger, nullable=False),
    )
