"""From typing ``clusterscape demo`` to the first answered page, the first time and the second. Budget: second start ≤ 8 s."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from servers.demo import get_json, wait_until

from benchmarks.report import Report


def start(folder: Path, gpus: int) -> dict[str, float]:
    """Seconds until the server says it is ready, the page is answered, GPUs are shown, and the history is there."""
    command = [sys.executable, "-m", "clusterscape.cli", "demo", "--gpus", str(gpus), "--port", "0", "--json"]
    begin = time.perf_counter()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen(
        [*command, "--data-dir", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        assert child.stdout is not None
        text = ""
        while "}" not in text:
            line = child.stdout.readline().decode()
            if not line:
                raise SystemExit("the demo ended before it was ready")
            text += line
        url = json.loads(text)["url"]
        times = {"ready": time.perf_counter() - begin}
        with urllib.request.urlopen(f"{url}/", timeout=30) as page:
            page.read()
        times["page"] = time.perf_counter() - begin
        wait_until(lambda: get_json(f"{url}/api/v1/cluster")["units"]["total"] >= gpus)
        times["cluster"] = time.perf_counter() - begin
        wait_until(lambda: _history_hours(url) > 23.5)
        times["history"] = time.perf_counter() - begin
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=30)
    return times


def _history_hours(url: str) -> float:
    store = get_json(f"{url}/api/v1/sources")["store"]
    if store["oldest_at"] is None:
        return 0.0
    return float(store["newest_at"] - store["oldest_at"]) / 3_600_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1024)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"Start of `clusterscape demo --gpus {options.gpus}`")
    with tempfile.TemporaryDirectory() as folder:
        first = start(Path(folder), options.gpus)
        second = start(Path(folder), options.gpus)
    report.add("first start: page answered", first["page"], "s")
    report.add("first start: 24 h of history there", first["history"], "s")
    report.add("  of it: filling in", first["history"] - first["ready"], "s", budget=10)
    report.add("second start: page answered", second["page"], "s", budget=8)
    report.add("second start: every GPU shown", second["cluster"], "s", budget=8)
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
