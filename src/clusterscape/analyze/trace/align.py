"""Clock alignment: estimates offset and drift of each rank from collectives that end at the same time on all ranks, and across
pipeline stages from messages, which cannot arrive before they are sent. Durations never change; the remaining error is reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.match import SYNCHRONOUS, Matches
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.spans import Trace

MAX_INSTANCES = 4000  # more do not improve the two parameters per rank
MAX_DRIFT_PPM = 300.0  # a quartz clock drifts less
MIN_DRIFT_POINTS = 6
DRIFT_SIGNIFICANCE = 5.0  # standard errors
OUTLIER_MADS = 6.0
MIN_OUTLIER_NS = 1000.0  # the resolution of many profilers
ROUNDS = 4


@dataclass(frozen=True, slots=True)
class ClockFit:
    """Correction that is subtracted from a rank's clock: ``offset_ns`` at ``reference_ns``, then ``drift_ppm``."""

    rank: int
    offset_ns: float
    drift_ppm: float
    reference_ns: int

    def shift_ns(self, at_ns: Int64s) -> Int64s:
        """Nanoseconds to subtract at times of the rank's own clock."""
        return np.round(self.offset_ns + self.drift_ppm * 1e-6 * (at_ns - self.reference_ns)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Clocks by rank; ``error_ns``: p95 distance of a rank's end from its collective's median end, None if unknown."""

    clocks: Mapping[int, ClockFit]
    error_ns: float | None
    notes: tuple[str, ...]


def align_clocks(trace: Trace, matches: Matches) -> Alignment:
    """Fit the clock of every rank to that of the lowest rank that it is connected with."""
    ranks = np.array([facts.rank for facts in trace.ranks])
    table = (
        matches.members.filter(pl.col("collective").is_in(SYNCHRONOUS)) if matches.members.height else matches.members
    )
    chosen = table["instance"].unique().sort() if table.height else pl.Series([], dtype=pl.UInt32)
    if len(chosen) > MAX_INSTANCES:
        chosen = chosen.gather_every(-(-len(chosen) // MAX_INSTANCES))
        table = table.join(pl.DataFrame({"instance": chosen}), on="instance", how="semi")
    reference_ns = int(table["end_ns"].to_numpy().min()) if table.height else 0
    rank_at = np.searchsorted(ranks, table["rank"].to_numpy())
    _, instance_at = np.unique(table["instance"].to_numpy(), return_inverse=True)
    ends = (table["end_ns"].to_numpy() - reference_ns).astype(np.float64)
    offsets, drifts, components = _fit(rank_at, instance_at, ends, ranks.size)
    residual = _residual(rank_at, instance_at, ends, offsets, drifts)
    error_ns = float(np.quantile(np.abs(residual), 0.95)) if residual.size else None
    if trace.is_aligned:
        return Alignment({int(rank): ClockFit(int(rank), 0.0, 0.0, reference_ns) for rank in ranks}, error_ns, ())
    offsets, notes = _ignore_small_offsets(offsets, drifts, error_ns)
    offsets, more = _join_components(ranks, offsets, components, matches.messages)
    clocks = {
        int(rank): ClockFit(int(rank), float(offset), float(drift) * 1e6, reference_ns)
        for rank, offset, drift in zip(ranks, offsets, drifts, strict=True)
    }
    if error_ns is None and ranks.size > 1:
        more.append("No collective ends on all ranks at the same time: clocks are not aligned.")
    return Alignment(clocks, error_ns, tuple(notes + more))


def apply_alignment(trace: Trace, alignment: Alignment) -> Trace:
    """The trace on one clock, in the same row order. Both ends of a span move by the shift at its start, so durations do not
    change.
    """
    moved = _shifts(alignment, trace.spans["rank"], trace.spans["start_ns"])
    if not (moved != 0).any():
        return trace
    memory = trace.memory
    if memory is not None:
        memory = memory.with_columns(pl.col("time_ns") - _shifts(alignment, memory["rank"], memory["time_ns"]))
    spans = trace.spans.with_columns(pl.col(name) - moved for name in ("start_ns", "end_ns", "ready_ns"))
    return replace(trace, spans=spans, memory=memory)


def _shifts(alignment: Alignment, ranks: pl.Series, times_ns: pl.Series) -> pl.Series:
    """Nanoseconds to subtract from each time."""
    rank, times = ranks.to_numpy(), times_ns.to_numpy()
    shift = np.zeros(times.size, np.int64)
    for clock in alignment.clocks.values():
        if clock.offset_ns or clock.drift_ppm:
            mine = rank == clock.rank
            shift[mine] = clock.shift_ns(times[mine])
    return pl.Series(shift)


def _fit(rank_at: Int64s, instance_at: Int64s, ends: Float64s, ranks: int) -> tuple[Float64s, Float64s, Int64s]:
    """Offsets and drifts by least squares over all collectives without outliers, and the connected component of each rank."""
    offsets, drifts = np.zeros(ranks), np.zeros(ranks)
    components = _find_components(rank_at, instance_at, ranks)
    keep = np.ones(ends.size, bool)
    for _ in range(ROUNDS if ends.size else 0):
        offsets = _solve(rank_at[keep], instance_at[keep], (ends - drifts[rank_at] * ends)[keep], ranks)
        residual = _residual(rank_at, instance_at, ends, offsets, drifts)
        slopes, detrended = _trends(rank_at, ends, residual, keep, ranks)
        spread = float(np.median(np.abs(detrended[keep]))) * 1.4826
        is_near = np.abs(detrended) <= max(OUTLIER_MADS * spread, MIN_OUTLIER_NS)
        # A rank with only outliers keeps all its ends: its clock has not been fitted yet.
        has_too_few = np.bincount(rank_at[is_near], minlength=ranks) < 2
        keep = is_near | has_too_few[rank_at]
        drifts = _drop_implausible(drifts + slopes)
    offsets = (
        _solve(rank_at[keep], instance_at[keep], (ends - drifts[rank_at] * ends)[keep], ranks) if ends.size else offsets
    )
    for component in np.unique(components):
        members = np.flatnonzero(components == component)
        offsets[members] -= offsets[members[0]]
        drifts[members] -= drifts[members[0]]
    return offsets, drifts, components


def _solve(rank_at: Int64s, instance_at: Int64s, values: Float64s, ranks: int) -> Float64s:
    """Least-squares offsets that minimize the spread of each collective's ends (the collective's own time is eliminated)."""
    count = np.bincount(instance_at)
    mean = np.bincount(instance_at, values) / np.maximum(count, 1)
    right = np.bincount(rank_at, values - mean[instance_at], minlength=ranks)
    incidence = np.zeros((count.size, ranks))
    incidence[instance_at, rank_at] = 1.0
    laplacian = np.diag(np.bincount(rank_at, minlength=ranks).astype(float))
    laplacian -= (incidence / np.maximum(count, 1)[:, None]).T @ incidence
    solution: Float64s = np.linalg.lstsq(laplacian, right, rcond=1e-9)[0]
    return solution


def _residual(rank_at: Int64s, instance_at: Int64s, ends: Float64s, offsets: Float64s, drifts: Float64s) -> Float64s:
    if not ends.size:
        return ends
    now = ends - offsets[rank_at] - drifts[rank_at] * ends
    medians = (
        pl.DataFrame({"instance": instance_at, "now": now}).select(pl.col("now").median().over("instance")).to_series()
    )
    residual: Float64s = now - medians.to_numpy()
    return residual


def _trends(
    rank_at: Int64s, ends: Float64s, residual: Float64s, keep: NDArray[np.bool_], ranks: int
) -> tuple[Float64s, Float64s]:
    """Slope of each rank's residual over time, 0 where it is not significant; and the residuals without their trend."""
    slopes, detrended = np.zeros(ranks), residual.copy()
    for rank in range(ranks):
        mine, used = rank_at == rank, keep & (rank_at == rank)
        if used.sum() < MIN_DRIFT_POINTS:
            continue
        middle = ends[used].mean()
        at, off = ends[used] - middle, residual[used] - residual[used].mean()
        extent = float(at @ at)
        if extent == 0:
            continue
        slope = float(at @ off) / extent
        detrended[mine] = residual[mine] - residual[used].mean() - slope * (ends[mine] - middle)
        noise = float(np.sqrt(((off - slope * at) ** 2).sum() / (at.size - 2) / extent))
        slopes[rank] = slope if abs(slope) > DRIFT_SIGNIFICANCE * noise else 0.0
    return slopes, detrended


def _drop_implausible(drifts: Float64s) -> Float64s:
    """A drift larger than a quartz clock can have is not caused by the clock: set it to 0."""
    return np.where(np.abs(drifts) * 1e6 <= MAX_DRIFT_PPM, drifts, 0.0)


def _find_components(rank_at: Int64s, instance_at: Int64s, ranks: int) -> Int64s:
    """Connected components: ranks that share collectives, directly or indirectly, get the same number."""
    label = np.arange(ranks)
    while True:
        lowest = np.full(int(instance_at.max()) + 1 if instance_at.size else 0, ranks)
        np.minimum.at(lowest, instance_at, label[rank_at])
        new = label.copy()
        np.minimum.at(new, rank_at, lowest[instance_at])
        if (new == label).all():
            return label
        label = new


def _ignore_small_offsets(offsets: Float64s, drifts: Float64s, error_ns: float | None) -> tuple[Float64s, list[str]]:
    """Offsets within the error become 0: ranks of one machine share a clock."""
    if error_ns is None or not offsets.size:
        return offsets, []
    if np.abs(offsets).max() <= error_ns and not drifts.any():
        return np.zeros_like(offsets), []
    largest = float(np.abs(offsets).max())
    return offsets, [f"Clocks differ by up to {largest / 1e6:,.3f} ms between ranks; the spans are aligned."]


def _join_components(
    ranks: Int64s, offsets: Float64s, components: Int64s, messages: pl.DataFrame
) -> tuple[Float64s, list[str]]:
    """Align components that share no collective: in both directions, no message arrives before it is sent."""
    offsets = offsets.copy()
    notes: list[str] = []
    labels = components.copy()
    index_of = {int(rank): at for at, rank in enumerate(ranks)}
    rows = (
        messages.select("from_rank", "to_rank", "send_start_ns", "recv_end_ns").iter_rows() if messages.height else ()
    )
    pairs: dict[tuple[int, int], int] = {}
    delays = [(index_of[a], index_of[b], recv - send) for a, b, send, recv in rows if a in index_of and b in index_of]
    while True:
        pairs.clear()
        for a, b, delay in delays:
            if labels[a] != labels[b]:
                corrected = int(delay - offsets[b] + offsets[a])
                pair = (int(labels[a]), int(labels[b]))
                pairs[pair] = min(pairs.get(pair, corrected), corrected)
        if not pairs:
            return offsets, notes
        first, second = min(pairs)
        first, second = min(first, second), max(first, second)
        upper, lower = pairs.get((first, second)), pairs.get((second, first))
        moved = _choose_shift(None if lower is None else -lower, upper)
        members = labels == second
        offsets[members] += moved
        labels[members] = first
        if moved:
            doubt_us = abs(upper + lower) / 2e3 if upper is not None and lower is not None else None
            how = f", ± {doubt_us:,.1f} µs" if doubt_us is not None else ""
            notes.append(
                f"The clock of rank {ranks[second]} and its group is {abs(moved) / 1e6:,.1f} ms "
                f"{'ahead' if moved > 0 else 'behind'}{how}, according to sends and receives."
            )


def _choose_shift(lower: float | None, upper: float | None) -> float:
    """0 if the clocks may be right; else the middle of the possible corrections, or the smallest if only one bound is known."""
    low, high = (-np.inf if lower is None else lower), (np.inf if upper is None else upper)
    if low <= 0 <= high:
        return 0.0
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    return float(low if np.isfinite(low) else high)
