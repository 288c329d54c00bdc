"""Capture files beside PyTorch's traces (``clusterscape.trace.capture``): what the profiler does not say of a rank, added to it.

Stage, process groups with their kinds, modules and placements; and the process group of host collectives (gloo's), which the
profiler leaves out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import polars as pl

from clusterscape.collect.traces.collective_names import parse_annotation
from clusterscape.collect.traces.files import TraceFile, read_content
from clusterscape.errors import ClusterScapeError
from clusterscape.model.spans import ModuleFacts, Parameter, ProcessGroup, RankFacts, SpanClass, Trace


class _Group(msgspec.Struct):
    name: str
    ranks: list[int]
    kind: str | None = None


class _Placement(msgspec.Struct):
    mesh_dim: str
    kind: str
    dim: int | None = None


class _Parameter(msgspec.Struct):
    name: str
    shape: list[int] | None = None
    local_shape: list[int] | None = None
    placements: list[_Placement] = []


class _Module(msgspec.Struct):
    path: str
    class_name: str = msgspec.field(name="class")
    parameters: list[_Parameter] = []


class _Communication(msgspec.Struct):
    name: str
    group: str
    sequence: int


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
    return replace(
        facts,
        world_size=facts.world_size if facts.world_size is not None else capture.world_size,
        backend=facts.backend or capture.backend,
        device=facts.device or capture.device,
        stage=capture.stage if facts.stage is None else facts.stage,
        process_groups=tuple(groups.values()),
        modules=tuple(_to_module(module) for module in capture.modules),
    )


def _to_module(module: _Module) -> ModuleFacts:
    return ModuleFacts(
        path=module.path,
        class_name=module.class_name,
        parameters=tuple(
            Parameter(
                name=each.name,
                shape=tuple(each.shape or each.local_shape or ()),
                local_shape=tuple(each.local_shape or each.shape or ()),
                placements=tuple(
                    (one.mesh_dim, one.kind if one.dim is None else f"{one.kind} {one.dim}") for one in each.placements
                ),
            )
            for each in module.parameters
        ),
    )


def _name_groups(spans: pl.DataFrame, captures: Mapping[int, CaptureFile]) -> tuple[pl.DataFrame, list[str]]:
    """Process group and number of host communications that have none, from the calls the rank recorded.

    The record ends where the trace ends, so calls and spans of a kind are paired from the last one backwards.
    """
    is_open = (
        (pl.col("span_class") == SpanClass.COMMUNICATION.value)
        & ~pl.col("is_device")
        & pl.col("process_group").is_null()
        & pl.col("collective").is_not_null()
        & pl.col("rank").is_in(list(captures))
    )
    wanted = (
        spans.with_row_index("place")
        .filter(is_open)
        .select("place", "rank", pl.col("collective").cast(pl.String), "start_ns")
    )
    rows: list[tuple[int, str, int]] = []
    short: set[int] = set()
    for (rank, kind), part in wanted.group_by("rank", "collective"):
        number = int(str(rank))
        calls = [
            each for each in captures[number].communications if (parse_annotation(each.name) or ("", ""))[1] == kind
        ]
        places = part.sort("start_ns")["place"].to_list()
        if 0 < len(calls) < len(places):  # some kinds (gloo's sends) are never recorded
            short.add(number)
        # Pairing from the end: calls before the profiler began are in the record, too.
        rows += [
            (place, call.group, call.sequence) for place, call in zip(reversed(places), reversed(calls), strict=False)
        ]
    notes = [
        f"The capture of rank {rank} does not reach back to the first collective of its trace."
        for rank in sorted(short)
    ]
    if not rows:
        return spans, notes
    schema = {"place": pl.UInt32(), "named": pl.String(), "number": pl.Int64()}
    named = pl.DataFrame(rows, schema=schema, orient="row")
    joined = spans.with_row_index("place").join(named, on="place", how="left", maintain_order="left")
    group = pl.col("process_group").cast(pl.String).fill_null(pl.col("named")).cast(pl.Categorical())
    return joined.with_columns(group.alias("process_group"), pl.col("sequence").fill_null(pl.col("number"))).select(
        spans.columns
    ), notes
