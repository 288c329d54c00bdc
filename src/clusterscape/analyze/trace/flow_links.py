"""Which spans of a trace are which operators of its execution flow: the operators that run in a time window, the times of chosen
operators, and those of chosen spans.

A flow made of spans shows one rank and step per stage; the same operators of all other ranks and steps are found by their place
(stage, micro-batch, phase, namespace, name, occurrence within the step). A recorded graph numbers its operators differently from
the timeline, so there spans and operators are joined by the module they belong to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.intervals import join_times
from clusterscape.model.arrays import Bools, Int32s, Int64s

SAME = ("micro_batch", "phase", "span_class", "namespace", "name")
"""Columns that, with the occurrence, identify one operator on all ranks of a stage and in all steps."""
NO_MODULE = ("Default", "Gradients")
"""Parts of a namespace that say in which pass an operator runs, not in which module."""


@dataclass(frozen=True, slots=True)
class FlowLinks:
    """Spans and operators with the same key are the same; −1: a span without an operator. ``is_by_module``: the keys are modules,
    because single operators cannot be joined.
    """

    span_keys: Int32s
    operator_keys: Int32s
    is_by_module: bool


def link_operators(spans: pl.DataFrame, operators: pl.DataFrame, stages: Mapping[int, int | None]) -> FlowLinks:
    """Join the spans of all ranks and steps to the operators of the flow.

    Parameters
    ----------
    spans
        With the columns of ``relations.py``; a span's id is its row.
    operators
        With the columns of ``model/spans.py`` (``OPERATOR_SCHEMA``); an operator's id is its row.
    stages
        The pipeline stage of every rank, or None.
    """
    numbered = spans.with_row_index("id").with_columns(
        pl.col("rank").replace_strict(dict(stages), default=None, return_dtype=pl.Int32).alias("at_stage")
    )
    if operators["span"].null_count() == operators.height:
        return _link_modules(numbered, operators)
    drawn = operators.with_row_index("operator").select("operator", "stage", pl.col("span").cast(pl.UInt32).alias("id"))
    drawn = drawn.drop_nulls("id")
    classes = numbered[drawn["id"].to_numpy()]["span_class"].unique().implode()
    table = numbered.lazy().filter(pl.col("span_class").is_in(classes)).sort("start_ns", "id")
    table = table.select(
        "id", "at_stage", *SAME, pl.int_range(pl.len(), dtype=pl.Int32).over("rank", "step", *SAME).alias("occurrence")
    )
    keys = ["at_stage", *SAME, "occurrence"]
    of_graph = table.join(drawn.lazy(), on="id", how="inner").drop("at_stage").rename({"stage": "at_stage"})
    same = table.join(of_graph.select("operator", *keys), on=keys, how="inner", nulls_equal=True).collect()
    span_keys = np.full(spans.height, -1, np.int32)
    span_keys[same["id"].to_numpy()] = same["operator"].to_numpy()
    return FlowLinks(span_keys, np.arange(operators.height, dtype=np.int32), is_by_module=False)


def _link_modules(numbered: pl.DataFrame, operators: pl.DataFrame) -> FlowLinks:
    """Join by stage, module and direction. MindSpore writes ``Gradients`` at either end of a namespace."""
    ours = numbered.select(pl.col("at_stage").alias("stage"), pl.col("namespace").cast(pl.String))
    both = pl.concat([ours, operators.select("stage", "namespace")])
    modules = {path: _module_of(path) for path in both["namespace"].drop_nulls().unique()}
    path = pl.col("namespace").replace_strict(modules, default=None, return_dtype=pl.String)
    named = both.select("stage", path.alias("module")).with_columns(
        pl.when(pl.col("module") != "").then(pl.struct("stage", "module").rank("dense").cast(pl.Int32)).alias("key")
    )
    keys: Int32s = named["key"].fill_null(-1).to_numpy()
    is_shared = np.isin(keys, keys[numbered.height :]) & (keys >= 0)
    keys = np.where(is_shared, keys, -1).astype(np.int32)
    operator_keys = keys[numbered.height :].copy()
    # An operator without a module belongs to no span.
    operator_keys[operator_keys < 0] = -2
    return FlowLinks(keys[: numbered.height], operator_keys, is_by_module=True)


def _module_of(namespace: str) -> str:
    """``Gradients/Default/net/conv1-Conv2d/gradConv2D`` and ``Default/net/Gradients/conv1-Conv2d`` → ``~net/conv1-Conv2d``."""
    parts = namespace.strip("/").split("/")
    path = "/".join(part for part in parts if part not in NO_MODULE and not part.startswith("grad"))
    return f"~{path}" if path and "Gradients" in parts else path


def find_running(links: FlowLinks, spans: pl.DataFrame, start_ns: int, end_ns: int) -> Bools:
    """For every operator whether it runs within [start, end) on any rank."""
    is_inside = (spans["drawn_ns"].to_numpy() < end_ns) & (spans["end_ns"].to_numpy() > start_ns)
    is_running: Bools = np.isin(links.operator_keys, np.unique(links.span_keys[is_inside & (links.span_keys >= 0)]))
    return is_running


def find_operator(links: FlowLinks, span: int) -> int | None:
    """The first operator that a span is, or whose module it belongs to."""
    key = links.span_keys[span]
    rows = np.flatnonzero(links.operator_keys == key) if key >= 0 else np.zeros(0, np.int64)
    return int(rows[0]) if rows.size else None


def find_spans(links: FlowLinks, operators: Sequence[int]) -> Int64s:
    """The spans of operators, on all ranks and in all steps."""
    keys = np.unique(links.operator_keys[list(operators)])
    return np.flatnonzero(np.isin(links.span_keys, keys[keys >= 0]))


_TIMES_SCHEMA: dict[str, pl.DataType] = {
    "rank": pl.Int32(),
    "lane": pl.String(),
    "class": pl.String(),
    "phase": pl.String(),
    "step": pl.Int32(),
    "start_ns": pl.Int64(),
    "end_ns": pl.Int64(),
    "count": pl.UInt32(),
}


def join_spans(chosen: pl.DataFrame, gap_ns: float) -> pl.DataFrame:
    """When spans run, one row per rank, lane, class, phase and step and stretch of time: spans that are at most ``gap_ns`` apart
    are joined. ``count``: how many.
    """
    keys = ["rank", "lane", "span_class", "phase", "step"]
    frames = [pl.DataFrame(schema=_TIMES_SCHEMA)]
    for values, part in chosen.group_by(keys, maintain_order=True):
        starts, ends = part["drawn_ns"].to_numpy(), part["end_ns"].to_numpy()
        # An instant is still visible, and a gap that is not is closed.
        times = join_times(starts, np.maximum(ends, starts + 1) + int(gap_ns))
        place = np.searchsorted(times.starts, starts, side="right") - 1
        row = dict(zip(["rank", "lane", "class", "phase", "step"], values, strict=True))
        joined = pl.DataFrame(
            {
                "start_ns": times.starts,
                "end_ns": times.ends - int(gap_ns),
                "count": np.bincount(place, minlength=times.starts.size),
            }
        )
        frames.append(
            joined.with_columns(**{name: pl.lit(value) for name, value in row.items()}).select(
                pl.col(name).cast(kind) for name, kind in _TIMES_SCHEMA.items()
            )
        )
    return pl.concat(frames).sort("rank", "start_ns", "lane", nulls_last=True)
