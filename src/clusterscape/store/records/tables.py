"""The tables and indices of the record store, the same for SQLite and PostgreSQL. Holds no statements and no migrations.

A change here needs a migration and a new REVISION; a test compares both.
"""

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, MetaData, Table, Text
from sqlalchemy.dialects import postgresql

REVISION = "0008"
"""The schema these tables describe: the newest revision under ``migrations/versions``."""

VERSION_TABLE = "clusterscape_version"
"""Not Alembic's default name: MLflow and others may keep theirs in the same PostgreSQL database."""

# Integers are 64 bits wide throughout: schedulers report exit codes and priorities beyond 31 bits.
# Bytewise order in both engines, whatever locale the PostgreSQL database was created with.
TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

metadata = MetaData()

nodes = Table(
    "nodes",
    metadata,
    Column("id", TEXT, primary_key=True),
    Column("partitions", TEXT, nullable=False),  # JSON array
    Column("machine_type", TEXT),
    Column("state", TEXT, nullable=False),
    Column("reason", TEXT),
    Column("gpu_count", BigInteger, nullable=False),
    Column("cpu_count", BigInteger),
    Column("memory_bytes", BigInteger),
    Column("features", TEXT, nullable=False),  # JSON array
    Column("rack", TEXT),
    Column("driver_version", TEXT),
    Column("seen_at", BigInteger, nullable=False),
)

# One row per state change of a node; the latest row of a node is its current state.
node_states = Table(
    "node_states",
    metadata,
    Column("node", TEXT, primary_key=True),
    Column("from_at", BigInteger, primary_key=True, autoincrement=False),
    Column("state", TEXT, nullable=False),
    Column("reason", TEXT),
    sqlite_with_rowid=False,
)

partitions = Table(
    "partitions",
    metadata,
    Column("name", TEXT, primary_key=True),
    Column("nodes", TEXT, nullable=False),  # JSON array
    Column("is_up", Boolean, nullable=False),
    Column("is_default", Boolean, nullable=False),
    Column("max_time_s", BigInteger),
    Column("seen_at", BigInteger, nullable=False),
)

units = Table(
    "units",
    metadata,
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
    Index("units_by_node", "node"),
)

workloads = Table(
    "workloads",
    metadata,
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
    Column("nodes", TEXT, nullable=False),  # JSON array
    Column("tags", TEXT, nullable=False),  # JSON object
    Column("gpus_allocated", BigInteger),
    Column("suspended_s", BigInteger, nullable=False),
    Column("suspended_at", BigInteger),
    Column("earlier", TEXT, nullable=False),  # JSON array of former executions
    Column("derived_exit_code", BigInteger),
    Column("derived_exit_signal", BigInteger),
    Column("cpus", BigInteger),
    Column("memory_requested_bytes", BigInteger),
    # Derived when a row is written, for filters and order; see rows.workload_row.
    Column("begins_at", BigInteger, nullable=False),
    Column("ends_at", BigInteger),
    Column("search", TEXT, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Index("workloads_by_state", "state"),
    Index("workloads_by_begin", "begins_at"),
    Index("workloads_by_end", "ends_at"),
    Index("workloads_by_user", "user", "begins_at"),
    Index("workloads_by_project", "project", "begins_at"),
    Index("workloads_by_partition", "partition", "begins_at"),
)

# Nodes of workloads, one row per node: an index of workloads.nodes for filters.
workload_nodes = Table(
    "workload_nodes",
    metadata,
    Column("node", TEXT, primary_key=True),
    Column("workload", TEXT, ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
    Index("workload_nodes_by_workload", "workload"),
    sqlite_with_rowid=False,
)

# No foreign keys: an allocation may be stored before its workload, and is kept as history after its unit is removed.
allocations = Table(
    "allocations",
    metadata,
    Column("workload", TEXT, primary_key=True),
    Column("unit", TEXT, primary_key=True),
    Column("from_at", BigInteger, primary_key=True, autoincrement=False),
    Column("to_at", BigInteger),
    Column("source", TEXT, nullable=False),
    Column("confidence", Double, nullable=False),
    Index("allocations_by_unit", "unit", "from_at"),
    Index("allocations_by_begin", "from_at"),
    Index("allocations_by_end", "to_at"),  # serves open allocations too: to_at is null
    sqlite_with_rowid=False,
)

# ``unit`` is "" for violations of a whole workload: a key cannot be null. No foreign keys, as for allocations.
violations = Table(
    "violations",
    metadata,
    Column("rule", TEXT, primary_key=True),
    Column("workload", TEXT, primary_key=True),
    Column("unit", TEXT, primary_key=True),
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("until", BigInteger),
    Column("gpus", BigInteger, nullable=False),
    Column("values", TEXT, nullable=False),  # JSON object
    Index("violations_by_workload", "workload", "since"),
    Index("violations_by_end", "until"),  # serves open violations too: until is null
    sqlite_with_rowid=False,
)

# No foreign key: a summary outlives the record of its job by years.
job_summaries = Table(
    "job_summaries",
    metadata,
    Column("workload", TEXT, primary_key=True),
    Column("state", TEXT, nullable=False),
    Column("kind", TEXT, nullable=False),
    Column("name", TEXT),
    Column("family", TEXT, nullable=False),
    Column("user", TEXT),
    Column("project", TEXT),
    Column("partition", TEXT),
    Column("qos", TEXT),
    Column("resource_type", TEXT),
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
    Column("cpu_s", Double),
    Column("peak_cores", Double),
    Column("memory_used_bytes", Double),
    Column("memory_limit_bytes", Double),
    Column("memory_peak_bytes", Double),
    Column("nodes_unused", BigInteger),
    Column("gpu_util_ratio", Double),
    Column("gpus_idle", BigInteger),
    Column("gpus_unused", BigInteger),
    Column("gpu_memory_peak_bytes", Double),
    Column("gpu_memory_total_bytes", Double),
    Column("detail", TEXT, nullable=False),  # packed; see model.job_summaries
    Index("job_summaries_by_end", "ended_at"),
    Index("job_summaries_by_family", "user", "family", "ended_at"),
)

sources = Table(
    "sources",
    metadata,
    Column("source", TEXT, primary_key=True),
    Column("kind", TEXT, nullable=False),
    Column("is_ok", Boolean, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("node", TEXT),
    Column("message", TEXT),
    Column("hint", TEXT),
    Column("duration_s", Double),
)

# Separate columns for what must be readable even if the JSON is damaged: the owner, and what counts for quotas.
runs = Table(
    "runs",
    metadata,
    Column("run", TEXT, primary_key=True),
    Column("owned_by", TEXT),
    Column("received_at", BigInteger),
    Column("written_at", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("series_count", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),  # increases with every write of any run: readers query newer ones
    Column("summary", TEXT, nullable=False),  # JSON of model.runs.RunSummary
    Column("detail", TEXT, nullable=False),  # JSON of model.runs.RunDetail; last, so that lists do not read it
    Index("runs_by_revision", "revision"),
    Index("runs_by_owner", "owned_by"),
)

# The last revision of each kind. Not the maximum in use, which would be reused after its run is removed.
revisions = Table(
    "revisions",
    metadata,
    Column("kind", TEXT, primary_key=True),
    Column("revision", BigInteger, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("kind", TEXT, primary_key=True),
    Column("key", TEXT, primary_key=True),
    Column("body", TEXT, nullable=False),  # JSON object
    Column("written_at", BigInteger, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("way", TEXT, primary_key=True),
    Column("login", TEXT, primary_key=True),
    Column("role", TEXT, nullable=False),
    Column("projects", TEXT, nullable=False),  # JSON array
    Column("title", TEXT),
    Column("subject", TEXT),
    Column("is_disabled", Boolean, nullable=False),
    Column("password_hash", TEXT),
    Column("created_at", BigInteger, nullable=False),
    Column("signed_in_at", BigInteger),
)

# No foreign key to accounts: a session of the static token has no account.
sessions = Table(
    "sessions",
    metadata,
    Column("digest", TEXT, primary_key=True),
    Column("way", TEXT, nullable=False),
    Column("login", TEXT),
    Column("seal", TEXT),
    Column("created_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("address", TEXT, nullable=False),
    Column("agent", TEXT, nullable=False),
    Index("sessions_by_login", "way", "login"),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("key", TEXT, primary_key=True),
    Column("digest", TEXT, nullable=False),
    Column("start", TEXT, nullable=False),
    Column("title", TEXT, nullable=False),
    Column("way", TEXT, nullable=False),
    Column("login", TEXT, nullable=False),
    Column("scopes", TEXT, nullable=False),  # JSON array
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
    Column("revoked_at", BigInteger),
    Index("api_tokens_by_digest", "digest", unique=True),
    Index("api_tokens_by_login", "way", "login"),
)

# Append-only: a trigger rejects every update. Keys start with the time and so sort by it; a sequence of the database would
# restart after a restore.
audit = Table(
    "audit",
    metadata,
    Column("key", TEXT, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("action", TEXT, nullable=False),
    Column("outcome", TEXT, nullable=False),
    Column("actor", TEXT),
    Column("way", TEXT),
    Column("address", TEXT),
    Column("target", TEXT),
    Column("details", TEXT, nullable=False),  # JSON object
    Index("audit_by_actor", "actor", "key"),
)
