"""The choice of estimates and intervals of waits: never behind simple guesses, calibrated under change, forward in time."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from clusterscape.analyze.jobs import wait_choice
from clusterscape.analyze.jobs.wait_choice import (
    CANDIDATES,
    NOT_CHOSEN,
    WaitQuestions,
    says_little,
    select_deciding,
    walk_forward,
)
from clusterscape.analyze.jobs.wait_guesses import GUESSES, SIMPLE, guess_waits, select_past_waits
from clusterscape.analyze.jobs.wait_intervals import (
    INTERVALS,
    LEVELS,
    MIDDLE,
    WaitBins,
    measure_coverage,
    split_quarters,
)
from clusterscape.model.arrays import Float64s

COUNT = 3000
EVERY_S = 1800.0


@dataclass
class MadeLog:
    """Forecasts of a made-up log, and what happened."""

    questions: WaitQuestions
    made_s: Float64s
    wait_s: Float64s

    @classmethod
    def build(cls, wait_s: Float64s, simulated_s: Float64s, spread: float, seed: int) -> "MadeLog":
        random = np.random.default_rng(seed)
        count = len(wait_s)
        made = np.sort(random.uniform(0, count * EVERY_S, count))
        bins = WaitBins(random.choice([0.01, 0.05, 0.5], count), random.choice([1.0, 20.0], count))
        plan = simulated_s * random.uniform(2, 8, count)
        queue = random.integers(0, 2, count)
        wait_s = np.maximum(np.rint(wait_s), 1.0)
        past = select_past_waits(made + wait_s, wait_s, bins, queue)
        guesses = guess_waits(past, made, bins, queue, plan)
        sampled = simulated_s[:, None] * np.exp(spread * np.array([-1.6, -1.3, -0.7, 0.0, 0.7, 1.3, 1.6]))
        return cls(WaitQuestions(guesses, sampled, bins), made, wait_s)

    def reported(self) -> Float64s:
        return walk_forward(self.questions, self.made_s, self.wait_s, float(self.made_s[-1]))[0].quantiles_s


def steady(seed: int) -> MadeLog:
    """The simulation knows the wait up to a factor, and is too sure."""
    random = np.random.default_rng(seed)
    wait = 3600 * random.lognormal(0, 1.2, COUNT)
    return MadeLog.build(wait, wait * random.lognormal(0, 0.5, COUNT), 0.1, seed)


def mostly_at_once(seed: int) -> MadeLog:
    """Nine of ten jobs start after the scheduler's cycle, but the simulation of another policy expects hours."""
    random = np.random.default_rng(seed)
    wait = np.where(random.random(COUNT) < 0.9, random.uniform(1, 50, COUNT), random.lognormal(9, 1, COUNT))
    return MadeLog.build(wait, random.lognormal(8, 1, COUNT), 0.5, seed)


def changed(seed: int) -> MadeLog:
    """Waits become twelve times longer in the middle, and the simulation does not see it."""
    random = np.random.default_rng(seed)
    wait = 900 * random.lognormal(0, 0.8, COUNT)
    simulated = 900 * random.lognormal(0, 0.8, COUNT)
    wait[COUNT // 2 :] *= 12
    return MadeLog.build(wait, simulated, 0.8, seed)


def drifting(seed: int) -> MadeLog:
    """Load comes and goes over the weeks."""
    random = np.random.default_rng(seed)
    level = np.exp(1.5 * np.sin(np.arange(COUNT) / 250))
    return MadeLog.build(
        3600 * level * random.lognormal(0, 0.7, COUNT), 3600 * random.lognormal(0, 0.3, COUNT), 0.3, seed
    )


LOGS = [steady, mostly_at_once, changed, drifting]


@pytest.mark.parametrize("build", LOGS)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_simple_guess_is_clearly_better_when_logs_differ(build: Callable[[int], MadeLog], seed: int) -> None:
    log = build(seed)
    first = COUNT // 3
    error = np.median(np.abs(log.reported()[first:, MIDDLE] - log.wait_s[first:]))
    simple = np.median(np.abs(log.questions.guesses_s[first:, SIMPLE] - log.wait_s[first:, None]), axis=0)
    assert error <= 1.05 * simple.min() + 1


@pytest.mark.parametrize("build", LOGS)
@pytest.mark.parametrize("seed", [3, 4])
def test_coverage_is_kept_in_each_quarter_when_the_world_changes(build: Callable[[int], MadeLog], seed: int) -> None:
    log = build(seed)
    first = COUNT // 5
    reported, wait = log.reported()[first:], log.wait_s[first:]
    covered = {coverage.nominal: coverage.covered for coverage in measure_coverage(reported, wait)}
    assert covered[0.9] == pytest.approx(0.9, abs=0.02)
    assert covered[0.8] == pytest.approx(0.8, abs=0.03)
    assert [round(quarter.covered, 3) for quarter in split_quarters(reported, wait)] == pytest.approx(
        [0.9] * 4, abs=0.03
    )
    low, high = INTERVALS[0.9]
    assert (np.diff(reported, axis=1) >= 0).all()
    assert (reported[:, low] >= 0).all()
    assert np.isfinite(reported[:, high]).all()


def test_the_simulation_alone_loses_coverage_and_to_a_constant_when_it_is_of_another_policy() -> None:
    """The property above is not trivial."""
    log = mostly_at_once(5)
    raw = {coverage.nominal: coverage.covered for coverage in measure_coverage(log.questions.sampled_s, log.wait_s)}
    assert raw[0.9] < 0.3
    assert np.median(np.abs(log.questions.sampled_s[:, MIDDLE] - log.wait_s)) > 20 * np.median(log.wait_s)


def floods(seed: int, size: int = 300, count: int = 16) -> MadeLog:
    """Hundreds of jobs come in half a minute and start together; each flood waits as long as it happens to."""
    random = np.random.default_rng(seed)
    jobs = size * count
    made = np.concatenate([flood * 40 * 3600.0 + np.arange(float(size)) / 10 for flood in range(count)])
    wait = np.repeat(np.rint(7200 * random.lognormal(0, 1, count)), size)
    bins, queue = WaitBins(np.full(jobs, 0.01), np.full(jobs, 20.0)), np.zeros(jobs, np.int64)
    guesses = guess_waits(select_past_waits(made + wait, wait, bins, queue), made, bins, queue, 8 * wait)
    sampled = np.full((jobs, 1), 7200.0) * np.linspace(0.9, 1.1, len(LEVELS))
    return MadeLog(WaitQuestions(guesses, sampled, bins), made, wait)


def test_intervals_hold_when_hundreds_of_jobs_wait_for_the_same_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen floods are sixteen outcomes, not five thousand: where all count, the newest flood alone decides."""
    log = floods(1)
    first = len(log.wait_s) // 4
    assert measure_coverage(log.reported()[first:], log.wait_s[first:])[-1].covered > 0.75
    monkeypatch.setattr(wait_choice, "MOST_TOGETHER", 1e9)
    assert measure_coverage(log.reported()[first:], log.wait_s[first:])[-1].covered < 0.5


def test_forecasts_decide_evenly_when_more_than_some_are_open_at_the_same_time() -> None:
    made = np.arange(1000.0)
    assert select_deciding(made, np.full(1000, 20.0)).all()
    assert select_deciding(np.zeros(10), np.full(10, np.inf)).all()
    decides = select_deciding(made, np.full(1000, 250.0))
    assert decides[:25].all()
    assert 45 <= decides[500:].sum() <= 55  # a tenth, because 250 are open
    assert np.diff(np.flatnonzero(decides[500:])).max() <= 11


def test_intervals_are_calibrated_when_thousands_wait_at_the_same_time() -> None:
    """Of the newest 3,000 forecasts no outcome is known: older ones must decide."""
    random = np.random.default_rng(2)
    count, open_count = 7500, 3000
    made = np.sort(random.uniform(0, count * 30.0, count))
    wait = open_count * 30.0 * random.lognormal(0, 0.1, count)
    bins = WaitBins(np.full(count, 0.01), np.full(count, float(open_count)))
    simulated = wait * random.lognormal(0.5, 0.2, count)
    sampled = simulated[:, None] * np.linspace(0.99, 1.01, len(LEVELS))
    log = MadeLog(WaitQuestions(np.repeat(simulated[:, None], len(GUESSES), axis=1), sampled, bins), made, wait)
    reported, wait = log.reported()[6000:], wait[6000:]
    assert measure_coverage(reported, wait)[-1].covered == pytest.approx(0.93, abs=0.06)
    assert measure_coverage(sampled[6000:], wait)[-1].covered < 0.05


def test_later_outcomes_do_not_matter_when_a_forecast_was_made() -> None:
    log = drifting(6)
    other = log.wait_s.copy()
    now = log.made_s[2000]
    is_later = log.made_s + log.wait_s > now
    other[is_later] = (now - log.made_s[is_later] + 1).clip(1) * 50
    reported = walk_forward(log.questions, log.made_s, other, float(log.made_s[-1]))[0].quantiles_s
    assert (reported[:2000] == log.reported()[:2000]).all()
    assert (reported[2200:] != log.reported()[2200:]).any()


def test_a_new_forecast_is_the_same_when_it_is_made_alone_or_in_a_walk() -> None:
    """The live queue asks the chooser, the backtest walks: one code."""
    log = steady(7)
    known_s = log.made_s + log.wait_s
    reported, _ = walk_forward(log.questions, log.made_s, log.wait_s, float(known_s.max()))
    for row in (400, 2000):
        now = float(log.made_s[row])
        before = np.arange(row)
        questions = WaitQuestions(
            log.questions.guesses_s[before],
            log.questions.sampled_s[before],
            WaitBins(log.questions.bins.size_ratio[before], log.questions.bins.ahead[before]),
        )
        waits = np.where(known_s[before] <= now, log.wait_s[before], np.inf)
        _, chooser = walk_forward(questions, log.made_s[before], waits, now)
        one_row = slice(row, row + 1)
        alone = chooser.predict(
            WaitQuestions(
                log.questions.guesses_s[one_row],
                log.questions.sampled_s[one_row],
                WaitBins(log.questions.bins.size_ratio[one_row], log.questions.bins.ahead[one_row]),
            )
        )
        assert alone.quantiles_s[0] == pytest.approx(reported.quantiles_s[row], rel=0.15)
        assert alone.chosen[0] == reported.chosen[row]


def test_the_simulation_is_used_as_it_is_when_too_few_waits_are_known() -> None:
    log = steady(8)
    reported, chooser = walk_forward(log.questions, log.made_s, np.full(COUNT, np.inf), float(log.made_s[-1]))
    assert (reported.quantiles_s == log.questions.sampled_s).all()
    assert set(reported.chosen.tolist()) == {-1}
    assert chooser.count == 0
    assert (NOT_CHOSEN.predict(log.questions).quantiles_s == log.questions.sampled_s).all()


def test_a_constant_is_chosen_when_most_jobs_start_at_once() -> None:
    log = mostly_at_once(9)
    reported, chooser = walk_forward(log.questions, log.made_s, log.wait_s, float(log.made_s[-1]))
    names = {CANDIDATES[index] for index in reported.chosen[COUNT // 2 :].tolist()}
    assert not any("simulation" in name for name in names)
    assert chooser.count == COUNT
    assert np.median(reported.quantiles_s[COUNT // 2 :, MIDDLE]) < 60


def test_guesses_use_only_waits_that_were_over_when_a_job_was_submitted() -> None:
    bins = WaitBins(np.full(5, 0.01), np.zeros(5))
    start = np.array([10.0, 20.0, 30.0, 40.0, 1000.0])
    wait = np.array([4.0, 8.0, 6.0, 0.0, 999.0])
    past = select_past_waits(start, wait, bins, np.array([0, 1, 0, 0, 0]))
    assert past.wait_s.tolist() == [4.0, 8.0, 6.0, 999.0]  # a job that started at once did not wait
    new_bins = WaitBins(np.full(3, 0.01), np.zeros(3))
    guesses = guess_waits(past, np.array([5.0, 30.0, 30.0]), new_bins, np.array([0, 0, 1]), np.full(3, 77.0))
    named = dict(zip(GUESSES, guesses.T.tolist(), strict=True))
    assert named["always 0"] == [0, 0, 0]
    assert named["plan by limits"] == [77, 77, 77]
    assert named["last wait of the queue"] == [77, 6, 8]
    assert named["median so far"] == [77, 6, 6]
    assert named["middle of the shortest half"][1] == 5.0  # of 4 and 6, the first of the two shortest


def test_pace_knows_that_each_job_of_a_burst_waits_longer_when_bursts_repeat() -> None:
    """A thousand jobs are submitted in one second, before any of them starts; the pace is that of the burst before."""
    ahead = np.tile(np.arange(1000.0), 2)
    submit = np.repeat([0.0, 1e6], 1000)
    wait = 2.0 * (ahead + 1)
    bins, queue = WaitBins(np.full(2000, 0.01), ahead), np.zeros(2000, np.int64)
    past = select_past_waits(submit + wait, wait, bins, queue)
    new_bins = WaitBins(np.full(1000, 0.01), ahead[1000:])
    guesses = guess_waits(past, submit[1000:], new_bins, queue[1000:], np.full(1000, 7.0))
    errors = dict(zip(GUESSES, np.median(np.abs(guesses - wait[1000:, None]), axis=0), strict=True))
    assert errors["jobs ahead at the recent pace"] < 1e-9
    assert min(error for name, error in errors.items() if "pace" not in name) > 100


def test_quantiles_are_of_kaplan_and_meier_when_values_are_censored() -> None:
    from clusterscape.analyze.jobs.wait_kernels import find_censored_quantiles

    values = np.array([6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0, 6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0])
    is_known = np.arange(16) < 9
    out = np.empty(3)
    # The survival of Freireich's 6-MP patients, cut after 16: 0.8125 after 6, 0.75 after 7, …; the median is 16 or later.
    find_censored_quantiles(values, is_known, np.ones(16), np.array([0.15, 0.2, 0.99]), out)
    assert out.tolist() == [6.0, 7.0, 23.0]
    find_censored_quantiles(
        np.array([1.0, 2.0, 3.0]), np.ones(3, np.bool_), np.array([1.0, 1.0, 8.0]), np.array([0.5, 0.1]), out
    )
    assert out[0] == 3.0


def test_an_interval_says_little_when_it_spans_more_than_a_day_and_the_wait_twice() -> None:
    quantiles = np.zeros((3, len(LEVELS)))
    quantiles[:, MIDDLE] = [3_600, 3_600, 86_400]
    quantiles[:, -1] = [80_000, 90_000, 90_000]
    assert says_little(quantiles).tolist() == [False, True, False]
