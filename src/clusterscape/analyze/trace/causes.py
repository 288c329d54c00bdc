"""Finds what costs a run time, from the attribution of its steps: what one rank does beyond its peers with equal work, what all
ranks do, and work that differs between ranks; each with the steps in which it acts and a test against chance.

Seconds that a cause costs are not decided here: ``savings.py`` re-simulates the steps without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterscape.analyze.trace.attribution import IDLE_KINDS, Attribution
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.model.trace_report import TimeKind, VerdictRhythm

MIN_SHARE = 0.01
"""Of the step; less is not attributed to a rank in a step."""
SPREADS = 5.0
MAX_FLOOR_SHARE = 0.1
"""Of the step; a rank's excess above this counts however much ranks vary."""
MAX_CHANCE = 0.02
"""Several kinds of time are tested in each report."""
CLEAR_RATIO = 2.0
CLEAR_SHARE = 0.015
CLEAR_PRODUCT = 0.08
"""With too few affected steps for a test: the second largest excess of a rank is at least this many times the largest of any
other rank, the mean is at least this share of the step, and their product is at least this much.
"""
CLEAR_ONCE_RATIO = 20.0
CHANCE_DRAWS = 2000
MAX_DRAWN = 4_000_000
PERSISTENT_SHARE = 0.8
SINCE_SHARE = 0.8
MIN_RHYTHM = 3
EVEN_WORK = 0.01
"""Work that differs by less than this between ranks counts as equal."""
RARE_KINDS = (
    TimeKind.GARBAGE_COLLECTION,
    TimeKind.CHECKPOINT,
    TimeKind.ALLOCATION,
    TimeKind.START_UP,
    TimeKind.RUNTIME_CALL,
)
"""What a rank records by name, and most steps do not have: no test is needed to say that it happened."""
HOST_KINDS = (
    TimeKind.PAUSE, TimeKind.LAUNCHING, TimeKind.HOST_CODE, TimeKind.RUNTIME_CALL, TimeKind.COPY_TO_HOST, TimeKind.CHECKPOINT,
)  # fmt: skip
"""What a host does in turn while it is held up once: a checkpoint without a name copies, converts and writes. Waiting for the
device is not among them: on a device that ranks share, the others' work delays it.
"""
MERGED_RATIO = 1.25
"""Causes of a rank in the same steps are one cause if together they are this much larger than the largest of them."""
PART_SHARE = 0.5
REASON_SHARE = 0.2
ALIKE_SHARE = 0.25
DOMINANT_SHARE = 0.7
"""Steps with less than ``ALIKE_SHARE`` of the largest excess are not of the same cause, if the others have this share of it."""
SLOW_KINDS = (TimeKind.SLOWER_COMPUTE, TimeKind.LAUNCHING, TimeKind.HOST_CODE, TimeKind.IDLE)
"""Signs of one cause, a rank that does everything slower."""


@dataclass(frozen=True, slots=True)
class Work:
    """Of operators whose shapes were recorded (rank, step): ``flops`` without additional operators, NaN if none was recorded;
    ``extra_calls``: additional operators.
    """

    flops: Float64s
    extra_calls: Float64s

    @property
    def is_known(self) -> bool:
        """Whether shapes were recorded on all ranks."""
        return bool(self.flops.size) and bool(np.isfinite(self.flops).any(axis=1).all())


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Seconds (rank, step) that would go away without the cause, by kind of time; negative where a rank would get more work.

    ``rank``: None if it concerns all ranks, or none in particular; ``is_work``: ranks have different amounts of work;
    ``is_extra_work``: a rank runs more operators.
    """

    kinds: tuple[TimeKind, ...]
    rank: int | None
    removed: Mapping[TimeKind, Float64s]
    rhythm: VerdictRhythm
    is_work: bool = False
    is_extra_work: bool = False

    @property
    def kind(self) -> TimeKind:
        """The kind with the most seconds. A host that is held up also launches later: that alone is not the reason."""
        sums: dict[TimeKind, float] = {kind: float(np.abs(self.removed[kind]).sum()) for kind in self.kinds}
        if TimeKind.SLOWER_COMPUTE not in sums:
            reasons: dict[TimeKind, float] = {**sums}
            reasons.pop(TimeKind.LAUNCHING, None)
            if max(reasons.values(), default=0.0) > REASON_SHARE * sum(sums.values()):
                sums = reasons
        return max(sums, key=lambda kind: sums[kind])

    @property
    def seconds(self) -> Float64s:
        """Sum over kinds (rank, step)."""
        total: Float64s = np.sum([self.removed[kind] for kind in self.kinds], axis=0)
        return total


@dataclass(frozen=True, slots=True)
class ExpectedCompute:
    """Compute divided into what the work of a rank explains and the rest (rank, step). ``work_s``: beyond the mean of all ranks
    and steps because of the amount of work; ``rest_s``: compute without ``work_s``.
    """

    work_s: Float64s
    rest_s: Float64s
    is_extra: Bools
    """By rank: it runs more operators than its peers."""


def expect_compute(compute_s: Float64s, work: Work, groups: Sequence[Int64s]) -> ExpectedCompute:
    """Divide compute by regression on the FLOPs of recorded shapes, over all ranks of a stage.

    Seconds per FLOP come from variation within ranks if there is any, since a slow rank must not look like one with more work;
    else compute is proportional to FLOPs. Operators that only some ranks run do not count as more work of the same kind.
    """
    explained, is_extra = np.zeros_like(compute_s), np.zeros(compute_s.shape[0], bool)
    if not work.is_known:
        return ExpectedCompute(explained, compute_s, is_extra)
    for rows in groups:
        seconds, flops = compute_s[rows], work.flops[rows]
        is_extra[rows] = (work.extra_calls[rows] > 0).mean(axis=1) > 0.5
        mean = float(np.nanmean(flops))
        spread = np.nanmax(np.abs(flops - _median(flops, axis=0))) if flops.shape[0] > 1 else 0.0
        if not mean or spread < EVEN_WORK * mean:
            continue
        slope = _fit_slope(seconds, flops)
        explained[rows] = slope * (flops - mean)
    return ExpectedCompute(explained, compute_s - explained, is_extra)


def _fit_slope(seconds: Float64s, flops: Float64s) -> float:
    """Seconds per FLOP, between 0 and proportional; outliers are weighted down."""
    proportional = float(np.nanmedian(seconds) / np.nanmedian(flops))
    inner_flops = (flops - _median(flops, axis=1)[:, None]).ravel()
    inner_seconds = (seconds - _median(seconds, axis=1)[:, None]).ravel()
    valid = np.isfinite(inner_flops) & np.isfinite(inner_seconds)
    inner_flops, inner_seconds = inner_flops[valid], inner_seconds[valid]
    if inner_flops.std() < EVEN_WORK * float(np.nanmean(flops)):
        return proportional
    weight = np.ones_like(inner_flops)
    slope = proportional
    for _ in range(20):
        slope = float((weight * inner_flops * inner_seconds).sum() / (weight * inner_flops**2).sum())
        residual = np.abs(inner_seconds - slope * inner_flops)
        scale = 1.4826 * float(np.median(residual)) or 1e-12
        weight = 1.0 / np.maximum(1.0, residual / scale)
    return min(max(slope, 0.0), 1.2 * proportional)


def compare_with_peers(values: Float64s, groups: Sequence[Int64s], overlapped: Float64s | None = None) -> Float64s:
    """Each rank minus the median of the other ranks of its group (rank, step); a rank alone in its group minus its own median.

    ``overlapped``: what ranks have in addition while they wait for others: of peers it counts, up to what the rank has.
    """
    excess = np.full_like(values, np.nan)
    for rows in groups:
        if rows.size == 1:
            excess[rows] = values[rows] - _median(values[rows], axis=1)[:, None]
            continue
        for at in rows:
            others = rows[rows != at]
            excess[at] = values[at] - _median(values[others], axis=0)
            if overlapped is not None:
                beyond = values[at] - _median(values[others] + overlapped[others], axis=0)
                excess[at] = np.where(excess[at] > 0, np.clip(beyond, 0.0, None), excess[at])
    return excess


def _median(values: Float64s, axis: int) -> Float64s:
    """The median without NaN; NaN where there is nothing else, without a warning."""
    is_empty = np.isnan(values).all(axis=axis)
    filled = np.where(np.expand_dims(is_empty, axis), 0.0, values)
    middle: Float64s = np.nanmedian(filled, axis=axis)
    return np.where(is_empty, np.nan, middle)


def _mean(values: Float64s) -> Float64s:
    """The mean over ranks, without NaN; NaN where there is nothing else."""
    count = np.isfinite(values).sum(axis=0)
    mean: Float64s = np.divide(np.nansum(values, axis=0), count, out=np.full(count.shape, np.nan), where=count > 0)
    return mean


def find_floor(excess: Float64s, step_s: float) -> float:
    """The excess from which a step counts as affected: 1 % of the step or 5 robust spreads, but at most 10 % of the step."""
    centered = np.abs(excess - _median(excess, axis=1)[:, None])
    spreads = 1.4826 * _median(centered, axis=1)
    usual = float(np.min(spreads) if spreads.size <= 2 else _median(spreads, axis=0))
    return max(MIN_SHARE * step_s, min(SPREADS * usual, MAX_FLOOR_SHARE * step_s))


def measure_chance(excess: Float64s, row: int, generator: np.random.Generator, floor_s: float = 0.0) -> float | None:
    """Probability that some rank gets as much excess as ``row`` if the ranks of each step are exchanged at random. None if one
    step, or one rank, has nothing to exchange.

    Steps are not independent on a machine that ranks share: what delays a rank often delays it for some steps. So ranks are
    exchanged in blocks of steps, as long as the longest stretch in which any other rank exceeds ``floor_s``.
    """
    positive = np.nan_to_num(np.maximum(excess, 0.0))
    ranks, steps = positive.shape
    if ranks < 2 or steps < 2:
        return None
    block = min(_longest_run(np.delete(positive, row, axis=0) > floor_s), steps)
    positive = np.add.reduceat(positive, np.arange(0, steps, block), axis=1)
    own = positive[row].sum()
    draws = int(np.clip(MAX_DRAWN // positive.size, 200, CHANCE_DRAWS))
    shuffled = generator.permuted(np.broadcast_to(positive, (draws, *positive.shape)), axis=1)
    largest = shuffled.sum(axis=2).max(axis=1)
    return float((1 + np.count_nonzero(largest >= own * (1 - 1e-9))) / (1 + draws))


def _find_dominant(cost: Float64s) -> Bools:
    """Which steps of each rank are of the same cause as its largest (rank, step): noise must not join a rare cause."""
    is_alike = cost >= ALIKE_SHARE * cost.max(axis=1, initial=0.0)[:, None]
    share = np.where(is_alike, cost, 0.0).sum(axis=1) >= DOMINANT_SHARE * cost.sum(axis=1)
    dominant: Bools = is_alike | ~share[:, None]
    return dominant


def _longest_run(is_affected: Bools) -> int:
    """The most steps in a row that a rank is affected; 1 if none is. ``is_affected``: (rank, step)."""
    longest = 1
    for steps in is_affected:
        edges = np.flatnonzero(np.diff(np.concatenate(([0], steps.astype(np.int8), [0]))))
        longest = max(longest, int((edges[1::2] - edges[::2]).max(initial=1)))
    return longest


def describe_rhythm(
    is_affected: Bools, seconds: Float64s, steps: Sequence[int], chance: float | None = None
) -> VerdictRhythm:
    """When a cause acts. ``is_affected``, ``seconds``: by step."""
    at = np.flatnonzero(is_affected)
    count, total = at.size, max(1, is_affected.size)
    numbers = [int(steps[int(place)]) for place in at]
    each_s = float(seconds[at].mean()) if count else 0.0
    share = count / total
    gaps = set(np.diff(at).tolist())
    kind: str = "intermittent"
    period = since = None
    if share > PERSISTENT_SHARE:
        kind = "persistent"
    elif count >= MIN_RHYTHM and at[0] >= 2 and count >= SINCE_SHARE * (total - at[0]) and is_affected[-1]:
        kind, since = "since", numbers[0]
    elif count >= MIN_RHYTHM and len(gaps) == 1 and (gap := gaps.pop()) > 1:
        kind, period = "periodic", int(gap)
    return VerdictRhythm(
        kind=kind,  # type: ignore[arg-type]
        steps=numbers,
        step_share=share,
        seconds_per_affected_step=each_s,
        period=period,
        since_step=since,
        chance=chance,
    )


class CauseFinder:
    """Finds the causes in one attribution. ``groups``: rows of ranks that are peers (of one stage)."""

    def __init__(
        self,
        attribution: Attribution,
        work: Work,
        groups: Sequence[Int64s],
        generator: np.random.Generator,
    ) -> None:
        self.attribution = attribution
        self.groups = groups
        self._generator = generator
        self._step_s = float(np.nanmean(attribution.step_s)) if attribution.steps and attribution.ranks else 0.0
        self._min_s = MIN_SHARE * self._step_s
        self.has_work = work.is_known
        self.expected = expect_compute(attribution.seconds[TimeKind.COMPUTE], work, groups)
        seconds = dict(attribution.seconds)
        excess = compare_with_peers(self.expected.rest_s, groups)
        slower = np.clip(excess, 0.0, np.maximum(seconds[TimeKind.COMPUTE], 0.0))
        self._rest_excess = excess
        self.seconds = seconds | {
            TimeKind.COMPUTE: seconds[TimeKind.COMPUTE] - slower,
            TimeKind.SLOWER_COMPUTE: slower,
        }

    @property
    def min_s(self) -> float:
        """Smaller causes are not reported."""
        return self._min_s

    def find_of_ranks(self) -> list[Cause]:
        """What single ranks do beyond their peers."""
        if len(self.attribution.ranks) < 2 or not self._step_s:
            return []
        causes = []
        combined = np.sum([self._excess_of(kind) for kind in SLOW_KINDS], axis=0)
        causes += self._find_kind(combined, SLOW_KINDS)
        for kind in IDLE_KINDS:
            if kind not in SLOW_KINDS:
                causes += self._find_kind(self._excess_of(kind), (kind,))
        held_up = np.sum([np.nan_to_num(self._excess_of(kind)) for kind in HOST_KINDS], axis=0)
        for whole in self._find_kind(held_up, HOST_KINDS):
            causes = self._merge(causes, whole)
        return causes

    def _merge(self, causes: list[Cause], whole: Cause) -> list[Cause]:
        """Replace the causes of a rank that are parts of one by what the host does in their steps altogether."""
        steps = set(whole.rhythm.steps)
        parts = [
            cause
            for cause in causes
            if cause.rank == whole.rank
            and cause.kind in HOST_KINDS
            and len(steps & set(cause.rhythm.steps)) > PART_SHARE * len(cause.rhythm.steps)
        ]
        if not parts:
            return causes if (whole.rhythm.chance or 0.0) > MAX_CHANCE else [*causes, whole]
        numbers = np.array(self.attribution.steps)
        is_affected = np.isin(numbers, [step for part in parts for step in part.rhythm.steps])
        removed = {kind: np.where(is_affected, seconds, 0.0) for kind, seconds in whole.removed.items()}
        removed = {kind: seconds for kind, seconds in removed.items() if seconds.any()}
        total = np.sum(list(removed.values()), axis=0)
        if float(total.sum()) < MERGED_RATIO * max(float(part.seconds.sum()) for part in parts):
            return causes
        rhythm = describe_rhythm(is_affected, total.max(axis=0), self.attribution.steps, whole.rhythm.chance)
        merged = replace(whole, kinds=tuple(removed), removed=removed, rhythm=rhythm)
        return [*(cause for cause in causes if cause not in parts), merged]

    def _excess_of(self, kind: TimeKind) -> Float64s:
        if kind is TimeKind.SLOWER_COMPUTE:
            return self._rest_excess
        return compare_with_peers(self.attribution.seconds[kind], self.groups, self.attribution.overlapped_s.get(kind))

    def _find_kind(self, excess: Float64s, kinds: tuple[TimeKind, ...]) -> list[Cause]:
        floor_s = find_floor(excess, self._step_s)
        is_affected = np.nan_to_num(excess, nan=-1.0) > floor_s
        is_affected &= _find_dominant(np.where(is_affected, excess, 0.0))
        cost = np.where(is_affected, excess, 0.0)
        mean_s = cost.sum(axis=1) / np.maximum(1, np.isfinite(excess).sum(axis=1))
        is_rare = kinds[0] in RARE_KINDS and self._find_usual(kinds[0]) < 0.1 * self._min_s
        causes = []
        candidates = np.flatnonzero(mean_s > self._min_s)
        for row in candidates:
            if kinds == (TimeKind.CORE_WAIT,) and self._is_shared(int(row)):
                continue
            chance = self._measure_chance(excess, int(row), floor_s, candidates)
            is_unlikely = chance is not None and chance <= MAX_CHANCE
            if not (is_rare or is_unlikely or self._is_clear(int(row), cost)):
                continue
            rhythm = describe_rhythm(is_affected[row], cost[row], self.attribution.steps, chance)
            causes.append(self._make_cause(int(row), kinds, cost, rhythm))
        return causes

    def _is_clear(self, row: int, cost: Float64s) -> bool:
        """Whether a rank stands out although few steps are affected: one long step says nothing, unless there is only one, or it
        is longer than a usual step by itself and far longer than anything else.
        """
        mine = np.sort(cost[row])[::-1]
        decisive = mine[0] if mine.size == 1 else mine[1]
        largest = max(np.delete(cost, row, axis=0).max(initial=0.0), self._min_s)
        ratio, share = decisive / largest, mine.mean() / self._step_s
        usual_s = float(np.nanmedian(self.attribution.step_s))
        if mine[0] > CLEAR_ONCE_RATIO * largest and mine[0] > usual_s:
            return True
        return bool(ratio > CLEAR_RATIO and share > CLEAR_SHARE and ratio * share > CLEAR_PRODUCT)

    def _is_shared(self, row: int) -> bool:
        """Whether the other ranks wait for cores, too: then none of them is at fault."""
        others = np.delete(self.attribution.seconds[TimeKind.CORE_WAIT], row, axis=0)
        return bool(others.size) and float(np.nan_to_num(others).mean()) > self._min_s

    def _find_usual(self, kind: TimeKind) -> float:
        """The seconds of a usual step of a usual rank: the lower median over ranks."""
        usual = _median(self.attribution.seconds[kind], axis=1)
        return float(np.sort(np.nan_to_num(usual))[(usual.size - 1) // 2])

    def _measure_chance(self, excess: Float64s, row: int, floor_s: float, candidates: Int64s) -> float | None:
        """Compared with all peers, or with those that are not affected themselves if these are at least as many."""
        peers = next(rows for rows in self.groups if row in rows)
        if peers.size < 2:
            return measure_chance(excess, row, self._generator, floor_s)
        chance = measure_chance(excess[peers], int(np.flatnonzero(peers == row)[0]), self._generator, floor_s)
        unaffected = peers[~np.isin(peers, candidates)]
        if chance is None or chance <= MAX_CHANCE or not 0 < peers.size - unaffected.size - 1 < unaffected.size:
            return chance
        compared = np.append(unaffected, row)
        among = measure_chance(excess[compared], compared.size - 1, self._generator, floor_s)
        return chance if among is None else min(chance, among)

    def _make_cause(self, row: int, kinds: tuple[TimeKind, ...], cost: Float64s, rhythm: VerdictRhythm) -> Cause:
        """Divide the cost of several kinds by what each has beyond the peers."""
        parts = {kind: np.maximum(np.nan_to_num(self._excess_of(kind)[row]), 0.0) for kind in kinds}
        total = np.sum(list(parts.values()), axis=0)
        removed = {}
        for kind, part in parts.items():
            share = np.divide(part, total, out=np.zeros_like(part), where=total > 0)
            removed[kind] = np.zeros_like(cost)
            removed[kind][row] = share * cost[row]
        rank = self.attribution.ranks[row]
        is_extra = bool(self.expected.is_extra[row]) and TimeKind.SLOWER_COMPUTE in kinds
        return Cause(kinds, rank, removed, rhythm, is_extra_work=is_extra)

    def find_shared(self) -> list[Cause]:
        """What all ranks spend idle time on: the lower median over ranks of each kind, per step; of two ranks what both spend."""
        causes: list[Cause] = []
        if not self.attribution.ranks:
            return causes
        for kind in IDLE_KINDS:
            seconds = np.nan_to_num(self.attribution.seconds[kind])
            common = np.sort(seconds, axis=0)[(seconds.shape[0] - 1) // 2]
            is_affected = common > self._min_s
            if not is_affected.any() or float(np.where(is_affected, common, 0.0).mean()) < self._min_s:
                continue
            removed = np.where(is_affected, np.minimum(seconds, common), 0.0)
            rhythm = describe_rhythm(is_affected, common, self.attribution.steps)
            causes.append(Cause((kind,), None, {kind: removed}, rhythm))
        return causes

    def find_uneven_work(self) -> Cause | None:
        """Ranks that have different amounts of work: what equal amounts in each step would change."""
        work_s = self.expected.work_s
        if not work_s.any():
            return None
        removed = np.zeros_like(work_s)
        for rows in self.groups:
            removed[rows] = np.nan_to_num(work_s[rows] - _mean(work_s[rows]))
        largest = removed.max(axis=0)
        is_affected = largest > self._min_s
        if not is_affected.any():
            return None
        rhythm = describe_rhythm(is_affected, largest, self.attribution.steps)
        most = removed.argmax(axis=0)[is_affected]
        rows_with_most, counts = np.unique(most, return_counts=True)
        at = int(np.argmax(counts))
        is_one = most.size >= MIN_RHYTHM and counts[at] > PERSISTENT_SHARE * most.size and removed.shape[0] > 1
        rank = self.attribution.ranks[int(rows_with_most[at])] if is_one else None
        return Cause((TimeKind.COMPUTE,), rank, {TimeKind.COMPUTE: removed}, rhythm, is_work=True)
