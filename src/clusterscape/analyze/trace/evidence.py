"""The spans that show a verdict, as rows of the span table, the clearest first."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl

from clusterscape.analyze.trace.match import Matches
from clusterscape.analyze.trace.measures import TraceMeasures
from clusterscape.model.spans import SpanClass
from clusterscape.model.trace_report import CauseOccurrences, TraceVerdict, VerdictKind

MAX_SPANS = 6
LENGTH = pl.col("end_ns") - pl.col("start_ns")


def attach_spans(verdict: TraceVerdict, measures: TraceMeasures, matches: Matches) -> TraceVerdict:
    """The verdict with the rows of the spans that show it, the clearest first."""
    table = measures.spans.with_row_index("span")
    if verdict.rank is not None:
        table = table.filter(pl.col("rank") == verdict.rank)
    elif verdict.stage is not None:
        table = table.filter(pl.col("stage") == verdict.stage)
    find = _SPAN_FINDERS.get(verdict.kind)
    if find is not None:
        spans = find(verdict, table, measures, matches)
    else:
        spans = _find_covering(table, verdict.occurrences or CauseOccurrences(), measures.origin_ns)
    return replace(verdict, spans=tuple(dict.fromkeys(spans[:MAX_SPANS])))


def _longest(table: pl.DataFrame) -> list[int]:
    return [int(span) for span in table.sort(LENGTH, descending=True)["span"].head(MAX_SPANS)]


def _find_covering(table: pl.DataFrame, occurrences: CauseOccurrences, origin_ns: int) -> list[int]:
    """For each of the longest occurrences the span of its rank that fits it best: most of both overlaps."""
    order = sorted(range(len(occurrences.seconds)), key=lambda at: -occurrences.seconds[at])[:MAX_SPANS]
    spans = []
    for at in order:
        low, high = int(occurrences.start_ns[at]) + origin_ns, int(occurrences.end_ns[at]) + origin_ns
        near = table.filter(
            (pl.col("rank") == occurrences.ranks[at]) & (pl.col("end_ns") > low) & (pl.col("start_ns") < high)
        )
        if not near.height:
            continue
        start, end = near["start_ns"].to_numpy(), near["end_ns"].to_numpy()
        both = np.minimum(end, high) - np.maximum(start, low)
        spans.append(int(near["span"][int(np.argmax(both / (np.maximum(end, high) - np.minimum(start, low))))]))
    return spans


def _find_late(verdict: TraceVerdict, table: pl.DataFrame, measures: TraceMeasures, matches: Matches) -> list[int]:
    """The extra work of the rank, then the collectives for which it arrived latest."""
    extra = verdict.evidence.get("extra_work")
    work: list[int] = []
    if extra is not None:
        inside = pl.col("namespace").cast(pl.String).str.starts_with(str(extra)).fill_null(False)
        is_mark = (pl.col("span_class") == SpanClass.ANNOTATION.value) & (pl.col("name").cast(pl.String) == str(extra))
        marks = table.filter(is_mark & ~pl.col("is_device"))
        work = _longest(marks if marks.height else table.filter(inside))[: MAX_SPANS // 2]
    if not measures.collectives.height:
        return work or _longest(table.filter(pl.col("span_class") == SpanClass.COMPUTE.value))
    last = (
        measures.collectives.filter(pl.col("last_rank") == verdict.rank).sort("gap_ns", descending=True).head(MAX_SPANS)
    )
    members = matches.members.filter(pl.col("rank") == verdict.rank).select("instance", "span")
    arrivals = last.select("instance").join(members, on="instance", maintain_order="left")["span"].to_list()
    return [*work, *(int(span) for span in arrivals)]


def _find_pass_spans(_: TraceVerdict, table: pl.DataFrame, __: TraceMeasures, ___: Matches) -> list[int]:
    """The longest annotated forwards and backwards; else the longest compute spans."""
    in_pass = pl.col("phase").cast(pl.String).is_in(["forward", "backward"]) & pl.col("micro_batch").is_not_null()
    is_message = pl.col("name").cast(pl.String).str.contains("(?i)send|recv")
    in_passes = table.filter(in_pass & ~is_message)
    marks = in_passes.filter((pl.col("span_class") == SpanClass.ANNOTATION.value) & ~pl.col("is_device"))
    return _longest(marks if marks.height else table.filter(pl.col("span_class") == SpanClass.COMPUTE.value))


def _find_transfers(verdict: TraceVerdict, table: pl.DataFrame, measures: TraceMeasures, matches: Matches) -> list[int]:
    """Members of the collectives with the longest transfer: of the verdict's process group, or small ones."""
    chosen = measures.collectives
    group = verdict.evidence.get("process_group")
    if group is not None:
        chosen = chosen.filter(pl.col("process_group") == group)
    if verdict.kind is VerdictKind.SMALL_COLLECTIVES:
        chosen = chosen.filter(pl.col("bytes") < pl.col("bytes").quantile(0.5).fill_null(0) + 1)
    if not chosen.height:
        return _longest(table.filter(pl.col("span_class") == SpanClass.COMMUNICATION.value))
    worst = chosen.sort("transfer_ns", descending=True).head(MAX_SPANS).select("instance")
    members = matches.members.sort("rank").unique("instance", keep="first", maintain_order=True)
    return [
        int(s) for s in worst.join(members.select("instance", "span"), on="instance", maintain_order="left")["span"]
    ]


_SPAN_FINDERS: dict[VerdictKind, Callable[[TraceVerdict, pl.DataFrame, TraceMeasures, Matches], list[int]]] = {
    VerdictKind.SLOW_WORKER: _find_late,
    VerdictKind.STAGE_IMBALANCE: _find_pass_spans,
    VerdictKind.SEQUENCE_LENGTH_VARIANCE: _find_pass_spans,
    VerdictKind.SLOW_LINK: _find_transfers,
    VerdictKind.SMALL_COLLECTIVES: _find_transfers,
    VerdictKind.EXPOSED_COMMUNICATION: _find_transfers,
}
