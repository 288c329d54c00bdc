"""The layout of 100,000 units in four nested layers, compared with grouping as Atom's engine does: a filter for every key.

Budget: ≤ 150 ms. The peer only groups; ours also sizes, packs and places every group and unit.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Report

SCRIPT = Path(__file__).parents[1] / "web/bench/layout-speed.ts"
# Waiting workloads request a tenth more.
GPUS = 90_910


def find_node() -> str:
    """Path of the Node next to this Python, which builds the client, or of the first on the search path."""
    neighbor = Path(sys.executable).with_name("node")
    return str(neighbor) if neighbor.exists() else shutil.which("node") or "node"


def main() -> int:
    """Measure and print; a layout that loses or overlaps units is a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=GPUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    done = subprocess.run([find_node(), str(SCRIPT), str(options.gpus)], stdout=subprocess.PIPE, check=True)
    cases = json.loads(done.stdout)
    load = os.getloadavg()[0]
    report = Report(f"Layout of {cases[0]['units']:,} units (load {load:.1f} on {os.cpu_count()} cores)")
    for case in cases:
        layers = " > ".join(case["attributes"])
        report.add(
            f"{layers} ({case['groups']:,} groups)", case["ours_ms"], "ms", case["filter_per_key_ms"], "filter per key",
            budget=150,
        )  # fmt: skip
        report.add("  the first time, not yet compiled", case["first_ms"], "ms")
        report.add("  as it was, places kept", case["kept_ms"], "ms")
        report.add("  left empty by packing", 100 * case["waste_ratio"], "%")
    report.publish(as_json=options.json)
    faults = [case["fault"] for case in cases if case["fault"] is not None]
    if faults:
        print("; ".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
