"""Reading and breaking down Kineto traces: 8 ranks of 216,000 events, beside HolisticTraceAnalysis in an environment of its own.

Budgets: 12 times faster than the peer; at most 350 MB per reading process. Where the peer cannot be installed, the standard
library's JSON parser and pandas stand in, and the table says so.
"""

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Report
from clusterscape.analyze.trace.report import analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.collect.traces.files import TraceFile
from clusterscape.collect.traces.reading import read_rank

HTA = """
import json, sys, time
from hta.trace_analysis import TraceAnalysis
files = dict(enumerate(sys.argv[1:]))
begin = time.perf_counter()
analysis = TraceAnalysis(trace_files=files, trace_dir="/")
analysis.get_temporal_breakdown(visualize=False)
print(json.dumps(time.perf_counter() - begin))
"""
PANDAS = """
import gzip, json, sys, time
import pandas
begin = time.perf_counter()
for path in sys.argv[1:]:
    events = json.loads(gzip.open(path).read())["traceEvents"]
    table = pandas.DataFrame(event for event in events if event.get("ph") == "X")
    table[table.cat == "kernel"].groupby("name").dur.sum()
print(json.dumps(time.perf_counter() - begin))
"""


def make_rank(rank: int, ranks: int, events: int, seed: int) -> dict[str, Any]:
    """A rank's file: 5 steps of kernels with their launches and operators, and an all-reduce every 100 kernels."""
    generator = random.Random(seed + rank)
    found: list[dict[str, Any]] = []
    per_step = events // 5 // 5
    at = 1_700_000_000_000_000
    for step in range(5):
        begin = at
        for number in range(per_step):
            at += 8
            correlation = step * per_step + number
            own = {"ph": "X", "pid": 100, "tid": 100, "ts": at, "dur": 7}
            found.append(
                {
                    **own,
                    "cat": "cpu_op",
                    "name": "aten::mm",
                    "args": {"External id": correlation, "Ev Idx": correlation},
                }
            )
            found.append(
                {
                    **own,
                    "cat": "cuda_runtime",
                    "name": "cudaLaunchKernel",
                    "args": {"correlation": correlation, "cbid": 211},
                }
            )
            is_shared = number % 100 == 99
            name = (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                if is_shared
                else "ampere_sgemm_128x64_tn"
            )
            length = 40 if is_shared else 5 + generator.randrange(3)
            stream = 20 if is_shared else 7
            arguments = {"correlation": correlation, "stream": stream, "device": 0, "grid": [1, 1, 1]}
            found.append(
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": name,
                    "pid": 0,
                    "tid": stream,
                    "ts": at + 6,
                    "dur": length,
                    "args": arguments,
                }
            )
            found.append(
                {"ph": "s", "id": correlation, "pid": 100, "tid": 100, "ts": at, "cat": "ac2g", "name": "ac2g"}
            )
            found.append(
                {
                    "ph": "f",
                    "id": correlation,
                    "pid": 0,
                    "tid": 7,
                    "ts": at + 6,
                    "cat": "ac2g",
                    "name": "ac2g",
                    "bp": "e",
                }
            )
        at += 100
        mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100}
        found.append({**mark, "ts": begin, "dur": at - begin, "args": {"External id": 0}})
    info = {"backend": "nccl", "rank": rank, "world_size": ranks}
    return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": found}


def measure_ours(files: list[Path]) -> float:
    """Seconds from files to verdicts."""
    begin = time.perf_counter()
    analyze_trace(read_traces(files), np.random.default_rng(0))
    return time.perf_counter() - begin


def measure_memory(file: Path) -> float:
    """Peak megabytes of a process that reads one rank."""
    command = [sys.executable, "-m", "benchmarks.trace_import", "--read", str(file)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_peer(files: list[Path], folder: Path) -> tuple[float, str] | None:
    """Seconds of the peer and its name; None where nothing can be installed."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin/python")
    attempts = (
        (
            "HolisticTraceAnalysis",
            HTA,
            (
                ["--no-deps", "HolisticTraceAnalysis"],
                ["pandas<3", "networkx", "plotly", "pydot", "ipywidgets", "jupyterlab"],
            ),
        ),
        ("json and pandas", PANDAS, (["pandas<3"],)),
    )
    for name, script, steps in attempts:
        wanted = [[python, "-m", "pip", "install", "-q", *step] for step in steps]
        if any(subprocess.run(each, capture_output=True, check=False).returncode for each in wanted):
            continue
        done = subprocess.run([python, "-c", script, *map(str, files)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return float(done.stdout.strip().splitlines()[-1]), name
        print(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    return None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--events", type=int, default=216_000)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_rank(TraceFile(options.read))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    report = Report(
        f"Kineto traces: {options.ranks} ranks of {options.events:,} events, to the breakdown of every step"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"rank{rank}.json.gz" for rank in range(options.ranks)]
        for rank, path in enumerate(files):
            path.write_bytes(gzip.compress(json.dumps(make_rank(rank, options.ranks, options.events, 1)).encode(), 4))
        ours = measure_ours(files)
        peer = measure_peer(files, folder / "peer")
        report.add(
            "import, breakdown, verdicts",
            ours,
            "s",
            *(peer or (None, None)),
            budget=None if peer is None else peer[0] / 12,
        )
        report.add("events per second", options.ranks * options.events / ours, "", higher_is_better=True)
        report.add("peak memory of a reader", measure_memory(files[0]), "MB", budget=350)
        for count in (1, 2, 4):
            report.add(f"with {count} of the ranks", measure_ours(files[:count]), "s")
    print(report.text())


if __name__ == "__main__":
    main()
