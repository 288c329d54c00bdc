import numpy as np

from clusterscape.analyze.jobs.levels import sweep_occupancy
from clusterscape.analyze.jobs.machine_size import MachineSize, guess_machine_size


def guess(jobs: list[tuple[float, float, float]]) -> MachineSize | None:
    start, end, size = np.array(jobs, np.float64).reshape(-1, 3).T
    return guess_machine_size(start, end, size, sweep_occupancy(start, end, size), "nodes")


def many_small(capacity: int, jobs: int, seed: int = 0, *, largest: int = 64) -> list[tuple[float, float, float]]:
    """First come, first served on ``capacity`` nodes."""
    rng = np.random.default_rng(seed)
    running: list[tuple[float, float]] = []
    now, rows = 0.0, []
    for _ in range(jobs):
        size, run = float(rng.integers(1, largest + 1)), float(rng.exponential(3600))
        while sum(held for _, held in running) + size > capacity:
            running.sort()
            now = max(now, running.pop(0)[0])
        running.append((now + run, size))
        rows.append((now, now + run, size))
    return rows


def drained(rows: list[tuple[float, float, float]], capacity: int, times: int) -> list[tuple[float, float, float]]:
    """The same with jobs on the whole machine at the end, one after another."""
    end = max(end for _, end, _ in rows)
    return rows + [(end + 600.0 * k, end + 600.0 * (k + 1), float(capacity)) for k in range(times)]


def test_size_is_that_of_the_largest_jobs_when_they_ran_alone_and_records_overlap() -> None:
    rows = drained(many_small(800, 2000), 1000, 5)
    # Wrong ends: a tenth of the jobs seem to run on.
    rng = np.random.default_rng(1)
    overlapping = [(a, b + (b - a) * (rng.random() < 0.1), size) for a, b, size in rows[:-5]] + rows[-5:]
    machine = guess(overlapping)
    assert machine is not None
    assert machine.units == 1000
    assert "largest jobs (1,000 nodes) ran with few others" in machine.reason


def test_size_is_the_peak_when_the_largest_jobs_ran_with_others() -> None:
    rows = many_small(1000, 2000)
    peak = float(sweep_occupancy(*np.array(rows).T).after.max())
    machine = guess(rows)
    assert machine is not None
    assert machine.units == round(peak)
    assert machine.units > 900
    assert "it may be larger" in machine.reason


def test_one_large_job_alone_is_no_evidence() -> None:
    rows = many_small(1000, 2000, largest=32)
    end = max(end for _, end, _ in rows)
    machine = guess([*rows, (end, end + 600.0, 100.0)])
    assert machine is not None
    assert machine.units > 900


def test_size_is_unknown_when_no_job_ran() -> None:
    assert guess([(0.0, 0.0, 4.0)]) is None
