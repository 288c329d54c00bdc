"""The spans a verdict rests on: a few of the worst, so that a reader can look at them."""

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from clusterscape.analyze.trace.match import Matches
from clusterscape.analyze.trace.measures import Measures
from clusterscape.model.spans import Phase, SpanClass
from clusterscape.model.verdicts import TraceVerdict, VerdictKind

MOST = 6
LENGTH = pl.col("end_ns") - pl.col("start_ns")


def link_spans(verdict: TraceVerdict, measures: Measures, matches: Matches) -> TraceVerdict:
    """The verdict with rows of the span table, the most telling first."""
    table = measures.spans.with_row_index("span")
    if verdict.rank is not None:
        table = table.filter(pl.col("rank") == verdict.rank)
    elif verdict.stage is not None:
        table = table.filter(pl.col("stage") == verdict.stage)
    found = _FINDERS[verdict.kind](verdict, table, measures, matches)
    return replace(verdict, spans=tuple(dict.fromkeys(found[:MOST])))


def _longest(table: pl.DataFrame) -> list[int]:
    return [int(span) for span in table.sort(LENGTH, descending=True)["span"].head(MOST)]


def _late(verdict: TraceVerdict, table: pl.DataFrame, measures: Measures, matches: Matches) -> list[int]:
    """What the rank did besides, then the collectives to which it came last by most."""
    extra = verdict.evidence.get("extra_work")
    work: list[int] = []
    if extra is not None:
        inside = pl.col("namespace").cast(pl.String).str.starts_with(str(extra)).fill_null(False)
        is_mark = (pl.col("span_class") == SpanClass.ANNOTATION.value) & (pl.col("name").cast(pl.String) == str(extra))
        marks = table.filter(is_mark & ~pl.col("is_device"))
        work = _longest(marks if marks.height else table.filter(inside))[: MOST // 2]
    if not measures.collectives.height:
        return work or _longest(table.filter(pl.col("span_class") == SpanClass.COMPUTE.value))
    last = measures.collectives.filter(pl.col("last_rank") == verdict.rank).sort("gap_ns", descending=True).head(MOST)
    members = matches.members.filter(pl.col("rank") == verdict.rank).select("instance", "span")
    come = last.select("instance").join(members, on="instance", maintain_order="left")["span"].to_list()
    return [*work, *(int(span) for span in come)]


def _loading(_: TraceVerdict, table: pl.DataFrame, __: Measures, ___: Matches) -> list[int]:
    is_mark = (pl.col("span_class") == SpanClass.ANNOTATION.value) & (pl.col("phase") == Phase.DATA.value)
    return _longest(table.filter(is_mark & ~pl.col("is_device")))


def _passes(_: TraceVerdict, table: pl.DataFrame, __: Measures, ___: Matches) -> list[int]:
    """The longest forwards and backwards, as announced; else the longest compute."""
    in_pass = pl.col("phase").cast(pl.String).is_in(["forward", "backward"]) & pl.col("micro_batch").is_not_null()
    is_message = pl.col("name").cast(pl.String).str.contains("(?i)send|recv")
    known = table.filter(in_pass & ~is_message)
    marks = known.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device"))
    return _longest(marks if marks.height else table.filter(pl.col("span_class") == SpanClass.COMPUTE.value))


def _launches(_: TraceVerdict, table: pl.DataFrame, __: Measures, ___: Matches) -> list[int]:
    return _longest(table.filter(pl.col("span_class") == SpanClass.LAUNCH.value))


def _transfers(verdict: TraceVerdict, table: pl.DataFrame, measures: Measures, matches: Matches) -> list[int]:
    """Members of the collectives that took longest to transfer: of one process group, or small ones, as the verdict says."""
    chosen = measures.collectives
    group = verdict.evidence.get("process_group")
    if group is not None:
        chosen = chosen.filter(pl.col("process_group") == group)
    if verdict.kind is VerdictKind.SMALL_COLLECTIVES:
        chosen = chosen.filter(pl.col("bytes") < pl.col("bytes").quantile(0.5).fill_null(0) + 1)
    if not chosen.height:
        return _longest(table.filter(pl.col("span_class") == SpanClass.COMMUNICATION.value))
    worst = chosen.sort("transfer_ns", descending=True).head(MOST).select("instance")
    members = matches.members.sort("rank").unique("instance", keep="first", maintain_order=True)
    return [
        int(s) for s in worst.join(members.select("instance", "span"), on="instance", maintain_order="left")["span"]
    ]


def _garbage(_: TraceVerdict, table: pl.DataFrame, __: Measures, ___: Matches) -> list[int]:
    name = pl.col("name").cast(pl.String)
    return _longest(table.filter((name == "gc") | name.str.contains("(?i)garbage|gc\\.collect")))


_FINDERS: dict[VerdictKind, Callable[[TraceVerdict, pl.DataFrame, Measures, Matches], list[int]]] = {
    VerdictKind.SLOW_WORKER: _late,
    VerdictKind.INPUT_STALL: _loading,
    VerdictKind.STAGE_IMBALANCE: _passes,
    VerdictKind.SEQUENCE_LENGTH_VARIANCE: _passes,
    VerdictKind.LAUNCH_BOUND: _launches,
    VerdictKind.SLOW_LINK: _transfers,
    VerdictKind.SMALL_COLLECTIVES: _transfers,
    VerdictKind.EXPOSED_COMMUNICATION: _transfers,
    VerdictKind.GARBAGE_COLLECTION: _garbage,
}
