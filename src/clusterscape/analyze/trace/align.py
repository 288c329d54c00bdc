"""One clock for all ranks: offset and drift of each, from collectives that end together, and across pipeline stages from
messages that cannot arrive before they are sent. Durations are never changed; what error remains is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.match import SYNCHRONOUS, Matches
from clusterscape.model.spans import Trace

MAX_INSTANCES = 4000  # more say nothing new about two numbers a rank
MAX_DRIFT_PPM = 300.0  # beyond, it is no quartz
MIN_DRIFT_POINTS = 6
DRIFT_SIGNIFICANCE = 5.0  # standard errors
OUTLIER_MADS = 6.0
MIN_OUTLIER_NS = 1000.0  # the resolution of many profilers
ROUNDS = 4

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClockFit:
    """What is taken off a rank's clock: ``offset_ns`` at ``reference_ns`` and ``drift_ppm`` from there on."""

    rank: int
    offset_ns: float
    drift_ppm: float
    reference_ns: int

    def shift_ns(self, at_ns: Ints) -> Ints:
        """Nanoseconds to take off at given times of the rank's own clock."""
        return np.round(self.offset_ns + self.drift_ppm * 1e-6 * (at_ns - self.reference_ns)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Clocks by rank; ``error_ns`` is the p95 distance of a rank's end from its collective's median end; None: not known."""

    clocks: Mapping[int, ClockFit]
    error_ns: float | None
    notes: tuple[str, ...]


def align_clocks(trace: Trace, matches: Matches) -> Alignment:
    """The clock of every rank against that of the lowest rank it is connected with."""
    ranks = np.array([facts.rank for facts in trace.ranks])
    table = (
        matches.members.filter(pl.col("collective").is_in(SYNCHRONOUS)) if matches.members.height else matches.members
    )
    chosen = table["instance"].unique().sort() if table.height else pl.Series([], dtype=pl.UInt32)
    if len(chosen) > MAX_INSTANCES:
        chosen = chosen.gather_every(-(-len(chosen) // MAX_INSTANCES))
        table = table.join(pl.DataFrame({"instance": chosen}), on="instance", how="semi")
    reference_ns = int(table["end_ns"].to_numpy().min()) if table.height else 0
    who = np.searchsorted(ranks, table["rank"].to_numpy())
    _, which = np.unique(table["instance"].to_numpy(), return_inverse=True)
    ends = (table["end_ns"].to_numpy() - reference_ns).astype(np.float64)
    offsets, drifts, components = _fit(who, which, ends, ranks.size)
    residual = _residual(who, which, ends, offsets, drifts)
    error_ns = float(np.quantile(np.abs(residual), 0.95)) if residual.size else None
    if trace.is_aligned:
        return Alignment({int(rank): ClockFit(int(rank), 0.0, 0.0, reference_ns) for rank in ranks}, error_ns, ())
    offsets, notes = _keep_if_same_clock(offsets, drifts, error_ns)
    offsets, more = _join_components(ranks, offsets, components, matches.messages)
    clocks = {
        int(rank): ClockFit(int(rank), float(offset), float(drift) * 1e6, reference_ns)
        for rank, offset, drift in zip(ranks, offsets, drifts, strict=True)
    }
    if error_ns is None and ranks.size > 1:
        more.append("No collective ends on all ranks together: clocks are used as they are.")
    return Alignment(clocks, error_ns, tuple(notes + more))


def apply_alignment(trace: Trace, alignment: Alignment) -> Trace:
    """The trace on one clock, its rows in order. Both ends of a span move by the shift at its start: no duration changes."""
    moved = _shifts(alignment, trace.spans["rank"], trace.spans["start_ns"])
    if not (moved != 0).any():
        return trace
    memory = trace.memory
    if memory is not None:
        memory = memory.with_columns(pl.col("time_ns") - _shifts(alignment, memory["rank"], memory["time_ns"]))
    spans = trace.spans.with_columns(pl.col(name) - moved for name in ("start_ns", "end_ns", "ready_ns"))
    return replace(trace, spans=spans, memory=memory)


def _shifts(alignment: Alignment, ranks: pl.Series, times_ns: pl.Series) -> pl.Series:
    """What is taken off each time."""
    rank, times = ranks.to_numpy(), times_ns.to_numpy()
    shift = np.zeros(times.size, np.int64)
    for clock in alignment.clocks.values():
        if clock.offset_ns or clock.drift_ppm:
            mine = rank == clock.rank
            shift[mine] = clock.shift_ns(times[mine])
    return pl.Series(shift)


def _fit(who: Ints, which: Ints, ends: Floats, ranks: int) -> tuple[Floats, Floats, Ints]:
    """Offsets and drifts by least squares over all collectives, outliers dropped; and which ranks hang together."""
    offsets, drifts = np.zeros(ranks), np.zeros(ranks)
    components = _components(who, which, ranks)
    keep = np.ones(ends.size, bool)
    for _ in range(ROUNDS if ends.size else 0):
        offsets = _solve(who[keep], which[keep], (ends - drifts[who] * ends)[keep], ranks)
        residual = _residual(who, which, ends, offsets, drifts)
        slopes, beside = _trends(who, ends, residual, keep, ranks)
        spread = float(np.median(np.abs(beside[keep]))) * 1.4826
        is_near = np.abs(beside) <= max(OUTLIER_MADS * spread, MIN_OUTLIER_NS)
        # A rank whose every end looks odd is not dropped: its clock is still to be found.
        lost = np.bincount(who[is_near], minlength=ranks) < 2
        keep = is_near | lost[who]
        drifts = _plausible(drifts + slopes)
    offsets = _solve(who[keep], which[keep], (ends - drifts[who] * ends)[keep], ranks) if ends.size else offsets
    for component in np.unique(components):
        members = np.flatnonzero(components == component)
        offsets[members] -= offsets[members[0]]
        drifts[members] -= drifts[members[0]]
    return offsets, drifts, components


def _solve(who: Ints, which: Ints, values: Floats, ranks: int) -> Floats:
    """Offsets that bring each collective's ends nearest to one another (the collective's own time is eliminated)."""
    count = np.bincount(which)
    mean = np.bincount(which, values) / np.maximum(count, 1)
    right = np.bincount(who, values - mean[which], minlength=ranks)
    incidence = np.zeros((count.size, ranks))
    incidence[which, who] = 1.0
    laplacian = np.diag(np.bincount(who, minlength=ranks).astype(float))
    laplacian -= (incidence / np.maximum(count, 1)[:, None]).T @ incidence
    solution: Floats = np.linalg.lstsq(laplacian, right, rcond=1e-9)[0]
    return solution


def _residual(who: Ints, which: Ints, ends: Floats, offsets: Floats, drifts: Floats) -> Floats:
    if not ends.size:
        return ends
    now = ends - offsets[who] - drifts[who] * ends
    medians = pl.DataFrame({"which": which, "now": now}).select(pl.col("now").median().over("which")).to_series()
    residual: Floats = now - medians.to_numpy()
    return residual


def _trends(who: Ints, ends: Floats, residual: Floats, keep: NDArray[np.bool_], ranks: int) -> tuple[Floats, Floats]:
    """Slope of each rank's residual over time, 0 where noise explains it; and the residuals beside their trend."""
    slopes, beside = np.zeros(ranks), residual.copy()
    for rank in range(ranks):
        mine, used = who == rank, keep & (who == rank)
        if used.sum() < MIN_DRIFT_POINTS:
            continue
        middle = ends[used].mean()
        at, off = ends[used] - middle, residual[used] - residual[used].mean()
        extent = float(at @ at)
        if extent == 0:
            continue
        slope = float(at @ off) / extent
        beside[mine] = residual[mine] - residual[used].mean() - slope * (ends[mine] - middle)
        noise = float(np.sqrt(((off - slope * at) ** 2).sum() / (at.size - 2) / extent))
        slopes[rank] = slope if abs(slope) > DRIFT_SIGNIFICANCE * noise else 0.0
    return slopes, beside


def _plausible(drifts: Floats) -> Floats:
    """Beyond what a quartz can do, a trend is not the clock's."""
    return np.where(np.abs(drifts) * 1e6 <= MAX_DRIFT_PPM, drifts, 0.0)


def _components(who: Ints, which: Ints, ranks: int) -> Ints:
    """Ranks that share collectives, directly or through others, have the same number."""
    label = np.arange(ranks)
    while True:
        lowest = np.full(int(which.max()) + 1 if which.size else 0, ranks)
        np.minimum.at(lowest, which, label[who])
        new = label.copy()
        np.minimum.at(new, who, lowest[which])
        if (new == label).all():
            return label
        label = new


def _keep_if_same_clock(offsets: Floats, drifts: Floats, error_ns: float | None) -> tuple[Floats, list[str]]:
    """An offset within the error is no offset: ranks of one machine share a clock, and it is left alone."""
    if error_ns is None or not offsets.size:
        return offsets, []
    if np.abs(offsets).max() <= error_ns and not drifts.any():
        return np.zeros_like(offsets), []
    largest = float(np.abs(offsets).max())
    return offsets, [f"Clocks differ by up to {largest / 1e6:,.3f} ms between ranks; the spans are aligned."]


def _join_components(
    ranks: Ints, offsets: Floats, components: Ints, messages: pl.DataFrame
) -> tuple[Floats, list[str]]:
    """Parts that share no collective: no message arrives before it is sent, in either direction."""
    offsets = offsets.copy()
    notes: list[str] = []
    labels = components.copy()
    place = {int(rank): at for at, rank in enumerate(ranks)}
    rows = (
        messages.select("from_rank", "to_rank", "send_start_ns", "recv_end_ns").iter_rows() if messages.height else ()
    )
    pairs: dict[tuple[int, int], int] = {}
    known = [(place[a], place[b], recv - send) for a, b, send, recv in rows if a in place and b in place]
    while True:
        pairs.clear()
        for a, b, delay in known:
            if labels[a] != labels[b]:
                corrected = int(delay - offsets[b] + offsets[a])
                pair = (int(labels[a]), int(labels[b]))
                pairs[pair] = min(pairs.get(pair, corrected), corrected)
        if not pairs:
            return offsets, notes
        one, other = min(pairs)
        one, other = min(one, other), max(one, other)
        upper, lower = pairs.get((one, other)), pairs.get((other, one))
        moved = _choose(None if lower is None else -lower, upper)
        members = labels == other
        offsets[members] += moved
        labels[members] = one
        if moved:
            doubt_us = abs(upper + lower) / 2e3 if upper is not None and lower is not None else None
            how = f", ± {doubt_us:,.1f} µs" if doubt_us is not None else ""
            notes.append(
                f"The clock of rank {ranks[other]} and its group is {abs(moved) / 1e6:,.1f} ms "
                f"{'ahead' if moved > 0 else 'behind'}{how}: found by sends and receives."
            )


def _choose(lower: float | None, upper: float | None) -> float:
    """The least correction where the clocks may be right; else the middle of what is possible."""
    low, high = (-np.inf if lower is None else lower), (np.inf if upper is None else upper)
    if low <= 0 <= high:
        return 0.0
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    return float(low if np.isfinite(low) else high)
