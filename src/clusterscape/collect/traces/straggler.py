"""Parses StragglerAnalysis traces: one Parquet table of a job's operators, pipeline and data parallel, times in seconds."""

import io

import polars as pl

from clusterscape.collect.traces.files import Content
from clusterscape.errors import SourceError, TooLargeError
from clusterscape.model.spans import RankFacts, SpanClass, Trace, make_spans
from clusterscape.settings.limits import UploadLimits

COLUMNS = ("dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mb_id")
PIPELINE = {"forward-send": 1, "backward-recv": 1, "forward-recv": -1, "backward-send": -1}
"""Operator → stage of the peer, relative to the own stage."""
COLLECTIVES = {
    "forward-send": "send",
    "backward-send": "send",
    "forward-recv": "recv",
    "backward-recv": "recv",
    "params-all-gather": "all_gather",
    "grads-reduce-scatter": "reduce_scatter",
    "separate-grads-all-reduce": "all_reduce",
    "layernorm-grads-all-reduce": "all_reduce",
    "embedding-grads-all-reduce": "all_reduce",
    "optimizer-clip-main-grad": "all_reduce",
}
_PLACE = ("dp_rank", "stage", "rank", "step")
MAX_STEP_S = 30 * 86_400.0
"""A longer step is not real."""
DATA_PARALLEL = ("params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce")


def parse_straggler(content: Content, source: str, limits: UploadLimits | None = None) -> Trace:
    """Parse one table. Its times start at 0 in every step, so the steps are concatenated."""
    try:
        rows = pl.scan_parquet(io.BytesIO(content.data)).select(pl.len()).collect().item()
        if limits is not None and rows > limits.trace_file_spans:
            message = f"{source} has {rows:,} rows, more than {limits.trace_file_spans:,}"
            raise TooLargeError(message, setting="limits.uploads.trace_file_spans")
        table = pl.read_parquet(io.BytesIO(content.data)).select(pl.col(name) for name in COLUMNS)
    except pl.exceptions.ColumnNotFoundError:
        names = pl.read_parquet_schema(io.BytesIO(content.data))
        missing = ", ".join(name for name in COLUMNS if name not in names)
        raise SourceError(f"{source} has no column {missing}", hint="It is not a StragglerAnalysis trace.") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"cannot read the Parquet file {source}: {reason}", hint="Is the copy complete?") from error
    table, notes = _keep_possible(table, source)
    table = table.with_columns(
        pl.col("optype").cast(pl.String),
        (pl.col("start_ts").cast(pl.Float64) * 1e9).round().cast(pl.Int64).alias("start_ns"),
        (pl.col("duration").cast(pl.Float64) * 1e9).round().cast(pl.Int64).alias("length_ns"),
    )
    longest = table.group_by("step").agg((pl.col("start_ns") + pl.col("length_ns")).max().alias("step_ns")).sort("step")
    offsets = longest.select("step", (pl.col("step_ns").cum_sum() - pl.col("step_ns")).alias("offset_ns"))
    table = table.join(offsets, on="step", maintain_order="left")
    start = (table["start_ns"] + table["offset_ns"]).alias("start_ns")
    spans = make_spans(
        {
            "rank": table["rank"],
            "lane": table["optype"].str.replace("-compute", "").replace({"forward": "compute", "backward": "compute"}),
            "is_device": True,
            "span_class": _classes(table),
            "name": table["optype"],
            "start_ns": start,
            "end_ns": start + table["length_ns"],
            "step": table["step"],
            "micro_batch": _null_if_negative(table, "mb_id"),
            "phase": _phases(table),
            "stage": table["stage"],
            "process_group": _groups(table),
            "collective": table["optype"].replace_strict(COLLECTIVES, default=None),
            "sequence": table["seq_id"],
            "peer": _peers(table),
        },
        table.height,
    )
    rank_table = table.select("rank", "stage", "dp_rank").unique().sort("rank")
    facts = tuple(
        RankFacts(rank=rank, source=source, stage=stage, data_parallel_rank=dp, world_size=rank_table.height)
        for rank, stage, dp in rank_table.iter_rows()
    )
    notes = ("Times start at 0 in every step: the steps are shown one after another.", *notes)
    return Trace(format="StragglerAnalysis", spans=spans, ranks=facts, notes=notes, is_aligned=True)


def _keep_possible(table: pl.DataFrame, source: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows whose place and times are numbers that a trace can have, and a note on the others."""
    try:
        table = table.with_columns(
            *(pl.col(name).cast(pl.Int32, strict=False) for name in (*_PLACE, "mb_id")),
            pl.col("seq_id").cast(pl.Int64, strict=False),
            *(pl.col(name).cast(pl.Float64, strict=False) for name in ("start_ts", "duration")),
            pl.col("optype").cast(pl.String),
        )
    except pl.exceptions.PolarsError as error:  # such as a column of lists
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{source} has a column of another type: {reason}") from None
    is_possible = pl.all_horizontal(
        *(pl.col(name).is_not_null() & (pl.col(name) >= 0) for name in _PLACE),
        *(pl.col(name).is_between(0, MAX_STEP_S) for name in ("start_ts", "duration")),
        pl.col("optype").is_not_null(),
    ).fill_null(False)
    kept = table.filter(is_possible)
    dropped = table.height - kept.height
    if not kept.height:
        raise SourceError(f"{source} has no spans", hint=f"None of its {dropped:,} rows has a rank, a step and times.")
    return kept, (f"{dropped:,} rows without a rank, a step or possible times were skipped.",) if dropped else ()


def _classes(table: pl.DataFrame) -> pl.Series:
    kind = (
        pl.when(pl.col("optype").is_in(list(COLLECTIVES)))
        .then(pl.lit(SpanClass.COMMUNICATION.value))
        .when(pl.col("optype") == "gc")
        .then(pl.lit(SpanClass.HOST.value))
        .otherwise(pl.lit(SpanClass.COMPUTE.value))
    )
    return table.select(kind.alias("span_class")).to_series()


def _phases(table: pl.DataFrame) -> pl.Series:
    kind = (
        pl.when(pl.col("optype").str.starts_with("forward"))
        .then(pl.lit("forward"))
        .when(pl.col("optype").str.starts_with("backward"))
        .then(pl.lit("backward"))
        .when(pl.col("optype").str.starts_with("optimizer"))
        .then(pl.lit("optimizer"))
    )
    return table.select(kind.alias("phase")).to_series()


def _null_if_negative(table: pl.DataFrame, name: str) -> pl.Series:
    return table.select(pl.when(pl.col(name) >= 0).then(pl.col(name)).alias(name)).to_series()


def _groups(table: pl.DataFrame) -> pl.Series:
    stage, dp = pl.col("stage").cast(pl.String), pl.col("dp_rank").cast(pl.String)
    kind = (
        pl.when(pl.col("optype").is_in(list(PIPELINE)))
        .then(pl.format("pp {}", dp))
        .when(pl.col("optype").is_in(DATA_PARALLEL))
        .then(pl.format("dp {}", stage))
        .when(pl.col("optype") == "embedding-grads-all-reduce")
        .then(pl.format("embedding {}", dp))
        .when(pl.col("optype") == "optimizer-clip-main-grad")
        .then(pl.lit("world"))
        .when(pl.col("optype") == "layernorm-grads-all-reduce")
        .then(pl.format("tp {}-{}", stage, dp))
    )
    return table.select(kind.alias("process_group")).to_series()


def _peers(table: pl.DataFrame) -> pl.Series:
    # One rank for each place: a damaged table may name several.
    ranks = table.select("dp_rank", "stage", pl.col("rank").alias("peer")).unique(["dp_rank", "stage"], keep="first")
    moved = table.select("dp_rank", pl.col("optype").replace_strict(PIPELINE, default=None).alias("delta"), "stage")
    peer_stages = moved.with_columns((pl.col("stage").cast(pl.Int64) + pl.col("delta")).alias("peer_stage"))
    keyed = ranks.with_columns(pl.col("stage").cast(pl.Int64).alias("peer_stage")).drop("stage")
    return peer_stages.join(keyed, on=["dp_rank", "peer_stage"], how="left", maintain_order="left")["peer"]
