"""Fills in what timelines without markers do not say: which spans belong to the step, and to which micro-batch of a pipeline."""

from dataclasses import replace

import numpy as np
import polars as pl

from clusterscape.analyze.trace.intervals import find_activity, join_times
from clusterscape.model.spans import SpanClass, Trace

FORWARD, BACKWARD = "forward", "backward"


def trim_steps(trace: Trace) -> Trace:
    """Without step markers, spans far from the activity of their step belong to another one.

    A timeline with one entry for each operator keeps the entry of an earlier step if a later one was not recorded.
    """
    spans = trace.spans
    if not spans["step"].drop_nulls().len() or (spans["span_class"] == SpanClass.STEP.value).any():
        return trace
    is_stray = np.zeros(spans.height, np.bool_)
    earliest_ns = 0
    for _, mine in spans.with_row_index("span").drop_nulls("step").group_by("rank", "step"):
        start, end = mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()
        active = find_activity(join_times(start, np.maximum(end, start + 1)), int(start.min()), int(end.max()))
        outside = (start < active.start_ns) | (end > active.end_ns)
        is_stray[mine["span"].to_numpy()[outside]] = True
        earliest_ns = max(earliest_ns, active.start_ns - int(start.min()), int(end.max()) - active.end_ns)
    count = int(is_stray.sum())
    if not count:
        return trace
    note = f"{count} spans lie up to {earliest_ns / 1e6:,.0f} ms from the rest of their step: they are counted as another step's."
    step = pl.when(pl.Series(is_stray)).then(None).otherwise(pl.col("step")).alias("step")
    return replace(trace, spans=spans.with_columns(step), notes=(*trace.notes, note))


def number_only_step(trace: Trace) -> Trace:
    """Without any step, all spans are of step 0."""
    if not trace.spans.height or trace.spans["step"].drop_nulls().len():
        return trace
    return replace(trace, spans=trace.spans.with_columns(pl.lit(0).cast(trace.spans.schema["step"]).alias("step")))


def number_micro_batches(trace: Trace) -> Trace:
    """The micro-batch of the compute spans of a pipeline that records none, counted by the messages between stages.

    A stage has a micro-batch from its receive on; the first (of a backward pass: the last) stage, until its send. Only if all
    ranks have equally many messages in both directions.
    """
    spans = trace.spans
    messages = spans.filter(pl.col("collective").cast(pl.String).is_in(["send", "recv"]) & pl.col("step").is_not_null())
    if not messages.height or spans["micro_batch"].drop_nulls().len() or spans["stage"].n_unique() < 2:
        return trace
    counts = messages.group_by("rank", "step", "phase", "collective").len()
    if counts["len"].n_unique() != 1 or counts["phase"].null_count():
        return trace
    most = int(counts["len"][0])
    # What follows the last message of a rank, if it is a send, updates the model.
    last = messages.sort("start_ns").unique(["rank", "step"], keep="last").filter(pl.col("collective") == "send")
    last_sends = {(rank, step): start for rank, step, start in last.select("rank", "step", "start_ns").iter_rows()}
    numbers = np.full(spans.height, -1, np.int32)
    numbered = spans.with_row_index("span").drop_nulls("step")
    is_compute = (pl.col("span_class") == SpanClass.COMPUTE.value) & pl.col("phase").is_in([FORWARD, BACKWARD])
    for (rank, step, phase), mine in numbered.filter(is_compute).group_by("rank", "step", "phase"):
        own = messages.filter((pl.col("rank") == rank) & (pl.col("step") == step) & (pl.col("phase") == phase))
        received = own.filter(pl.col("collective") == "recv")["start_ns"].sort().to_numpy()
        sent = own.filter(pl.col("collective") == "send")["start_ns"].sort().to_numpy()
        start = mine["start_ns"].to_numpy()
        at = (
            np.searchsorted(received, start, side="right") - 1
            if received.size
            else np.searchsorted(sent, start, side="left")
        )
        is_over = start > last_sends.get((rank, step), np.inf)
        numbers[mine["span"].to_numpy()] = np.where((at >= 0) & (at < most) & ~is_over, at, -1)
    column = pl.Series("micro_batch", numbers).cast(spans["micro_batch"].dtype)
    return replace(trace, spans=spans.with_columns(pl.when(column >= 0).then(column).alias("micro_batch")))
