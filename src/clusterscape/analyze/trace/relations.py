"""What every span is to the others: its counterpart on other ranks, its wait, its time on the critical path, its slack, whether
it stands out. Made once when a trace is taken in and kept beside the spans; drawing and asking only look it up.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.counterparts import add_counterparts
from clusterscape.analyze.trace.intervals import cover_until, join_times
from clusterscape.analyze.trace.report import TraceReport
from clusterscape.model.spans import SpanClass

OUTLIER_RATIO = 3.0
MIN_ALIKE = 4
"""Fewer of the same operator say nothing about what is usual: then all spans of the name are asked."""

RELATION_SCHEMA: dict[str, pl.DataType] = {
    "drawn_ns": pl.Int64(),  # where the span begins in a picture: a collective when the rank's input was there
    "wait_ns": pl.Int64(),  # communication: how long for others
    "critical_ns": pl.Int64(),  # how much of it lies on its step's critical path
    "slack_ns": pl.Int64(),  # how much later it could end without another rank waiting
    "instance": pl.Int64(),  # the same operator instance has the same number on all ranks
    "matched": pl.UInt32(),  # the same collective has the same number on all ranks
    "partner": pl.UInt32(),  # the receive of a send, the send of a receive: row of the span table
    "is_outlier": pl.Boolean(),  # at least 3 times as long as is usual for its operator
    "depth": pl.UInt8(),  # spans around it on its lane
    "is_outer": pl.Boolean(),  # no span of its own class is around it; annotations of phases are a class of their own
}

Ints = NDArray[np.int64]


def relate_spans(report: TraceReport) -> pl.DataFrame:
    """The aligned spans with the columns of ``RELATION_SCHEMA``, in the same order."""
    spans = add_counterparts(report.trace.spans, report.parts, report.matches)
    spans = _add_outliers(_add_instances(spans))
    spans = spans.with_columns(
        pl.Series("critical_ns", _critical(spans, report)), pl.Series("slack_ns", _slack(spans, report))
    )
    return _add_nesting(spans).select(
        *report.trace.spans.columns, *(pl.col(name).cast(kind) for name, kind in RELATION_SCHEMA.items())
    )


def _add_instances(spans: pl.DataFrame) -> pl.DataFrame:
    """``instance`` from (step, micro-batch, phase, class, namespace, name, how often before), the same on every rank; and
    ``operator``, which leaves out the step, the micro-batch and the numbers in the namespace.
    """
    place = ["step", "micro_batch", "phase", "span_class", "namespace", "name"]
    ordered = spans.select("span", "rank", "start_ns", *place).sort("start_ns", "span")
    ordered = ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).over("rank", *place).alias("occurrence"))
    alike = pl.col("namespace").cast(pl.String).str.replace_all(r"\d+", "#").cast(pl.Categorical)
    numbered = ordered.select(
        "span",
        pl.struct(*place, "occurrence").hash(seed=0).reinterpret(signed=True).alias("instance"),
        pl.struct("phase", "span_class", "name", alike, "occurrence").hash(seed=0).alias("operator"),
    )
    return spans.join(numbered, on="span", how="left", maintain_order="left")


def _add_outliers(spans: pl.DataFrame) -> pl.DataFrame:
    """Communication differs from one instance to the next by what it carries: there the name alone counts."""
    length = pl.col("end_ns") - pl.col("drawn_ns")
    many = pl.len().over("operator") >= MIN_ALIKE
    is_talk = pl.col("span_class") == SpanClass.COMMUNICATION.value
    by_name = length.median().over("span_class", "name")
    usual = pl.when(many & ~is_talk).then(length.median().over("operator")).otherwise(by_name)
    enough = many | (pl.len().over("span_class", "name") >= MIN_ALIKE)
    return spans.with_columns((enough & (length > 0) & (length >= OUTLIER_RATIO * usual)).alias("is_outlier"))


def _critical(spans: pl.DataFrame, report: TraceReport) -> Ints:
    """Overlap of each span with the parts of the critical paths that were its rank's and of its kind."""
    found = np.zeros(spans.height, np.int64)
    kinds = {
        ("compute",): (SpanClass.COMPUTE, SpanClass.MEMORY),
        ("transfer", "communication"): (SpanClass.COMMUNICATION,),
        ("compute", "host"): (SpanClass.HOST, SpanClass.LAUNCH, SpanClass.ANNOTATION),
    }
    segments = [each for path in report.critical_paths for each in path.segments]
    classes = spans["span_class"].cast(pl.String)
    start, end, rank = (spans[name].to_numpy() for name in ("drawn_ns", "end_ns", "rank"))
    for wanted, of in kinds.items():
        is_kind = classes.is_in([each.value for each in of]).to_numpy()
        for each in np.unique(rank):
            mine = [segment for segment in segments if segment.rank == each and segment.kind in wanted]
            times = join_times([one.start_ns for one in mine], [one.end_ns for one in mine])
            at = np.flatnonzero(is_kind & (rank == each))
            found[at] = cover_until(times, end[at]) - cover_until(times, start[at])
    return found


def _slack(spans: pl.DataFrame, report: TraceReport) -> pl.Series:
    """The wait of the rank's next matched communication in the step; after the last, how much earlier than the last rank its
    step ends. Null where neither is known.
    """
    steps = report.steps.with_columns((pl.col("end_ns").max().over("step") - pl.col("end_ns")).alias("rest_ns"))
    rest = spans.select("rank", "step").join(
        steps.select("rank", "step", "rest_ns"), on=["rank", "step"], how="left", maintain_order="left"
    )["rest_ns"]
    found = rest.to_numpy().astype(np.float64)
    end, rank = spans["end_ns"].to_numpy(), spans["rank"].to_numpy()
    step = spans["step"].fill_null(-1).to_numpy()
    talk = spans.drop_nulls("wait_ns").sort("drawn_ns")
    for each in np.unique(rank):
        mine = talk.filter(pl.col("rank") == each)
        if not mine.height:
            continue
        arrive, wait = mine["drawn_ns"].to_numpy(), mine["wait_ns"].to_numpy()
        at_step = mine["step"].fill_null(-1).to_numpy()
        at = np.flatnonzero(rank == each)
        place = np.minimum(np.searchsorted(arrive, end[at]), arrive.size - 1)
        is_next = (arrive[place] >= end[at]) & (at_step[place] == step[at])
        found[at[is_next]] = wait[place[is_next]]
    own = spans["wait_ns"].to_numpy().astype(np.float64)
    found = np.where(np.isnan(own), found, own)
    return pl.Series(found, nan_to_null=True).cast(pl.Int64)


def _add_nesting(spans: pl.DataFrame) -> pl.DataFrame:
    from clusterscape.analyze.trace.marey_kernels import find_nesting

    order = spans.select(
        pl.arg_sort_by(
            "rank", pl.col("lane").to_physical(), "start_ns", "end_ns", descending=[False, False, False, True]
        )
    ).to_series()
    # An annotation of a whole step is around those of its phases, but is not of their kind.
    is_phase = (pl.col("span_class") == SpanClass.ANNOTATION.value) & pl.col("phase").is_not_null()
    kind = pl.when(is_phase).then(len(SpanClass)).otherwise(pl.col("span_class").to_physical().cast(pl.Int32))
    taken = spans.select("rank", pl.col("lane").to_physical().alias("lane"), kind.alias("kind"), "start_ns", "end_ns")[
        order
    ]
    lane = taken["rank"].cast(pl.Int64) * (1 << 32) + taken["lane"].cast(pl.Int64)
    depth, outer = find_nesting(
        lane.to_numpy(),
        taken["kind"].cast(pl.Int64).to_numpy(),
        taken["start_ns"].to_numpy(),
        taken["end_ns"].to_numpy(),
    )
    at = order.to_numpy()
    depths, outers = np.zeros(at.size, np.uint8), np.zeros(at.size, np.bool_)
    depths[at], outers[at] = depth, outer
    # On a device nothing encloses anything: what overlaps runs side by side.
    is_kernel = pl.col("is_device") & (pl.col("span_class") != SpanClass.ANNOTATION.value)
    return spans.with_columns(pl.Series("depth", depths), (pl.Series("is_outer", outers) | is_kernel).alias("is_outer"))
