"""Tracking compared with its peers on the same script: radT, and MLflow's system-metrics monitor at 10 Hz.

radT and MLflow live in environments of their own (``tests/servers/*-requirements.txt``), made the first time.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Report
from benchmarks.run_overhead import ROOT, environ, processor_s

SECONDS = 3
SCRIPT = f"import time\nbegun = time.time()\ntime.sleep({SECONDS})\nopen('took', 'w').write(str(time.time() - begun))\n"
MONITORED_S = 20
HERTZ = 10
MONITORED = f"""\
import time, os, json
import mlflow
mlflow.set_tracking_uri("sqlite:///" + os.getcwd() + "/monitor.db")
mlflow.set_system_metrics_sampling_interval({1 / HERTZ})
mlflow.set_system_metrics_samples_before_logging(1)
with mlflow.start_run(log_system_metrics=True) as run:
    time.sleep(2)
    begun, used = time.monotonic(), time.process_time()
    time.sleep({MONITORED_S})
    share = (time.process_time() - used) / (time.monotonic() - begun)
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "system/cpu_utilization_percentage")
print(json.dumps([share, len(history) / ({HERTZ} * ({MONITORED_S} + 2))]))
"""


def measure_added(report: Report, home: Path, radt: Path) -> None:
    """The same script alone, under ``clusterscape run``, under radT."""
    (home / "model.py").write_text(SCRIPT)
    plain = _wall_s([sys.executable, "model.py"], home, {}, 3)
    ours = _wall_s([sys.executable, "-m", "clusterscape.cli", "run", "-l", "proc", "model.py"], home, {}, 3)
    more = {"PATH": f"{radt}:{os.environ['PATH']}", "MLFLOW_TRACKING_URI": f"sqlite:///{home}/radt.db"}
    words = [str(radt / "python"), "-m", "radt", "-l", "top", "model.py"]
    _wall_s(words, home, more, 1)  # its database is made the first time
    theirs = _wall_s(words, home, more, 3)
    report.add(f"added wall time of a {SECONDS} s script", ours - plain, "s", theirs - plain, "radT 0.2.30", budget=0.5)


def measure_monitor(report: Report, home: Path, mlflow: Path) -> None:
    """Share of a core and ticks delivered at 10 Hz, of the processor alone: the peer has no more without a GPU."""
    (home / "monitor.py").write_text(MONITORED)
    done = subprocess.run(
        [str(mlflow / "python"), "monitor.py"],
        cwd=home,
        env=environ(home),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    share, ticks = json.loads(done.stdout.splitlines()[-1])
    ours, ours_ticks = _sample_with_gpus(home)
    report.add(f"sampler at {HERTZ} Hz: share of a core", 100 * ours, "%", 100 * share, "MLflow 3.17", budget=1.0)
    report.add(
        f"sampler at {HERTZ} Hz: ticks delivered",
        100 * ours_ticks,
        "%",
        100 * ticks,
        "MLflow 3.17",
        budget=99,
        higher_is_better=True,
    )


def _sample_with_gpus(home: Path) -> tuple[float, float]:
    """Ours with 8 stand-in GPUs in addition to the processes: more than the peer reads."""
    from clusterscape.track.spooled import list_runs, read_run

    listen = f"nvml={HERTZ}+proc"
    words = [sys.executable, "-m", "clusterscape.cli", "run", "-l", listen, "-d", "0+1+2+3+4+5+6+7", "--"]
    environment = environ(home, LD_LIBRARY_PATH=str(home), STUB_NVML_GPUS="8")
    process = subprocess.Popen(
        [*words, "sleep", str(MONITORED_S + 3)], cwd=home, env=environment, stderr=subprocess.DEVNULL
    )
    time.sleep(2)
    used, begun = processor_s(process.pid), time.perf_counter()
    time.sleep(MONITORED_S)
    share = (processor_s(process.pid) - used) / (time.perf_counter() - begun)
    process.wait()
    run = read_run(list_runs(home / "clusterscape")[0])
    sampler = run.listeners["nvml"]
    ticks, missed = int(str(sampler["ticks"])), int(str(sampler["missed"]))
    return share, ticks / (ticks + missed)


def _wall_s(words: list[str], home: Path, more: dict[str, str], rounds: int) -> float:
    walls = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run(words, cwd=home, env=environ(home, **more), check=True, capture_output=True)
        walls.append(time.perf_counter() - begun)
    return statistics.median(walls)


def main() -> int:
    """Print the table."""
    sys.path.insert(0, str(ROOT / "tests"))
    from servers.venvs import need_venv
    from tracking.stub_nvml import build_stub

    report = Report("Tracking compared with its peers, on the same script and machine")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        build_stub("gcc", home)
        measure_monitor(report, home, need_venv("mlflow"))
        measure_added(report, home, need_venv("radt"))
    report.publish()
    print(json.dumps(os.getloadavg()), "load average at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
