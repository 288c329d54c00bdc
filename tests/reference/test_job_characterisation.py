"""What is known of the ALCF and Philly logs: medians, ends by size, repetition, and the verdicts that follow."""

from dataclasses import replace
from functools import cache

import pytest
from servers.reference import reference_data

from clusterscape.analyze.jobs.describe import TracesDescription, describe_traces
from clusterscape.analyze.jobs.intervals import ClaimVerdict, PaperClaim
from clusterscape.collect.job_traces import read_trace

LOGS = {
    "mira": ("sched", "alcf", "mira_2018_lumos.csv.gz"),
    "theta": ("sched", "alcf", "theta_2023_lumos.csv.gz"),
    "thetagpu": ("sched", "alcf", "thetagpu_2023_lumos.csv.gz"),
    "philly": ("sched", "philly", "philly_df_schedule_lumos.csv.gz"),
}
TOTALS = {"mira": 49_152, "theta": 4_392}


@cache
def description(*names: str) -> TracesDescription:
    traces = [replace(read_trace(reference_data(*LOGS[name])), name=name, total=TOTALS.get(name)) for name in names]
    return describe_traces(traces)


def claim_of(described: TracesDescription, key: str) -> PaperClaim:
    return next(claim for claim in described.claims if claim.key == key)


def test_median_run_times_are_those_known_when_philly_and_mira_are_compared() -> None:
    described = description("philly", "mira")
    medians = [trace.run_s.quantiles.p50 for trace in described.traces if trace.run_s.quantiles]
    assert medians == [791, 3646]
    claim = claim_of(described, "deep_learning_jobs_are_shorter")
    assert claim.verdict is ClaimVerdict.SUPPORTED
    assert claim.effect_by_user is not None
    assert claim.effect_by_user.high is not None
    assert claim.effect_by_user.high < 0.5


def test_failure_does_not_rise_with_size_when_mira_is_described() -> None:
    described = description("mira")
    failures = described.traces[0].failures
    assert failures is not None
    passed = [round(1 - size_class.unsuccessful.value, 3) for size_class in failures.by_size.classes]
    assert passed == [0.695, 0.723, 0.694]
    claim = claim_of(described, "larger_jobs_fail_more")
    assert claim.verdict is ClaimVerdict.NOT_SUPPORTED
    assert "failure does not rise with size" in claim.sentence
    assert "0.695/0.723/0.694" in claim.sentence
    # Said of these jobs: resampling users leaves much open, and the claim has to tell.
    assert any("with other users, up to" in caveat for caveat in claim.caveats)


def test_failure_is_not_monotone_in_run_time_when_mira_is_described() -> None:
    described = description("mira")
    failures = described.traces[0].failures
    assert failures is not None
    shares = [time_class.unsuccessful.value for time_class in failures.by_run_time.classes]
    assert shares[1] < shares[0] < shares[2]
    assert claim_of(described, "longer_jobs_fail_more").verdict is ClaimVerdict.NOT_SUPPORTED


@pytest.mark.parametrize(("log", "published"), [("mira", 0.83), ("theta", 0.53)])
def test_repetition_is_as_published_when_top_ten_groups_are_counted(log: str, published: float) -> None:
    repetition = description(log).traces[0].users.repetition
    assert repetition is not None
    assert repetition.top_10_cover.value == pytest.approx(published, abs=0.01)


@pytest.mark.parametrize("log", list(LOGS))
def test_elapsed_time_predicts_when_any_of_the_logs_is_described(log: str) -> None:
    assert claim_of(description(log), "elapsed_time_predicts").verdict is ClaimVerdict.SUPPORTED


def test_utilization_is_plausible_when_the_machine_is_known() -> None:
    mira, theta = (description(log).traces[0].occupancy for log in ("mira", "theta"))
    assert mira is not None
    assert theta is not None
    assert mira.utilization == pytest.approx(0.859, abs=0.002)
    assert theta.over_capacity_share == 0
    # The starts recorded for Mira would need more nodes than it had for a part of the time; the description says so.
    assert mira.over_capacity_share > 0.1


def test_failure_rises_with_size_and_run_time_when_the_cm5_is_described() -> None:
    described = describe_traces([read_trace(reference_data("sched", "pwa", "LANL-CM5-1994-4.1-cln.swf.gz"))])
    assert claim_of(described, "larger_jobs_fail_more").verdict is ClaimVerdict.SUPPORTED
    assert claim_of(described, "longer_jobs_fail_more").verdict is ClaimVerdict.SUPPORTED


def test_waits_are_those_published_when_a_simulated_log_is_described() -> None:
    trace = read_trace(reference_data("sched", "pyss", "KTH-SP2.EASY_reqtime.swf.gz"))
    waiting = describe_traces([trace]).traces[0].waiting
    assert waiting is not None
    assert waiting.wait_s.mean == pytest.approx(6836.87, abs=0.01)
    assert waiting.mean_bounded_slowdown == pytest.approx(92.577, abs=0.001)


def test_takeaway_two_does_not_hold_everywhere_when_four_systems_are_described() -> None:
    described = description("mira", "theta", "thetagpu", "philly")
    assert claim_of(described, "larger_jobs_fail_more_everywhere").verdict is ClaimVerdict.NOT_SUPPORTED
    assert claim_of(described, "elapsed_time_predicts_everywhere").verdict is ClaimVerdict.SUPPORTED
    silent = next(
        claim for claim in described.claims if claim.key == "larger_jobs_fail_more" and claim.traces == ["philly"]
    )
    assert silent.verdict is ClaimVerdict.CANNOT_TELL
