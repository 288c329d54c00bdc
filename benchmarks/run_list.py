"""The list of 10,000 runs after one of them was uploaded further: only that one is read again.

The peer is the same list over a store without a copy in memory, which reads all runs after every upload.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.report import Report
from benchmarks.run_overhead import ROOT

if TYPE_CHECKING:
    from tracking.site import RunStores

    from clusterscape.model.runs import StoredRun

RUNS = 10_000
ROUNDS = 15


def fill(folder: Path, first: "StoredRun") -> None:
    """As many runs as ``RUNS``, like ``first``: of 50 experiments, two runs in each workload. In one transaction."""
    from sqlalchemy import insert, update

    from clusterscape.model.runs import StoredRun
    from clusterscape.settings import StorageSettings
    from clusterscape.store.records import rows, tables
    from clusterscape.store.records.engines import record_engine

    text, written = msgspec.json.encode(first), []
    for number in range(1, RUNS):
        run = msgspec.json.decode(text, type=StoredRun)
        run.record.run = f"run{number}"
        about, moments = run.summary.about, run.summary.moments
        about.run, about.experiment, about.workload = run.run, f"experiment {number % 50}", f"workload {number // 2}"
        shift_ms = number // 2 * 20_000
        about.queued_at = (about.queued_at or 0) - shift_ms
        moments.running, moments.ended = (moments.running or 0) - shift_ms, (moments.ended or 0) - shift_ms
        run.summary.params["lr"] = str(number % 7 / 100)
        written.append(rows.run_row(run, number + 1))
    engine = record_engine(StorageSettings(data_dir=folder))
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(insert(tables.runs), written)
        connection.execute(update(tables.revisions).values(revision=RUNS))
    engine.dispose()


def measure(stores: "RunStores", ask: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of a question, each after one more piece of a run: on the clock, and of the processor."""
    from clusterscape.model.run_frames import encode_event

    offset = stores.intake.offsets("run0")["tracker.spool"]
    walls, processor = [], []
    for number in range(ROUNDS):
        piece = encode_event({"event": "tags", "tags": {"piece": str(number)}})
        offset = stores.intake.take("run0", "tracker.spool", offset, piece).offset
        begun, used = time.perf_counter(), time.process_time()
        ask()
        processor.append(time.process_time() - used)
        walls.append(time.perf_counter() - begun)
    return statistics.median(walls), statistics.median(processor)


def main() -> int:
    """Print the table."""
    sys.path.insert(0, str(ROOT / "tests"))
    from tracking.site import run_stores, spooled

    report = Report(f"Lists of {RUNS:,} runs after one upload")
    series = {
        ("loss", None, "run"): [3.0, 2.0, 1.0],
        ("samples", None, "run"): [0.0, 100.0, 200.0],
        ("energy_joules", "run:run0/n1:0", "process"): [0.0, 250.0, 500.0],
        ("power_watts", "n1:0", "device"): [300.0, 400.0, 300.0],
    }
    with tempfile.TemporaryDirectory() as folder:
        times: dict[str, list[tuple[float, float]]] = {}
        for is_mirrored in (False, True):
            with run_stores(Path(folder), is_mirrored=is_mirrored) as stores:
                records, runs = stores.records, stores.queries.runs
                if not is_mirrored:
                    stores.take("run0", spooled("run0", series=series, params={"lr": "0.1", "epochs": "90"}))
                    first = records.run("run0")
                    assert first is not None
                    fill(Path(folder), first)
                assert len(runs.all(limit=2 * RUNS)) == RUNS
                for label, ask in {
                    "the newest 1,000 runs": lambda runs=runs: runs.all(limit=1000),
                    f"all {RUNS:,} runs": lambda runs=runs: runs.all(limit=RUNS),
                    "the tree of the newest 5,000": lambda runs=runs: runs.tree(limit=5000),
                }.items():
                    times.setdefault(label, []).append(measure(stores, ask))
    name = "all runs read again"
    for label, (peer, ours) in times.items():
        budget = 150 if "1,000" in label else None
        report.add(label, 1000 * ours[0], "ms", 1000 * peer[0], name, budget=budget)
        report.add("  processor time", 1000 * ours[1], "ms", 1000 * peer[1], name)
    report.publish()
    print(json.dumps(os.getloadavg()), "load average at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
