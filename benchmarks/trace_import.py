"""Reading and breaking down Kineto traces: 8 ranks of 216,000 events, compared with HolisticTraceAnalysis in its own environment.

Budgets: 10 times faster than the peer; at most 350 MB per reading process. Events are those of a published trace of 216,092
events, copied for every rank, where the reference data is here (``CLUSTERSCAPE_REFERENCE_DATA``), else made ones; the title says
which. Both sides are measured on the same files in one run, in seconds and, as other work moves those, in CPU time. Neither clock
includes imports of the calling process; starting the reader processes counts.
"""

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Report
from clusterscape.collect.traces.files import TraceFile
from clusterscape.collect.traces.reading import read_rank

ROOT = Path(__file__).parents[1]
REFERENCE = Path(os.environ.get("CLUSTERSCAPE_REFERENCE_DATA") or ROOT.parent / "shared/data/reference")
PUBLISHED = REFERENCE / "traces/kineto/df_index_resolver/df_index_resolver.json.gz"
PEER = "HolisticTraceAnalysis"
PEER_PACKAGES = ("HolisticTraceAnalysis==0.5.0", "pandas<3")
HTA = """
import json, resource, sys, time
from hta.trace_analysis import TraceAnalysis

def used():
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in both)

if __name__ == "__main__":
    files = dict(enumerate(sys.argv[1:]))
    begin, before = time.perf_counter(), used()
    analysis = TraceAnalysis(trace_files=files, trace_dir="/")
    analysis.get_temporal_breakdown(visualize=False)
    print(json.dumps([time.perf_counter() - begin, used() - before]))
"""
SHARES = (0.25, 0.5)
"""Of a rank's events, to see how time and memory grow."""


def make_rank(rank: int, ranks: int, events: int, seed: int) -> dict[str, Any]:
    """A rank's file: 5 steps of kernels with their launches and operators, and an all-reduce every 100 kernels."""
    generator = random.Random(seed + rank)
    trace_events: list[dict[str, Any]] = []
    per_step = events // 5 // 5
    at = 1_700_000_000_000_000
    for step in range(5):
        begin = at
        for number in range(per_step):
            at += 8
            correlation = step * per_step + number
            own = {"ph": "X", "pid": 100, "tid": 100, "ts": at, "dur": 7}
            trace_events.append(
                {
                    **own,
                    "cat": "cpu_op",
                    "name": "aten::mm",
                    "args": {"External id": correlation, "Ev Idx": correlation},
                }
            )
            trace_events.append(
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
            trace_events.append(
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
            trace_events.append(
                {"ph": "s", "id": correlation, "pid": 100, "tid": 100, "ts": at, "cat": "ac2g", "name": "ac2g"}
            )
            trace_events.append(
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
        trace_events.append({**mark, "ts": begin, "dur": at - begin, "args": {"External id": 0}})
    info = {"backend": "nccl", "rank": rank, "world_size": ranks}
    return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": trace_events}


def write_ranks(folder: Path, ranks: int, share: float = 1.0, *, are_made: bool, events: int = 216_000) -> list[Path]:
    """A file per rank, with the first ``share`` of the events."""
    folder.mkdir()
    files = [folder / f"rank{rank}.json.gz" for rank in range(ranks)]
    if not are_made:
        document = json.loads(gzip.decompress(PUBLISHED.read_bytes()))
        kept = document["traceEvents"][: int(share * len(document["traceEvents"]))]
        files[0].write_bytes(gzip.compress(json.dumps({**document, "traceEvents": kept}).encode(), 4))
        for path in files[1:]:
            shutil.copyfile(files[0], path)
        return files
    for rank, path in enumerate(files):
        path.write_bytes(gzip.compress(json.dumps(make_rank(rank, ranks, int(share * events), 1)).encode(), 4))
    return files


def cpu_s() -> float:
    """CPU seconds of this process and of those it has waited for."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def measure_ours(files: list[Path], *, to_verdicts: bool = False, scheduler: str | None = None) -> tuple[float, float]:
    """Seconds and CPU seconds (of this machine's side) from files to the breakdown of every step, or on to the verdicts."""
    from clusterscape.analyze.trace.breakdown import communication_parts, find_steps, measure_breakdown
    from clusterscape.analyze.trace.match import match_collectives
    from clusterscape.analyze.trace.report import analyze_trace
    from clusterscape.runtime.dask_cluster import read_trace_files

    begin, before = time.perf_counter(), cpu_s()
    trace = read_trace_files(files, scheduler)
    if to_verdicts:
        analyze_trace(trace, np.random.default_rng(0))
    else:
        steps = find_steps(trace.spans)
        measure_breakdown(trace.spans, steps, communication_parts(trace.spans, match_collectives(trace.spans)))
    return time.perf_counter() - begin, cpu_s() - before


def measure_memory(file: Path) -> float:
    """Peak megabytes of a process that reads one rank."""
    command = [sys.executable, "-m", "benchmarks.trace_import", "--read", str(file)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def peer_python() -> Path | None:
    """The peer's Python, installed once into the user's cache folder; None, said why, where it cannot be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "clusterscape-benchmarks/hta-0.5.0"
    if not (home / "complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        command = [str(home / "bin/pip"), "install", "-q", *PEER_PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{PEER} cannot be installed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        (home / "complete").touch()
    return home / "bin/python"


def measure_peer(files: list[Path], folder: Path) -> tuple[float, float] | None:
    """Seconds and CPU seconds of the peer; None, said why, where it cannot be had or fails."""
    python = peer_python()
    if python is None:
        return None
    script = folder / "peer.py"
    script.write_text(HTA)
    done = subprocess.run([str(python), str(script), *map(str, files)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{PEER} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    wall_s, used_s = json.loads(done.stdout.strip().splitlines()[-1])
    return float(wall_s), float(used_s)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--events", type=int, default=216_000, help="of a rank, where they are made")
    parser.add_argument("--made", action="store_true", help="made events, though the published trace is here")
    parser.add_argument("--scheduler", help="a Dask cluster to read on as well")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_rank(TraceFile(options.read))
        # Not ru_maxrss: what the parent used when it started this process counts there.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
        return
    are_made = options.made or not PUBLISHED.exists()
    events = options.events if are_made else 216_092
    kind = "made" if are_made else "published"
    report = Report(
        f"Kineto traces: {options.ranks} ranks of {events:,} {kind} events (load average {os.getloadavg()[0]:.1f})"
    )
    with tempfile.TemporaryDirectory() as name:
        measure(report, Path(name), options.ranks, events, are_made=are_made, scheduler=options.scheduler)
    report.publish()


def measure(
    report: Report, folder: Path, ranks: int, events: int, *, are_made: bool, scheduler: str | None = None
) -> None:
    """Ours and the peer's on the same files, one after the other; then growth with ranks and with events."""
    files = write_ranks(folder / "whole", ranks, are_made=are_made, events=events)
    peer = measure_peer(files, folder)
    measure_ours(files[:1])
    wall_s, used_s = measure_ours(files)
    for label, own_s, place in (("import and breakdown", wall_s, 0), ("the same, CPU time", used_s, 1)):
        if peer is None:
            report.add(label, own_s, "s")
        else:
            report.add(label, own_s, "s", peer[place], PEER, budget=None if place else peer[place] / 10)
    report.add("events per second", ranks * events / wall_s, "", higher_is_better=True)
    if scheduler:
        report.add("import and breakdown, read on Dask", measure_ours(files, scheduler=scheduler)[0], "s")
    report.add("import and everything, to verdicts", measure_ours(files, to_verdicts=True)[0], "s")
    report.add("peak memory of a reader", measure_memory(files[0]), "MB", budget=350)
    count = 1
    while count < ranks:
        report.add(f"{count} of the ranks, CPU time", measure_ours(files[:count])[1], "s")
        count *= 2
    for share in SHARES:
        part = write_ranks(folder / f"share{share}", 1, share, are_made=are_made, events=events)
        report.add(f"1 rank of {share * events:,.0f} events, CPU time", measure_ours(part)[1], "s")
        report.add(f"1 rank of {share * events:,.0f} events, peak memory", measure_memory(part[0]), "MB")


if __name__ == "__main__":
    main()
