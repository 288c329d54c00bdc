"""The cluster as one table: a row per unit with all fields of its node and its workload.

Rows: GPUs and MIG instances by node and index (a GPU that is split into instances is replaced by them), then one row per GPU
that a waiting workload requests. Cost: O(units + workloads + allocations), by column.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import polars as pl

from clusterscape.model import (
    Allocation,
    AllocationSource,
    Node,
    NodeId,
    NodeState,
    Unit,
    UnitId,
    UnitKind,
    Workload,
    WorkloadState,
)
from clusterscape.model.identity_fields import (
    ExperimentName,
    FreeText,
    OwnerText,
    ProjectName,
    PublicText,
    UnitRef,
    UserName,
    WorkloadRef,
)
from clusterscape.query.answers import UnitHealth, UnitState
from clusterscape.query.reasons import name_wait

MAX_REQUESTED_PER_WORKLOAD = 4096
"""Upper bound of rows for one waiting workload; more squares would not tell a viewer more."""


class SnapshotRow(TypedDict):
    """The text columns of the picture, with markers that say whose names they reveal."""

    unit: UnitRef
    kind: PublicText
    node: PublicText
    uuid: PublicText
    partition: PublicText
    machine_type: PublicText
    unit_state: PublicText
    node_state: PublicText
    node_reason: FreeText
    rack: PublicText
    mig_profile: PublicText
    workload: WorkloadRef
    workload_name: OwnerText
    workload_state: PublicText
    workload_kind: PublicText
    user: UserName
    project: ProjectName
    experiment: ExperimentName
    resource_type: PublicText
    qos: FreeText
    pending_reason: FreeText
    waits_for: PublicText
    allocation_source: PublicText
    unit_health: PublicText
    free_use: PublicText
    node_partitions: PublicText


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
    "waits_for": pl.String,
    "workload_partition": pl.String,
}

SNAPSHOT_COLUMNS: tuple[str, ...] = (
    "unit", "kind", "node", "index", "uuid", "partition", "machine_type", "unit_state", "node_state", "node_reason",
    "rack", "mig_profile", "memory_bytes", "power_limit_watts", "holders", "workload", "workload_name",
    "workload_state", "workload_kind", "user", "project", "experiment", "resource_type", "qos", "priority",
    "gpus_requested", "submitted_at", "started_at", "time_limit_s", "restarts", "pending_reason",
    "waits_for", "allocation_source", "allocation_confidence", "unit_health", "node_partitions",
)  # fmt: skip

SHARED_MARK = " + "
"""Between the names of the partitions that a node is in: ``a100 + all``."""

_ALL_COLUMNS = (*SNAPSHOT_COLUMNS, "workload_partition")
_UNIT_STATES = pl.Enum([state.value for state in UnitState])
_UNIT_HEALTH = pl.Enum([health.value for health in UnitHealth])
_UNIT_KINDS = pl.Enum([kind.value for kind in UnitKind])
_ALLOCATION_SOURCES = pl.Enum([source.value for source in AllocationSource])


def build_picture(
    *,
    places: pl.DataFrame,
    workloads: Sequence[Workload],
    allocations: Sequence[Allocation],
) -> pl.DataFrame:
    """The table of SNAPSHOT_COLUMNS; missing is null. Repeated strings are dictionary-encoded (Enum), as on the wire.

    ``places``: the result of ``build_places``, which changes much more rarely than the queue.
    """
    workload_table = _workload_table(workloads)
    held = (
        places.join(
            _holder_table(allocations, workload_table["workload"].dtype), on="unit", how="left", maintain_order="left"
        )
        .join(workload_table, on="workload", how="left", maintain_order="left")
        .with_columns(
            holders=pl.col("holders").fill_null(0).cast(pl.UInt8),
            unit_state=_unit_state(),
            unit_health=_unit_health(),
        )
    )
    everything = pl.concat([held.select(_ALL_COLUMNS), _requested(workload_table, held.schema).select(_ALL_COLUMNS)])
    # On a node of several partitions, an allocated unit has its workload's partition, a free one the joined name of all.
    partition = pl.coalesce(pl.col("workload_partition").cast(pl.String), pl.col("partition").cast(pl.String))
    return encode_strings(everything.with_columns(partition=partition), ["partition"]).select(SNAPSHOT_COLUMNS)


def build_places(
    nodes: Sequence[Node],
    units: Sequence[Unit],
    stale_nodes: frozenset[NodeId],
    faulty_units: frozenset[UnitId] = frozenset(),
) -> pl.DataFrame:
    """Units with the fields of their nodes, by node and index."""
    table = _unit_table(units).join(_node_table(nodes, stale_nodes), on="node", how="left", maintain_order="left")
    table = table.with_columns(
        machine_type=pl.coalesce("machine_type", "node_machine_type"),
        is_faulty=pl.col("unit").is_in(sorted(faulty_units)),
    )
    return encode_strings(
        table.with_columns(pl.col("kind").cast(_UNIT_KINDS)),
        ["node", "partition", "node_partitions", "machine_type", "node_state", "node_reason", "rack", "mig_profile"],
    )


def encode_strings(table: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Dictionary-encodes string columns, each with its own dictionary."""
    return table.with_columns(
        [pl.col(name).cast(pl.Enum(table[name].drop_nulls().unique(maintain_order=True))) for name in columns]
    )


def _unit_state() -> pl.Expr:
    out_of_service = [NodeState.DOWN.value, NodeState.DRAINED.value, NodeState.DRAINING.value]
    return (
        pl.when(pl.col("workload").is_not_null())
        .then(pl.lit(UnitState.ALLOCATED.value))
        .when(pl.col("node_state").cast(pl.String).is_in(out_of_service))
        .then(pl.lit(UnitState.UNAVAILABLE.value))
        .when(pl.col("is_stale").fill_null(False))
        .then(pl.lit(UnitState.STALE.value))
        # Without a scheduler a node's state is unknown, but its exporter responds: its GPUs are free until a workload holds them.
        .otherwise(pl.lit(UnitState.FREE.value))
        .cast(_UNIT_STATES)
    )


def _unit_health() -> pl.Expr:
    """Null if unknown, as for past minutes. An error that was reported before the exporter stopped responding remains."""
    return (
        pl.when(pl.col("is_faulty"))
        .then(pl.lit(UnitHealth.FAULTY.value))
        .when(pl.col("is_stale"))
        .then(pl.lit(UnitHealth.SILENT.value))
        .when(pl.col("is_stale").is_not_null())
        .then(pl.lit(UnitHealth.OK.value))
        .cast(_UNIT_HEALTH)
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
            "partition": [SHARED_MARK.join(n.partitions) or None for n in nodes],
            "node_partitions": [SHARED_MARK.join(n.partitions) or None for n in nodes],
            "node_machine_type": [n.machine_type for n in nodes],
            "node_state": [n.state.value for n in nodes],
            "node_reason": [n.reason for n in nodes],
            "rack": [n.rack for n in nodes],
            "is_stale": [n.id in stale for n in nodes],
        },
        schema={
            "node": pl.String,
            "partition": pl.String,
            "node_partitions": pl.String,
            "node_machine_type": pl.String,
            "node_state": pl.String,
            "node_reason": pl.String,
            "rack": pl.String,
            "is_stale": pl.Boolean,
        },
    )


def _holder_table(allocations: Sequence[Allocation], workload_type: pl.DataType) -> pl.DataFrame:
    """One row per held unit: the holder with the highest confidence (the longest-standing of equals), and the number of holders.

    Holders that are no longer active (their end was observed before their allocation's) do not count.
    """
    table = pl.DataFrame(
        {
            "unit": [a.unit for a in allocations],
            "workload": pl.Series([a.workload for a in allocations], dtype=pl.String).cast(workload_type, strict=False),
            "allocation_source": pl.Series([a.source.value for a in allocations], dtype=_ALLOCATION_SOURCES),
            "allocation_confidence": pl.Series([a.confidence for a in allocations], dtype=pl.Float32),
            "from_at": pl.Series([a.from_at for a in allocations], dtype=pl.Int64),
        },
        schema_overrides={"unit": pl.String},
    ).filter(pl.col("workload").is_not_null())
    if not table["unit"].is_duplicated().any():
        return table.select(
            "unit", "workload", "allocation_source", "allocation_confidence", pl.lit(1).alias("holders")
        )
    return (
        table.sort(
            ["unit", "allocation_confidence", "from_at", pl.col("workload").cast(pl.String)],
            descending=[False, True, False, False],
        )
        .group_by("unit", maintain_order=True)
        .agg(
            pl.col("workload", "allocation_source", "allocation_confidence").first(),
            holders=pl.col("workload").n_unique().cast(pl.Int32),
        )
    )


def _workload_table(workloads: Sequence[Workload]) -> pl.DataFrame:
    table = pl.DataFrame(
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
            "waits_for": [name_wait(w.pending_reason) if w.state is WorkloadState.WAITING else None for w in workloads],
            "workload_partition": [w.partition for w in workloads],
        },
        schema=_WORKLOAD_COLUMNS,
        strict=False,
    )
    return encode_strings(table, [name for name, kind in _WORKLOAD_COLUMNS.items() if kind is pl.String])


def _requested(workloads: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """One row per GPU that a waiting workload requests; columns of nodes and units are null."""
    waiting = workloads.filter(
        (pl.col("workload_state").cast(pl.String) == WorkloadState.WAITING.value) & (pl.col("gpus_requested") > 0)
    ).with_columns(ordinal=pl.int_ranges(pl.col("gpus_requested").clip(upper_bound=MAX_REQUESTED_PER_WORKLOAD)))
    defined = {*workloads.columns, "unit", "kind", "unit_state", "holders"}
    return waiting.explode("ordinal").with_columns(
        pl.format("{}#{}", pl.col("workload").cast(pl.String), "ordinal").alias("unit"),
        pl.lit(UnitKind.REQUESTED.value, dtype=_UNIT_KINDS).alias("kind"),
        pl.lit(UnitState.REQUESTED.value, dtype=_UNIT_STATES).alias("unit_state"),
        pl.lit(0, dtype=pl.UInt8).alias("holders"),
        *(pl.lit(None, dtype=schema[name]).alias(name) for name in _ALL_COLUMNS if name not in defined),
    )
