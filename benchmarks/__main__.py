"""``make bench``: every benchmark, one after another, and the tables in docs/benchmarks.md. ``--only NAME`` runs one."""

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
TARGET = FOLDER.parent / "docs/benchmarks.md"
BENCHMARKS = (
    "scrape_to_store",
    "kubernetes_poll",
    "embedded_vs_victoria",
    "snapshot_wire",
    "private_snapshot",
    "demo_start",
    "layout_speed",
    "overview_columns",
    "picture_frames",
    "page_memory",
    "life_statistics",
    "diagnose_speed",
    "diagnosis_open",
    "odd_gpu_detection",
    "run_overhead",
    "run_peers",
    "run_ingest",
    "run_series",
    "run_cpu",
    "scheduling_speed",
    "job_description",
    "wait_prediction",
    "live_queue",
    "trace_import",
    "marey_brush",
    "trace_marey",
)


def machine() -> str:
    """What it ran on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}"


def main() -> int:
    """Run, print, and write the page when all ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=BENCHMARKS)
    options = parser.parse_args()
    texts: dict[str, str] = {}
    for name in [options.only] if options.only else BENCHMARKS:
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"],
            cwd=FOLDER.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stdout, flush=True)
        if done.returncode:
            return done.returncode
        texts[name] = done.stdout.strip("\n")
    if not options.only:
        head = f"# Benchmarks\n\nWritten by `make bench` on {datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}: {machine()}."
        parts = [f"## `benchmarks/{name}.py`\n\n```text\n{text}\n```" for name, text in texts.items()]
        TARGET.write_text("\n\n".join([head, *parts]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
