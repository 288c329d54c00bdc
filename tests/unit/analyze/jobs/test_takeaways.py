"""Verdicts on the paper's claims, on traces with planted effects."""

import dataclasses
import json

import numpy as np
import pytest
from clusters.job_histories import make_trace, random_trace

from clusterscape.analyze.jobs.describe import TracesDescription, describe_traces
from clusterscape.analyze.jobs.intervals import ClaimVerdict, Measured, PaperClaim, judge_claim
from clusterscape.errors import QueryError
from clusterscape.model.jobs import JobTrace


def claim_of(description: TracesDescription, key: str) -> PaperClaim:
    return next(claim for claim in description.claims if claim.key == key)


@pytest.mark.parametrize(
    ("effect", "by_user", "verdict"),
    [
        ((0.1, 0.05, 0.15), (0.1, 0.01, 0.2), ClaimVerdict.SUPPORTED),
        ((0.1, 0.05, 0.15), None, ClaimVerdict.SUPPORTED),
        ((0.1, 0.05, 0.15), (0.1, -0.1, 0.3), ClaimVerdict.CANNOT_TELL),
        ((0.0, -0.02, 0.02), (0.0, -0.2, 0.2), ClaimVerdict.NOT_SUPPORTED),
        ((-0.2, -0.3, -0.1), None, ClaimVerdict.NOT_SUPPORTED),
        ((0.0, -0.2, 0.2), None, ClaimVerdict.CANNOT_TELL),
    ],
)
def test_verdict_follows_the_intervals_when_an_effect_is_judged(
    effect: tuple[float, float, float], by_user: tuple[float, float, float] | None, verdict: ClaimVerdict
) -> None:
    def measured(numbers: tuple[float, float, float]) -> Measured:
        return Measured(value=numbers[0], low=numbers[1], high=numbers[2])

    assert judge_claim(measured(effect), None if by_user is None else measured(by_user), 0.05) is verdict


@pytest.mark.parametrize(
    ("failure", "verdict"),
    [
        ((0.1, 0.25, 0.4), ClaimVerdict.SUPPORTED),
        ((0.3, 0.3, 0.3), ClaimVerdict.NOT_SUPPORTED),
        ((0.3, 0.1, 0.4), ClaimVerdict.NOT_SUPPORTED),
        ((0.4, 0.25, 0.1), ClaimVerdict.NOT_SUPPORTED),
    ],
)
def test_takeaway_two_is_as_planted_when_sizes_fail_differently(
    failure: tuple[float, float, float], verdict: ClaimVerdict
) -> None:
    description = describe_traces([random_trace(12_000, failure=failure)])
    assert claim_of(description, "larger_jobs_fail_more").verdict is verdict


def test_verdict_is_open_when_there_are_few_jobs() -> None:
    description = describe_traces([random_trace(60, failure=(0.2, 0.25, 0.3))])
    assert claim_of(description, "larger_jobs_fail_more").verdict is ClaimVerdict.CANNOT_TELL
    assert claim_of(description, "elapsed_time_predicts").verdict is ClaimVerdict.CANNOT_TELL


def test_verdict_is_open_when_a_log_has_only_completed_jobs() -> None:
    claim = claim_of(describe_traces([random_trace(3000, failure=(0.0, 0.0, 0.0))]), "larger_jobs_fail_more")
    assert claim.verdict is ClaimVerdict.CANNOT_TELL
    assert "ended the same way" in claim.sentence


def test_caveat_is_reported_when_many_ends_are_unknown() -> None:
    trace = random_trace(3000)
    status = ["unknown" if place % 3 == 0 else word for place, word in enumerate(trace.frame["status"])]
    odd = make_trace(submit_s=trace.frame["submit_s"], size=trace.size, user=trace.frame["user"], status=status)
    claim = claim_of(describe_traces([odd]), "larger_jobs_fail_more")
    assert "The end of 33% of the jobs is unknown; they are excluded." in claim.caveats


def test_verdict_is_open_when_one_user_causes_the_rise() -> None:
    trace = random_trace(3000, failure=(0.1, 0.1, 0.1), users=30)
    size, user = trace.size.to_numpy(), np.asarray(trace.frame["user"].to_list())
    clumsy = (size == 4) & (np.arange(len(user)) % 2 == 0)
    user[clumsy] = "clumsy"
    status = np.where(clumsy, "failed", trace.frame["status"].to_numpy())
    odd = make_trace(
        submit_s=trace.frame["submit_s"], size=size, user=user, status=status, run_s=trace.frame["run_s"].to_list()
    )
    claim = claim_of(describe_traces([odd]), "larger_jobs_fail_more")
    assert claim.verdict is ClaimVerdict.CANNOT_TELL
    assert "a few users" in claim.sentence


def test_takeaway_one_is_supported_when_gpu_jobs_are_shorter() -> None:
    short = random_trace(2000, name="learning", median_run_s=300)
    long = random_trace(2000, seed=2, name="classic", size_unit="nodes", median_run_s=3000)
    claim = claim_of(describe_traces([short, long]), "deep_learning_jobs_are_shorter")
    assert claim.verdict is ClaimVerdict.SUPPORTED
    assert claim.traces == ["learning", "classic"]
    assert claim.effect is not None
    assert claim.effect.value == pytest.approx(0.1, rel=0.15)


def test_takeaway_one_is_not_supported_when_gpu_jobs_are_longer() -> None:
    long = random_trace(2000, name="learning", median_run_s=3000)
    short = random_trace(2000, seed=2, name="classic", size_unit="nodes", median_run_s=300)
    claim = claim_of(describe_traces([long, short]), "deep_learning_jobs_are_shorter")
    assert claim.verdict is ClaimVerdict.NOT_SUPPORTED


def test_sizes_are_compared_only_when_both_machines_are_known() -> None:
    learning = random_trace(500, name="learning")
    other = random_trace(500, name="classic", size_unit="nodes")
    assert (
        claim_of(describe_traces([learning, other]), "deep_learning_jobs_are_smaller").verdict
        is ClaimVerdict.CANNOT_TELL
    )
    sized = [dataclasses.replace(learning, total=10_000), dataclasses.replace(other, total=100)]
    assert claim_of(describe_traces(sized), "deep_learning_jobs_are_smaller").verdict is ClaimVerdict.SUPPORTED


def test_elapsed_time_predicts_when_jobs_are_either_short_or_long() -> None:
    random = np.random.default_rng(0)
    short = random.random(2000) < 0.6
    runs = np.where(short, 60, 3000) * random.uniform(0.95, 1.05, 2000)
    users = [f"u{code}" for code in random.integers(0, 30, 2000)]
    description = describe_traces([make_trace(submit_s=range(2000), run_s=runs, user=users)])
    claim = claim_of(description, "elapsed_time_predicts")
    assert claim.verdict is ClaimVerdict.SUPPORTED
    elapsed = description.traces[0].elapsed
    assert elapsed is not None
    assert elapsed.aware_accuracy > 0.95
    assert elapsed.unaware_accuracy < 0.5


def test_elapsed_time_does_not_predict_when_all_jobs_run_equally_long() -> None:
    users = [f"u{code % 30}" for code in range(2000)]
    runs = np.random.default_rng(0).uniform(950, 1050, 2000)
    description = describe_traces([make_trace(submit_s=range(2000), run_s=runs, user=users)])
    assert claim_of(description, "elapsed_time_predicts").verdict is ClaimVerdict.NOT_SUPPORTED


def test_one_trace_is_enough_against_a_claim_when_it_is_about_all() -> None:
    rising = random_trace(12_000, name="rising", failure=(0.1, 0.25, 0.4))
    flat = random_trace(12_000, name="flat", seed=2, failure=(0.3, 0.3, 0.3))
    description = describe_traces([rising, flat])
    claim = claim_of(description, "larger_jobs_fail_more_everywhere")
    assert claim.verdict is ClaimVerdict.NOT_SUPPORTED
    assert claim.sentence == "It holds in rising; does not hold in flat."


def test_numbers_are_the_same_when_other_traces_are_described_too() -> None:
    first, other = random_trace(500, name="one"), random_trace(700, seed=3, name="other")
    assert describe_traces([first]).traces[0] == describe_traces([other, first]).traces[1]


@pytest.mark.parametrize(
    "trace",
    [
        make_trace(submit_s=[5]),
        make_trace(submit_s=[0, 0, 0], run_s=[0, 0, 0], wait_s=[0, 0, 0], user=["a", "b", "c"]),
        make_trace(submit_s=[0, 1], run_s=[None, 3.0], wait_s=[None, 1.0], size=[None, 2], status=["failed", "failed"]),
        make_trace(submit_s=range(300), run_s=[0.0] * 300, user=["a", "b"] * 150, status=["completed"] * 300),
    ],
    ids=["one job", "nothing ran", "mostly missing", "all alike"],
)
def test_description_is_plain_json_when_the_trace_is_degenerate(trace: JobTrace) -> None:
    description = describe_traces([trace])
    json.dumps(dataclasses.asdict(description), allow_nan=False)
    assert description.traces[0].jobs == len(trace)


def test_too_many_or_no_traces_are_refused_when_described() -> None:
    trace = random_trace(20)
    with pytest.raises(QueryError, match="1 to 4"):
        describe_traces([trace] * 5)
    with pytest.raises(QueryError, match="1 to 4"):
        describe_traces([])
    with pytest.raises(QueryError, match="has no jobs"):
        describe_traces([make_trace(submit_s=[])])
