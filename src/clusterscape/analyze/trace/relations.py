"""How each span relates to others: its counterpart on other ranks, its wait, its time on the critical path, its slack, and
whether it is an outlier. Computed once when a trace is imported and stored with the spans; graphs and queries only look it up.
"""

import numpy as np
import polars as pl

from clusterscape.analyze.trace.intervals import cover_until, join_times
from clusterscape.analyze.trace.match import add_counterparts
from clusterscape.analyze.trace.report import TraceReport
from clusterscape.model.arrays import Int64s
from clusterscape.model.spans import SpanClass

OUTLIER_RATIO = 3.0
MIN_INSTANCES = 4
"""With fewer instances of the same operator, the usual length is the median of all spans with the same name."""

RELATION_SCHEMA: dict[str, pl.DataType] = {
    "drawn_ns": pl.Int64(),  # where the drawn span starts: for a collective, when the rank's input is ready
    "wait_ns": pl.Int64(),  # communication: how long it waits for other ranks
    "critical_ns": pl.Int64(),  # how much of it is on its step's critical path
    "slack_ns": pl.Int64(),  # how much later it could end without another rank waiting
    "instance": pl.Int64(),  # the same operator instance has the same number on all ranks
    "matched": pl.UInt32(),  # the same collective has the same number on all ranks
    "partner": pl.UInt32(),  # the receive of a send, the send of a receive: row of the span table
    "is_outlier": pl.Boolean(),  # at least 3 times as long as usual for its operator
    "depth": pl.UInt8(),  # number of enclosing spans on its lane
    "is_outer": pl.Boolean(),  # no enclosing span of the same class; phase annotations count as a class of their own
}


def relate_spans(report: TraceReport) -> pl.DataFrame:
    """The aligned spans with the columns of ``RELATION_SCHEMA``, in the same order."""
    spans = add_counterparts(report.trace.spans, report.parts, report.matches)
    spans = _add_outliers(_add_instances(spans))
    spans = spans.with_columns(
        pl.Series("critical_ns", _compute_critical(spans, report)), pl.Series("slack_ns", _compute_slack(spans, report))
    )
    return _add_nesting(spans).select(
        *report.trace.spans.columns, *(pl.col(name).cast(kind) for name, kind in RELATION_SCHEMA.items())
    )


def _add_instances(spans: pl.DataFrame) -> pl.DataFrame:
    """Add ``instance``, a hash of (step, micro-batch, phase, class, namespace, name, occurrence) that is equal on all ranks; and
    ``operator``, the same without the step, the micro-batch and the numbers in the namespace.
    """
    keys = ["step", "micro_batch", "phase", "span_class", "namespace", "name"]
    ordered = spans.select("span", "rank", "start_ns", *keys).sort("start_ns", "span")
    ordered = ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).over("rank", *keys).alias("occurrence"))
    without_numbers = pl.col("namespace").cast(pl.String).str.replace_all(r"\d+", "#").cast(pl.Categorical)
    numbered = ordered.select(
        "span",
        pl.struct(*keys, "occurrence").hash(seed=0).reinterpret(signed=True).alias("instance"),
        pl.struct("phase", "span_class", "name", without_numbers, "occurrence").hash(seed=0).alias("operator"),
    )
    return spans.join(numbered, on="span", how="left", maintain_order="left")


def _add_outliers(spans: pl.DataFrame) -> pl.DataFrame:
    """Compare each span with the median of its operator; communication with all of its name, because sizes differ by instance."""
    length = pl.col("end_ns") - pl.col("drawn_ns")
    has_instances = pl.len().over("operator") >= MIN_INSTANCES
    is_communication = pl.col("span_class") == SpanClass.COMMUNICATION.value
    by_name = length.median().over("span_class", "name")
    usual = pl.when(has_instances & ~is_communication).then(length.median().over("operator")).otherwise(by_name)
    enough = has_instances | (pl.len().over("span_class", "name") >= MIN_INSTANCES)
    return spans.with_columns((enough & (length > 0) & (length >= OUTLIER_RATIO * usual)).alias("is_outlier"))


def _compute_critical(spans: pl.DataFrame, report: TraceReport) -> Int64s:
    """Overlap of each span with the segments of the critical paths on its rank and of its kind."""
    critical_ns = np.zeros(spans.height, np.int64)
    kinds = {
        ("compute",): (SpanClass.COMPUTE, SpanClass.MEMORY),
        ("transfer", "communication"): (SpanClass.COMMUNICATION,),
        ("compute", "host"): (SpanClass.HOST, SpanClass.LAUNCH, SpanClass.ANNOTATION),
    }
    segments = [segment for path in report.critical_paths for segment in path.segments]
    classes = spans["span_class"].cast(pl.String)
    start, end, rank = (spans[name].to_numpy() for name in ("drawn_ns", "end_ns", "rank"))
    for segment_kinds, span_classes in kinds.items():
        is_kind = classes.is_in([span_class.value for span_class in span_classes]).to_numpy()
        for number in np.unique(rank):
            mine = [segment for segment in segments if segment.rank == number and segment.kind in segment_kinds]
            times = join_times([segment.start_ns for segment in mine], [segment.end_ns for segment in mine])
            at = np.flatnonzero(is_kind & (rank == number))
            critical_ns[at] = cover_until(times, end[at]) - cover_until(times, start[at])
    return critical_ns


def _compute_slack(spans: pl.DataFrame, report: TraceReport) -> pl.Series:
    """The wait of the rank's next matched communication in the step; after the last one, how much earlier its step ends than that
    of the last rank. Null if neither is known.
    """
    steps = report.steps.with_columns((pl.col("end_ns").max().over("step") - pl.col("end_ns")).alias("rest_ns"))
    steps = steps.unique(["rank", "step"], keep="last", maintain_order=True)  # a profiler may mark a number twice
    rest = spans.select("rank", "step").join(
        steps.select("rank", "step", "rest_ns"), on=["rank", "step"], how="left", maintain_order="left"
    )["rest_ns"]
    slack_ns = rest.to_numpy().astype(np.float64)
    end, rank = spans["end_ns"].to_numpy(), spans["rank"].to_numpy()
    step = spans["step"].fill_null(-1).to_numpy()
    communication = spans.drop_nulls("wait_ns").sort("drawn_ns")
    for number in np.unique(rank):
        mine = communication.filter(pl.col("rank") == number)
        if not mine.height:
            continue
        arrive, wait = mine["drawn_ns"].to_numpy(), mine["wait_ns"].to_numpy()
        at_step = mine["step"].fill_null(-1).to_numpy()
        at = np.flatnonzero(rank == number)
        place = np.minimum(np.searchsorted(arrive, end[at]), arrive.size - 1)
        is_next = (arrive[place] >= end[at]) & (at_step[place] == step[at])
        slack_ns[at[is_next]] = wait[place[is_next]]
    own_wait_ns = spans["wait_ns"].to_numpy().astype(np.float64)
    slack_ns = np.where(np.isnan(own_wait_ns), slack_ns, own_wait_ns)
    return pl.Series(slack_ns, nan_to_null=True).cast(pl.Int64)


def _add_nesting(spans: pl.DataFrame) -> pl.DataFrame:
    from clusterscape.analyze.trace.marey_kernels import find_nesting

    order = spans.select(
        pl.arg_sort_by(
            "rank", pl.col("lane").to_physical(), "start_ns", "end_ns", descending=[False, False, False, True]
        )
    ).to_series()
    # The annotation of a whole step encloses those of its phases, but is of another kind.
    is_phase = (pl.col("span_class") == SpanClass.ANNOTATION.value) & pl.col("phase").is_not_null()
    kind = pl.when(is_phase).then(len(SpanClass)).otherwise(pl.col("span_class").to_physical().cast(pl.Int32))
    ordered = spans.select(
        "rank", pl.col("lane").to_physical().alias("lane"), kind.alias("kind"), "start_ns", "end_ns"
    )[order]
    lane = ordered["rank"].cast(pl.Int64) * (1 << 32) + ordered["lane"].cast(pl.Int64)
    depth, outer = find_nesting(
        lane.to_numpy(),
        ordered["kind"].cast(pl.Int64).to_numpy(),
        ordered["start_ns"].to_numpy(),
        ordered["end_ns"].to_numpy(),
    )
    at = order.to_numpy()
    depths, outers = np.zeros(at.size, np.uint8), np.zeros(at.size, np.bool_)
    depths[at], outers[at] = depth, outer
    # Device spans are never nested: overlapping kernels run in parallel.
    is_kernel = pl.col("is_device") & (pl.col("span_class") != SpanClass.ANNOTATION.value)
    return spans.with_columns(pl.Series("depth", depths), (pl.Series("is_outer", outers) | is_kernel).alias("is_outer"))
