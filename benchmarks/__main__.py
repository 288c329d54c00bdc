"""``make bench``: every benchmark, one after another, and docs/benchmarks.md from what they measured.

``--only NAME …`` runs some again and renews their part of the page. One that fails keeps its former part and is named at the end.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.page import write_page
from benchmarks.report import KEPT_AT

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
TARGET = FOLDER.parent / "docs/benchmarks.md"
BENCHMARKS = (
    "scrape_to_store",
    "kubernetes_poll",
    "embedded_vs_victoria",
    "snapshot_wire",
    "private_snapshot",
    "shared_answers",
    "request_wait",
    "demo_start",
    "layout_speed",
    "overview_columns",
    "picture_frames",
    "page_memory",
    "life_statistics",
    "diagnose_speed",
    "diagnosis_open",
    "odd_gpu_detection",
    "telemetry_stragglers",
    "run_overhead",
    "run_peers",
    "run_ingest",
    "run_series",
    "run_list",
    "run_cpu",
    "scheduling_speed",
    "job_description",
    "wait_prediction",
    "live_queue",
    "hang_verdict",
    "hang_overhead",
    "slow_steps_overhead",
    "trace_import",
    "marey_brush",
    "trace_marey",
)


def machine() -> str:
    """Describes the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}"


def run(name: str) -> bool:
    """Run one benchmark and keep what it reported; False when it failed."""
    load, begun = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(scratch) / "reports.jsonl"
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        done = subprocess.run(command, cwd=FOLDER.parent, env=os.environ | {KEPT_AT: str(kept)}, check=False)
        if done.returncode or not kept.exists():
            return False
        reports = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    result = {
        "date": f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}",
        "machine": machine(),
        "load": round(load, 1),
        "seconds": round(time.monotonic() - begun),
        "reports": reports,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return True


def main() -> int:
    """Run the chosen benchmarks and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", default=BENCHMARKS)
    failed = [name for name in parser.parse_args().only if not run(name)]
    write_page(RESULTS, BENCHMARKS, TARGET)
    if failed:
        print(f"Failed, and left as they were in {TARGET.name}: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
