"""The paper's takeaways that speak of one trace, as tests: 2 (larger and longer jobs fail more) and 7 (elapsed time predicts)."""

from collections.abc import Sequence

from clusterscape.analyze.jobs.elapsed import ElapsedTest
from clusterscape.analyze.jobs.failures import EndTrend, Failures
from clusterscape.analyze.jobs.intervals import Measured
from clusterscape.analyze.jobs.verdicts import ClaimVerdict, PaperClaim, doubt, judge

WORTH_SHARE = 0.05
WORTH_ACCURACY = 0.01
FEWEST_CLASS_JOBS = 30
MUCH_UNKNOWN = 0.1

LARGER_FAIL_MORE = "Larger jobs fail more often"
LONGER_FAIL_MORE = "Longer jobs fail more often"
ELAPSED_PREDICTS = "The time a job has run predicts how long it will run"
_ENDS_REST = (
    "Jobs in thirds by rank, equal values together; unsuccessful is failed, cancelled or out of time. Supported: the highest "
    "third is above the lowest for these jobs and with users resampled, and no third is surely below the one before. Not "
    "supported: a third is surely below the one before, or a rise of 5 points is excluded."
)
_ELAPSED_REST = (
    "The last 30 % of jobs by submission that ran past a quarter of the earlier jobs' mean run time, predicted by the median of "
    "earlier jobs of the same user and size: all of them (at least the elapsed time), or only those that ran that long. Accuracy "
    "is the smaller of prediction and run time over the larger."
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
    return [f"How they ended is not known of {failures.unknown_share:.0%} of the jobs, which are left out."]


def _test_rise(
    key: str, statement: str, what: str, name: str, trend: EndTrend | None, caveats: list[str]
) -> PaperClaim:
    verdict, sentence = ClaimVerdict.CANNOT_TELL, f"{name} does not say how its jobs ended."
    if trend is not None:
        verdict = _judge_rise(trend)
        sentence = _say_rise(trend, what, name, verdict)
        caveats = [*caveats, *_rise_caveats(trend, what, verdict)]
    return PaperClaim(
        key=key,
        takeaway=2,
        statement=statement,
        traces=[name],
        verdict=verdict,
        sentence=sentence,
        rests_on=_ENDS_REST,
        effect_name=f"unsuccessful share, highest minus lowest third by {what}",
        effect_unit="share",
        effect=trend.rise if trend else None,
        effect_by_user=trend.rise_by_user if trend else None,
        caveats=caveats,
    )


def _judge_rise(trend: EndTrend) -> ClaimVerdict:
    few = trend.rise is None or min(each.jobs for each in trend.classes) < FEWEST_CLASS_JOBS
    if few or trend.rise is None or _ends_alike(trend):
        return ClaimVerdict.CANNOT_TELL
    if trend.falls_at is not None:
        return ClaimVerdict.NOT_SUPPORTED
    return judge(trend.rise, trend.rise_by_user, WORTH_SHARE)


def _ends_alike(trend: EndTrend) -> bool:
    """A log of completed jobs only says nothing about failure."""
    return {each.unsuccessful.value for each in trend.classes} in ({0.0}, {1.0})


def _say_rise(trend: EndTrend, what: str, name: str, verdict: ClaimVerdict) -> str:
    if trend.rise is None:
        return f"All jobs of {name} that ended in a known way have about the same {what}."
    if _ends_alike(trend):
        return f"Every job of {name} is said to have ended the same way."
    passed = "/".join(f"{1 - each.unsuccessful.value:.3f}" for each in trend.classes)
    numbers = f"by {what}, lowest first, {passed} of the jobs complete"
    if verdict is ClaimVerdict.SUPPORTED:
        return f"In {name} failure rises with {what}: {numbers}."
    if verdict is ClaimVerdict.NOT_SUPPORTED and trend.rise.is_above_zero:
        return f"In {name} failure does not rise steadily with {what}, though the top is above the bottom: {numbers}."
    if verdict is ClaimVerdict.NOT_SUPPORTED:
        return f"In {name} failure does not rise with {what}: {numbers}."
    if trend.rise.is_above_zero:
        return (
            f"In {name} failure rises with {what} ({numbers}), but that hangs on a few users: with others it might not."
        )
    return f"{name} has too few jobs to say whether failure rises with {what}: {numbers}."


def _rise_caveats(trend: EndTrend, what: str, verdict: ClaimVerdict) -> list[str]:
    found = doubt(verdict, trend.rise_by_user, WORTH_SHARE)
    strict = trend.failed_rise
    if strict is not None and verdict is not ClaimVerdict.SUPPORTED and strict.is_above_zero:
        shares = "/".join(f"{each.failed.value:.3f}" for each in trend.classes)
        hangs = _hangs_on_users(trend.failed_rise_by_user)
        found.append(
            f"Counting only jobs that failed, not those cancelled, the share rises with {what} ({shares}){hangs}."
        )
    if strict is not None and verdict is ClaimVerdict.SUPPORTED and strict.is_below_zero:
        shares = "/".join(f"{each.failed.value:.3f}" for each in trend.classes)
        found.append(f"Counting only jobs that failed, not those cancelled, the share falls with {what} ({shares}).")
    if trend.rise is not None and trend.rise_by_user is None:
        found.append("Users are not known: jobs are taken as independent, which makes the interval too narrow.")
    if len(trend.classes) == 2:
        found.append(f"So many jobs share one {what} that there are only two classes.")
    return found


def _hangs_on_users(by_user: Measured | None) -> str:
    return ", though that hangs on a few users" if by_user is not None and not by_user.is_above_zero else ""


def judge_prediction(name: str, test: ElapsedTest | None) -> PaperClaim:
    """Takeaway 7."""
    verdict, sentence = ClaimVerdict.CANNOT_TELL, f"{name} has too few jobs that ran long enough."
    caveats = []
    if test is not None:
        verdict = judge(test.gain, test.gain_by_user, WORTH_ACCURACY)
        words = {
            ClaimVerdict.SUPPORTED: "knowing the elapsed time makes predictions better",
            ClaimVerdict.NOT_SUPPORTED: "knowing the elapsed time does not make predictions better",
            ClaimVerdict.CANNOT_TELL: "predictions with and without the elapsed time cannot be told apart",
        }[verdict]
        sentence = (
            f"In {name} {words}: accuracy {test.aware_accuracy:.3f} instead of {test.unaware_accuracy:.3f} "
            f"for {test.jobs:,} jobs that had run {test.elapsed_s:,.0f} s"
            + ("." if test.request_accuracy is None else f"; the users' requests reach {test.request_accuracy:.3f}.")
        )
        if test.gain_by_user is None:
            caveats.append(
                "Users are not known: predictions come from all earlier jobs, and jobs are taken as independent."
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
    """One claim about several traces, "across the systems": it holds only where it holds in each. None of fewer than two."""
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
            (ClaimVerdict.CANNOT_TELL, "cannot be told in"),
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
        rests_on="The verdicts of each trace: one that does not show it is enough against a claim about all.",
        effect_name="",
        effect_unit="",
    )
