"""The compiled simulation compared with the plain scheduler, and properties that hold for every trace."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schedulers.plain import PlainJob, Score, by_submission, simulate_plainly

from clusterscape.errors import QueryError, StoppedError
from clusterscape.simulate.batch import (
    BACKFILLS,
    PRESETS,
    Backfill,
    BackfillKind,
    BatchJobs,
    Scenario,
    Schedule,
    Semantics,
    compare_with_fcfs,
    compute_measures,
    find_policy,
    jitter,
    measure_spread,
    policy_names,
    simulate,
)

TOTAL = 8
PATIENT = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


def make_jobs(rows: list[tuple[int, int, int, int, int]]) -> BatchJobs:
    """From (seconds after the one before, run, estimate beyond it, processors, user)."""
    gaps, runs, beyond, sizes, users = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    places = np.arange(len(rows), dtype=np.int64)
    return BatchJobs(places, np.cumsum(gaps), runs, runs + beyond, runs + beyond, sizes, users, places)


@st.composite
def job_lists(draw: Any, is_exact: bool = False) -> BatchJobs:
    beyond = st.just(0) if is_exact else st.integers(0, 12)
    row = st.tuples(st.integers(0, 4), st.integers(1, 12), beyond, st.integers(1, TOTAL), st.integers(0, 2))
    return make_jobs(draw(st.lists(row, min_size=1, max_size=24)))


def scenario(jobs: BatchJobs, kind: BackfillKind, how: Semantics, policy: str = "fcfs") -> Scenario:
    return Scenario(jobs, TOTAL, find_policy(policy), Backfill(kind, 0.5, 3.0), "request", how)


def promises_of(schedule: Schedule) -> list[int | None]:
    given_ = zip(schedule.promise_s.tolist(), schedule.has_promise.tolist(), strict=True)
    return [promise if has else None for promise, has in given_]


SEMANTICS = {
    "clusterscape": PRESETS["clusterscape"],
    "pyss": PRESETS["pyss"],
    "dirlab": PRESETS["dirlab"],
    "poster": PRESETS["poster"],
    "ends first": replace(PRESETS["pyss"], same_time="end_first", freed="at_end"),
    "no extra": replace(PRESETS["clusterscape"], extra_nodes=False, bound="strict"),
}


@pytest.mark.parametrize("name", SEMANTICS)
@pytest.mark.parametrize("kind", ["none", "easy", "easy-sjbf"])
@PATIENT
@given(jobs=job_lists())
def test_starts_and_promises_are_those_of_the_plain_scheduler_when_backfilling(
    jobs: BatchJobs, kind: BackfillKind, name: str
) -> None:
    setup = scenario(jobs, kind, SEMANTICS[name])
    ours = simulate(setup)
    plain = simulate_plainly(jobs, TOTAL, setup.backfill, setup.semantics)
    assert ours.start_s.tolist() == [job.start_s for job in plain]
    assert promises_of(ours) == [job.promise_s for job in plain]


@pytest.mark.parametrize("name", ["dirlab", "poster", "no extra"])
@pytest.mark.parametrize("kind", ["relaxed", "adaptive", "frugal"])
@PATIENT
@given(jobs=job_lists())
def test_starts_are_those_of_the_plain_scheduler_when_promises_are_relaxed(
    jobs: BatchJobs, kind: BackfillKind, name: str
) -> None:
    setup = scenario(jobs, kind, SEMANTICS[name])
    plain = simulate_plainly(jobs, TOTAL, setup.backfill, setup.semantics)
    assert simulate(setup).start_s.tolist() == [job.start_s for job in plain]


@pytest.mark.parametrize("name", ["clusterscape", "pyss"])
@PATIENT
@given(jobs=job_lists())
def test_starts_and_promises_are_those_of_the_plain_scheduler_when_conservative(jobs: BatchJobs, name: str) -> None:
    setup = scenario(jobs, "conservative", SEMANTICS[name])
    ours = simulate(setup)
    plain = simulate_plainly(jobs, TOTAL, setup.backfill, setup.semantics)
    assert ours.start_s.tolist() == [job.start_s for job in plain]
    assert promises_of(ours) == [job.promise_s for job in plain]


def by_wfp3(job: PlainJob, now_s: int) -> float:
    ratio = (now_s - job.submit_s) / job.estimate_s
    return -(ratio * ratio * ratio) * job.processors


def by_estimate(job: PlainJob, now_s: int) -> float:
    return float(job.estimate_s)


def by_size(job: PlainJob, now_s: int) -> float:
    return float(-job.processors)


@pytest.mark.parametrize(
    ("policy", "score"),
    [("fcfs", by_submission), ("sjf", by_estimate), ("size-priority", by_size), ("wfp3", by_wfp3)],
)
@pytest.mark.parametrize("kind", ["none", "easy", "conservative", "frugal"])
@PATIENT
@given(jobs=job_lists())
def test_starts_are_those_of_the_plain_scheduler_when_another_order_rules(
    jobs: BatchJobs, kind: BackfillKind, policy: str, score: Score
) -> None:
    setup = scenario(jobs, kind, PRESETS["clusterscape"], policy)
    plain = simulate_plainly(jobs, TOTAL, setup.backfill, setup.semantics, score)
    assert simulate(setup).start_s.tolist() == [job.start_s for job in plain]


@pytest.mark.parametrize("policy", policy_names())
@pytest.mark.parametrize("kind", BACKFILLS)
@settings(PATIENT, max_examples=8)
@given(jobs=job_lists())
def test_machine_is_never_overfilled_and_every_job_starts_when_any_rules_apply(
    jobs: BatchJobs, kind: BackfillKind, policy: str
) -> None:
    for how in (PRESETS["clusterscape"], PRESETS["dirlab"]):
        schedule = simulate(scenario(jobs, kind, how, policy))
        assert (schedule.wait_s >= 0).all()
        for moment in schedule.start_s:
            is_running = (schedule.start_s <= moment) & (moment < schedule.end_s)
            assert jobs.processors[is_running].sum() <= TOTAL


@PATIENT
@given(jobs=job_lists(is_exact=True))
def test_head_starts_by_its_promise_when_estimates_are_exact(jobs: BatchJobs) -> None:
    for kind in ("easy", "easy-sjbf"):
        schedule = simulate(scenario(jobs, kind, PRESETS["clusterscape"]))
        held = schedule.has_promise
        assert (schedule.start_s[held] <= schedule.promise_s[held]).all()


@PATIENT
@given(jobs=job_lists())
def test_no_promise_moves_back_when_conservative_promises_are_fixed(jobs: BatchJobs) -> None:
    schedule = simulate(scenario(jobs, "conservative", replace(PRESETS["clusterscape"], promise="fixed")))
    held = schedule.has_promise
    assert (schedule.start_s[held] <= schedule.promise_s[held]).all()


@PATIENT
@given(jobs=job_lists())
def test_starts_follow_submission_when_nothing_may_overtake(jobs: BatchJobs) -> None:
    assert (np.diff(simulate(scenario(jobs, "none", PRESETS["clusterscape"])).start_s) >= 0).all()


@settings(PATIENT, max_examples=20)
@given(jobs=job_lists(), seed=st.integers(0, 99))
def test_schedule_and_fingerprint_are_the_same_when_nothing_changed(jobs: BatchJobs, seed: int) -> None:
    setup, same_setup = (scenario(jobs, "easy++", PRESETS["pyss"]) for _ in range(2))
    assert setup.fingerprint() == same_setup.fingerprint()
    assert simulate(setup).start_s.tolist() == simulate(same_setup).start_s.tolist()
    assert setup.fingerprint() != replace(setup, semantics=PRESETS["dirlab"]).fingerprint()
    changed = jitter(setup, np.random.default_rng(seed))
    assert (changed.fingerprint() == setup.fingerprint()) == (changed.jobs.run_s == jobs.run_s).all()


def test_candidate_is_tested_with_its_run_when_semantics_say_so() -> None:
    # 6 of 8 until 10; the head wants 8; a job of 2 runs 5 s but asks for 20.
    jobs = make_jobs([(0, 10, 0, 6, 0), (1, 5, 0, 8, 0), (1, 5, 15, 2, 0)])
    no_extra = replace(PRESETS["clusterscape"], extra_nodes=False)
    assert simulate(scenario(jobs, "easy", no_extra)).start_s.tolist() == [0, 10, 15]
    actual = replace(no_extra, candidate_time="actual")
    assert simulate(scenario(jobs, "easy", actual)).start_s.tolist() == [0, 10, 2]


def test_prediction_is_corrected_when_a_job_outlives_it() -> None:
    # The user's first two jobs ran 10 s: the third is predicted 10 s of its 1,000 and runs 200.
    jobs = make_jobs([(0, 10, 990, 8, 0), (0, 10, 990, 8, 0), (100, 200, 800, 8, 0), (1, 5, 5, 8, 1)])
    schedule = simulate(scenario(jobs, "easy++", PRESETS["pyss"]))
    assert schedule.start_s.tolist() == [0, 10, 100, 300]
    assert promises_of(schedule)[3] == 110


def test_measures_are_those_worked_out_by_hand_when_a_job_waits() -> None:
    jobs = make_jobs([(0, 10, 0, 8, 0), (0, 4, 0, 4, 0)])
    measures = compute_measures(simulate(scenario(jobs, "easy", PRESETS["clusterscape"])))
    assert measures is not None
    assert (measures.jobs, measures.wait_s, measures.promised_jobs, measures.violation_s) == (2, 5.0, 1, 0.0)
    assert measures.bounded_slowdown == pytest.approx((1.0 + 14 / 10) / 2)
    assert measures.utilization == pytest.approx((80 + 16) / (8 * 14))


def test_violation_is_missing_when_no_job_held_a_reservation() -> None:
    measures = compute_measures(simulate(scenario(make_jobs([(0, 3, 0, 1, 0)]), "easy", PRESETS["clusterscape"])))
    assert measures is not None
    assert measures.violation_s is None


def test_spread_holds_the_mean_when_run_times_jitter() -> None:
    jobs = make_jobs([(2, 5 + place % 7, 20, 1 + place % 8, 0) for place in range(60)])
    spreads = measure_spread(scenario(jobs, "easy", PRESETS["clusterscape"]), simulate, runs=8)
    wait = spreads["wait_s"]
    assert wait.low <= wait.mean <= wait.high
    assert wait.sd > 0
    assert wait.differs_from(wait.mean + 3 * wait.sd)
    assert not wait.differs_from(wait.mean + wait.sd)


def test_least_used_user_goes_first_when_shares_are_fair() -> None:
    rows = [(0, 100, 0, 8, 0), (1, 10, 0, 8, 0), (1, 10, 0, 8, 1)]
    schedule = simulate(scenario(make_jobs(rows), "none", PRESETS["clusterscape"], "fair-share"))
    assert schedule.start_s.tolist() == [0, 110, 100]


def test_choices_are_listed_when_a_policy_or_backfill_strategy_is_unknown() -> None:
    with pytest.raises(QueryError, match="unknown policy 'fifo'") as caught:
        find_policy("fifo")
    assert "fcfs" in (caught.value.hint or "")
    with pytest.raises(QueryError, match="unknown backfill strategy"):
        Backfill("lazy")  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "fair-share"])
@PATIENT
@given(jobs=job_lists())
def test_easy_plus_plus_is_shortest_backfilled_first_by_predictions(jobs: BatchJobs, policy: str) -> None:
    how = PRESETS["clusterscape"]
    setup = scenario(jobs, "easy++", how, policy)
    other_setup = replace(scenario(jobs, "easy-sjbf", how, policy), estimates="predicted")
    assert simulate(setup).start_s.tolist() == simulate(other_setup).start_s.tolist()


@pytest.mark.parametrize("kind", BACKFILLS)
@PATIENT
@given(jobs=job_lists())
def test_predictions_are_requests_when_nobody_has_run_twice(jobs: BatchJobs, kind: BackfillKind) -> None:
    strangers = replace(jobs, user=np.arange(len(jobs)))
    requested = scenario(strangers, "easy-sjbf" if kind == "easy++" else kind, PRESETS["clusterscape"])
    predicted = replace(scenario(strangers, kind, PRESETS["clusterscape"]), estimates="predicted")
    assert simulate(predicted).start_s.tolist() == simulate(requested).start_s.tolist()


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "fair-share"])
@pytest.mark.parametrize("kind", ["easy", "easy-sjbf", "conservative", "relaxed"])
@PATIENT
@given(jobs=job_lists())
def test_a_perfect_model_is_as_good_as_actual_run_times(jobs: BatchJobs, kind: BackfillKind, policy: str) -> None:
    knowing = scenario(replace(jobs, estimate_s=jobs.run_s), kind, PRESETS["clusterscape"], policy)
    actual = replace(knowing, estimates="actual")
    perfect = replace(knowing, jobs=replace(jobs, predictions_s=jobs.run_s[:, None]), estimates="boosted")
    assert simulate(perfect).start_s.tolist() == simulate(actual).start_s.tolist()
    assert perfect.fingerprint() != replace(perfect, jobs=jobs).fingerprint()


@pytest.mark.parametrize("kind", BACKFILLS)
@PATIENT
@given(jobs=job_lists())
def test_a_model_without_predictions_falls_back_on_the_last_two(jobs: BatchJobs, kind: BackfillKind) -> None:
    silent = replace(jobs, predictions_s=np.zeros((len(jobs), 3), np.int64))
    predicted = replace(scenario(jobs, kind, PRESETS["clusterscape"]), estimates="predicted")
    learned = replace(scenario(silent, kind, PRESETS["clusterscape"]), estimates="elapsed-aware")
    assert simulate(learned).start_s.tolist() == simulate(predicted).start_s.tolist()


def test_second_prediction_of_a_model_holds_back_a_job_when_the_first_was_exceeded() -> None:
    # A wide job waits for the running one; a narrow one asks for 40 s and may backfill if the running one takes longer.
    rows = [(0, 50, 50, 6, 0), (1, 10, 0, 8, 1), (10, 30, 10, 2, 2)]
    jobs = make_jobs(rows)
    none = [0, 0]
    once = replace(jobs, predictions_s=np.array([[5, 0], none, none]))
    twice = replace(jobs, predictions_s=np.array([[5, 90], none, none]))
    starts = [
        simulate(replace(scenario(model, "easy", PRESETS["clusterscape"]), estimates="elapsed-aware")).start_s[2]
        for model in (once, twice)
    ]
    assert starts[1] == 11  # predicted until 90 s: 40 s fit before the wide job
    assert starts[0] >= starts[1]


@pytest.mark.parametrize(("kind", "policy"), [("conservative", "fcfs"), ("easy", "wfp3"), ("easy", "fcfs")])
def test_simulation_is_aborted_when_it_is_stopped(kind: BackfillKind, policy: str) -> None:
    jobs = make_jobs([(1, 5, 0, 4, 0)] * 20)
    with pytest.raises(StoppedError):
        simulate(scenario(jobs, kind, PRESETS["clusterscape"], policy), np.array([0, 1]))


def test_fairness_and_waits_by_size_are_reported_when_the_largest_go_first() -> None:
    rows = [(0, 4000, 0, 8, 0), *[(1, 4000, 0, 1, 1)] * 8, *[(1, 4000, 0, 8, 2)] * 4]
    schedule = simulate(scenario(make_jobs(rows), "easy", PRESETS["clusterscape"], "size-priority"))
    measures = compute_measures(schedule)
    assert measures is not None
    assert measures.fairness is not None
    assert 0 < measures.fairness < 1
    starved = {size_class.high: size_class.is_starved for size_class in compare_with_fcfs(schedule, simulate)}
    assert starved == {1: True, 8: False}
