"""Metrics of a run on their way to the page: spool to server to store, bytes on disk, and a long series as a line.

The peer is MLflow's own client on SQLite: batches of 1,000, and the history of one metric.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import Report
from benchmarks.run_overhead import ROOT, environ

STEPS = 100_000
METRICS = 10
RUN = "20260101-000000-abcdef"
PEER_METRICS = 20_000
PEER = f"""\
import json, os, time
import mlflow
from mlflow.entities import Metric
mlflow.set_tracking_uri("sqlite:///" + os.getcwd() + "/batches.db")
client = mlflow.MlflowClient()
run = client.create_run("0").info.run_id
before = os.path.getsize("batches.db")
begun = time.perf_counter()
for start in range(0, {PEER_METRICS}, 1000):
    client.log_batch(run, [Metric("loss", n / 7, 1_700_000_000_000 + n, n) for n in range(start, start + 1000)])
rate = {PEER_METRICS} / (time.perf_counter() - begun)
size = (os.path.getsize("batches.db") - before) / {PEER_METRICS}
begun = time.perf_counter()
client.get_metric_history(run, "loss")
print(json.dumps([rate, size, (time.perf_counter() - begun) * {STEPS} / {PEER_METRICS}]))
"""


def write_spool(folder: Path, *, ended_ago_s: float = 60) -> int:
    """A run that logged ``METRICS`` numbers in each of ``STEPS`` steps; returns how many samples that are."""
    from clusterscape.model.run_frames import encode_event, encode_samples

    folder.mkdir(parents=True)
    begin_ms = int((time.time() - ended_ago_s) * 1000) - STEPS * 10
    parts = [
        encode_event({"event": "run", "run": folder.name, "name": "long.py", "host": "bench", "devices": ["cpu"],
                      "queued_at": begin_ms, "command": ["python", "long.py"]}),
        encode_event({"event": "moment", "moment": "running", "at": begin_ms}),
    ]  # fmt: skip
    for code in range(METRICS):
        series = {"code": code, "name": f"metric{code}", "unit": None, "scope": "run", "method": "measured"}
        parts.append(encode_event({"event": "series", **series}))
    chunk = 2000
    for start in range(0, STEPS, chunk):
        steps = [step for step in range(start, start + chunk) for _ in range(METRICS)]
        codes = list(range(METRICS)) * chunk
        times = [(begin_ms + step * 10) * 1000 for step in steps]
        values = [math.sin(step / 300 + code) / (1 + step / 5000) for step, code in zip(steps, codes, strict=True)]
        parts.append(encode_samples(codes, times, steps, values))
    end_ms = begin_ms + STEPS * 10
    parts.append(encode_event({"event": "end", "state": "completed", "cause": None, "exit_code": 0, "at": end_ms}))
    (folder / "tracker.spool").write_bytes(b"".join(parts))
    return STEPS * METRICS


@contextmanager
def server(home: Path) -> Iterator[str]:
    """A real ``clusterscape serve``."""
    from servers.programs import free_port

    port = free_port()
    words = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", str(port), "--json"]
    environment = environ(home, CLUSTERSCAPE_STORAGE__DATA_DIR=str(home / "data"))
    process = subprocess.Popen(words, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/healthz", timeout=2).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def measure(report: Report, home: Path, peer: tuple[float, float, float]) -> None:
    """Send, look at the disk, and ask for lines."""
    from clusterscape.track.upload import RunServer

    folder = home / "runs" / RUN
    samples = write_spool(folder)
    with server(home) as url:
        begun = time.perf_counter()
        RunServer(url, timeout_s=600).send(folder)
        rate = samples / (time.perf_counter() - begun)
        bytes_kept = sum(file.stat().st_size for file in (home / "data/metrics").rglob("*") if file.is_file())
        address = f"{url}/api/v1/runs/series?run={RUN}&metric=metric3&points=2000&axis="
        walls = {axis: min(_get_s(address + axis) for _ in range(5)) for axis in ("time", "step")}
    name = "MLflow on SQLite"
    report.add("ingest, spool to store", rate, "samples/s", peer[0], name, budget=100_000, higher_is_better=True)
    report.add("bytes a sample on disk, steps included", bytes_kept / samples, "B", peer[1], name, budget=20)
    for axis, wall in walls.items():
        report.add(
            f"{STEPS:,} points over {axis}, thinned, by HTTP", wall * 1000, "ms", peer[2] * 1000, name, budget=50
        )


def measure_peer(home: Path, python: Path) -> tuple[float, float, float]:
    """Metrics a second, bytes a metric, and seconds for a history as long as ours."""
    (home / "batches.py").write_text(PEER)
    done = subprocess.run(
        [str(python), "batches.py"],
        cwd=home,
        env=environ(home),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    rate, size, history_s = json.loads(done.stdout.splitlines()[-1])
    return rate, size, history_s


def _get_s(url: str) -> float:
    begun = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return time.perf_counter() - begun


def main() -> int:
    """Print the table."""
    sys.path.insert(0, str(ROOT / "tests"))
    from servers.venvs import need_venv

    report = Report("What a run logs, from its spool to the page")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        peer = measure_peer(home, need_venv("mlflow") / "python")
        measure(report, home, peer)
    report.publish()
    print(json.dumps(os.getloadavg()), "load average at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
