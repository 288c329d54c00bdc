"""The paper's claims that compare systems, tested on pairs of a deep-learning trace and an HPC trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clusterscape.analyze.jobs.columns import STATUSES, JobColumns
from clusterscape.analyze.jobs.intervals import (
    ClaimVerdict,
    Measured,
    PaperClaim,
    Resamples,
    divide,
    find_user_caveats,
    judge_claim,
    measure_difference,
    measure_draws,
    negate,
    resample_medians,
)
from clusterscape.model.arrays import Float64s
from clusterscape.model.jobs import JobStatus

SystemKind = Literal["deep_learning", "hpc"]

WORTH_LOG_RATIO = float(np.log(1.1))
WORTH_SHARE = 0.05
CANCELLED = STATUSES.index(JobStatus.CANCELLED)

SHORTER = "Deep-learning jobs are shorter than HPC jobs"
SMALLER = "HPC jobs are heavier: deep-learning jobs take a smaller share of the machine"
CANCELLED_MORE = "Deep-learning jobs are cancelled more often"
_KIND_CAVEAT = "A trace counts as deep learning if its jobs are measured in GPUs; not every GPU job is deep learning."


def classify_system(jobs: JobColumns) -> SystemKind:
    """A trace whose jobs are measured in GPUs counts as deep learning."""
    return "deep_learning" if jobs.size_unit == "gpus" else "hpc"


@dataclass(frozen=True)
class ComparedTrace:
    """One of two traces: its jobs and the resamples of its users (None if users are unknown)."""

    jobs: JobColumns
    users: Resamples | None


def compare_systems(sides: Sequence[ComparedTrace], random: np.random.Generator) -> list[PaperClaim]:
    """Compare each deep-learning trace with each HPC trace."""
    learning = [side for side in sides if classify_system(side.jobs) == "deep_learning"]
    classic = [side for side in sides if classify_system(side.jobs) == "hpc"]
    if not learning or not classic:
        return [_cannot_compare(sides)]
    return [
        claim
        for learning_trace in learning
        for classic_trace in classic
        for claim in (
            _compare_run_times(learning_trace, classic_trace, random),
            _compare_sizes(learning_trace, classic_trace, random),
            _compare_cancelled(learning_trace, classic_trace),
        )
    ]


def _cannot_compare(sides: Sequence[ComparedTrace]) -> PaperClaim:
    return PaperClaim(
        key="deep_learning_jobs_are_shorter",
        takeaway=1,
        statement=SHORTER,
        traces=[side.jobs.name for side in sides],
        verdict=ClaimVerdict.CANNOT_TELL,
        sentence="Needs two traces: one measured in GPUs and one measured in nodes or processors.",
        rests_on="There is no trace to compare with.",
        effect_name="",
        effect_unit="",
    )


def _ratio_of_medians(
    values: tuple[Float64s, Float64s], users: tuple[Resamples | None, Resamples | None], random: np.random.Generator
) -> Measured:
    """First median / second median, each side resampled by users if known, else by jobs."""
    present = [side[~np.isnan(side)] for side in values]
    medians = [resample_medians(side, resamples, random) for side, resamples in zip(values, users, strict=True)]
    count = min(len(medians[0]), len(medians[1]))
    draws = divide(medians[0][:count], medians[1][:count])
    return measure_draws(float(np.median(present[0]) / np.median(present[1])), draws)


def _negate_log(ratio: Measured) -> Measured:
    """Minus the log of the ratio: above zero if the first is smaller."""
    low, high = (None if end is None else float(np.log(max(end, 1e-12))) for end in (ratio.low, ratio.high))
    return negate(Measured(value=float(np.log(max(ratio.value, 1e-12))), low=low, high=high))


def _probability_smaller(first: Float64s, second: Float64s) -> float:
    """Probability that a job of the first is smaller than one of the second; ties count half (Mann–Whitney)."""
    first, second = first[~np.isnan(first)], np.sort(second[~np.isnan(second)])
    larger = len(second) - np.searchsorted(second, first, side="right")
    equal = np.searchsorted(second, first, side="right") - np.searchsorted(second, first, side="left")
    return float((larger + equal / 2).mean() / len(second))


def _users_caveats(first: ComparedTrace, second: ComparedTrace) -> list[str]:
    unknown = [side.jobs.name for side in (first, second) if side.users is None]
    caveat = f"Users of {' and '.join(unknown)} are unknown: their jobs are assumed to be independent."
    return [_KIND_CAVEAT, *([caveat] if unknown else [])]


def _compare_run_times(first: ComparedTrace, second: ComparedTrace, random: np.random.Generator) -> PaperClaim:
    runs = (first.jobs.run_s, second.jobs.run_s)
    names = [first.jobs.name, second.jobs.name]
    verdict, sentence = ClaimVerdict.CANNOT_TELL, "One of the traces has no run times."
    effect = by_user = None
    medians = [_median(side) for side in runs]
    if medians[0] is not None and medians[1]:
        effect = _ratio_of_medians(runs, (None, None), random)
        by_user = _ratio_of_medians(runs, (first.users, second.users), random)
        verdict = judge_claim(_negate_log(effect), _negate_log(by_user), WORTH_LOG_RATIO)
        shorter = _probability_smaller(*runs)
        sentence = (
            f"Median run time {medians[0]:,.0f} s in {names[0]} and {medians[1]:,.0f} s in {names[1]}, "
            f"{effect.value:.2f} times as long; "
            f"a job of {names[0]} is shorter than one of {names[1]} with probability {shorter:.2f}."
        )
    return PaperClaim(
        key="deep_learning_jobs_are_shorter",
        takeaway=1,
        statement=SHORTER,
        traces=names,
        verdict=verdict,
        sentence=sentence,
        rests_on=(
            "Ratio of the median run times of all jobs that ran. Supported: below 1 for these jobs and with users resampled. Not "
            "supported: a ratio below 1/1.1 is excluded."
        ),
        effect_name="ratio of median run times",
        effect_unit="ratio",
        effect=effect,
        effect_by_user=by_user,
        caveats=_users_caveats(first, second),
    )


def _compare_sizes(first: ComparedTrace, second: ComparedTrace, random: np.random.Generator) -> PaperClaim:
    names = [first.jobs.name, second.jobs.name]
    unstated = [side.jobs.name for side in (first, second) if not side.jobs.total]
    verdict = ClaimVerdict.CANNOT_TELL
    sentence = f"The machine size of {' and '.join(unstated)} is unknown."
    effect = by_user = None
    if first.jobs.total and second.jobs.total:
        shares = (first.jobs.size / first.jobs.total, second.jobs.size / second.jobs.total)
        medians = [_median(side) or 0.0 for side in shares]
        effect = _ratio_of_medians(shares, (None, None), random)
        by_user = _ratio_of_medians(shares, (first.users, second.users), random)
        verdict = judge_claim(_negate_log(effect), _negate_log(by_user), WORTH_LOG_RATIO)
        sentence = (
            f"A median job takes {medians[0]:.3%} of {names[0]} and {medians[1]:.3%} of {names[1]}, "
            f"{effect.value:.3g} times as much."
        )
    return PaperClaim(
        key="deep_learning_jobs_are_smaller",
        takeaway=None,
        statement=SMALLER,
        traces=names,
        verdict=verdict,
        sentence=sentence,
        rests_on="Ratio of the median sizes, each as a share of its machine. Same criteria as for run times.",
        effect_name="ratio of median shares of the machine",
        effect_unit="ratio",
        effect=effect,
        effect_by_user=by_user,
        caveats=_users_caveats(first, second),
    )


def _compare_cancelled(first: ComparedTrace, second: ComparedTrace) -> PaperClaim:
    names = [first.jobs.name, second.jobs.name]
    silent = [side.jobs.name for side in (first, second) if not side.jobs.is_judged.any()]
    verdict, sentence = ClaimVerdict.CANNOT_TELL, f"{' and '.join(silent)} does not record how jobs ended."
    effect = by_user = None
    if not silent:
        hits = tuple(float((side.jobs.status == CANCELLED).sum()) for side in (second, first))
        totals = tuple(float(side.jobs.is_judged.sum()) for side in (second, first))
        effect = measure_difference((hits[0], hits[1]), (totals[0], totals[1]))
        if first.users is not None and second.users is not None:
            draws = [
                _cancelled_draws(side.jobs, users) for side, users in ((second, second.users), (first, first.users))
            ]
            count = min(len(side_draws) for side_draws in draws)
            by_user = measure_draws(effect.value, draws[1][:count] - draws[0][:count])
        verdict = judge_claim(effect, by_user, WORTH_SHARE)
        shares = (hits[1] / totals[1], hits[0] / totals[0])
        sentence = f"{shares[0]:.1%} of the jobs of {names[0]} are cancelled, {shares[1]:.1%} of those of {names[1]}."
    return PaperClaim(
        key="deep_learning_jobs_are_cancelled_more",
        takeaway=None,
        statement=CANCELLED_MORE,
        traces=names,
        verdict=verdict,
        sentence=sentence,
        rests_on="Difference of the cancelled shares of jobs whose end is known. Not supported: 5 points more are excluded.",
        effect_name="cancelled share, deep learning minus HPC",
        effect_unit="share",
        effect=effect,
        effect_by_user=by_user,
        caveats=[*find_user_caveats(verdict, by_user, WORTH_SHARE), *_users_caveats(first, second)],
    )


def _cancelled_draws(jobs: JobColumns, users: Resamples) -> Float64s:
    hits = (jobs.status == CANCELLED).astype(np.float64)
    draws: Float64s = users.shares(hits, jobs.is_judged.astype(np.float64))[:, 0]
    return draws


def _median(values: Float64s) -> float | None:
    present = values[~np.isnan(values)]
    return float(np.median(present)) if present.size else None
