"""Processor time of two burners that run together at 100 % and 50 % of a core: each read within 5 points, in its own run.

radT adds up the processor time of every ``python`` process of the machine, of all users: its two runs would read that sum.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Report
from benchmarks.run_overhead import environ

SECONDS = 20
# Burns in short turns by its own processor clock, so that it takes its share however busy the machine is, as far as it is let.
BURNER = f"""\
import resource, sys, time
import clusterscape
share = float(sys.argv[sys.argv.index("--share") + 1])
begun = time.monotonic()
while (passed := time.monotonic() - begun) < {SECONDS}:
    if time.process_time() < share * passed:
        sum(range(2000))
    else:
        time.sleep(0.002)
used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
clusterscape.run().log({{"kernel_cores": used / (time.monotonic() - begun)}})
"""
PLAN = """\
Experiment,Workload,Devices,File,Listeners,Params
burners,together,cpu,burn.py,top,share=1
burners,together,cpu,burn.py,top,share=0.5
"""


def main() -> int:
    """Print the table."""
    import subprocess

    from clusterscape.track.spooled import list_runs, read_run

    report = Report(f"Two burners together for {SECONDS} s on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "burn.py").write_text(BURNER)
        (home / "plan.csv").write_text(PLAN)
        words = [sys.executable, "-m", "clusterscape.cli", "plan", "plan.csv"]
        subprocess.run(words, cwd=home, env=environ(home), check=True, capture_output=True)
        runs = sorted(
            (read_run(path) for path in list_runs(home / "clusterscape")), key=lambda run: run.params["share"]
        )
        read = []
        for run in runs:
            metrics = {metric.name: metric for metric in run.metrics}
            cores, kernel = metrics["process_cpu_cores"].mean, metrics["kernel_cores"].last
            assert cores is not None
            assert kernel is not None
            share = float(run.params["share"])
            read.append(cores)
            name = f"burner at {100 * share:.0f} %"
            report.add(f"{name}: read", 100 * cores, "% of a core")
            report.add(f"{name}: off what was asked for", 100 * abs(cores - share), "points", budget=5)
            report.add(f"{name}: off what the kernel charged", 100 * abs(cores - kernel), "points", budget=5)
        report.add("added up, as radT reads each of them", 100 * sum(read), "% of a core")
    report.publish()
    print(json.dumps(os.getloadavg()), "load average at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
