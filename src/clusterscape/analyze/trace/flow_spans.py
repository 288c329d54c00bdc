"""An operator graph from a trace's spans: what one rank of every stage did in the typical step, in the order it did it, in the
namespaces its annotations and modules give. What depends on what beyond the order and the messages, spans do not tell.
"""

import re
from collections.abc import Mapping

import polars as pl

from clusterscape.model.operators import OPERATOR_SCHEMA, FlowMark, make_operators
from clusterscape.model.spans import Phase, SpanClass

WORK = (SpanClass.COMPUTE.value, SpanClass.COMMUNICATION.value, SpanClass.MEMORY.value)
MOST_OPERATORS = 20_000
"""Of a stage; a step of more is drawn as far as that."""
MESSAGES = ("send", "recv")
KINDS = {"tp": FlowMark.TENSOR, "dp": FlowMark.DATA, "pp": FlowMark.PIPELINE, "ep": FlowMark.EXPERT}
COMMUNICATION_CALLS = r"^(c10d::|_c10d_functional::|record_param_comms$)"
"""Host operators around a communication that is a span of its own."""
LAID_OUT = ("tp", "cp")
"""Ranks that hold parts of one tensor."""
MOVING = ("all_gather", "all_to_all", "gather", "scatter", "broadcast")
SUMMING = ("all_reduce", "reduce_scatter", "reduce")


def spans_to_operators(
    spans: pl.DataFrame,
    stages: Mapping[int, int | None],
    *,
    step: int | None,
    origin_ns: int,
    group_kinds: Mapping[str, str | None] | None = None,
) -> pl.DataFrame:
    """``spans`` with the columns of ``relations.py``; ``group_kinds``: what ranks of a process group share, where known."""
    shown: dict[int | None, int] = {}
    for rank in sorted(stages):
        shown.setdefault(stages[rank], rank)
    table = spans.with_row_index("span")
    if step is not None:
        table = table.filter(pl.col("step") == step)
    tables = [_of_rank(table, stage, rank) for stage, rank in sorted(shown.items(), key=lambda item: item[0] or 0)]
    tables = [each for each in tables if each.height]
    if not tables:
        return pl.DataFrame(schema=dict(OPERATOR_SCHEMA))
    chosen = pl.concat(tables)
    names = [shorten_kernel(name) for name in chosen["name"].cast(pl.String)]
    start = chosen["start_ns"] - origin_ns
    end = chosen["end_ns"] - origin_ns
    collective = chosen["collective"].cast(pl.String)
    return make_operators(
        {
            "stage": chosen["shown_stage"],
            "name": names,
            "type": [_type(name) for name in names],
            "namespace": chosen["namespace"].cast(pl.String).fill_null("").str.strip_chars("/"),
            "inputs": _inputs(chosen),
            "mark": _marks(chosen, group_kinds or {}),
            "message": pl.select(pl.when(collective.is_in(MESSAGES)).then(collective)).to_series(),
            "message_key": _message_keys(chosen),
            "span": chosen["span"],
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
        },
        chosen.height,
    )


def shorten_kernel(name: str) -> str:
    """``void at::native::elementwise_kernel<8, …>(…)`` → ``elementwise_kernel``."""
    plain = name.replace("(anonymous namespace)::", "")
    # Some recorders cut names: then nothing follows.
    found = re.match(r"(?:void\s+)?((?:[\w.]+::)*)([\w.#/-]+)\s*[<(]", plain) or re.match(
        r"void\s+((?:[\w.]+::)+)([\w.#/-]+)$", plain
    )
    return found[2] if found and (found[1] or plain.startswith("void ")) else plain


def _type(name: str) -> str:
    """Numbers of micro-batches and layers do not make another type."""
    return re.sub(r"\d+", "#", name)


def _of_rank(table: pl.DataFrame, stage: int | None, rank: int) -> pl.DataFrame:
    mine = table.filter(pl.col("rank") == rank)
    work = mine.filter(pl.col("span_class").cast(pl.String).is_in(WORK))
    if not (work["span_class"].cast(pl.String) == SpanClass.COMPUTE.value).any():
        is_host = pl.col("span_class").cast(pl.String) == SpanClass.HOST.value
        is_call = pl.col("name").cast(pl.String).str.contains(COMMUNICATION_CALLS)
        work = mine.filter(
            (is_host & pl.col("is_outer") & ~is_call)
            | (pl.col("span_class").cast(pl.String) == SpanClass.COMMUNICATION.value)
        )
    return work.sort("start_ns", "span").head(MOST_OPERATORS).with_columns(pl.lit(stage, pl.Int32).alias("shown_stage"))


def _inputs(chosen: pl.DataFrame) -> list[list[int]]:
    """Every operator follows the one before on its lane; communication also what ran last when it began."""
    last: dict[tuple[int, str], int] = {}
    ran: dict[int, int] = {}
    found: list[list[int]] = []
    rows = chosen.select(
        "rank", pl.col("lane").cast(pl.String).fill_null(""), pl.col("span_class").cast(pl.String)
    ).iter_rows()
    for row, (rank, lane, kind) in enumerate(rows):
        before = {last[rank, lane]} if (rank, lane) in last else set()
        if rank in ran and (kind == SpanClass.COMMUNICATION.value or not before):
            before.add(ran[rank])
        found.append(sorted(before))
        last[rank, lane] = row
        if kind != SpanClass.COMMUNICATION.value:
            ran[rank] = row
    return found


def _marks(chosen: pl.DataFrame, kinds: Mapping[str, str | None]) -> list[str | None]:
    rows = chosen.select(
        pl.col("collective").cast(pl.String),
        pl.col("process_group").cast(pl.String),
        pl.col("phase").cast(pl.String),
        pl.col("span_class").cast(pl.String),
    ).iter_rows()
    return [
        None
        if collective is None and kind != SpanClass.COMMUNICATION.value
        else mark_communication(collective, kinds.get(group) or group, phase).value
        for collective, group, phase, kind in rows
    ]


def mark_communication(collective: str | None, kind: str | None, phase: str | None) -> FlowMark:
    """What part of the strategy a communication is, by what its ranks share (``kind``: tp, dp, …) and by what it does: what sums
    up over data-parallel ranks in the backward are gradients, what only moves parts between tensor-parallel ranks lays a tensor
    out anew.
    """
    mark = KINDS.get(kind or "")
    if collective in MESSAGES:
        return mark or (FlowMark.COMMUNICATION if kind in LAID_OUT else FlowMark.PIPELINE)
    if kind in LAID_OUT and collective in MOVING:
        return FlowMark.REDISTRIBUTION
    if mark in (None, FlowMark.DATA) and collective in SUMMING and phase == Phase.BACKWARD.value:
        return FlowMark.GRADIENT_AGGREGATION
    if mark is None and collective == "all_to_all":
        return FlowMark.EXPERT
    return mark or FlowMark.COMMUNICATION


def _message_keys(chosen: pl.DataFrame) -> pl.Series:
    """A matched message is named by the row of its send."""
    return chosen.select(
        pl.when(pl.col("partner").is_not_null()).then(
            pl.when(pl.col("collective").cast(pl.String) == "send").then("span").otherwise("partner").cast(pl.String)
        )
    ).to_series()
