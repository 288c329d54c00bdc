"""From a trace to the jobs of a simulation: jobs that are left out or changed, by semantics."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from clusterscape.errors import QueryError
from clusterscape.model.jobs import JOB_COLUMNS, JobTrace, SizeUnit
from clusterscape.simulate.batch import (
    PRESETS,
    Backfill,
    BatchJobs,
    Scenario,
    Semantics,
    compute_measures,
    find_policy,
    prepare_jobs,
    simulate,
)

OURS = PRESETS["clusterscape"]


def make_trace(*rows: dict[str, object], unit: SizeUnit = "processors") -> JobTrace:
    usual = dict.fromkeys(JOB_COLUMNS) | {"run_s": 10.0, "processors": 1, "status": "completed", "requested_s": 20.0}
    filled = [
        usual | {"line": place, "job_id": str(place), "submit_s": float(place)} | row
        for place, row in enumerate(rows, 1)
    ]
    return JobTrace("made", "swf", pl.DataFrame(filled, schema=JOB_COLUMNS), unit)


def prepared(trace: JobTrace, how: Semantics = OURS) -> BatchJobs:
    return prepare_jobs(trace, 8, estimates="request", semantics=how)[0]


def test_jobs_are_left_out_and_counted_when_they_cannot_be_simulated() -> None:
    trace = make_trace({}, {"run_s": None}, {"processors": 9}, {"processors": None, "gpus": 1.0})
    jobs, notes = prepare_jobs(trace, 8, estimates="request", semantics=OURS)
    assert jobs.row.tolist() == [0]
    assert [(note.action, note.reason, note.lines) for note in notes] == [
        ("dropped", "never ran", (2,)),
        ("dropped", "requests no processors", (4,)),
        ("dropped", "larger than the machine (8 processors)", (3,)),
    ]
    with pytest.raises(QueryError, match="no job of made can be simulated on 8 processors"):
        prepare_jobs(make_trace({"run_s": None}), 8, estimates="request", semantics=OURS)


def test_changes_are_counted_when_a_job_lacks_something() -> None:
    trace = make_trace({"gpus": 0.4, "run_s": 0.0}, {"gpus": 2.0, "requested_s": None}, unit="gpus")
    jobs, notes = prepare_jobs(trace, 8, estimates="request", semantics=OURS)
    assert (jobs.processors.tolist(), jobs.run_s.tolist(), jobs.estimate_s.tolist()) == ([1, 2], [1, 10], [20, 10])
    assert [(note.action, note.lines) for note in notes] == [("repaired", (1,)), ("repaired", (1,)), ("repaired", (2,))]


@pytest.mark.parametrize(
    ("rule", "run_s", "estimate_s"), [("raise_estimate", 30, 30), ("kill", 20, 20), ("exchange", 20, 30)]
)
def test_run_and_estimate_follow_the_rule_when_a_job_ran_over_its_limit(rule: str, run_s: int, estimate_s: int) -> None:
    how = replace(OURS, over_limit=rule)  # type: ignore[arg-type]
    jobs = prepared(make_trace({"run_s": 30.0}), how)
    assert (jobs.run_s.tolist(), jobs.estimate_s.tolist()) == ([run_s], [estimate_s])


def test_estimate_is_the_run_when_the_scheduler_knows_it() -> None:
    jobs, _ = prepare_jobs(make_trace({}), 8, estimates="actual", semantics=OURS)
    assert (jobs.estimate_s.tolist(), jobs.request_s.tolist()) == ([10], [20])


def test_seconds_are_whole_when_the_trace_has_fractions() -> None:
    trace = make_trace({"run_s": 10.4, "submit_s": 1.2})
    assert prepared(trace).run_s.tolist() == [10]
    up = prepared(trace, replace(OURS, rounding="up"))
    assert (up.run_s.tolist(), up.submit_s.tolist()) == ([11], [2])


def test_lower_number_goes_first_when_ties_go_by_it() -> None:
    rows = ({"job_id": "10", "submit_s": 1.0, "processors": 8}, {"job_id": "9", "submit_s": 1.0, "processors": 8})
    for how, starts in ((OURS, [1, 11]), (replace(OURS, ties="job_id"), [11, 1])):
        scenario = Scenario(prepared(make_trace(*rows), how), 8, find_policy("fcfs"), Backfill("easy"), "request", how)
        assert simulate(scenario).start_s.tolist() == starts


def test_ends_of_the_trace_do_not_count_when_trimmed_as_pyss_does() -> None:
    rows: list[dict[str, object]] = [{"submit_s": float(10 * place)} for place in range(300)]
    jobs = prepared(make_trace(*rows))
    scenario = Scenario(jobs, 8, find_policy("fcfs"), Backfill("easy"), "request", replace(OURS, trim="pyss"))
    measures = compute_measures(simulate(scenario))
    assert measures is not None
    # Without the first 1 % to end, and the one that ends after the last submission (the job before it ends at that second).
    assert measures.jobs == 300 - 3 - 1


def test_nothing_is_measured_when_trimming_leaves_no_job() -> None:
    scenario = Scenario(
        prepared(make_trace({})), 8, find_policy("fcfs"), Backfill("easy"), "request", replace(OURS, trim="pyss")
    )
    assert compute_measures(simulate(scenario)) is None
    assert np.array_equal(simulate(scenario).start_s, [1])
