"""Capture files beside PyTorch's traces (``clusterscape.trace.capture``): what the profiler does not say of a rank, added to it.

Stage, process groups with their kinds, modules, and how their parameters and activations lie over the ranks; and the process
group of host collectives (gloo's), which the profiler leaves out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import polars as pl

from clusterscape.collect.traces.collective_names import parse_annotation
from clusterscape.collect.traces.files import TraceFile, read_content
from clusterscape.errors import ClusterScapeError
from clusterscape.model.spans import Activation, ModuleFacts, Parameter, ProcessGroup, RankFacts, SpanClass, Trace

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


class CaptureFile(msgspec.Struct):
    """What is read of a capture file."""

    rank: int
    world_size: int | None = None
    backend: str | None = None
    device: str | None = None
    stage: int | None = None
    process_groups: list[_Group] = []
    communications: list[_Communication] = []
    modules: list[_Module] = []


def add_captures(trace: Trace, files: Sequence[TraceFile]) -> Trace:
    """The trace with what its ranks' capture files say; one that cannot be read is reported and the rest goes on."""
    found: dict[int, CaptureFile] = {}
    notes: list[str] = []
    for file in files:
        try:
            capture = msgspec.json.decode(read_content(file).data, type=CaptureFile)
        except (ClusterScapeError, OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            notes.append(f"{file.title} could not be read: {error}.")
            continue
        if capture.rank in found:
            notes.append(f"Two capture files are of rank {capture.rank}: {file.title} is not used.")
        else:
            found[capture.rank] = capture
    ranks = tuple(add_facts(facts, found[facts.rank]) if facts.rank in found else facts for facts in trace.ranks)
    spans, unclear = _name_groups(trace.spans, found)
    return replace(trace, spans=spans, ranks=ranks, notes=(*trace.notes, *notes, *unclear))


def add_facts(facts: RankFacts, capture: CaptureFile) -> RankFacts:
    """A rank's facts with those of its capture; what both say of a process group, the capture says with more words."""
    groups = {group.name: group for group in facts.process_groups}
    for group in capture.process_groups:
        known = groups.get(group.name)
        kind = group.kind or (known.kind if known else None)
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
    parameters = tuple(_to_parameter(each, parts) for each in module.parameters)
    weight = next((each for each in parameters if each.name == "weight" and len(each.local_shape) == 2), None)
    return ModuleFacts(
        path=module.path,
        class_name=module.class_name,
        parameters=parameters,
        inputs=tuple(_to_activations(module.inputs, module.inner_inputs, parts, weight, 1)),
        outputs=tuple(_to_activations(module.outputs, module.inner_outputs, parts, weight, 0)),
    )


def _to_parameter(each: _Parameter, parts: Mapping[str, int]) -> Parameter:
    shape, local = tuple(each.shape or each.local_shape or ()), tuple(each.local_shape or each.shape or ())
    return Parameter(
        name=each.name,
        shape=shape,
        local_shape=local,
        placements=tuple(
            (one.mesh_dim, one.kind if one.dim is None else f"{one.kind} {one.dim}") for one in each.placements
        ),
        splits=_split(len(local), each.placements, parts),
    )


def _to_activations(
    tensors: Sequence[_Tensor], inner: Sequence[_Tensor], parts: Mapping[str, int], weight: Parameter | None, side: int
) -> Iterator[Activation]:
    """A DTensor says itself how it is split. A plain tensor is this rank's part: of what whole, the DTensor tells that a parallel
    style makes of it, or the module's weight where its dimension ``side`` (0: what comes out, 1: what goes in) is split.
    """
    for place, tensor in enumerate(tensors):
        own, whole = tuple(tensor.shape), None
        if tensor.placements is not None:
            splits = _split(len(own), tensor.placements, parts)
            is_partial = any(each.kind == "partial" for each in tensor.placements)
            yield Activation(shape=own, splits=splits, data_type=tensor.dtype, is_partial=is_partial)
            continue
        if place < len(inner) and inner[place].placements is not None:
            whole = tuple(inner[place].shape)
        elif weight is not None and weight.splits and own and own[-1] == weight.local_shape[side]:
            whole = (*own[:-1], own[-1] * weight.splits[side])
        yield Activation(
            shape=whole or own, splits=() if whole is None else _ratios(own, whole), data_type=tensor.dtype
        )


def _ratios(part: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    """Into how many parts each dimension of the whole is split; empty where the one is no part of the other."""
    if len(part) != len(whole) or any(not own or all_ % own for own, all_ in zip(part, whole, strict=True)):
        return ()
    return tuple(all_ // own for own, all_ in zip(part, whole, strict=True))


def _split(dimensions: int, placements: Sequence[_Placement], parts: Mapping[str, int]) -> tuple[int, ...]:
    """Into how many parts each dimension is split; empty where nothing is said, or not into how many."""
    if not placements:
        return ()
    found = [1] * dimensions
    for each in placements:
        if each.dim is None:
            continue
        count = each.parts or parts.get(each.mesh_dim)
        if count is None or not -dimensions <= each.dim < dimensions:
            return ()
        found[each.dim] *= count
    return tuple(found)


def _name_groups(spans: pl.DataFrame, captures: Mapping[int, CaptureFile]) -> tuple[pl.DataFrame, list[str]]:
    """Process group and number of host communications that have none, from the calls the rank recorded."""
    is_open = (
        (pl.col("span_class") == SpanClass.COMMUNICATION.value)
        & ~pl.col("is_device")
        & pl.col("process_group").is_null()
        & pl.col("collective").is_not_null()
        & pl.col("rank").is_in(list(captures))
    )
    wanted = spans.with_row_index("place").filter(is_open)
    wanted = wanted.select("place", "rank", pl.col("collective").cast(pl.String), "start_ns", "bytes")
    rows: list[_Row] = []
    notes: list[str] = []
    for (rank, kind), part in wanted.sort("rank", "start_ns").group_by("rank", "collective", maintain_order=True):
        recorded = captures[int(str(rank))].communications
        calls = [each for each in recorded if (parse_annotation(each.name) or ("", ""))[1] == kind]
        found = _pair(part, calls)
        rows += found
        if calls and len(found) < part.height:  # some kinds (gloo's sends) are never recorded
            left = part.height - len(found)
            notes.append(f"Rank {rank}: the capture does not tell the process group of {left} {kind}.")
    if not rows:
        return spans, notes
    schema = {"place": pl.UInt32(), "named": pl.String(), "number": pl.Int64()}
    named = pl.DataFrame(rows, schema=schema, orient="row")
    joined = spans.with_row_index("place").join(named, on="place", how="left", maintain_order="left")
    group = pl.col("process_group").cast(pl.String).fill_null(pl.col("named")).cast(pl.Categorical())
    return joined.with_columns(group.alias("process_group"), pl.col("sequence").fill_null(pl.col("number"))).select(
        spans.columns
    ), notes


_Row = tuple[int, str, int]
"""Row of the span table, process group, sequence number."""


def _pair(part: pl.DataFrame, calls: Sequence[_Communication]) -> list[_Row]:
    """Spans of one rank and kind with their calls, from the last one backwards: the record ends where the trace ends.

    None at all where sizes show that they are not the same: one was still under way when the profiler stopped.
    """
    rows: list[_Row] = []
    spans = list(part.select("place", "bytes").iter_rows())
    for (place, size), call in zip(reversed(spans), reversed(calls), strict=False):
        if size is not None and call.elements and size not in {call.elements * width for width in ELEMENT_WIDTHS}:
            return []
        rows.append((place, call.group, call.sequence))
    return rows
