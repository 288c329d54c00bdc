"""The cluster as one table: a row per unit with everything known of its node and its workload.

Rows: GPUs and MIG instances by node and index (a GPU split into instances is left out, its instances stand for it), then one row
per GPU that a waiting workload asks for. Cost: O(units + workloads + allocations), by column.
"""

from collections.abc import Iterable, Sequence

import polars as pl

from clusterscape.model import Allocation, Node, NodeId, NodeState, Unit, UnitKind, Workload, WorkloadState
from clusterscape.query.answers import UnitState

MAX_REQUESTED_PER_WORKLOAD = 4096
"""More squares than this for one waiting workload say nothing more."""

_WORKLOAD_COLUMNS: dict[str, type[pl.DataType]] = {
    "workload": pl.String,
    "workload_name": pl.String,
    "workload_state": pl.String,
    "workload_kind": pl.String,
    "user": pl.String,
    "project": pl.String,
    "experiment": pl.String,
    "resource_type": pl.String,
    "qos": pl.String,
    "priority": pl.Int64,
    "gpus_requested": pl.Int32,
    "submitted_at": pl.Float64,
    "started_at": pl.Float64,
    "time_limit_s": pl.Int32,
    "restarts": pl.Int16,
    "pending_reason": pl.String,
    "workload_partition": pl.String,
}

SNAPSHOT_COLUMNS: tuple[str, ...] = (
    "unit", "kind", "node", "index", "uuid", "partition", "machine_type", "unit_state", "node_state", "node_reason",
    "rack", "mig_profile", "memory_bytes", "power_limit_watts", "holders", "workload", "workload_name",
    "workload_state", "workload_kind", "user", "project", "experiment", "resource_type", "qos", "priority",
    "gpus_requested", "submitted_at", "started_at", "time_limit_s", "restarts", "pending_reason",
    "allocation_source", "allocation_confidence",
)  # fmt: skip

_DICTIONARY_COLUMNS = (
    "kind", "node", "partition", "machine_type", "unit_state", "node_state", "node_reason", "rack", "mig_profile",
    "workload", "workload_name", "workload_state", "workload_kind", "user", "project", "experiment", "resource_type",
    "qos", "pending_reason", "allocation_source",
)  # fmt: skip


def build_picture(
    *,
    nodes: Sequence[Node],
    units: Sequence[Unit],
    workloads: Sequence[Workload],
    allocations: Sequence[Allocation],
    stale_nodes: frozenset[NodeId],
) -> pl.DataFrame:
    """The table of SNAPSHOT_COLUMNS, strings plain; missing is null."""
    workload_table = _workload_table(workloads)
    held = (
        _unit_table(units)
        .join(_node_table(nodes, stale_nodes), on="node", how="left", maintain_order="left")
        .join(_holder_table(allocations), on="unit", how="left", maintain_order="left")
        .join(workload_table, on="workload", how="left", maintain_order="left")
        .with_columns(
            machine_type=pl.coalesce("machine_type", "node_machine_type"),
            holders=pl.col("holders").fill_null(0).cast(pl.UInt8),
            # In a node of several partitions, a unit stands in that of the workload that holds it.
            partition=pl.coalesce("workload_partition", "partition"),
            unit_state=_unit_state(),
        )
        .select(SNAPSHOT_COLUMNS)
    )
    return pl.concat([held, _requested(workload_table).select(SNAPSHOT_COLUMNS)])


def encode_strings(picture: pl.DataFrame) -> pl.DataFrame:
    """Strings that repeat become dictionary codes, each column with a dictionary of its own."""
    return picture.with_columns(
        [
            pl.col(name).cast(pl.Enum(picture[name].drop_nulls().unique(maintain_order=True)))
            for name in _DICTIONARY_COLUMNS
        ]
    )


def _unit_state() -> pl.Expr:
    available = [state.value for state in NodeState if state.is_available]
    return (
        pl.when(pl.col("workload").is_not_null())
        .then(pl.lit(UnitState.ALLOCATED.value))
        .when(pl.col("node_state").is_in([NodeState.DOWN.value, NodeState.DRAINED.value, NodeState.DRAINING.value]))
        .then(pl.lit(UnitState.UNAVAILABLE.value))
        .when(pl.col("is_stale").fill_null(False))
        .then(pl.lit(UnitState.STALE.value))
        .when(pl.col("node_state").is_in(available) | pl.col("node_state").is_null())
        .then(pl.lit(UnitState.FREE.value))
        # Without a scheduler a node's state is not known, but its GPUs answer: free until somebody holds them.
        .otherwise(pl.lit(UnitState.FREE.value))
    )


def _unit_table(units: Sequence[Unit]) -> pl.DataFrame:
    split = {unit.parent for unit in units if unit.kind is UnitKind.MIG}
    shown = sorted(
        (unit for unit in units if unit.id not in split),
        key=lambda unit: (unit.node or "", -1 if unit.index is None else unit.index, unit.id),
    )
    return pl.DataFrame(
        {
            "unit": [u.id for u in shown],
            "kind": [u.kind.value for u in shown],
            "node": [u.node for u in shown],
            "index": [u.index for u in shown],
            "uuid": [u.uuid for u in shown],
            "machine_type": [u.machine_type for u in shown],
            "mig_profile": [u.mig_profile for u in shown],
            "memory_bytes": [u.memory_bytes for u in shown],
            "power_limit_watts": [u.power_limit_watts for u in shown],
        },
        schema={
            "unit": pl.String,
            "kind": pl.String,
            "node": pl.String,
            "index": pl.Int16,
            "uuid": pl.String,
            "machine_type": pl.String,
            "mig_profile": pl.String,
            "memory_bytes": pl.Float64,
            "power_limit_watts": pl.Float32,
        },
        strict=False,
    )


def _node_table(nodes: Sequence[Node], stale: frozenset[NodeId]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "node": [n.id for n in nodes],
            "partition": [n.partitions[0] if n.partitions else None for n in nodes],
            "node_machine_type": [n.machine_type for n in nodes],
            "node_state": [n.state.value for n in nodes],
            "node_reason": [n.reason for n in nodes],
            "rack": [n.rack for n in nodes],
            "is_stale": [n.id in stale for n in nodes],
        },
        schema={
            "node": pl.String,
            "partition": pl.String,
            "node_machine_type": pl.String,
            "node_state": pl.String,
            "node_reason": pl.String,
            "rack": pl.String,
            "is_stale": pl.Boolean,
        },
    )


def _holder_table(allocations: Iterable[Allocation]) -> pl.DataFrame:
    """One row per held unit: the holder we are surest of (the longest-standing among equals), and how many there are."""
    rows = list(allocations)
    table = pl.DataFrame(
        {
            "unit": [a.unit for a in rows],
            "workload": [a.workload for a in rows],
            "allocation_source": [a.source.value for a in rows],
            "allocation_confidence": [a.confidence for a in rows],
            "from_at": [a.from_at for a in rows],
        },
        schema={
            "unit": pl.String,
            "workload": pl.String,
            "allocation_source": pl.String,
            "allocation_confidence": pl.Float32,
            "from_at": pl.Int64,
        },
    )
    return (
        table.sort(["unit", "allocation_confidence", "from_at", "workload"], descending=[False, True, False, False])
        .group_by("unit", maintain_order=True)
        .agg(
            pl.col("workload", "allocation_source", "allocation_confidence").first(),
            holders=pl.col("workload").n_unique(),
        )
    )


def _workload_table(workloads: Sequence[Workload]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "workload": [w.id for w in workloads],
            "workload_name": [w.name for w in workloads],
            "workload_state": [w.state.value for w in workloads],
            "workload_kind": [w.kind.value for w in workloads],
            "user": [w.user for w in workloads],
            "project": [w.project for w in workloads],
            "experiment": [w.experiment for w in workloads],
            "resource_type": [w.resource_type for w in workloads],
            "qos": [w.qos for w in workloads],
            "priority": [w.priority for w in workloads],
            "gpus_requested": [w.gpus_requested for w in workloads],
            "submitted_at": [w.submitted_at for w in workloads],
            "started_at": [w.started_at for w in workloads],
            "time_limit_s": [w.time_limit_s for w in workloads],
            "restarts": [w.restarts for w in workloads],
            "pending_reason": [w.pending_reason for w in workloads],
            "workload_partition": [w.partition for w in workloads],
        },
        schema=_WORKLOAD_COLUMNS,
        strict=False,
    )


def _requested(workloads: pl.DataFrame) -> pl.DataFrame:
    """One row per GPU that a waiting workload asks for."""
    waiting = workloads.filter(
        (pl.col("workload_state") == WorkloadState.WAITING.value) & (pl.col("gpus_requested") > 0)
    ).with_columns(ordinal=pl.int_ranges(pl.col("gpus_requested").clip(upper_bound=MAX_REQUESTED_PER_WORKLOAD)))
    nothing = {
        "node": pl.String, "index": pl.Int16, "uuid": pl.String, "machine_type": pl.String, "node_state": pl.String,
        "node_reason": pl.String, "rack": pl.String, "mig_profile": pl.String, "memory_bytes": pl.Float64,
        "power_limit_watts": pl.Float32, "allocation_source": pl.String, "allocation_confidence": pl.Float32,
    }  # fmt: skip
    return waiting.explode("ordinal").with_columns(
        pl.format("{}#{}", "workload", "ordinal").alias("unit"),
        pl.lit(UnitKind.REQUESTED.value).alias("kind"),
        pl.col("workload_partition").alias("partition"),
        pl.lit(UnitState.REQUESTED.value).alias("unit_state"),
        pl.lit(0, dtype=pl.UInt8).alias("holders"),
        *(pl.lit(None, dtype=kind).alias(name) for name, kind in nothing.items()),
    )
