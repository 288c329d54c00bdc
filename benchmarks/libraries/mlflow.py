"""Sends the metrics of a run to a real MLflow server: our client on the standard library against mlflow-skinny.

``python -m benchmarks.libraries.mlflow`` starts the server of the integration tests over SQLite; every side runs in a
process of its own and prints seconds, CPU seconds and peak memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from servers.mlflow import MlflowServer, mlflow_place, wait_until_up

BATCH = 1000
"""Metrics of one request: MLflow takes no more."""


def ours(url: str, metrics: int) -> None:
    """As ``track/mlflow/sending.py`` does it."""
    from clusterscape.track.mlflow.server import MlflowServer as Client

    server = Client(url)
    run = server.create_run(server.experiment("ours"), "run", start_ms=1, user="ada", tags={})
    for first in range(0, metrics, BATCH):
        points = [
            {"key": "loss", "value": 0.5, "timestamp": step, "step": step} for step in range(first, first + BATCH)
        ]
        server.log_batch(run, metrics=points)
    server.update_run(run, "FINISHED", end_ms=2)
    server.close()


def skinny(url: str, metrics: int) -> None:
    """As MLflow's documentation shows it."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric
    from mlflow.exceptions import MlflowException

    client = MlflowClient(url)
    try:
        experiment = client.create_experiment("skinny")
    except MlflowException:
        experiment = client.get_experiment_by_name("skinny").experiment_id
    run = client.create_run(experiment, start_time=1).info.run_id
    for first in range(0, metrics, BATCH):
        points = [Metric("loss", 0.5, step, step) for step in range(first, first + BATCH)]
        client.log_batch(run, metrics=points)
    client.set_terminated(run, "FINISHED", 2)


SIDES: dict[str, Callable[[str, int], None]] = {"ours": ours, "skinny": skinny}


def measure(side: str, url: str, metrics: int) -> dict[str, float]:
    """The whole life of a sending process, from the import on."""
    begun, busy = time.perf_counter(), time.process_time()
    SIDES[side](url, metrics)
    return {
        "s": time.perf_counter() - begun,
        "cpu_s": time.process_time() - busy,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


def run(side: str, url: str, metrics: int) -> dict[str, float]:
    """One side in a process of its own."""
    words = ["-m", "benchmarks.libraries.mlflow", "--side", side, "--url", url, "--metrics", str(metrics)]
    done = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def start(place: MlflowServer, folder: Path) -> "subprocess.Popen[bytes]":
    """The server over SQLite and a folder."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    words = [str(place.bin / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(place.port), "--workers", "1",
             "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder)]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, env=environ, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    wait_until_up(place, process, folder / "log")
    return process


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--url")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure(options.side, options.url, options.metrics)), flush=True)
        return
    place = mlflow_place()
    with tempfile.TemporaryDirectory() as folder:
        process = start(place, Path(folder))
        try:
            for metrics in (BATCH, options.metrics):
                # In turns, so that other load on the machine affects both sides alike.
                rounds = [{side: run(side, place.url, metrics) for side in SIDES} for _ in range(options.rounds)]
                for side in SIDES:
                    best = {name: min(times[side][name] for times in rounds) for name in rounds[0][side]}
                    print(
                        side,
                        f"{metrics:,} metrics",
                        {name: round(value, 2) for name, value in best.items()},
                        flush=True,
                    )
        finally:
            os.killpg(process.pid, 15)
            process.wait(20)


if __name__ == "__main__":
    main()
