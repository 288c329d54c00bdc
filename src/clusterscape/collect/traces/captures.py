"""Capture files of PyTorch traces (``clusterscape.trace.capture``): adds to a rank what the profiler does not record.

That is its stage, process groups with their kinds, modules, the sharding of parameters and activations, the process group of
host collectives (gloo), and how long the training thread waited for a core, which the profiler omits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import msgspec
import polars as pl

from clusterscape.collect.traces.collective_names import parse_annotation
from clusterscape.collect.traces.files import TraceFile, read_content
from clusterscape.errors import ClusterScapeError
from clusterscape.model.spans import (
    CORE_WAIT_SCHEMA,
    Activation,
    ModuleFacts,
    Parameter,
    ProcessGroup,
    RankFacts,
    SpanClass,
    Trace,
)

ELEMENT_WIDTHS = (1, 2, 4, 8, 16)  # bytes


class _Group(msgspec.Struct):
    name: str
    ranks: list[int]
    kind: str | None = None


class _Placement(msgspec.Struct):
    mesh_dim: str
    kind: str
    dim: int | None = None
    parts: int | None = None


class _Tensor(msgspec.Struct):
    shape: list[int]
    dtype: str | None = None
    placements: list[_Placement] | None = None


class _Parameter(msgspec.Struct):
    name: str
    shape: list[int] | None = None
    local_shape: list[int] | None = None
    placements: list[_Placement] = []


class _Module(msgspec.Struct):
    path: str
    class_name: str = msgspec.field(name="class")
    parameters: list[_Parameter] = []
    inputs: list[_Tensor] = []
    outputs: list[_Tensor] = []
    inner_inputs: list[_Tensor] = []
    inner_outputs: list[_Tensor] = []


class _Communication(msgspec.Struct):
    name: str
    group: str
    sequence: int
    elements: int = 0


class _Step(msgspec.Struct):
    """What the kernel's scheduler counted of the thread that trains, in one step."""

    step: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    cpu_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    core_wait_s: Annotated[float, msgspec.Meta(ge=0)] | None = None


class CaptureFile(msgspec.Struct):
    """The fields of a capture file that are read."""

    rank: int
    world_size: int | None = None
    backend: str | None = None
    device: str | None = None
    stage: int | None = None
    process_groups: list[_Group] = []
    communications: list[_Communication] = []
    modules: list[_Module] = []
    steps: list[_Step] = []


def add_captures(trace: Trace, files: Sequence[TraceFile]) -> Trace:
    """Add the capture files to the trace. A file that cannot be read is reported in the notes and skipped."""
    captures: dict[int, CaptureFile] = {}
    notes: list[str] = []
    for file in files:
        try:
            capture = msgspec.json.decode(read_content(file).data, type=CaptureFile)
        except (ClusterScapeError, OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            notes.append(f"Cannot read {file.title}: {error}.")
            continue
        if capture.rank in captures:
            notes.append(f"Rank {capture.rank} has two capture files: {file.title} is not used.")
        else:
            captures[capture.rank] = capture
    ranks = tuple(add_facts(facts, captures[facts.rank]) if facts.rank in captures else facts for facts in trace.ranks)
    spans, group_notes = _name_groups(trace.spans, captures)
    waits = [
        (capture.rank, step.step, step.cpu_s, step.core_wait_s)
        for capture in captures.values()
        for step in capture.steps
        if step.core_wait_s is not None
    ]
    core_waits = pl.DataFrame(waits, schema=CORE_WAIT_SCHEMA, orient="row", strict=False) if waits else None
    return replace(trace, spans=spans, ranks=ranks, notes=(*trace.notes, *notes, *group_notes), core_waits=core_waits)


def add_facts(facts: RankFacts, capture: CaptureFile) -> RankFacts:
    """Add the facts of a capture to a rank. The capture's description of a process group takes precedence."""
    groups = {group.name: group for group in facts.process_groups}
    for group in capture.process_groups:
        recorded = groups.get(group.name)
        kind = group.kind or (recorded.kind if recorded else None)
        groups[group.name] = ProcessGroup(name=group.name, ranks=tuple(group.ranks), kind=kind)
    parts = {group.kind: len(group.ranks) for group in capture.process_groups if group.kind}
    return replace(
        facts,
        world_size=facts.world_size if facts.world_size is not None else capture.world_size,
        backend=facts.backend or capture.backend,
        device=facts.device or capture.device,
        stage=capture.stage if facts.stage is None else facts.stage,
        process_groups=tuple(groups.values()),
        modules=tuple(_to_module(module, parts) for module in capture.modules),
    )


def _to_module(module: _Module, parts: Mapping[str, int]) -> ModuleFacts:
    parameters = tuple(_to_parameter(parameter, parts) for parameter in module.parameters)
    weight = next(
        (parameter for parameter in parameters if parameter.name == "weight" and len(parameter.local_shape) == 2), None
    )
    return ModuleFacts(
        path=module.path,
        class_name=module.class_name,
        parameters=parameters,
        inputs=tuple(_to_activations(module.inputs, module.inner_inputs, parts, weight, 1)),
        outputs=tuple(_to_activations(module.outputs, module.inner_outputs, parts, weight, 0)),
    )


def _to_parameter(parameter: _Parameter, parts: Mapping[str, int]) -> Parameter:
    shape, local_shape = (
        tuple(parameter.shape or parameter.local_shape or ()),
        tuple(parameter.local_shape or parameter.shape or ()),
    )
    return Parameter(
        name=parameter.name,
        shape=shape,
        local_shape=local_shape,
        placements=tuple(
            (placement.mesh_dim, placement.kind if placement.dim is None else f"{placement.kind} {placement.dim}")
            for placement in parameter.placements
        ),
        splits=_split(len(local_shape), parameter.placements, parts),
    )


def _to_activations(
    tensors: Sequence[_Tensor], inner: Sequence[_Tensor], parts: Mapping[str, int], weight: Parameter | None, side: int
) -> Iterator[Activation]:
    """A DTensor states how it is split. A plain tensor is only this rank's part; the global shape comes from the DTensor that a
    parallel style made of it (``inner``), or from the module's weight if its dimension ``side`` (0: output, 1: input) is split.
    """
    for index, tensor in enumerate(tensors):
        local_shape, global_shape = tuple(tensor.shape), None
        if tensor.placements is not None:
            splits = _split(len(local_shape), tensor.placements, parts)
            is_partial = any(placement.kind == "partial" for placement in tensor.placements)
            yield Activation(shape=local_shape, splits=splits, data_type=tensor.dtype, is_partial=is_partial)
            continue
        if index < len(inner) and inner[index].placements is not None:
            global_shape = tuple(inner[index].shape)
        elif weight is not None and weight.splits and local_shape and local_shape[-1] == weight.local_shape[side]:
            global_shape = (*local_shape[:-1], local_shape[-1] * weight.splits[side])
        yield Activation(
            shape=global_shape or local_shape,
            splits=() if global_shape is None else _ratios(local_shape, global_shape),
            data_type=tensor.dtype,
        )


def _ratios(local_shape: tuple[int, ...], global_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The number of parts in each dimension; empty if the local shape does not divide the global shape."""
    if len(local_shape) != len(global_shape):
        return ()
    sizes = list(zip(local_shape, global_shape, strict=True))
    if any(not local_size or global_size % local_size for local_size, global_size in sizes):
        return ()
    return tuple(global_size // local_size for local_size, global_size in sizes)


def _split(dimensions: int, placements: Sequence[_Placement], parts: Mapping[str, int]) -> tuple[int, ...]:
    """The number of parts in each dimension; empty if there are no placements or a number of parts is unknown."""
    if not placements:
        return ()
    splits = [1] * dimensions
    for placement in placements:
        if placement.dim is None:
            continue
        count = placement.parts or parts.get(placement.mesh_dim)
        if count is None or not -dimensions <= placement.dim < dimensions:
            return ()
        splits[placement.dim] *= count
    return tuple(splits)


def _name_groups(spans: pl.DataFrame, captures: Mapping[int, CaptureFile]) -> tuple[pl.DataFrame, list[str]]:
    """Fill in the process group and sequence number of host collectives from the calls that the rank recorded."""
    lacks_group = (
        (pl.col("span_class") == SpanClass.COMMUNICATION.value)
        & ~pl.col("is_device")
        & pl.col("process_group").is_null()
        & pl.col("collective").is_not_null()
        & pl.col("rank").is_in(list(captures))
    )
    ungrouped = spans.with_row_index("row").filter(lacks_group)
    ungrouped = ungrouped.select("row", "rank", pl.col("collective").cast(pl.String), "start_ns", "bytes")
    rows: list[_Row] = []
    notes: list[str] = []
    for (rank, kind), part in ungrouped.sort("rank", "start_ns").group_by("rank", "collective", maintain_order=True):
        recorded = captures[int(str(rank))].communications
        calls = [call for call in recorded if (parse_annotation(call.name) or ("", ""))[1] == kind]
        paired = _pair(part, calls)
        rows += paired
        if calls and len(paired) < part.height:  # some kinds (gloo's sends) are never recorded
            missing = part.height - len(paired)
            notes.append(f"Rank {rank}: the capture has no process group for {missing} {kind} calls.")
    if not rows:
        return spans, notes
    schema = {"row": pl.UInt32(), "group": pl.String(), "number": pl.Int64()}
    groups = pl.DataFrame(rows, schema=schema, orient="row")
    joined = spans.with_row_index("row").join(groups, on="row", how="left", maintain_order="left")
    group = pl.col("process_group").cast(pl.String).fill_null(pl.col("group")).cast(pl.Categorical())
    return joined.with_columns(group.alias("process_group"), pl.col("sequence").fill_null(pl.col("number"))).select(
        spans.columns
    ), notes


_Row = tuple[int, str, int]
"""Row of the span table, process group, sequence number."""


def _pair(part: pl.DataFrame, calls: Sequence[_Communication]) -> list[_Row]:
    """Pair the spans of one rank and kind with their calls, from the last one backwards: both end at the same time.

    Returns no pairs if the sizes differ: then a call was still in progress when the profiler stopped.
    """
    rows: list[_Row] = []
    spans = list(part.select("row", "bytes").iter_rows())
    for (row, size), call in zip(reversed(spans), reversed(calls), strict=False):
        if size is not None and call.elements and size not in {call.elements * width for width in ELEMENT_WIDTHS}:
            return []
        rows.append((row, call.group, call.sequence))
    return rows
