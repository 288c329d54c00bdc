"""The paper's statements that compare systems, as tests between a deep-learning trace and one of classic HPC."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clusterscape.analyze.jobs.columns import STATUSES, JobColumns
from clusterscape.analyze.jobs.intervals import (
    Measured,
    Resamples,
    divide,
    measure_difference,
    measure_draws,
    resample_medians,
)
from clusterscape.analyze.jobs.verdicts import ClaimVerdict, PaperClaim, doubt, flip, judge
from clusterscape.model.jobs import JobStatus
from clusterscape.model.samples import Float64s

SystemKind = Literal["deep_learning", "hpc"]

WORTH_LOG_RATIO = float(np.log(1.1))
WORTH_SHARE = 0.05
CANCELLED = STATUSES.index(JobStatus.CANCELLED)

SHORTER = "Deep-learning jobs are shorter than HPC jobs"
SMALLER = "HPC jobs are heavier: deep-learning jobs take a smaller share of the machine"
CANCELLED_MORE = "Deep-learning jobs are cancelled more often"
_KIND_CAVEAT = "A trace counts as deep learning where its jobs are measured in GPUs; not every GPU job is."


def kind_of(jobs: JobColumns) -> SystemKind:
    """A trace whose jobs are measured in GPUs counts as deep learning."""
    return "deep_learning" if jobs.size_unit == "gpus" else "hpc"


@dataclass(frozen=True)
class Side:
    """One of two traces: its jobs, and the resamples of its users; None where they are not known."""

    jobs: JobColumns
    users: Resamples | None


def compare_systems(sides: Sequence[Side], random: np.random.Generator) -> list[PaperClaim]:
    """Each deep-learning trace with each HPC trace."""
    learning = [side for side in sides if kind_of(side.jobs) == "deep_learning"]
    classic = [side for side in sides if kind_of(side.jobs) == "hpc"]
    if not learning or not classic:
        return [_cannot_compare(sides)]
    return [
        claim
        for one in learning
        for other in classic
        for claim in (
            _compare_run_times(one, other, random),
            _compare_sizes(one, other, random),
            _compare_cancelled(one, other),
        )
    ]


def _cannot_compare(sides: Sequence[Side]) -> PaperClaim:
    return PaperClaim(
        key="deep_learning_jobs_are_shorter",
        takeaway=1,
        statement=SHORTER,
        traces=[side.jobs.name for side in sides],
        verdict=ClaimVerdict.CANNOT_TELL,
        sentence="This takes two traces: one measured in GPUs and one in nodes or processors.",
        rests_on="Nothing to compare with.",
        effect_name="",
        effect_unit="",
    )


def _ratio_of_medians(
    values: tuple[Float64s, Float64s], users: tuple[Resamples | None, Resamples | None], random: np.random.Generator
) -> Measured:
    """First over second, each side resampled by users where they are given, else by jobs."""
    known = [side[~np.isnan(side)] for side in values]
    medians = [resample_medians(side, who, random) for side, who in zip(values, users, strict=True)]
    count = min(len(medians[0]), len(medians[1]))
    draws = divide(medians[0][:count], medians[1][:count])
    return measure_draws(float(np.median(known[0]) / np.median(known[1])), draws)


def _log(ratio: Measured) -> Measured:
    """Above zero where the first is smaller."""
    low, high = (None if end is None else float(np.log(max(end, 1e-12))) for end in (ratio.low, ratio.high))
    return flip(Measured(value=float(np.log(max(ratio.value, 1e-12))), low=low, high=high))


def _probability_smaller(first: Float64s, second: Float64s) -> float:
    """That a job of the first is smaller than one of the second, equal ones counted half (Mann and Whitney)."""
    first, second = first[~np.isnan(first)], np.sort(second[~np.isnan(second)])
    larger = len(second) - np.searchsorted(second, first, side="right")
    equal = np.searchsorted(second, first, side="right") - np.searchsorted(second, first, side="left")
    return float((larger + equal / 2).mean() / len(second))


def _users_caveats(one: Side, other: Side) -> list[str]:
    unknown = [side.jobs.name for side in (one, other) if side.users is None]
    said = f"Users of {' and '.join(unknown)} are not known: those jobs are taken as independent."
    return [_KIND_CAVEAT, *([said] if unknown else [])]


def _compare_run_times(one: Side, other: Side, random: np.random.Generator) -> PaperClaim:
    runs = (one.jobs.run_s, other.jobs.run_s)
    names = [one.jobs.name, other.jobs.name]
    verdict, sentence = ClaimVerdict.CANNOT_TELL, "One of the traces has no run times."
    effect = by_user = None
    medians = [_median(side) for side in runs]
    if medians[0] is not None and medians[1]:
        effect = _ratio_of_medians(runs, (None, None), random)
        by_user = _ratio_of_medians(runs, (one.users, other.users), random)
        verdict = judge(_log(effect), _log(by_user), WORTH_LOG_RATIO)
        shorter = _probability_smaller(*runs)
        sentence = (
            f"Median run time {medians[0]:,.0f} s in {names[0]} against {medians[1]:,.0f} s in {names[1]}, "
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
        caveats=_users_caveats(one, other),
    )


def _compare_sizes(one: Side, other: Side, random: np.random.Generator) -> PaperClaim:
    names = [one.jobs.name, other.jobs.name]
    unstated = [side.jobs.name for side in (one, other) if not side.jobs.total]
    verdict = ClaimVerdict.CANNOT_TELL
    sentence = f"How large the machine of {' and of '.join(unstated)} is, is not known."
    effect = by_user = None
    if one.jobs.total and other.jobs.total:
        shares = (one.jobs.size / one.jobs.total, other.jobs.size / other.jobs.total)
        medians = [_median(side) or 0.0 for side in shares]
        effect = _ratio_of_medians(shares, (None, None), random)
        by_user = _ratio_of_medians(shares, (one.users, other.users), random)
        verdict = judge(_log(effect), _log(by_user), WORTH_LOG_RATIO)
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
        rests_on="Ratio of the median sizes, each as a share of its machine; judged as run times are.",
        effect_name="ratio of median shares of the machine",
        effect_unit="ratio",
        effect=effect,
        effect_by_user=by_user,
        caveats=_users_caveats(one, other),
    )


def _compare_cancelled(one: Side, other: Side) -> PaperClaim:
    names = [one.jobs.name, other.jobs.name]
    silent = [side.jobs.name for side in (one, other) if not side.jobs.is_judged.any()]
    verdict, sentence = ClaimVerdict.CANNOT_TELL, f"{' and '.join(silent)} says nothing about how jobs ended."
    effect = by_user = None
    if not silent:
        hits = tuple(float((side.jobs.status == CANCELLED).sum()) for side in (other, one))
        totals = tuple(float(side.jobs.is_judged.sum()) for side in (other, one))
        effect = measure_difference((hits[0], hits[1]), (totals[0], totals[1]))
        if one.users is not None and other.users is not None:
            draws = [_cancelled_draws(side.jobs, users) for side, users in ((other, other.users), (one, one.users))]
            count = min(len(each) for each in draws)
            by_user = measure_draws(effect.value, draws[1][:count] - draws[0][:count])
        verdict = judge(effect, by_user, WORTH_SHARE)
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
        caveats=[*doubt(verdict, by_user, WORTH_SHARE), *_users_caveats(one, other)],
    )


def _cancelled_draws(jobs: JobColumns, users: Resamples) -> Float64s:
    hits = (jobs.status == CANCELLED).astype(np.float64)
    draws: Float64s = users.shares(hits, jobs.is_judged.astype(np.float64))[:, 0]
    return draws


def _median(values: Float64s) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else None
