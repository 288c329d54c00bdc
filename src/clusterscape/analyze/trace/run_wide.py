"""Causes that all ranks share: launch-bound devices, exposed and small collectives, slow links, garbage collection, input."""

import numpy as np
import polars as pl

from clusterscape.analyze.trace.breakdown import compute_times
from clusterscape.analyze.trace.intervals import Times, clip_times, join_times, subtract_times
from clusterscape.analyze.trace.measures import TraceMeasures, is_significant, measure_sequences
from clusterscape.model.spans import Phase, SpanClass
from clusterscape.model.trace_report import TraceVerdict, VerdictKind

LAUNCH_IDLE_SHARE = 0.25
SHORT_KERNEL_US = 50.0
EXPOSED_SHARE = 0.1
SMALL_BYTES = 256 << 10
SMALL_COUNT = 20  # a step
SMALL_SHARE = 0.05
INPUT_SHARE = 0.1
SLOW_LINK_RATIO = 2.0
SLOW_LINK_SHARE = 0.05
MIN_PEER_GROUPS = 3


def find_run_wide(measures: TraceMeasures) -> list[TraceVerdict]:
    """Verdicts about all causes that cost more than their threshold."""
    if not measures.step_s:
        return []
    finders = (
        _find_sequence_variance,
        _find_launch_bound,
        _find_exposed,
        _find_small_collectives,
        _find_slow_link,
        _find_garbage_collection,
        _find_input_stall,
    )
    return [verdict for find in finders if (verdict := find(measures)) is not None]


def _find_sequence_variance(measures: TraceMeasures) -> TraceVerdict | None:
    variance = measure_sequences(measures.passes)
    if variance is None or not is_significant(variance) or variance.gain_s < measures.min_gain_s:
        return None
    return TraceVerdict(
        kind=VerdictKind.SEQUENCE_LENGTH_VARIANCE,
        seconds_per_step=variance.gain_s,
        sentence=(
            f"Micro-batches differ in length in the same way on all stages (correlation {variance.correlation:.2f}, "
            f"the longest {variance.longest:.1f} times the mean): "
            f"sequences of equal length would save {variance.gain_s * 1e3:,.1f} ms per step."
        ),
        evidence={
            "correlation": variance.correlation,
            "variation_ratio": variance.variation,
            "longest_ratio": variance.longest,
        },
    )


def _find_launch_bound(measures: TraceMeasures) -> TraceVerdict | None:
    kernels = measures.spans.filter(
        (pl.col("span_class") == SpanClass.COMPUTE.value) & pl.col("is_device") & pl.col("correlation").is_not_null()
    )
    if not kernels.height:
        return None
    kernel_us = float(np.median((kernels["end_ns"] - kernels["start_ns"]).to_numpy())) / 1e3
    shares = []
    for (rank,), windows in measures.steps.group_by("rank"):
        idle_ns = sum(
            subtract_times(
                _host_busy(measures, int(str(rank)), low, high), _non_launch_busy(measures, int(str(rank)), low, high)
            ).length_ns
            for low, high in windows.select("start_ns", "end_ns").iter_rows()
        )
        shares.append(idle_ns / 1e9 / windows.height)
    idle_s = float(np.mean(shares))
    if kernel_us > SHORT_KERNEL_US or idle_s < LAUNCH_IDLE_SHARE * measures.step_s:
        return None
    return TraceVerdict(
        kind=VerdictKind.LAUNCH_BOUND,
        seconds_per_step=idle_s,
        sentence=(
            f"Devices are idle for {idle_s / measures.step_s:.0%} of the step while the host prepares launches; "
            f"half of the kernels take less than {kernel_us:,.0f} µs. Larger or fused kernels, or CUDA graphs, would help."
        ),
        evidence={"idle_while_host_works_s": idle_s, "median_kernel_us": kernel_us},
    )


def _host_busy(measures: TraceMeasures, rank: int, low: int, high: int) -> Times:
    mine = measures.spans.filter(
        (pl.col("rank") == rank)
        & (pl.col("span_class") == SpanClass.HOST.value)
        & (pl.col("end_ns") > low)
        & (pl.col("start_ns") < high)
    )
    return clip_times(join_times(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()), low, high)


def _non_launch_busy(measures: TraceMeasures, rank: int, low: int, high: int) -> Times:
    """Times in which the device works or the rank communicates or loads data."""
    busy = compute_times(measures.spans, rank)
    mine = measures.spans.filter(
        (pl.col("rank") == rank)
        & (
            (pl.col("span_class") == SpanClass.COMMUNICATION.value)
            | (
                (pl.col("span_class") == SpanClass.ANNOTATION.value)
                & ~pl.col("is_device")
                & (pl.col("phase") == Phase.DATA.value)
            )
        )
    )
    both = join_times(
        np.concatenate([busy.starts, mine["start_ns"].to_numpy()]),
        np.concatenate([busy.ends, mine["end_ns"].to_numpy()]),
    )
    return clip_times(both, low, high)


def _find_exposed(measures: TraceMeasures) -> TraceVerdict | None:
    transferring_s = float(measures.breakdown["transferring_ns"].to_numpy().mean()) / 1e9
    if transferring_s < EXPOSED_SHARE * measures.step_s or measures.bubble is not None:
        return None
    return TraceVerdict(
        kind=VerdictKind.EXPOSED_COMMUNICATION,
        seconds_per_step=transferring_s,
        sentence=(
            f"Transfers not hidden by compute take {transferring_s * 1e3:,.1f} ms of a step of {measures.step_s * 1e3:,.1f} ms."
        ),
        evidence={"transferring_s": transferring_s, "step_s": measures.step_s},
    )


def _find_small_collectives(measures: TraceMeasures) -> TraceVerdict | None:
    small = measures.collectives.filter(pl.col("bytes").is_not_null() & (pl.col("bytes") < SMALL_BYTES))
    per_step = small.height / max(1, measures.step_count)
    cost_s = float(small["transfer_ns"].to_numpy().sum()) / 1e9 / max(1, measures.step_count)
    if per_step < SMALL_COUNT or cost_s < SMALL_SHARE * measures.step_s:
        return None
    return TraceVerdict(
        kind=VerdictKind.SMALL_COLLECTIVES,
        seconds_per_step=cost_s,
        sentence=(
            f"{per_step:,.0f} collectives of less than 256 KiB take {cost_s * 1e3:,.1f} ms per step: "
            "larger buckets would join them."
        ),
        evidence={"collectives_per_step": per_step, "transfer_s": cost_s},
    )


def _find_slow_link(measures: TraceMeasures) -> TraceVerdict | None:
    """A process group whose transfers take much longer than others of the same collective and size."""
    sized = measures.collectives.drop_nulls("bytes")
    groups = sized.group_by("collective", "bytes", "process_group").agg(
        pl.col("transfer_ns").median().alias("own_ns"), pl.len().alias("count")
    )
    usual = groups.with_columns(
        pl.col("own_ns").median().over("collective", "bytes").alias("usual_ns"),
        pl.len().over("collective", "bytes").alias("peers"),
    ).filter(pl.col("peers") >= MIN_PEER_GROUPS)
    slow = usual.filter(pl.col("own_ns") > SLOW_LINK_RATIO * pl.col("usual_ns"))
    cost = slow.group_by("process_group").agg(
        ((pl.col("own_ns") - pl.col("usual_ns")) * pl.col("count")).sum().alias("cost_ns")
    )
    if not cost.height:
        return None
    group, cost_ns = cost.sort("cost_ns", descending=True).row(0)
    cost_s = cost_ns / 1e9 / max(1, measures.step_count)
    if cost_s < max(SLOW_LINK_SHARE * measures.step_s, measures.min_gain_s):
        return None
    return TraceVerdict(
        kind=VerdictKind.SLOW_LINK,
        seconds_per_step=cost_s,
        sentence=f"Process group {group} is slower than comparable groups: {cost_s * 1e3:,.1f} ms per step.",
        evidence={"process_group": str(group), "excess_s": cost_s},
    )


def _find_garbage_collection(measures: TraceMeasures) -> TraceVerdict | None:
    name = pl.col("name").cast(pl.String)
    spans = measures.spans.filter(
        pl.col("span_class").cast(pl.String).is_in([SpanClass.HOST.value, SpanClass.ANNOTATION.value])
        & ((name == "gc") | name.str.contains("(?i)garbage|gc\\.collect"))
    )
    if not spans.height:
        return None
    worst = spans.group_by("step").agg((pl.col("end_ns") - pl.col("start_ns")).max())
    cost_s = float(worst["end_ns"].to_numpy().sum()) / 1e9 / max(1, measures.step_count)
    if cost_s < measures.min_gain_s:
        return None
    return TraceVerdict(
        kind=VerdictKind.GARBAGE_COLLECTION,
        seconds_per_step=cost_s,
        sentence=f"Garbage collection takes {cost_s * 1e3:,.1f} ms per step on the rank that does most of it.",
        evidence={"longest_s": cost_s},
    )


def _find_input_stall(measures: TraceMeasures) -> TraceVerdict | None:
    """All ranks wait for input while their devices are idle."""
    marks = measures.spans.filter(
        (pl.col("span_class") == SpanClass.ANNOTATION.value)
        & ~pl.col("is_device")
        & (pl.col("phase") == Phase.DATA.value)
    )
    if not marks.height:
        return None
    stalls = []
    for (rank,), windows in measures.steps.group_by("rank"):
        mine = marks.filter(pl.col("rank") == rank)
        loading = subtract_times(
            join_times(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()),
            compute_times(measures.spans, int(str(rank))),
        )
        stalls += [
            clip_times(loading, low, high).length_ns / 1e9
            for low, high in windows.select("start_ns", "end_ns").iter_rows()
        ]
    stall_s = float(np.median(stalls))
    if stall_s < INPUT_SHARE * measures.step_s:
        return None
    return TraceVerdict(
        kind=VerdictKind.INPUT_STALL,
        seconds_per_step=stall_s,
        sentence=f"All ranks wait for their input, {stall_s * 1e3:,.1f} ms of a step of {measures.step_s * 1e3:,.1f} ms.",
        evidence={"data_loading_s": stall_s, "step_s": measures.step_s},
    )
