"""FCFS with EASY backfilling: jobs simulated per second beside a plain Python scheduler, by queue depth and number of jobs.

The peer is `tests/schedulers/plain.py`, written for clarity: it stands for what one writes first, not for another product (pyss
is Python 2). Budgets: 1 M jobs/s on SDSC-SP2 (a log like it is generated where the reference data is absent), 100,000
jobs/s with 25,000 jobs waiting. Processor time is measured, because the compiled loop runs on one core.
"""

import argparse
import json
import os
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from schedulers.plain import simulate_plainly

from benchmarks.report import Report
from clusterscape.collect.job_traces import read_trace
from clusterscape.simulate.batch import (
    PRESETS,
    Backfill,
    BatchJobs,
    Scenario,
    Schedule,
    find_policy,
    prepare_jobs,
    simulate,
)

SDSC = ("sched", "pwa", "SDSC-SP2.input.swf.gz")
SDSC_PROCESSORS = 128
PEER_JOBS = 4_000


def make_jobs(count: int, total: int, load: float, seed: int = 0) -> BatchJobs:
    """Log-uniform run times and sizes, requests up to five times the run, arrivals that ask for ``load`` of the machine."""
    random = np.random.default_rng(seed)
    run_s = np.exp(random.uniform(np.log(10), np.log(36_000), count)).astype(np.int64)
    processors = np.minimum(total, np.exp(random.uniform(0, np.log(total), count)).astype(np.int64))
    estimate_s = (run_s * random.uniform(1, 5, count)).astype(np.int64)
    gap_s = (run_s * processors).mean() / (load * total)
    submit_s = np.cumsum(random.exponential(gap_s, count)).astype(np.int64)
    places = np.arange(count)
    return BatchJobs(
        places, submit_s, run_s, estimate_s, estimate_s, processors, random.integers(0, 200, count), places
    )


def make_deep(count: int, depth: int, total: int) -> BatchJobs:
    """``depth`` jobs at once, then one for each that leaves: the queue stays about that deep."""
    jobs = make_jobs(count, total, 1.0, seed=1)
    # As many arrive as the full machine ends.
    submit_s = np.concatenate([np.zeros(depth, np.int64), jobs.submit_s[: count - depth]])
    return replace(jobs, submit_s=submit_s)


def find_sdsc() -> tuple[str, BatchJobs]:
    """The real log where it is, else one like it."""
    folder = os.environ.get("CLUSTERSCAPE_REFERENCE_DATA")
    path = (
        Path(folder).joinpath(*SDSC) if folder else Path(__file__).parents[2].joinpath("shared/data/reference", *SDSC)
    )
    if not path.is_file():
        return "54,006 generated jobs", make_jobs(54_006, SDSC_PROCESSORS, 0.83)
    jobs, _ = prepare_jobs(read_trace(path), SDSC_PROCESSORS, estimates="request", semantics=PRESETS["pyss"])
    return "SDSC-SP2", jobs


def measure(
    jobs: BatchJobs, total: int, *, policy: str = "fcfs", kind: str = "easy", repeats: int = 9
) -> tuple[float, Schedule]:
    """Jobs per second of processor time, the best of some; and the schedule."""
    backfill = Backfill(kind)  # type: ignore[arg-type]
    scenario = Scenario(jobs, total, find_policy(policy), backfill, "request", PRESETS["pyss"])
    schedule = simulate(scenario)  # compiles
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        schedule = simulate(scenario)
        seconds.append(time.process_time() - start)
    return len(jobs) / min(seconds), schedule


def measure_peer(jobs: BatchJobs, total: int) -> tuple[float, list[int | None]]:
    """The same for the plain scheduler."""
    start = time.process_time()
    plain = simulate_plainly(jobs, total, Backfill("easy"), PRESETS["pyss"])
    return len(jobs) / (time.process_time() - start), [job.start_s for job in plain]


def longest_queue(schedule: Schedule) -> int:
    """How many jobs waited at most."""
    jobs = schedule.scenario.jobs
    times = np.concatenate([jobs.submit_s, schedule.start_s])
    steps = np.concatenate([np.ones(len(jobs), np.int64), -np.ones(len(jobs), np.int64)])
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max())


def head_of(jobs: BatchJobs, count: int) -> BatchJobs:
    """The first jobs."""
    names = ("row", "submit_s", "run_s", "estimate_s", "request_s", "processors", "user", "number")
    return BatchJobs(*(getattr(jobs, name)[:count] for name in names))


def main() -> int:
    """Measure and print; another schedule than the peer's is a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(
        f"Batch simulation, jobs/s of processor time (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)"
    )
    name, jobs = find_sdsc()
    part = head_of(jobs, PEER_JOBS)
    peer, starts = measure_peer(part, SDSC_PROCESSORS)
    rate, schedule = measure(part, SDSC_PROCESSORS)
    is_same = schedule.start_s.tolist() == starts
    what = f"{name}, first {PEER_JOBS:,} jobs"
    report.add(what, rate, "jobs/s", peer, "plain Python EASY", higher_is_better=True)
    report.add("  equal starts", float(is_same), "", budget=1.0, higher_is_better=True)
    rate, schedule = measure(jobs, SDSC_PROCESSORS)
    report.add(f"{name}, FCFS + EASY", rate, "jobs/s", budget=1e6, higher_is_better=True)
    for policy, kind in (("fcfs", "easy-sjbf"), ("sjf", "easy"), ("fcfs", "easy++")):
        rate, _ = measure(jobs, SDSC_PROCESSORS, policy=policy, kind=kind, repeats=3)
        report.add(f"{name}, {policy} + {kind}", rate, "jobs/s", higher_is_better=True)
    rate, _ = measure(part, SDSC_PROCESSORS, policy="wfp3", repeats=1)
    report.add(f"{what}, wfp3 + easy (ordered at each event)", rate, "jobs/s", higher_is_better=True)
    for depth in (1_000, 5_000, 25_000):
        rate, schedule = measure(make_deep(4 * depth, depth, 4_096), 4_096, repeats=2)
        budget = 1e5 if depth == 25_000 else None
        deepest = f"queue of {longest_queue(schedule):,}, {4 * depth:,} jobs on 4,096 processors"
        report.add(deepest, rate, "jobs/s", budget=budget, higher_is_better=True)
    for count in (10_000, 100_000, 1_000_000):
        rate, _ = measure(make_jobs(count, 4_096, 0.8), 4_096, repeats=1)
        report.add(f"{count:,} generated jobs on 4,096 processors, load 0.8", rate, "jobs/s", higher_is_better=True)
    report.add("memory, at most", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")
    print(json.dumps(report.rows) if options.json else report.text())
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
