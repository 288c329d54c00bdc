"""Tests of the paper's takeaways about one trace: 2 (larger and longer jobs fail more) and 7 (the elapsed time predicts the run
time). Those that compare traces are in ``comparisons``.

Does not predict run times; only tests whether the elapsed time carries information.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.columns import JobColumns
from clusterscape.analyze.jobs.failures import EndTrend, Failures
from clusterscape.analyze.jobs.intervals import (
    ClaimVerdict,
    Measured,
    PaperClaim,
    Resamples,
    Z,
    find_user_caveats,
    judge_claim,
    measure_draws,
)
from clusterscape.model.arrays import Float64s

TRAIN_SHARE = 0.7
ELAPSED_SHARE = 0.25
MIN_EARLIER = 5
MIN_TESTED = 100
_KEYS: tuple[list[str], ...] = (["user", "size"], ["user"], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class ElapsedTest:
    """Tested on the last 30 % of jobs by submission that ran longer than ``elapsed_s``, a quarter of the mean run time of earlier
    jobs.

    Each is predicted by the median of earlier jobs of its user and size (else of its user, else of all; at least five): of all of
    them, at least the elapsed time (``unaware``), or only of those that ran longer than it (``aware``). Accuracy: min / max of
    prediction and run time, mean over jobs. ``gain``: aware minus unaware; with the interval for these jobs, and with users
    resampled.
    """

    elapsed_s: float
    jobs: int
    aware_accuracy: float
    unaware_accuracy: float
    request_accuracy: float | None
    gain: Measured
    gain_by_user: Measured | None


def measure_elapsed(jobs: JobColumns, random: np.random.Generator) -> ElapsedTest | None:
    """The test of the elapsed time; None if fewer than 100 jobs can be tested. O(n log n)."""
    ran = np.flatnonzero(~np.isnan(jobs.run_s) & (jobs.run_s > 0))
    cut = int(len(ran) * TRAIN_SHARE)
    if cut == 0:
        return None
    elapsed = ELAPSED_SHARE * float(jobs.run_s[ran[:cut]].mean())
    later = ran[cut:]
    tested = later[jobs.run_s[later] > elapsed]
    if len(tested) < MIN_TESTED:
        return None
    frame = pl.DataFrame({"user": jobs.user, "size": jobs.size, "run_s": jobs.run_s})
    earlier, test_jobs = frame[ran[:cut]], frame[tested]
    survivors = earlier.filter(pl.col("run_s") > elapsed)
    if survivors.height < MIN_EARLIER:
        return None
    run = jobs.run_s[tested]
    aware = _accuracy(_predict(survivors, test_jobs), run)
    unaware = _accuracy(np.maximum(_predict(earlier, test_jobs), elapsed), run)
    requested = jobs.requested_s[tested]
    has_request = ~np.isnan(requested)
    request = (
        _accuracy(np.maximum(requested, elapsed)[has_request], run[has_request]) if has_request.mean() > 0.5 else None
    )
    gain = aware - unaware
    half = Z * float(gain.std(ddof=1)) / len(gain) ** 0.5
    value = float(gain.mean())
    return ElapsedTest(
        elapsed_s=elapsed,
        jobs=len(tested),
        aware_accuracy=float(aware.mean()),
        unaware_accuracy=float(unaware.mean()),
        request_accuracy=None if request is None else float(request.mean()),
        gain=Measured(value=value, low=value - half, high=value + half),
        gain_by_user=_by_user(jobs, tested, gain, random),
    )


def _by_user(
    jobs: JobColumns, tested: np.typing.NDArray[np.int64], gain: Float64s, random: np.random.Generator
) -> Measured | None:
    if not jobs.has_users:
        return None
    codes = np.unique(jobs.user[tested], return_inverse=True)[1].astype(np.int64)
    draws = Resamples(codes, random).shares(gain, np.ones(len(gain)))
    return measure_draws(float(gain.mean()), draws[:, 0])


def _accuracy(predicted: Float64s, run_s: Float64s) -> Float64s:
    return np.minimum(predicted, run_s) / np.maximum(predicted, run_s)


def _predict(earlier: pl.DataFrame, test_jobs: pl.DataFrame) -> Float64s:
    """The median of the most specific group of earlier jobs that is large enough."""
    test_jobs = test_jobs.select("user", "size").with_row_index("job")
    columns = []
    for place, keys in enumerate(_KEYS):
        name = f"median_{place}"
        columns.append(name)
        if not keys:
            test_jobs = test_jobs.with_columns(pl.lit(earlier["run_s"].median(), pl.Float64).alias(name))
            continue
        medians = (
            earlier.filter(pl.col("user") >= 0)
            .group_by(keys)
            .agg(pl.col("run_s").median().alias(name), pl.len())
            .filter(pl.col("len") >= MIN_EARLIER)
            .drop("len")
        )
        test_jobs = test_jobs.join(medians, on=keys, how="left")
    return test_jobs.sort("job").select(pl.coalesce(columns))["median_0"].to_numpy()


WORTH_SHARE = 0.05
WORTH_ACCURACY = 0.01
MIN_CLASS_JOBS = 30
MUCH_UNKNOWN = 0.1

LARGER_FAIL_MORE = "Larger jobs fail more often"
LONGER_FAIL_MORE = "Longer jobs fail more often"
ELAPSED_PREDICTS = "The time a job has run predicts how long it will run"
_ENDS_REST = (
    "Jobs in thirds by rank, equal values together; unsuccessful: failed, cancelled or timed out. Supported: the highest third "
    "is above the lowest for these jobs and with users resampled, and no third is significantly below the previous one. Not "
    "supported: a third is significantly below the previous one, or a rise of 5 points is excluded."
)
_ELAPSED_REST = (
    "The last 30 % of jobs by submission that ran longer than a quarter of the mean run time of earlier jobs, predicted by the "
    "median of earlier jobs of the same user and size: of all of them (at least the elapsed time), or only of those that ran "
    "that long. Accuracy is the smaller of prediction and run time divided by the larger."
)


def judge_ends(name: str, failures: Failures | None) -> list[PaperClaim]:
    """Takeaway 2, by size and by run time."""
    size, run = (failures.by_size, failures.by_run_time) if failures else (None, None)
    return [
        _test_rise("larger_jobs_fail_more", LARGER_FAIL_MORE, "size", name, size, _unknown_caveats(failures)),
        _test_rise("longer_jobs_fail_more", LONGER_FAIL_MORE, "run time", name, run, _unknown_caveats(failures)),
    ]


def _unknown_caveats(failures: Failures | None) -> list[str]:
    if failures is None or failures.unknown_share < MUCH_UNKNOWN:
        return []
    return [f"The end of {failures.unknown_share:.0%} of the jobs is unknown; they are excluded."]


def _test_rise(
    key: str, statement: str, property_name: str, name: str, trend: EndTrend | None, caveats: list[str]
) -> PaperClaim:
    verdict, sentence = ClaimVerdict.CANNOT_TELL, f"{name} does not record how its jobs ended."
    if trend is not None:
        verdict = _judge_rise(trend)
        sentence = _describe_rise(trend, property_name, name, verdict)
        caveats = [*caveats, *_rise_caveats(trend, property_name, verdict)]
    return PaperClaim(
        key=key,
        takeaway=2,
        statement=statement,
        traces=[name],
        verdict=verdict,
        sentence=sentence,
        rests_on=_ENDS_REST,
        effect_name=f"unsuccessful share, highest minus lowest third by {property_name}",
        effect_unit="share",
        effect=trend.rise if trend else None,
        effect_by_user=trend.rise_by_user if trend else None,
        caveats=caveats,
    )


def _judge_rise(trend: EndTrend) -> ClaimVerdict:
    has_too_few = trend.rise is None or min(ends.jobs for ends in trend.classes) < MIN_CLASS_JOBS
    if has_too_few or trend.rise is None or _all_ended_alike(trend):
        return ClaimVerdict.CANNOT_TELL
    if trend.falls_at is not None:
        return ClaimVerdict.NOT_SUPPORTED
    return judge_claim(trend.rise, trend.rise_by_user, WORTH_SHARE)


def _all_ended_alike(trend: EndTrend) -> bool:
    """Whether all jobs ended the same way: a trace of completed jobs only has no information about failures."""
    return {ends.unsuccessful.value for ends in trend.classes} in ({0.0}, {1.0})


def _describe_rise(trend: EndTrend, property_name: str, name: str, verdict: ClaimVerdict) -> str:
    if trend.rise is None:
        return f"All jobs of {name} whose end is known have about the same {property_name}."
    if _all_ended_alike(trend):
        return f"All jobs of {name} ended the same way."
    completed = "/".join(f"{1 - ends.unsuccessful.value:.3f}" for ends in trend.classes)
    numbers = f"by {property_name}, lowest first, {completed} of the jobs complete"
    if verdict is ClaimVerdict.SUPPORTED:
        return f"In {name} failure rises with {property_name}: {numbers}."
    if verdict is ClaimVerdict.NOT_SUPPORTED and trend.rise.is_above_zero:
        return f"In {name} failure does not rise steadily with {property_name}, though the top is above the bottom: {numbers}."
    if verdict is ClaimVerdict.NOT_SUPPORTED:
        return f"In {name} failure does not rise with {property_name}: {numbers}."
    if trend.rise.is_above_zero:
        return f"In {name} failure rises with {property_name} ({numbers}), but this depends on a few users."
    return f"{name} has too few jobs to say whether failure rises with {property_name}: {numbers}."


def _rise_caveats(trend: EndTrend, property_name: str, verdict: ClaimVerdict) -> list[str]:
    caveats = find_user_caveats(verdict, trend.rise_by_user, WORTH_SHARE)
    strict = trend.failed_rise
    if strict is not None and verdict is not ClaimVerdict.SUPPORTED and strict.is_above_zero:
        shares = "/".join(f"{ends.failed.value:.3f}" for ends in trend.classes)
        user_note = _note_user_dependence(trend.failed_rise_by_user)
        caveats.append(
            f"Counting only jobs that failed, not those cancelled, the share rises with {property_name} ({shares}){user_note}."
        )
    if strict is not None and verdict is ClaimVerdict.SUPPORTED and strict.is_below_zero:
        shares = "/".join(f"{ends.failed.value:.3f}" for ends in trend.classes)
        caveats.append(
            f"Counting only jobs that failed, not those cancelled, the share falls with {property_name} ({shares})."
        )
    if trend.rise is not None and trend.rise_by_user is None:
        caveats.append("Users are unknown: jobs are assumed to be independent, which makes the interval too narrow.")
    if len(trend.classes) == 2:
        caveats.append(f"So many jobs have the same {property_name} that there are only two classes.")
    return caveats


def _note_user_dependence(by_user: Measured | None) -> str:
    return ", though this depends on a few users" if by_user is not None and not by_user.is_above_zero else ""


def judge_prediction(name: str, test: ElapsedTest | None) -> PaperClaim:
    """Takeaway 7: the elapsed time predicts the run time."""
    verdict, sentence = ClaimVerdict.CANNOT_TELL, f"{name} has too few jobs that ran long enough."
    caveats = []
    if test is not None:
        verdict = judge_claim(test.gain, test.gain_by_user, WORTH_ACCURACY)
        words = {
            ClaimVerdict.SUPPORTED: "the elapsed time improves predictions",
            ClaimVerdict.NOT_SUPPORTED: "the elapsed time does not improve predictions",
            ClaimVerdict.CANNOT_TELL: "predictions with and without the elapsed time do not differ significantly",
        }[verdict]
        sentence = (
            f"In {name} {words}: accuracy {test.aware_accuracy:.3f} instead of {test.unaware_accuracy:.3f} "
            f"for {test.jobs:,} jobs that had run {test.elapsed_s:,.0f} s"
            + ("." if test.request_accuracy is None else f"; the users' requests reach {test.request_accuracy:.3f}.")
        )
        if test.gain_by_user is None:
            caveats.append(
                "Users are unknown: predictions come from all earlier jobs, and jobs are assumed to be independent."
            )
    return PaperClaim(
        key="elapsed_time_predicts",
        takeaway=7,
        statement=ELAPSED_PREDICTS,
        traces=[name],
        verdict=verdict,
        sentence=sentence,
        rests_on=_ELAPSED_REST,
        effect_name="accuracy with the elapsed time minus without",
        effect_unit="share",
        effect=test.gain if test else None,
        effect_by_user=test.gain_by_user if test else None,
        caveats=caveats,
    )


def join_claims(claims: Sequence[PaperClaim]) -> PaperClaim | None:
    """One claim about several traces, "across the systems": it holds only if it holds in each. None for fewer than two."""
    if len(claims) < 2:
        return None
    verdicts = [claim.verdict for claim in claims]
    if all(verdict is ClaimVerdict.SUPPORTED for verdict in verdicts):
        verdict = ClaimVerdict.SUPPORTED
    elif ClaimVerdict.NOT_SUPPORTED in verdicts:
        verdict = ClaimVerdict.NOT_SUPPORTED
    else:
        verdict = ClaimVerdict.CANNOT_TELL
    parts = [
        f"{label} {', '.join(names)}"
        for kind, label in (
            (ClaimVerdict.SUPPORTED, "holds in"),
            (ClaimVerdict.NOT_SUPPORTED, "does not hold in"),
            (ClaimVerdict.CANNOT_TELL, "is undecided in"),
        )
        if (names := [claim.traces[0] for claim in claims if claim.verdict is kind])
    ]
    first = claims[0]
    return PaperClaim(
        key=f"{first.key}_everywhere",
        takeaway=first.takeaway,
        statement=f"{first.statement}, across the systems",
        traces=[claim.traces[0] for claim in claims],
        verdict=verdict,
        sentence=f"It {'; '.join(parts)}.",
        rests_on="The verdicts of each trace: one trace that does not support it refutes a claim about all.",
        effect_name="",
        effect_unit="",
    )
