"""Parses Megatron-LM and MegaScan timelines: begin and end events of forward and backward passes, one pid per pipeline rank."""

from typing import Annotated

import msgspec
import polars as pl

from clusterscape.collect.traces.files import Content
from clusterscape.collect.traces.kineto import MAX_US
from clusterscape.errors import SourceError
from clusterscape.model.spans import RankFacts, SpanClass, Trace, make_spans

Number = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""What the columns of spans can hold."""
Microseconds = Annotated[float, msgspec.Meta(ge=-MAX_US, le=MAX_US)]


class Arguments(msgspec.Struct, gc=False):
    """The position in the step."""

    iteration: Number | None = None
    microbatch: Number | None = None
    model_chunk: Number | None = None
    pp_rank: Number | None = None


class MegatronEvent(msgspec.Struct, gc=False):
    """A begin (B), an end (E), a complete span (X) or an instant (i); microseconds."""

    ph: str
    ts: Microseconds
    name: str = ""
    pid: Number | str = 0
    tid: int | str = 0
    dur: Microseconds | None = None
    args: Arguments = msgspec.field(default_factory=Arguments)


class MegatronDocument(msgspec.Struct):
    """The file format if it is an object; it may also be a plain list of events."""

    events: list[MegatronEvent] = msgspec.field(default_factory=list, name="traceEvents")


Row = tuple[int, str, int, int, int | None, int | None, int | None, int | None]
PHASES = {"forward": "forward", "backward": "backward"}


def parse_megatron(content: Content, source: str) -> Trace:
    """Parse one file. ``namespace`` is the model chunk of an interleaved schedule."""
    try:
        if content.data.lstrip()[:1] == b"[":
            events = msgspec.json.decode(content.data, type=list[MegatronEvent])
        else:
            events = msgspec.json.decode(content.data, type=MegatronDocument).events
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read the timeline {source}: {error}", hint="Is the copy complete?") from error
    try:
        rows, steps, unpaired = _pair(events)
    except _NotARankError as error:
        raise SourceError(f"cannot read the timeline {source}: {error}", hint="A pid must be a rank.") from None
    if not rows:
        raise SourceError(f"{source} has no spans")
    table = pl.DataFrame(
        rows,
        schema=["rank", "name", "start_ns", "end_ns", "step", "micro_batch", "chunk", "stage"],
        orient="row",
        infer_schema_length=None,
    )
    spans = make_spans(
        {
            "rank": table["rank"],
            "lane": "compute",
            "is_device": True,
            "span_class": SpanClass.COMPUTE.value,
            "name": table["name"],
            "namespace": table.select(pl.format("chunk {}", pl.col("chunk"))).to_series(),
            "start_ns": table["start_ns"],
            "end_ns": table["end_ns"],
            "step": table["step"],
            "micro_batch": table["micro_batch"],
            "phase": table["name"].replace_strict(PHASES, default=None),
            "stage": table["stage"],
        },
        table.height,
    )
    marks = _step_spans(steps)
    stages = dict(table.drop_nulls("stage").select("rank", "stage").unique().iter_rows())
    facts = tuple(
        RankFacts(rank=rank, source=source, stage=stages.get(rank)) for rank in sorted(table["rank"].unique())
    )
    notes = [f"{unpaired} events without a begin or an end were skipped."] if unpaired else []
    return Trace(format="Megatron", spans=pl.concat([spans, marks]), ranks=facts, notes=tuple(notes))


class _NotARankError(ValueError):
    """A pid that is not a number."""


def _rank(pid: int | str) -> int:
    if isinstance(pid, int):
        return pid
    if not (pid.isascii() and pid.isdigit() and len(pid) < 10):
        raise _NotARankError(f"the pid {pid[:40]!r} is not a rank")
    return int(pid)


def _pair(events: list[MegatronEvent]) -> tuple[list[Row], dict[tuple[int, int], list[int]], int]:
    """Pair begin and end events (the end has the micro-batch); also begin and end of each (rank, step)."""
    rows: list[Row] = []
    steps: dict[tuple[int, int], list[int]] = {}
    open_events: dict[tuple[int | str, int | str, str], list[MegatronEvent]] = {}
    unpaired = 0
    for event in sorted(events, key=lambda item: item.ts):
        at_ns = round(event.ts * 1000)
        key = (event.pid, event.tid, event.name)
        begin = event
        if event.ph == "B":
            open_events.setdefault(key, []).append(event)
            continue
        if event.ph == "E":
            if not open_events.get(key):
                unpaired += 1
                continue
            begin = open_events[key].pop()
        elif event.ph == "i" and event.args.iteration is not None:
            if event.name in ("iteration begin", "iteration end"):
                steps.setdefault((_rank(event.pid), event.args.iteration), []).append(at_ns)
            continue
        elif event.ph != "X":
            continue
        arguments, begin_arguments = event.args, begin.args
        rank = arguments.pp_rank if arguments.pp_rank is not None else _rank(event.pid)
        end_ns = at_ns if event.ph == "E" else at_ns + round((event.dur or 0) * 1000)
        iteration = arguments.iteration if arguments.iteration is not None else begin_arguments.iteration
        start_ns = round(begin.ts * 1000)
        rows.append(
            (
                rank,
                event.name,
                start_ns,
                end_ns,
                iteration,
                arguments.microbatch,
                arguments.model_chunk,
                arguments.pp_rank,
            )
        )
    return rows, steps, unpaired + sum(map(len, open_events.values()))


def _step_spans(steps: dict[tuple[int, int], list[int]]) -> pl.DataFrame:
    rows = [(rank, step, min(times), max(times)) for (rank, step), times in sorted(steps.items()) if len(times) > 1]
    table = pl.DataFrame(rows, schema=["rank", "step", "start_ns", "end_ns"], orient="row")
    columns: dict[str, object] = {name: table[name] for name in table.columns}
    columns |= {"lane": "step", "is_device": False, "span_class": SpanClass.STEP.value, "name": "iteration"}
    return make_spans(columns, table.height)
