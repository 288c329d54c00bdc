"""What watching for hangs costs a healthy run: step time of 30 pairs of runs, with the watch and without, in alternating order.

The step is a matrix product of NumPy on one core; the process is a rank, so it has the handler and the sleeping thread.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Report

PAIRS = 30
SCRIPT = """\
import time
import numpy as np
import clusterscape
run = clusterscape.run()
a = np.random.default_rng(0).random((256, 256))
times = []
for step in range(150):
    begun = time.process_time()
    for _ in range(4):
        a @ a
    run.log({"loss": 1.0}, step=step)
    times.append(time.process_time() - begun)
print(sum(sorted(times[30:])[12:-12]) / (len(times[30:]) - 24))
"""


def step_s(folder: Path, *options: str) -> float:
    """Mean processor seconds of a step, without the slowest and fastest tenth: other work on the machine does not count."""
    environ = os.environ | {"XDG_STATE_HOME": str(folder), "RANK": "0", "WORLD_SIZE": "2", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "clusterscape.cli", "run", "-l", "none", "--quiet", *options, "model.py"]
    done = subprocess.run(words, cwd=folder, env=environ, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> int:
    """Print the table."""
    report = Report("Watching a healthy run for hangs")
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.py").write_text(SCRIPT)
        for pair in range(PAIRS):
            if pair % 2:
                with_watch, without = step_s(folder), step_s(folder, "--no-hang-watch")
            else:
                without, with_watch = step_s(folder, "--no-hang-watch"), step_s(folder)
            ratios.append(with_watch / without - 1)
    rng = random.Random(0)
    means = sorted(statistics.median(rng.choices(ratios, k=PAIRS)) for _ in range(2000))
    report.add(f"added step time, median of {PAIRS} pairs", 100 * statistics.median(ratios), "%", budget=0.5)
    report.add("its 95 % interval, lower end", 100 * means[50], "%")
    report.add("its 95 % interval, upper end", 100 * means[-51], "%")
    report.publish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
