"""Run-time prediction on planted user behavior: available history, learned values and coverage of quantiles."""

import numpy as np
import polars as pl
import pytest

from clusterscape.analyze.jobs.features import FEATURES, JobTable, RunHistory, to_job_table
from clusterscape.analyze.jobs.intervals import Shifts, cut_bins, find_shifts, single_bin
from clusterscape.analyze.jobs.runtime import (
    LEVELS,
    LastTwo,
    RequestedTime,
    compute_accuracy,
    draw_moments,
    find_most_accurate,
)
from clusterscape.analyze.jobs.runtime_contest import choose_lately
from clusterscape.analyze.jobs.runtime_forest import train_elapsed
from clusterscape.analyze.jobs.runtime_report import bootstrap_mean, compare_predictors
from clusterscape.analyze.jobs.runtime_similar import SimilarJobs
from clusterscape.errors import QueryError


def make_jobs(count: int = 1500, seed: int = 3) -> JobTable:
    """Users 0–4 run 600·(user + 1) s; a third of all jobs fail within a minute; every job requests four hours."""
    random = np.random.default_rng(seed)
    user = random.integers(0, 5, count)
    fails = random.random(count) < 1 / 3
    run = np.where(fails, random.uniform(5, 60, count), 600.0 * (user + 1) * random.lognormal(0, 0.1, count))
    submit = np.sort(random.uniform(0, 40 * 86_400, count))
    return to_job_table(
        pl.DataFrame(
            {
                "user": [f"u{number}" for number in user],
                "project": ["p"] * count,
                "queue": ["q"] * count,
                "submit_s": submit,
                "start_s": submit + 60,
                "run_s": run,
                "size": random.integers(1, 5, count).astype(float),
                "requested_s": [14_400.0] * count,
                "status": ["failed" if has_failed else "completed" for has_failed in fails],
            }
        )
    )


def test_only_ended_jobs_are_used_when_a_job_is_described() -> None:
    jobs = to_job_table(
        pl.DataFrame(
            {
                "user": ["a", "a", "a", "b"],
                "project": [None, None, None, None],
                "queue": ["q"] * 4,
                "submit_s": [0.0, 0.0, 0.0, 0.0],
                "start_s": [0.0, 0.0, 0.0, 0.0],
                "run_s": [100.0, 200.0, 400.0, None],
                "size": [1.0, 1.0, 1.0, 1.0],
                "requested_s": [1000.0] * 4,
                "status": ["completed", "failed", "completed", "unknown"],
            },
            schema_overrides={"project": pl.String()},
        )
    )
    history = RunHistory(jobs)
    encoded = history.encode(jobs).take(np.array([0, 0, 0, 3]))
    at, elapsed = np.array([99.0, 250.0, 400.0, 1e6]), np.array([0.0, 150.0, 0.0, 0.0])
    table = history.describe(encoded, at, elapsed)
    name = FEATURES.index
    assert table[:, name("user_count")].tolist() == pytest.approx([0.0, np.log(3), np.log(4), 0.0])
    assert np.isnan(table[0, name("user_last")])
    assert np.exp(table[1, name("user_last")]) == pytest.approx(200)
    assert table[1, name("user_outlived")] == 0.5  # one of two ran longer than 150 s
    assert np.exp(table[1, name("user_outlived_median")]) == pytest.approx(200)
    assert table[2, name("user_completed")] == pytest.approx(2 / 3)
    assert np.isnan(table[3, name("project_last")])  # an unknown project matches no other
    assert table[3, name("all_count")] == pytest.approx(np.log(4))


def test_last_two_runs_are_averaged_when_a_user_has_them() -> None:
    jobs = make_jobs(400)
    history = RunHistory(jobs)
    rows = np.array([0, 399])
    predicted = LastTwo(history).predict(history.encode(jobs).take(rows), jobs.submit_s[rows], np.zeros(2))
    ended = np.flatnonzero(
        (jobs.end_s <= jobs.submit_s[399]) & (jobs.frame["user"] == jobs.frame["user"][399]).to_numpy()
    )
    last = ended[np.argsort(jobs.end_s[ended])][-2:]
    assert predicted.tolist() == pytest.approx([14_400.0, jobs.run_s[last].mean()])


def test_elapsed_time_rules_out_failures_when_a_job_outlives_them() -> None:
    jobs = make_jobs()
    history = RunHistory(jobs)
    cut = 1000
    aware = train_elapsed(jobs, history, float(jobs.submit_s[cut]))
    rows = np.arange(cut, len(jobs))
    rows = rows[jobs.run_s[rows] > 120]
    elapsed = np.full(len(rows), 120.0)
    encoded = history.encode(jobs).take(rows)
    predicted = aware.predict(encoded, jobs.start_s[rows] + 120, elapsed)
    assert compute_accuracy(predicted, jobs.run_s[rows]).mean() > 0.88
    at_word = RequestedTime().predict(encoded, jobs.submit_s[rows], elapsed)
    assert compute_accuracy(at_word, jobs.run_s[rows]).mean() < 0.2
    quantiles = aware.quantiles(encoded, jobs.start_s[rows] + 120, elapsed)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert (quantiles > 120).all()
    # Coverage holds over random moments, not at one elapsed time.
    pairs = draw_moments(jobs, np.arange(cut, len(jobs)), np.random.default_rng(9))
    met = aware.quantiles(history.encode(jobs).take(pairs.row), pairs.at_s, pairs.elapsed_s)
    under = (jobs.run_s[pairs.row] > met[:, LEVELS.tolist().index(0.9)]).mean()
    assert under == pytest.approx(0.1, abs=0.08)  # 250 jobs calibrate it


def test_report_compares_all_predictors_when_the_history_is_long_enough() -> None:
    report = compare_predictors(make_jobs())
    assert report.tested == 450
    first, later = report.tables
    names = ["user request", "Last2", "similar jobs", "LightGBM", "elapsed-aware", "best lately"]
    for table in (first, later):
        assert [row.name for row in table.rows] == names
        assert sum(share.ratio for share in table.chosen) == pytest.approx(1)
        accuracy = {row.name: row.accuracy.value for row in table.rows}
        assert accuracy["best lately"] >= max(accuracy[name] for name in names[:3]) - 0.005
    assert later.elapsed_s > 0
    best = max(later.rows[:-1], key=lambda row: row.accuracy.value)
    assert best.name == "elapsed-aware"
    assert best.accuracy.low <= best.accuracy.value <= best.accuracy.high
    assert report == compare_predictors(make_jobs())


def test_learning_is_refused_when_too_few_jobs_ended() -> None:
    with pytest.raises(QueryError, match="too few"):
        compare_predictors(make_jobs(40))


def test_similar_jobs_share_their_name_when_only_its_numbers_differ() -> None:
    count = 60
    names = [f"train_{number}" if number % 2 else f"eval-{number}" for number in range(count)]
    jobs = to_job_table(
        pl.DataFrame(
            {
                "name": names,
                "user": ["a"] * count,
                "project": ["p"] * count,
                "queue": ["q"] * count,
                "submit_s": np.arange(count) * 10_000.0,
                "start_s": np.arange(count) * 10_000.0,
                "run_s": [5000.0 if number % 2 else 100.0 for number in range(count)],
                "size": [1.0] * count,
                "requested_s": [9000.0] * count,
                "status": ["completed"] * count,
            }
        )
    )
    history = RunHistory(jobs)
    rows = np.arange(10, count)
    encoded, at = history.encode(jobs).take(rows), jobs.submit_s[rows]
    predicted = SimilarJobs(history).predict(encoded, at, np.zeros(len(rows)))
    assert predicted == pytest.approx(jobs.run_s[rows])
    # Of the evaluations none ran so long: the typical longer job of the user counts.
    later = SimilarJobs(history).predict(encoded, at, np.full(len(rows), 200.0))
    assert later == pytest.approx(np.full(len(rows), 5000.0))
    nameless = to_job_table(jobs.frame.drop("name").with_columns(
        submit_s=jobs.submit_s, start_s=jobs.start_s, run_s=jobs.run_s, status=pl.lit("completed")))  # fmt: skip
    history = RunHistory(nameless)
    predicted = SimilarJobs(history).predict(history.encode(nameless).take(rows), at, np.zeros(len(rows)))
    assert set(np.round(predicted).tolist()) <= {100.0, 707.0, 5000.0}  # a median of logarithms
    assert np.isfinite(SimilarJobs(history).predict(history.encode(nameless), jobs.submit_s, np.zeros(count))).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_best_lately_is_not_behind_the_best_predictor_when_logs_change(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = 4000
    run = random.lognormal(7, 1, count)
    made_s = np.sort(random.uniform(0, 1e7, count))
    noise = np.where(np.arange(count)[:, None] < count // 2, [0.2, 0.8, 1.5], [1.5, 0.8, 0.2])
    predicted = run[:, None] * np.exp(noise * random.normal(0, 1, (count, 3)))
    chosen = choose_lately(predicted, run, made_s, made_s + run, random.integers(-1, 30, count))
    accuracy = compute_accuracy(predicted, run[:, None])
    mixed = accuracy[np.arange(count), chosen].mean()
    assert mixed > accuracy.mean(axis=0).max() + 0.1
    ideal = np.where(np.arange(count) < count // 2, accuracy[:, 0], accuracy[:, 2]).mean()
    assert mixed > ideal - 0.08


def test_users_differ_in_their_best_predictor_when_each_is_constant() -> None:
    random = np.random.default_rng(5)
    count = 3000
    run, user = random.lognormal(7, 1, count), random.integers(0, 10, count)
    made_s = np.sort(random.uniform(0, 1e7, count))
    is_first = (user % 2 == 0)[:, None] == np.array([True, False])
    predicted = run[:, None] * np.where(is_first, 1.1, 4.0)
    chosen = choose_lately(predicted, run, made_s, made_s + run, user)
    assert (chosen[count // 2 :] == user[count // 2 :] % 2).mean() > 0.99


def test_later_ends_do_not_matter_when_a_predictor_is_chosen() -> None:
    random = np.random.default_rng(6)
    count = 1000
    run = random.lognormal(9, 1, count)
    made_s, user = np.sort(random.uniform(0, 1e7, count)), random.integers(0, 5, count)
    predicted = run[:, None] * np.exp(random.normal(0, 1, (count, 3)))
    now = made_s[600]
    other = predicted.copy()
    other[made_s + run > now] = random.lognormal(9, 3, (int((made_s + run > now).sum()), 3))
    first, second = (choose_lately(values, run, made_s, made_s + run, user) for values in (predicted, other))
    assert (first[:601] == second[:601]).all()
    assert (first != second).any()
    assert choose_lately(predicted[:0], run[:0], made_s[:0], made_s[:0], user[:0]).size == 0


def test_most_accurate_point_is_a_mode_when_runs_end_at_one_of_two_times() -> None:
    quantiles = np.concatenate([np.full(5, 60.0), np.linspace(500, 5000, 3), np.full(5, 14_400.0)])[None, :]
    point = find_most_accurate(quantiles)[0]
    assert point in (60.0, 14_400.0)
    runs = np.array([60.0] * 45 + [14_400.0] * 45 + [500.0] * 10)
    assert compute_accuracy(np.full(100, point), runs).mean() > 2 * compute_accuracy(np.full(100, 2750.0), runs).mean()


def test_moments_are_drawn_independently_of_runs_when_pairs_are_made() -> None:
    jobs = make_jobs(300)
    pairs = draw_moments(jobs, np.arange(300), np.random.default_rng(0))
    assert (jobs.run_s[pairs.row] > pairs.elapsed_s).all()
    assert (pairs.elapsed_s[:300] == 0).all()
    late = pairs.elapsed_s > 0
    assert (pairs.at_s[late] == jobs.start_s[pairs.row[late]] + pairs.elapsed_s[late]).all()


def test_shifts_give_the_promised_share_when_errors_are_exchangeable() -> None:
    random = np.random.default_rng(0)
    errors = random.normal(2.0, 1.0, 4000)
    bins = (cut_bins(random.random(4000), (0.5,)), single_bin(4000))
    shifts = find_shifts(errors[:2000], 0.9, [column[:2000] for column in bins])
    moved = shifts.find([column[2000:] for column in bins])
    assert (errors[2000:] <= moved).mean() == pytest.approx(0.9, abs=0.02)
    assert Shifts.from_document(shifts.to_document()) == shifts


def test_wider_bin_is_used_when_a_bin_has_few_jobs() -> None:
    errors = np.concatenate([np.zeros(100), np.full(5, 9.0)])
    fine = np.concatenate([np.zeros(100, np.int64), np.ones(5, np.int64)])
    shifts = find_shifts(errors, 0.5, (fine, single_bin(105)))
    assert shifts.find((np.array([0, 1]), np.array([0, 0]))).tolist() == [0.0, 0.0]
    assert 1 not in shifts.by_bin[0]


def test_intervals_hold_the_mean_when_blocks_are_redrawn() -> None:
    interval = bootstrap_mean(np.random.default_rng(0).normal(5, 1, 2000), 0)
    assert interval.low < 5 < interval.high
    assert interval.high - interval.low < 0.2
