"""A metric of 100,000 points on its way from the store to the screen, compared with MLflow's ``get_metric_history``.

The server thins it: from memory just after it was logged, and from files where it was logged hours ago. On the screen: from the
page's question to the first picture with the line on it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.report import Report
from benchmarks.run_ingest import RUN, STEPS, server, write_spool
from benchmarks.run_overhead import ROOT, environ

OLD_RUN = "20260101-000000-000001"
ROUNDS = 20
FILES_WITHIN_S = 180
PEER = f"""\
import json, os, time
import mlflow
from mlflow.entities import Metric
mlflow.set_tracking_uri("sqlite:///" + os.getcwd() + "/history.db")
client = mlflow.MlflowClient()
run = client.create_run("0").info.run_id
for start in range(0, {STEPS}, 1000):
    client.log_batch(run, [Metric("loss", n / 7, 1_700_000_000_000 + n, n) for n in range(start, start + 1000)])
walls = []
for _ in range(3):
    begun = time.perf_counter()
    client.get_metric_history(run, "loss")
    walls.append(time.perf_counter() - begun)
print(json.dumps(min(walls)))
"""
# The time from the page's question for the lines to the frame in which the chart's canvas has ink on it.
DRAWN = """\
(title) => new Promise((done) => {
  const look = () => {
    const requests = performance.getEntriesByType("resource").filter((entry) => /runs.(bands|series)[?]/.test(entry.name));
    const canvas = document.querySelector(`section[aria-label="${title}"] canvas`);
    const pixels = canvas && canvas.width > 0 ? canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data : [];
    const count = pixels.reduce((sum, value, at) => sum + (at % 4 === 3 && value > 0 ? 1 : 0), 0);
    if (requests.length > 0 && count > 500) done([performance.now() - requests[0].startTime, requests[0].duration]);
    else requestAnimationFrame(look);
  };
  look();
})
"""


def measure_peer(home: Path, python: Path) -> float:
    """Seconds for the history of one metric of as many points, best of three."""
    (home / "history.py").write_text(PEER)
    words = [str(python), "history.py"]
    done = subprocess.run(
        words, cwd=home, env=environ(home), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def measure_server(report: Report, home: Path, url: str, peer_s: float) -> None:
    """By HTTP over time and steps; then again from files, once the store has written them."""
    for run, place in ((RUN, "from memory"), (OLD_RUN, "from files")):
        if run == OLD_RUN:
            wait_for_files(home)
        for axis in ("time", "step"):
            address = f"{url}/api/v1/runs/series?run={run}&metric=metric3&points=2000&axis={axis}"
            walls = sorted(_get_s(address) for _ in range(ROUNDS))
            label = f"{STEPS:,} points over {axis}, {place}"
            report.add(label, 1000 * statistics.median(walls), "ms", 1000 * peer_s, "MLflow, SQLite", budget=50)
            report.add("  best of 20", 1000 * walls[0], "ms")


def wait_for_files(home: Path) -> None:
    """Until what is hours old lies in compacted segments; the server sees to it within a minute or two."""
    end = time.monotonic() + FILES_WITHIN_S
    while any((home / "data/metrics/recent").glob("*")) and time.monotonic() < end:
        time.sleep(1)


def measure_page(report: Report, url: str) -> None:
    """In a real browser, best of some fresh pages: the first one also loads the page's program."""
    from servers.browser import chromium

    with chromium() as browser:
        times = []
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{url}/runs?run={RUN}&metric_of_runs=metric3")
            times.append(page.evaluate(DRAWN, "metric3"))
            page.close()
    shown, answered = min(times)
    report.add(f"{STEPS:,} points on screen", shown, "ms", budget=300)
    report.add("  of that until the answer was there", answered, "ms")


def _get_s(url: str) -> float:
    begun = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return time.perf_counter() - begun


def main() -> int:
    """Print the table."""
    sys.path.insert(0, str(ROOT / "tests"))
    from servers.venvs import need_venv

    from clusterscape.track.upload import RunServer

    report = Report(f"A metric of {STEPS:,} points from the store to the screen")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        peer_s = measure_peer(home, need_venv("mlflow") / "python")
        write_spool(home / "runs" / OLD_RUN, ended_ago_s=7200)
        write_spool(home / "runs" / RUN)
        with server(home) as url:
            for run in (OLD_RUN, RUN):
                RunServer(url, timeout_s=600).send(home / "runs" / run)
            measure_server(report, home, url, peer_s)
            measure_page(report, url)
    report.publish()
    print(json.dumps(os.getloadavg()), "load average at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
