"""Forecasts are stored, settled and compared with actual starts; models are trained from the site's history."""

from dataclasses import replace

import numpy as np
from clusters.forecast_site import forecast_site, waiting
from clusters.opened import open_services
from clusters.small import HOUR_MS, NOW, SmallCluster

from clusterscape.analyze.jobs.wait_choice import WaitQuestions, name_candidate
from clusterscape.analyze.jobs.wait_guesses import GUESSES
from clusterscape.analyze.jobs.wait_intervals import WaitBins
from clusterscape.model import UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.scheduling.waiting_log import KIND, ForecastLog, LoggedForecast
from clusterscape.services.forecasts import KEEP_DAYS, ForecastKeeper

__all__ = ["forecast_site"]

DAY_MS = 24 * HOUR_MS


def open_forecasts(site: SmallCluster) -> tuple[WaitQuery, ForecastKeeper]:
    queries = site.queries
    return queries.waits, open_services(queries).forecasts


def ended(place: int, random: np.random.Generator) -> Workload:
    submitted = NOW - 40 * 24 * HOUR_MS + place * HOUR_MS
    started = submitted + 60_000
    return Workload(
        id=WorkloadId(f"slurm:9{place:04}"),
        state=WorkloadState.COMPLETED,
        user="ann" if place % 2 else "bob",
        partition="gpu",
        gpus_requested=1 + place % 4,
        time_limit_s=7200,
        submitted_at=UnixMs(submitted),
        started_at=UnixMs(started),
        ended_at=UnixMs(started + int(random.lognormal(7, 0.2) * 1000)),
    )


def test_forecasts_are_kept_and_compared_when_workloads_start(forecast_site: SmallCluster) -> None:
    waits, keeper = open_forecasts(forecast_site)
    keeper.update()
    assert (waits.reliability().jobs, waits.reliability().open) == (0, 2)
    started = waiting("2", 4)
    forecast_site.records.write_workloads(
        [replace(started, state=WorkloadState.RUNNING, started_at=UnixMs(NOW + 1_800_000))], at_ms=NOW
    )
    forecast_site.now = UnixMs(NOW + 2_000_000)
    keeper.update()
    reliability = waits.reliability()
    # The other one has now waited for more than an hour: its first and second forecasts are open.
    assert (reliability.jobs, reliability.open, reliability.since) == (1, 2, NOW)
    assert reliability.median_error_s is not None
    assert [coverage.nominal for coverage in reliability.told] == [0.5, 0.8, 0.9]
    # Another process finds the same in the store.
    assert ForecastLog(forecast_site.records).outcomes().wait_s.tolist() == [1800.0]
    assert len(forecast_site.records.documents(KIND)) == 1


def test_later_forecasts_are_kept_and_judged_apart_when_a_workload_goes_on_waiting(forecast_site: SmallCluster) -> None:
    waits, keeper = open_forecasts(forecast_site)
    keeper.update()  # both have waited for half an hour: they count as new
    forecast_site.now = UnixMs(NOW + 2 * HOUR_MS)
    fresh = replace(waiting("4", 4), submitted_at=UnixMs(NOW + 2 * HOUR_MS))
    forecast_site.records.write_workloads([fresh], at_ms=forecast_site.now)
    keeper.update()
    assert waits.reliability().open == 5  # both again, and one that just came
    started = [
        replace(workload, state=WorkloadState.RUNNING, started_at=UnixMs(NOW + 3 * HOUR_MS))
        for workload in (waiting("2", 4), fresh)
    ]
    forecast_site.records.write_workloads(started, at_ms=forecast_site.now)
    forecast_site.now = UnixMs(NOW + 4 * HOUR_MS)
    keeper.update()
    reliability = waits.reliability()
    assert (reliability.jobs, reliability.later_jobs) == (2, 1)
    assert [coverage.jobs for coverage in reliability.later] == [1, 1, 1]
    assert all(
        coverage.low <= coverage.covered <= coverage.high for coverage in (*reliability.told, *reliability.later)
    )


def test_forecasts_keep_their_promise_when_the_sampled_ones_do_not(forecast_site: SmallCluster) -> None:
    """Every job starts three times later than sampled: what is reported adapts, for first and for later forecasts."""
    waits, keeper = open_forecasts(forecast_site)
    random = np.random.default_rng(3)
    levels = np.array([0.4, 0.5, 0.75, 1.0, 1.4, 2.0, 2.4])
    logged = []
    for place in range(400):
        sampled = float(random.uniform(1_000, 20_000)) * levels
        wait = float(3.0 * sampled[3] * random.lognormal(0, 0.2))
        made_at = NOW - (400 - place) * HOUR_MS
        guesses = random.uniform(0, 40_000, len(GUESSES)).tolist()
        logged.append(
            LoggedForecast(
                f"slurm:7{place:03}", made_at, sampled.tolist(), sampled.tolist(), 0.05, 5, wait, stage=place % 2,
                partition="gpu", guesses_s=guesses,
            )
        )  # fmt: skip
    keeper.add(logged)
    judge = waits.log.judge()
    assert (judge.first.chooser.count, judge.later.chooser.count) == (200, 200)
    samples, bins = np.full((2, 7), 6_000.0) * levels, WaitBins(np.full(2, 0.05), np.full(2, 5.0))
    is_first = np.array([True, False])
    guesses_s = judge.guess(NOW / 1000, np.full(2, 30_000.0), ["gpu", "elsewhere"], bins, is_first)
    reported = judge.predict(WaitQuestions(guesses_s, samples, bins), is_first)
    assert {name_candidate(index) for index in reported.chosen.tolist()} == {"simulation, corrected by its past errors"}
    assert (reported.quantiles_s[:, 1] < 18_000).all()
    assert (reported.quantiles_s[:, 5] > 18_000).all()
    assert np.abs(reported.quantiles_s[:, 3] - 18_000).max() < 2_500


def test_forecasts_are_calibrated_when_thousands_of_workloads_wait(forecast_site: SmallCluster) -> None:
    """Two thousand come per day and wait for a day, twice as long as sampled; all of the newest 2,000 still wait."""
    waits, keeper = open_forecasts(forecast_site)
    random = np.random.default_rng(5)
    logged = []
    for place in range(6000):
        sampled = 43_200.0 * float(random.lognormal(0, 0.3))
        age_ms = int((6000 - place) * 43_200)
        wait = 2.0 * sampled * float(random.lognormal(0, 0.1))
        logged.append(
            LoggedForecast(
                f"slurm:{place}", NOW - age_ms, [sampled] * 7, [sampled] * 7, 0.01, 2000,
                wait if wait * 1000 < age_ms else None, partition="gpu", guesses_s=[100.0] * len(GUESSES),
            )
        )  # fmt: skip
    keeper.add(logged)
    judge = waits.log.judge()
    assert judge.count > 100
    questions = WaitQuestions(
        np.full((1, len(GUESSES)), 100.0), np.full((1, 7), 43_200.0), WaitBins(np.array([0.01]), np.array([2000.0]))
    )
    reported = judge.predict(questions, np.array([True]))
    assert reported.quantiles_s[0, 0] < 86_400 < reported.quantiles_s[0, -1]
    assert reported.quantiles_s[0, 3] > 60_000


def test_forecasts_of_before_are_read_when_they_have_no_guesses(forecast_site: SmallCluster) -> None:
    waits, keeper = open_forecasts(forecast_site)
    old = {
        "workload": "slurm:9",
        "made_at": NOW,
        "sampled_s": [1.0] * 7,
        "told_s": [1.0] * 7,
        "size_ratio": 0.1,
        "ahead": 1,
    }
    keeper._context.write_document(KIND, "2026-01-01", {"forecasts": [old]}, at_ms=NOW)
    assert waits.log.open_count() == 1
    assert waits.log.judge().count == 0


def test_old_days_go_when_forecasts_are_settled(forecast_site: SmallCluster) -> None:
    waits, keeper = open_forecasts(forecast_site)
    keeper.update()
    forecast_site.now = UnixMs(NOW + (KEEP_DAYS - 1) * DAY_MS)
    keeper.settle()
    assert waits.log.open_count() == 2
    forecast_site.now = UnixMs(NOW + (KEEP_DAYS + 1) * DAY_MS)
    keeper.settle()
    assert (waits.log.open_count(), forecast_site.records.documents(KIND)) == (0, [])


def test_run_times_are_learned_and_learned_again_when_jobs_end(forecast_site: SmallCluster) -> None:
    waits, keeper = open_forecasts(forecast_site)
    random = np.random.default_rng(1)
    keeper.update()
    assert not waits.models.card().is_trained
    assert waits.models.card().retrained_after == 200
    forecast_site.records.write_workloads([ended(place, random) for place in range(400)], at_ms=NOW)
    assert keeper.train()
    card = waits.models.card()
    assert (card.is_trained, card.jobs, card.trained_at, card.retrained_after) == (True, 400, NOW, 100)
    assert card.report is not None
    assert card.report.tables[0].rows[-1].accuracy.value > 0.7
    assert not keeper.train()
    forecast_site.records.write_workloads([ended(place, random) for place in range(400, 500)], at_ms=NOW)
    assert keeper.train()
    assert waits.models.card().jobs == 500
    answer = waits.ask(gpus=8, hours=4, machine_type="A100")
    assert answer.is_learned
    # Everybody runs some 18 minutes of two hours: the start is well before the plan.
    assert answer.start.likely_at < answer.start.plan_at
