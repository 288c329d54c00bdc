"""Cost of tracking: added wall time, the sampler's share of a core with 8 GPUs, and how fast a script can log.

The GPUs are a stand-in library: honest for the cost of the binding and of everything above it, silent about a driver's own.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Report

ROOT = Path(__file__).parents[1]
SCRIPT = "import time\ntime.sleep(1)\n"
LOGGING = """\
import sys, time, clusterscape
run = clusterscape.run()
names = int(sys.argv[1])
metrics = {f"m{n}": 0.5 for n in range(names)}
calls = 500_000 // names
begun = time.perf_counter()
for step in range(calls):
    run.log(metrics, step=step)
print(calls * names / (time.perf_counter() - begun))
"""


def environ(home: Path, **more: str) -> dict[str, str]:
    """A state folder of its own."""
    left = {key: value for key, value in os.environ.items() if not key.startswith(("CLUSTERSCAPE_", "XDG_"))}
    return {**left, "XDG_STATE_HOME": str(home), **more}


def wall_s(words: list[str], home: Path, rounds: int) -> tuple[float, float]:
    """Median wall seconds and median processor seconds of a command and its children."""
    walls, processors = [], []
    for _ in range(rounds):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(words, cwd=home, env=environ(home), check=True, capture_output=True)
        walls.append(time.perf_counter() - begun)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), statistics.median(processors)


def measure_added(report: Report, home: Path) -> None:
    """Plain Python against ``clusterscape run``, in turns."""
    (home / "model.py").write_text(SCRIPT)
    plain, plain_cpu = wall_s([sys.executable, "model.py"], home, 5)
    tracked, tracked_cpu = wall_s([sys.executable, "-m", "clusterscape.cli", "run", "model.py"], home, 5)
    report.add("added wall time, median of 5", tracked - plain, "s", budget=0.5)
    report.add("added processor time, median of 5", tracked_cpu - plain_cpu, "s")


def measure_sampler(report: Report, home: Path, hertz: int, seconds: int) -> None:
    """The tracker's own processor time and memory while it listens to 8 GPUs and the processes."""
    from clusterscape.track.spooled import list_runs, read_run

    words = [sys.executable, "-m", "clusterscape.cli", "run", "-l", f"nvml={hertz}+proc", "-d", "0+1+2+3+4+5+6+7", "--"]
    process = subprocess.Popen(
        [*words, "sleep", str(seconds)], cwd=home, env=environ(home, LD_LIBRARY_PATH=str(home), STUB_NVML_GPUS="8")
    )
    time.sleep(3)  # the cost of the start is measured above
    first, begun = processor_s(process.pid), time.perf_counter()
    time.sleep(seconds - 5)
    share = (processor_s(process.pid) - first) / (time.perf_counter() - begun)
    memory = peak_bytes(process.pid)
    process.wait()
    run = read_run(list_runs(home / "clusterscape")[0])
    listener = run.listeners["nvml"]
    ticks, missed = int(str(listener["ticks"])), int(str(listener["missed"]))
    report.add(f"sampler at {hertz} Hz, 8 GPUs: share of a core", 100 * share, "%", budget=1.0)
    report.add(f"sampler at {hertz} Hz, 8 GPUs: peak memory", memory / 1e6, "MB", budget=60)
    delivered = 100 * ticks / (ticks + missed)
    report.add(f"sampler at {hertz} Hz, 8 GPUs: ticks delivered", delivered, "%", budget=99, higher_is_better=True)


def processor_s(pid: int) -> float:
    """User and system seconds of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid: int) -> int:
    """Most memory it ever held."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def measure_logging(report: Report, home: Path) -> None:
    """Metrics that ``run.log`` accepts while it is writing them in the background."""
    (home / "log.py").write_text(LOGGING)
    for names in (1, 10, 100):
        done = subprocess.run(
            [sys.executable, "log.py", str(names)],
            cwd=home,
            env=environ(home),
            check=True,
            capture_output=True,
            text=True,
        )
        rate = float(done.stdout)
        report.add(f"run.log with {names} a call", rate, "metrics/s", budget=100_000, higher_is_better=True)


def main() -> int:
    """Print the table."""
    report = Report("Tracked runs (stand-in NVML library: honest for the binding's cost, not for a driver's)")
    sys.path.insert(0, str(ROOT / "tests"))
    from tracking.stub_nvml import build_stub

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        build_stub("gcc", home)
        measure_added(report, home)
        measure_sampler(report, home, 1, 30)
        measure_sampler(report, home, 10, 30)
        measure_logging(report, home)
    report.publish()
    print(json.dumps(os.getloadavg()), "load average at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
