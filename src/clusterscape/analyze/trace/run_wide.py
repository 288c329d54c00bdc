"""Causes that all ranks share and that show in communication or in passes: exposed and small collectives, slow links, sequences
of different lengths.
"""

import numpy as np
import polars as pl

from clusterscape.analyze.trace.cause_words import WORK_ADVICE
from clusterscape.analyze.trace.measures import TraceMeasures, is_significant, measure_sequences
from clusterscape.model.trace_report import TraceVerdict, VerdictKind

EXPOSED_SHARE = 0.03
MIN_BUCKETS = 4
BACKWARD_SHARE = 2 / 3
"""Of compute: a backward pass is two products for each of the forward pass."""
SMALL_BYTES = 256 << 10
SMALL_COUNT = 20  # a step
SMALL_SHARE = 0.05
SLOW_LINK_RATIO = 2.0
SLOW_LINK_SHARE = 0.05
MIN_PEER_GROUPS = 3


def find_run_wide(measures: TraceMeasures) -> list[TraceVerdict]:
    """Verdicts about all causes that cost more than their threshold."""
    if not measures.step_s:
        return []
    finders = (
        _find_sequence_variance,
        _find_exposed,
        _find_small_collectives,
        _find_slow_link,
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
        advice=WORK_ADVICE,
    )


def _find_last_transfer(measures: TraceMeasures) -> float:
    """Seconds of the transfer after the backward pass, which nothing can hide: one collective of the step, at most a quarter."""
    table = measures.collectives
    ranks, steps = len(measures.attribution.ranks), max(1, measures.step_count)
    shares = (table["ranks"] / max(1, ranks)).to_numpy()
    count = float(shares.sum()) / steps
    total_s = float((table["transfer_ns"].to_numpy() * shares).sum()) / 1e9 / steps
    return total_s / max(count, MIN_BUCKETS)


def _find_exposed(measures: TraceMeasures) -> TraceVerdict | None:
    """Transfers that compute could hide: not the last one, and at most as long as the backward pass that produces them."""
    if measures.bubble is not None:
        return None
    table = measures.breakdown.group_by("rank").agg(
        pl.col("transferring_ns", "compute_ns", "communication_ns", "exposed_ns").mean() / 1e9
    )
    # The median rank: extra work of one must not count as room to hide transfers in.
    transferring_s, compute_s, communication_s, exposed_s = (
        float(np.median(table[name].to_numpy()))
        for name in ("transferring_ns", "compute_ns", "communication_ns", "exposed_ns")
    )
    hidden_s = communication_s - exposed_s
    overlap = next((change for change in measures.changes if change.kind == "overlap"), None)
    simulated_s = transferring_s if overlap is None else overlap.now_s - overlap.then_s
    room_s = BACKWARD_SHARE * compute_s - hidden_s
    most_s = max(0.0, min(transferring_s - _find_last_transfer(measures), simulated_s))
    gain_s = max(0.0, min(most_s, room_s))
    least_s = max(EXPOSED_SHARE * measures.step_s, measures.min_gain_s)
    if gain_s < least_s:
        return None if most_s < least_s else _describe_bound(measures, most_s, transferring_s, compute_s)
    return TraceVerdict(
        kind=VerdictKind.EXPOSED_COMMUNICATION,
        seconds_per_step=gain_s,
        sentence=(
            f"Transfers not hidden by compute take {transferring_s * 1e3:,.1f} ms of a step of {measures.step_s * 1e3:,.1f} ms; "
            f"compute could hide {gain_s * 1e3:,.1f} ms of them."
        ),
        evidence={"transferring_s": transferring_s, "compute_s": compute_s, "step_s": measures.step_s},
        advice="Overlap communication with the backward pass (smaller buckets, later parameters first), or send fewer bytes.",
    )


def _describe_bound(measures: TraceMeasures, most_s: float, transferring_s: float, compute_s: float) -> TraceVerdict:
    """Transfers longer than the compute that could hide them: the links, or the amount of data, decide how long a step is."""
    return TraceVerdict(
        kind=VerdictKind.EXPOSED_COMMUNICATION,
        seconds_per_step=most_s,
        sentence=(
            f"Transfers that nothing hides take {transferring_s * 1e3:,.1f} ms of a step of {measures.step_s * 1e3:,.1f} ms, and "
            f"compute ({compute_s * 1e3:,.1f} ms) is too short to hide them: links or the amount of data limit this run."
        ),
        evidence={
            "transferring_s": transferring_s,
            "compute_s": compute_s,
            "step_s": measures.step_s,
            "unhidden_s": most_s,
        },
        advice="Send fewer bytes (larger batches, gradient accumulation, compression), and compare with the links' bandwidth.",
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
        advice="Join them: larger buckets, or one flat buffer.",
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
        advice="Compare the links and ports of its ranks with those of the other groups.",
    )
