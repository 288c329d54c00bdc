"""Megatron-LM and MegaScan timelines: begin and end events of forward and backward passes, one pid per pipeline rank."""

import msgspec
import polars as pl

from clusterscape.collect.traces.files import Content
from clusterscape.errors import SourceError
from clusterscape.model.spans import RankFacts, SpanClass, Trace, make_spans


class Arguments(msgspec.Struct, gc=False):
    """Where in the step."""

    iteration: int | None = None
    microbatch: int | None = None
    model_chunk: int | None = None
    pp_rank: int | None = None


class Event(msgspec.Struct, gc=False):
    """A begin (B), an end (E), a whole span (X) or a moment (i); microseconds."""

    ph: str
    ts: float
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    dur: float | None = None
    args: Arguments = msgspec.field(default_factory=Arguments)


class Document(msgspec.Struct):
    """The events, where the file is an object."""

    events: list[Event] = msgspec.field(default_factory=list, name="traceEvents")


Row = tuple[int, str, int, int, int | None, int | None, int | None, int | None]
PHASES = {"forward": "forward", "backward": "backward"}


def parse_megatron(content: Content, source: str) -> Trace:
    """The trace of one file; ``namespace`` holds the model chunk of an interleaved schedule."""
    try:
        if content.data.lstrip()[:1] == b"[":
            events = msgspec.json.decode(content.data, type=list[Event])
        else:
            events = msgspec.json.decode(content.data, type=Document).events
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{source} is no readable timeline: {error}", hint="Was the file copied whole?") from error
    rows, steps, unpaired = _pair(events)
    if not rows:
        raise SourceError(f"{source} holds no spans")
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
    notes = [f"{unpaired} events have no begin or no end and were left out."] if unpaired else []
    return Trace(format="Megatron", spans=pl.concat([spans, marks]), ranks=facts, notes=tuple(notes))


def _pair(events: list[Event]) -> tuple[list[Row], dict[tuple[int, int], list[int]], int]:
    """Spans of begin/end pairs (the end carries the micro-batch), and begin and end of each (rank, step)."""
    rows: list[Row] = []
    steps: dict[tuple[int, int], list[int]] = {}
    opened: dict[tuple[int | str, int | str, str], list[Event]] = {}
    unpaired = 0
    for event in sorted(events, key=lambda each: each.ts):
        at_ns = round(event.ts * 1000)
        key = (event.pid, event.tid, event.name)
        begun = event
        if event.ph == "B":
            opened.setdefault(key, []).append(event)
            continue
        if event.ph == "E":
            if not opened.get(key):
                unpaired += 1
                continue
            begun = opened[key].pop()
        elif event.ph == "i" and event.args.iteration is not None:
            if event.name in ("iteration begin", "iteration end"):
                steps.setdefault((int(event.pid), event.args.iteration), []).append(at_ns)
            continue
        elif event.ph != "X":
            continue
        own, first = event.args, begun.args
        rank = own.pp_rank if own.pp_rank is not None else int(event.pid)
        end_ns = at_ns if event.ph == "E" else at_ns + round((event.dur or 0) * 1000)
        iteration = own.iteration if own.iteration is not None else first.iteration
        start_ns = round(begun.ts * 1000)
        rows.append((rank, event.name, start_ns, end_ns, iteration, own.microbatch, own.model_chunk, own.pp_rank))
    return rows, steps, unpaired + sum(len(left) for left in opened.values())


def _step_spans(steps: dict[tuple[int, int], list[int]]) -> pl.DataFrame:
    whole = [(rank, step, min(times), max(times)) for (rank, step), times in sorted(steps.items()) if len(times) > 1]
    table = pl.DataFrame(whole, schema=["rank", "step", "start_ns", "end_ns"], orient="row")
    columns: dict[str, object] = {name: table[name] for name in table.columns}
    columns |= {"lane": "step", "is_device": False, "span_class": SpanClass.STEP.value, "name": "iteration"}
    return make_spans(columns, table.height)
