"""Schedules that other programs published for real logs, and the table of Zhang & Dai."""

import numpy as np
import pytest
from servers.reference import reference_data

from clusterscape.collect.job_traces import read_trace
from clusterscape.model.jobs import JobTrace
from clusterscape.simulate.batch import (
    PRESETS,
    Backfill,
    BackfillKind,
    Estimates,
    Scenario,
    compute_measures,
    find_policy,
    measure_spread,
    prepare_jobs,
    simulate,
)

MIRA_NODES = 49_152


def make_scenario(
    trace: JobTrace, total: int | None, backfill: Backfill, semantics: str, estimates: Estimates = "request"
) -> Scenario:
    total = total or trace.total
    assert total
    how = PRESETS[semantics]
    jobs, notes = prepare_jobs(trace, total, estimates=estimates, semantics=how)
    assert not [note for note in notes if note.action == "dropped"]
    return Scenario(jobs, total, find_policy("fcfs"), backfill, estimates, how)


@pytest.mark.parametrize("log", ["KTH-SP2", "SDSC-SP2", "CTC-SP2"])
@pytest.mark.parametrize(
    ("variant", "kind", "estimates"),
    [
        ("EASY_reqtime", "easy", "request"),
        ("EASY_clairvoyant", "easy", "actual"),
        ("EASYSJBF_clairvoyant", "easy-sjbf", "actual"),
        ("EASYpp_tsafrir", "easy++", "request"),
    ],
)
def test_every_job_starts_when_it_did_in_pyss_when_its_semantics_are_taken(
    log: str, variant: str, kind: BackfillKind, estimates: Estimates
) -> None:
    trace = read_trace(reference_data("sched", "pwa", f"{log}.input.swf.gz"))
    expected = read_trace(reference_data("sched", "pyss", f"{log}.{variant}.swf.gz"))
    scenario = make_scenario(trace, None, Backfill(kind), "pyss", estimates)
    # pyss writes jobs in the order of their ends; ids are in submit order in both files.
    ordered = expected.frame.sort("submit_s", expected.frame["job_id"].cast(int).alias("number"))
    assert ordered["submit_s"].to_list() == scenario.jobs.submit_s.tolist()
    assert (simulate(scenario).wait_s == ordered["wait_s"].to_numpy()).all()


@pytest.mark.parametrize(("log", "wait_s", "slowdown"), [("KTH-SP2", 6836.87, 92.577), ("SDSC-SP2", 20497.76, 87.870)])
def test_averages_are_those_published_when_pyss_semantics_are_taken(log: str, wait_s: float, slowdown: float) -> None:
    trace = read_trace(reference_data("sched", "pwa", f"{log}.input.swf.gz"))
    measures = compute_measures(simulate(make_scenario(trace, None, Backfill("easy"), "pyss")))
    assert measures is not None
    assert measures.wait_s == pytest.approx(wait_s, abs=0.01)
    assert measures.bounded_slowdown == pytest.approx(slowdown, abs=0.001)


def test_averages_are_within_a_percent_when_dirlab_semantics_are_taken() -> None:
    trace = read_trace(reference_data("sched", "pwa", "SDSC-SP2.input.swf.gz"))
    measures = compute_measures(simulate(make_scenario(trace, None, Backfill("easy"), "dirlab")))
    assert measures is not None
    assert measures.wait_s == pytest.approx(43_693, rel=0.01)
    assert measures.bounded_slowdown == pytest.approx(136.05, rel=0.01)


# The replay recorded with the data: means of 40 jittered runs. A deviation is stated for the relaxed row only; the adaptive row
# is held to two of the same.
REPLAYED = {
    "relaxed": {"wait_s": 37_441.0, "bounded_slowdown": 38.05, "violation_s": 672.0},
    "adaptive": {"wait_s": 39_928.0, "bounded_slowdown": 40.84, "violation_s": 328.0},
}
STATED_SD = {"wait_s": 667.0, "bounded_slowdown": 0.88, "violation_s": 25.0}
PUBLISHED = {
    "relaxed": {"bounded_slowdown": 37.81, "utilization": 0.8792, "violation_s": 670.31},
    "adaptive": {"bounded_slowdown": 39.40, "utilization": 0.8805},
}
KNOWN_GAPS = {"relaxed": {"wait_s": 34_199.90}, "adaptive": {"wait_s": 36_210.37, "violation_s": 344.89}}


@pytest.mark.parametrize(("kind", "deviations"), [("relaxed", 1), ("adaptive", 2)])
def test_mira_table_is_reproduced_but_for_known_gaps_when_promises_are_relaxed(
    kind: BackfillKind, deviations: int
) -> None:
    trace = read_trace(reference_data("sched", "alcf", "mira_2018_lumos.csv.gz"))
    scenario = make_scenario(trace, MIRA_NODES, Backfill(kind, 0.1, 150), "poster")
    spreads = measure_spread(scenario, simulate, runs=20)
    for name, value in REPLAYED[kind].items():
        assert abs(spreads[name].mean - value) <= deviations * STATED_SD[name], name
    for name, value in PUBLISHED[kind].items():
        assert not spreads[name].differs_from(value), name
    # Shown by `sched table`, described in the design: should one close, the docs must say so.
    for name, value in KNOWN_GAPS[kind].items():
        assert spreads[name].differs_from(value), name


def test_violation_is_a_fraction_for_less_wait_when_backfilling_is_frugal() -> None:
    trace = read_trace(reference_data("sched", "alcf", "mira_2018_lumos.csv.gz"))
    relaxed = measure_spread(make_scenario(trace, MIRA_NODES, Backfill("relaxed", 0.1), "poster"), simulate, runs=10)
    frugal = measure_spread(make_scenario(trace, MIRA_NODES, Backfill("frugal", 0.03), "poster"), simulate, runs=10)
    # Asked for: at most half of the violation at no more than 2 % longer waits, beyond the jitter of run times.
    assert frugal["violation_s"].high <= 0.5 * relaxed["violation_s"].low
    assert frugal["wait_s"].high <= 1.02 * relaxed["wait_s"].low
    assert frugal["wait_s"].mean == pytest.approx(33_640, rel=0.02)
    assert frugal["violation_s"].mean == pytest.approx(92, rel=0.1)


@pytest.mark.parametrize(
    ("path", "jobs", "unit"),
    [
        (("alcf", "mira_2018_lumos.csv.gz"), 22_508, "nodes"),
        (("alcf", "theta_2023_lumos.csv.gz"), 14_374, "nodes"),
        (("alcf", "thetagpu_2023_lumos.csv.gz"), 22_606, "gpus"),
        (("philly", "philly_df_schedule_lumos.csv.gz"), 151_816, "gpus"),
        (("pwa", "LANL-CM5-1994-4.1-cln.swf.gz"), 122_057, "processors"),
        (("openb", "openb_pod_list_default.csv"), 8_152, "gpus"),
    ],
)
def test_every_row_is_read_or_accounted_for_when_the_log_is_real(path: tuple[str, str], jobs: int, unit: str) -> None:
    trace = read_trace(reference_data("sched", *path))
    assert (len(trace), trace.size_unit) == (jobs, unit)
    assert (np.diff(trace.frame["submit_s"].to_numpy()) >= 0).all()
    assert trace.dropped == (3 if "LANL" in path[1] else 0)
