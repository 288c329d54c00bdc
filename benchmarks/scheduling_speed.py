"""Simulated jobs per second: FCFS with EASY backfilling compared with AccaSim and a plain scheduler, growth, and the GPU cluster.

AccaSim 1.1.3 is installed from PyPI into a folder of its own for this run (``--no-accasim`` leaves it out); the plain scheduler
is `tests/schedulers/plain.py`, what one writes first; pyss is Python 2. Budgets: 1 M jobs/s on SDSC-SP2 (a log like it is
generated where the reference data is absent), 100,000 jobs/s with 25,000 jobs waiting, 100,000 jobs on 10,000 GPUs within 30 s.
Processor time is measured, because the compiled loop runs on one core. ``--plot`` draws the growth.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from schedulers.plain import simulate_plainly

from benchmarks.growth_plot import draw
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
from clusterscape.simulate.cluster import Cluster, ClusterJobs, ClusterScenario, simulate_cluster
from clusterscape.simulate.placements import find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU

ACCASIM = "accasim==1.1.3"
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


def measure_accasim(jobs: BatchJobs, total: int) -> float | None:
    """Jobs per second of AccaSim, in an environment made for it; None where it does not install."""
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "peer/bin/python")
        trace = Path(folder) / "trace.swf"
        columns = (jobs.submit_s, jobs.run_s, jobs.processors, jobs.processors, jobs.request_s, jobs.user)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        trace.write_text(
            "".join(
                f"{place} {submit} -1 {run} {size} -1 -1 {requested} {request} -1 1 {user + 1} -1 -1 -1 -1 -1 -1\n"
                for place, (submit, run, size, requested, request, user) in enumerate(rows, start=1)
            )
        )
        peer = str(Path(__file__).with_name("accasim_peer.py"))
        try:
            subprocess.run(
                [sys.executable, "-m", "venv", str(Path(python).parents[1])], check=True, capture_output=True
            )
            subprocess.run([python, "-m", "pip", "install", "-q", ACCASIM], check=True, capture_output=True)
            done = subprocess.run(
                [python, "-W", "ignore", peer, folder, str(trace), str(total)],
                check=True,
                capture_output=True,
                text=True,
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return len(jobs) / float(done.stdout.split()[-1])


def make_cluster(nodes: int, gpus: int) -> Cluster:
    """Nodes that are all alike."""
    none = np.zeros(nodes, np.int64)
    names = tuple(f"n{place:05d}" for place in range(nodes))
    return Cluster(names, none + gpus, none + 96_000, none + 2**20, none, ("H100",), none, none)


def make_cluster_jobs(count: int, cluster: Cluster, load: float) -> ClusterJobs:
    """Shares, single GPUs, parts of nodes and gangs of up to 32 nodes, log-uniform run times."""
    random = np.random.default_rng(2)
    kinds = np.array([(1, 1, 500), (1, 1, 1000), (1, 2, 1000), (1, 4, 1000), (1, 8, 1000), (4, 8, 1000), (32, 8, 1000)])
    nodes, gpus, milli = kinds[random.choice(len(kinds), count, p=(0.2, 0.4, 0.12, 0.12, 0.12, 0.035, 0.005))].T
    run_s = np.exp(random.uniform(np.log(60), np.log(86_400), count)).astype(np.int64)
    gap_s = (run_s * nodes * gpus * milli / 1000).mean() / (load * cluster.total_gpus)
    submit_s = np.cumsum(random.exponential(gap_s, count)).astype(np.int64)
    places, none = np.arange(count), np.zeros(count, np.int64)
    estimate_s = (run_s * random.uniform(1, 5, count)).astype(np.int64)
    units = milli * (UNITS_PER_GPU // 1000)
    users = random.integers(0, 200, count)
    return ClusterJobs(
        places, submit_s, run_s, estimate_s, nodes, gpus, units, gpus * 8_000, none, none, none, users, none, places
    )


def measure_cluster(count: int, placement: str) -> float:
    """Processor seconds for ``count`` jobs on 10,000 GPUs."""
    cluster = make_cluster(1_250, 8)
    warm = make_cluster_jobs(200, cluster, 0.9)
    policy, placement_rule = find_policy("fcfs"), find_placement(placement)
    simulate_cluster(ClusterScenario(cluster, warm, policy, Backfill("easy"), placement_rule))  # compiles
    jobs = make_cluster_jobs(count, cluster, 0.9)
    start = time.process_time()
    simulate_cluster(ClusterScenario(cluster, jobs, policy, Backfill("easy"), placement_rule))
    return time.process_time() - start


def add_growth(report: Report, plot: Path | None) -> None:
    """By queue depth and by number of jobs."""
    by_depth, by_jobs = [], []
    for depth in (1_000, 5_000, 25_000):
        rate, schedule = measure(make_deep(4 * depth, depth, 4_096), 4_096, repeats=2)
        budget = 1e5 if depth == 25_000 else None
        deepest = f"queue of {longest_queue(schedule):,}, {4 * depth:,} jobs on 4,096 processors"
        report.add(deepest, rate, "jobs/s", budget=budget, higher_is_better=True)
        by_depth.append((float(depth), rate))
    for count in (10_000, 100_000, 1_000_000):
        rate, _ = measure(make_jobs(count, 4_096, 0.8), 4_096, repeats=1)
        report.add(f"{count:,} generated jobs on 4,096 processors, load 0.8", rate, "jobs/s", higher_is_better=True)
        by_jobs.append((float(count), rate))
    if plot is not None:
        panels = (("jobs waiting", "jobs/s", [("", by_depth)]), ("jobs", "jobs/s", [("", by_jobs)]))
        draw(plot, "FCFS + EASY on 4,096 processors: simulated jobs per second of processor time", panels)


def main() -> int:
    """Measure and print; another schedule than the plain scheduler's is a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-accasim", action="store_true")
    parser.add_argument("--plot", type=Path, help="write the growth as SVG")
    options = parser.parse_args()
    report = Report(f"Simulation, jobs/s of processor time (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    name, jobs = find_sdsc()
    part = head_of(jobs, PEER_JOBS)
    plain, starts = measure_peer(part, SDSC_PROCESSORS)
    rate, schedule = measure(part, SDSC_PROCESSORS)
    is_same = schedule.start_s.tolist() == starts
    label = f"{name}, first {PEER_JOBS:,} jobs"
    report.add(label, rate, "jobs/s", plain, "plain Python EASY", higher_is_better=True)
    report.add("  equal starts", float(is_same), "", budget=1.0, higher_is_better=True)
    accasim = None if options.no_accasim else measure_accasim(part, SDSC_PROCESSORS)
    if accasim is not None:
        report.add(label, rate, "jobs/s", accasim, ACCASIM, higher_is_better=True)
    rate, schedule = measure(jobs, SDSC_PROCESSORS)
    report.add(f"{name}, FCFS + EASY", rate, "jobs/s", budget=1e6, higher_is_better=True)
    for policy, kind in (("fcfs", "easy-sjbf"), ("fcfs", "frugal"), ("sjf", "easy"), ("fcfs", "easy++")):
        rate, _ = measure(jobs, SDSC_PROCESSORS, policy=policy, kind=kind, repeats=3)
        report.add(f"{name}, {policy} + {kind}", rate, "jobs/s", higher_is_better=True)
    rate, _ = measure(part, SDSC_PROCESSORS, policy="wfp3", repeats=1)
    report.add(f"{label}, wfp3 + easy (ordered at each event)", rate, "jobs/s", higher_is_better=True)
    add_growth(report, options.plot)
    for placement in ("most-allocated", "fgd"):
        seconds = measure_cluster(100_000, placement)
        report.add(f"100,000 jobs on 1,250 nodes with 10,000 GPUs, EASY, {placement}", seconds, "s", budget=30.0)
    report.add("memory, at most", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")
    report.publish(as_json=options.json)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
