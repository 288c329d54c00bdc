"""Tables of spans (what every rank of a distributed run did, and when) and of operator graphs (the operators of a step, by
pipeline stage). The same columns for every profiler's format.

Owns the columns and their units. ``collect/traces`` reads files; ``analyze/trace`` analyzes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import polars as pl


def fill_table(
    schema: Mapping[str, pl.DataType], columns: Mapping[str, object], height: int, *, what: str
) -> pl.DataFrame:
    """A table of ``schema`` from series, lists, or one value for all rows; missing columns are null.

    Raises ValueError for a column that ``schema`` does not have; ``what`` names the table in the message.
    """
    unknown = set(columns) - set(schema)
    if unknown:
        raise ValueError(f"unknown columns of {what}: {sorted(unknown)}")
    table = []
    nulls: dict[pl.DataType, pl.Series] = {}  # null columns of one type share their memory
    for name, kind in schema.items():
        values = columns.get(name)
        if values is None:
            if kind not in nulls:
                nulls[kind] = pl.Series([None], dtype=kind).new_from_index(0, height)
            table.append(nulls[kind].alias(name))
        elif isinstance(values, pl.Series):
            table.append(values.cast(kind).alias(name))
        elif isinstance(values, list):
            table.append(pl.Series(name, values, dtype=kind))
        else:
            table.append(pl.Series(name, [values], dtype=kind).new_from_index(0, height))
    return pl.DataFrame(table)


class FlowMark(StrEnum):
    """The parallel strategy that an operator belongs to."""

    PIPELINE = "pp"
    TENSOR = "tp"
    DATA = "dp"
    EXPERT = "ep"
    REDISTRIBUTION = "redistribution"
    GRADIENT_AGGREGATION = "gradient_aggregation"
    COMMUNICATION = "communication"
    """Of an unknown strategy."""


OPERATOR_SCHEMA: Mapping[str, pl.DataType] = {
    "stage": pl.Int32(),  # null: the run has no pipeline stages
    "name": pl.String(),
    "type": pl.String(),
    "namespace": pl.String(),  # "/" between its parts; "" at the top
    "inputs": pl.List(pl.UInt32()),  # rows of this table, in the order of the operator's inputs
    "shards": pl.List(pl.List(pl.Int32())),  # for every input, the number of parts of each dimension
    "mark": pl.String(),  # FlowMark
    "shape": pl.String(),
    "data_type": pl.String(),
    "message": pl.String(),  # send, recv
    "message_key": pl.String(),  # equal for a send and its receive
    "span": pl.Int64(),  # row of the span table
    "start_ns": pl.Float64(),  # since the trace's origin
    "end_ns": pl.Float64(),
    "duration_ns": pl.Float64(),
}
"""Column → type. Rows of a stage are in execution order: inputs precede the operators that use them."""


def make_operators(columns: Mapping[str, object], height: int) -> pl.DataFrame:
    """An operator table from series, lists, or one value for all rows; missing columns are null."""
    return fill_table(OPERATOR_SCHEMA, columns, height, what="operators")


INFERRED_STEP = "Until Optimizer.step "
"""The name, up to its number, of a step that no profiler marked."""


class SpanClass(StrEnum):
    """The type of a span."""

    COMPUTE = "compute"
    COMMUNICATION = "communication"
    MEMORY = "memory"
    """Memory copies and fills by the device."""
    LAUNCH = "launch"
    """A call of the device's runtime: launches, synchronizations."""
    HOST = "host"
    ANNOTATION = "annotation"
    STEP = "step"
    """One whole step of one rank."""


class Phase(StrEnum):
    """The part of a step that a span belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    DATA = "data"


SPAN_CLASS = pl.Enum([span_class.value for span_class in SpanClass])
PHASE = pl.Enum([phase.value for phase in Phase])

SPAN_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "lane": pl.Categorical(),  # "stream 7", "thread 1049"
    "is_device": pl.Boolean(),
    "span_class": SPAN_CLASS,
    "name": pl.Categorical(),
    "namespace": pl.Categorical(),  # enclosing modules or annotations, "/" between them; null at the top
    "start_ns": pl.Int64(),  # the rank's own clock until aligned
    "end_ns": pl.Int64(),
    "ready_ns": pl.Int64(),  # communication: when the rank's input was ready, if later than the start
    "step": pl.Int32(),
    "micro_batch": pl.Int32(),
    "phase": PHASE,
    "stage": pl.Int32(),
    "process_group": pl.Categorical(),
    "collective": pl.Categorical(),  # all_reduce, all_gather, …, send, recv
    "sequence": pl.Int64(),  # the profiler's sequence number within the process group, if it has one
    "peer": pl.Int32(),  # send, recv: the other rank
    "bytes": pl.Int64(),
    "flops": pl.Float64(),
    "correlation": pl.Int64(),  # joins a launch and the kernel that it launched, within a rank
}
"""Column → type. Null: unknown or not applicable. Times are in nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessGroup:
    """Ranks that communicate. ``kind`` is the parallelism they implement, if known: dp, tp, pp, ep, cp."""

    name: str
    ranks: tuple[int, ...]
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A tensor of a module. ``placements``: (mesh dimension, "shard 0", "replicate" or "partial"), empty if not sharded;
    ``splits``: number of parts of each dimension over ranks, empty if unknown.
    """

    name: str
    shape: tuple[int, ...]
    local_shape: tuple[int, ...]
    placements: tuple[tuple[str, str], ...] = ()
    splits: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A tensor that enters or leaves a module, ``shape`` over all ranks. ``splits``: number of parts of each dimension over
    ranks, empty if unknown; ``is_partial``: its values are not yet reduced over ranks.
    """

    shape: tuple[int, ...]
    splits: tuple[int, ...] = ()
    data_type: str | None = None
    is_partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFacts:
    """A module of a rank's model; ``path`` has dots between names and is empty for the model itself."""

    path: str
    class_name: str
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[Activation, ...] = ()
    """Of its first captured call, before a parallel style redistributes them."""
    outputs: tuple[Activation, ...] = ()
    """After redistribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageModules:
    """The modules of a stage, as captured by one of its ranks."""

    stage: int | None
    rank: int
    modules: tuple[ModuleFacts, ...]


FlopsSource = Literal["recorded", "estimated"]
"""Recorded by the profiler, or estimated from the shapes of matrix products and convolutions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFacts:
    """One rank and the source of its spans. ``is_complete`` is false if its file is truncated."""

    rank: int
    source: str
    world_size: int | None = None
    backend: str | None = None
    device: str | None = None
    stage: int | None = None
    data_parallel_rank: int | None = None
    process_groups: tuple[ProcessGroup, ...] = ()
    modules: tuple[ModuleFacts, ...] = ()
    """Outer before inner, if the run was captured (``clusterscape.trace.capture``)."""
    flops_source: FlopsSource | None = None
    """None if no span has FLOPs."""
    is_complete: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Spans of all ranks (``SPAN_SCHEMA``), facts about each rank, and notes on what was repaired or is missing.

    ``is_aligned``: the recorder aligned the clocks of all ranks. ``operators``: the operator graph (``OPERATOR_SCHEMA``),
    if recorded. ``memory``: ``rank``, ``time_ns`` and the ``bytes`` allocated from then on (``MEMORY_SCHEMA``), if recorded.
    """

    format: str
    spans: pl.DataFrame
    ranks: tuple[RankFacts, ...]
    notes: tuple[str, ...] = ()
    is_aligned: bool = False
    operators: pl.DataFrame | None = None
    memory: pl.DataFrame | None = None
    core_waits: pl.DataFrame | None = None
    """``CORE_WAIT_SCHEMA``: seconds of each step that the thread that runs it had a core, and that it was ready and had none, if
    recorded.
    """
    unread_share: float = 0.0
    """Of the bytes of all files: those that could not be read."""


CORE_WAIT_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(), "step": pl.Int32(), "cpu_s": pl.Float64(), "core_wait_s": pl.Float64(),
}  # fmt: skip
MEMORY_SCHEMA: Mapping[str, pl.DataType] = {"rank": pl.Int32(), "time_ns": pl.Int64(), "bytes": pl.Int64()}


def make_spans(columns: Mapping[str, object], height: int) -> pl.DataFrame:
    """A span table from series, lists, or one value for all rows; missing columns are null."""
    return fill_table(SPAN_SCHEMA, columns, height, what="spans")


def empty_spans() -> pl.DataFrame:
    """A span table without rows."""
    return pl.DataFrame(schema=dict(SPAN_SCHEMA))
