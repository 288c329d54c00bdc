"""Describing job traces: processor time by number of jobs, users and all, and the growth from one step to the next.

Budget: 2 s for 150,000 jobs with everything in it (intervals and verdicts too), after the kernel was compiled once. Processor
time is measured.
"""

import argparse
import resource
import time

import numpy as np
import polars as pl

from benchmarks.report import Report
from clusterscape.analyze.jobs.describe import describe_traces
from clusterscape.model.jobs import JOB_COLUMNS, JobTrace

SIZES = (15_000, 150_000, 1_500_000)
BUDGET_JOBS, BUDGET_S = 150_000, 2.0


def make_trace(count: int, seed: int = 0) -> JobTrace:
    """A year of jobs: users of very different activity, log-normal run times around a few habits of each user."""
    random = np.random.default_rng(seed)
    users = max(20, int(count**0.5))
    user = np.minimum(random.zipf(1.6, count), users)
    habit = np.exp(random.normal(np.log(1800), 1.5, (users + 1, 8)))[user, random.integers(0, 8, count)]
    columns = {name: pl.repeat(None, count, eager=True, dtype=kind) for name, kind in JOB_COLUMNS.items()} | {
        "line": np.arange(count),
        "user": [f"u{code}" for code in user.tolist()],
        "submit_s": np.sort(1.7e9 + random.uniform(0, 365 * 86_400, count)),
        "wait_s": random.exponential(3600, count),
        "run_s": habit * random.uniform(0.9, 1.1, count),
        "gpus": 2.0 ** random.integers(0, 7, count),
        "status": random.choice(["completed", "failed", "cancelled"], count, p=[0.7, 0.15, 0.15]),
    }
    frame = pl.DataFrame(columns).cast(pl.Schema(JOB_COLUMNS)).select(list(JOB_COLUMNS))
    return JobTrace("made up", "made up", frame, "gpus", 4096)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    describe_traces([make_trace(500)])
    report = Report("describing a job trace")
    before = None
    for count in SIZES:
        trace = make_trace(count)
        begun = time.process_time()
        describe_traces([trace])
        spent_s = time.process_time() - begun
        report.add(f"{count:,} jobs", spent_s, "s", budget=BUDGET_S if count == BUDGET_JOBS else None)
        if before is not None:
            report.add("  growth for ten times the jobs", spent_s / before, "×")
        before = spent_s
    report.add("most memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
