"""Spans: what every rank of a distributed run did, and when. One table for every profiler's format; columns, never objects.

Owns the columns and their units. Reading files is ``collect/traces``; conclusions are drawn in ``analyze/trace``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import polars as pl

from clusterscape.model.tables import fill_table


class SpanClass(StrEnum):
    """What a span is."""

    COMPUTE = "compute"
    COMMUNICATION = "communication"
    MEMORY = "memory"
    """Copies and fills by the device."""
    LAUNCH = "launch"
    """A call of the device's runtime: launches, synchronizations."""
    HOST = "host"
    ANNOTATION = "annotation"
    STEP = "step"
    """One whole step of one rank."""


class Phase(StrEnum):
    """Where in a step a span belongs."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    DATA = "data"


SPAN_CLASS = pl.Enum([each.value for each in SpanClass])
PHASE = pl.Enum([each.value for each in Phase])

SPAN_SCHEMA: Mapping[str, pl.DataType] = {
    "rank": pl.Int32(),
    "lane": pl.Categorical(),  # "stream 7", "thread 1049"
    "is_device": pl.Boolean(),
    "span_class": SPAN_CLASS,
    "name": pl.Categorical(),
    "namespace": pl.Categorical(),  # enclosing modules or annotations, "/" between them; null at the top
    "start_ns": pl.Int64(),  # the rank's own clock until aligned
    "end_ns": pl.Int64(),
    "ready_ns": pl.Int64(),  # communication: when the rank's input was there, where later than the start
    "step": pl.Int32(),
    "micro_batch": pl.Int32(),
    "phase": PHASE,
    "stage": pl.Int32(),
    "process_group": pl.Categorical(),
    "collective": pl.Categorical(),  # all_reduce, all_gather, …, send, recv
    "sequence": pl.Int64(),  # the profiler's own number within the process group, where it gives one
    "peer": pl.Int32(),  # send, recv: the other rank
    "bytes": pl.Int64(),
    "flops": pl.Float64(),
    "correlation": pl.Int64(),  # joins a launch and what it launched, within a rank
}
"""Column → type. Null is unknown or does not apply; times are nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessGroup:
    """Ranks that communicate. ``kind`` is what they share, where it is known: dp, tp, pp, ep, cp."""

    name: str
    ranks: tuple[int, ...]
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A tensor of a module. ``placements``: (mesh dimension, "shard 0", "replicate" or "partial"), empty where it is whole;
    ``splits``: into how many parts each dimension is split over ranks, empty where that is not known.
    """

    name: str
    shape: tuple[int, ...]
    local_shape: tuple[int, ...]
    placements: tuple[tuple[str, str], ...] = ()
    splits: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A tensor that goes into a module or comes out of it, ``shape`` over all ranks. ``splits``: into how many parts each
    dimension is split over ranks, empty where that is not known; ``is_partial``: its values have still to be summed up.
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
    """Of its first captured call, as they come: before a parallel style lays them out anew."""
    outputs: tuple[Activation, ...] = ()
    """As others get them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageModules:
    """The modules of a stage as one of its ranks captured them."""

    stage: int | None
    rank: int
    modules: tuple[ModuleFacts, ...]


FlopsSource = Literal["recorded", "estimated"]
"""By the profiler itself, or from the shapes of matrix products and convolutions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFacts:
    """One rank and where its spans come from. ``is_complete`` is false where its file was cut short."""

    rank: int
    source: str
    world_size: int | None = None
    backend: str | None = None
    device: str | None = None
    stage: int | None = None
    data_parallel_rank: int | None = None
    process_groups: tuple[ProcessGroup, ...] = ()
    modules: tuple[ModuleFacts, ...] = ()
    """Outer before inner, where the run was captured (``clusterscape.trace.capture``)."""
    flops_source: FlopsSource | None = None
    """None where no span has FLOPs."""
    is_complete: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Spans of all ranks (``SPAN_SCHEMA``), facts of each, and in words what had to be mended or is missing.

    ``is_aligned``: the recorder has brought all ranks to one clock. ``operators``: what depends on what
    (``model/operators.py``), where the recorder tells. ``memory``: ``rank``, ``time_ns`` and the ``bytes`` allocated from then
    on (``MEMORY_SCHEMA``), where it was recorded.
    """

    format: str
    spans: pl.DataFrame
    ranks: tuple[RankFacts, ...]
    notes: tuple[str, ...] = ()
    is_aligned: bool = False
    operators: pl.DataFrame | None = None
    memory: pl.DataFrame | None = None


MEMORY_SCHEMA: Mapping[str, pl.DataType] = {"rank": pl.Int32(), "time_ns": pl.Int64(), "bytes": pl.Int64()}


def make_spans(columns: Mapping[str, object], height: int) -> pl.DataFrame:
    """A span table of given columns: series, lists, or one value for all rows; those not given are null."""
    return fill_table(SPAN_SCHEMA, columns, height, what="spans")


def empty_spans() -> pl.DataFrame:
    """A span table without rows."""
    return pl.DataFrame(schema=dict(SPAN_SCHEMA))
