"""What the overview computes at every tick of 100,000 units: conditions, facet counts, colors, legend; compared with rows.

Budget: ≤ 25 ms of processor time. The peer makes an object per unit and asks closures, as generic chart code does; both
must find the same units and the same counts.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.layout_speed import GPUS, find_node
from benchmarks.report import Report

SCRIPT = Path(__file__).parents[1] / "web/bench/overview-columns.ts"


def main() -> int:
    """Measure and print; a different result is a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=GPUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    done = subprocess.run([find_node(), str(SCRIPT), str(options.gpus)], stdout=subprocess.PIPE, check=True)
    cases = json.loads(done.stdout)
    load = os.getloadavg()[0]
    report = Report(f"Filter and color {cases[0]['units']:,} units (load {load:.1f} on {os.cpu_count()} cores)")
    for case in cases:
        report.add(case["what"], case["ours_ms"], "ms", case["rows_ms"], "objects and closures", budget=25)
        report.add("  the first time, not yet compiled", case["first_ms"], "ms")
    report.publish(as_json=options.json)
    faults = [case["what"] for case in cases if not case["is_same"]]
    if faults:
        print(f"not the same units by rows: {'; '.join(faults)}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
