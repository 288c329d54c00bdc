"""What waiting for slow steps costs a run in which nothing happens: step time of 20 pairs of runs, with ``--record-slow-steps``
and without, in alternating order. The step is a training step of PyTorch on one core, without a device.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Report

PAIRS = 20
SCRIPT = """\
import time
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(64, 256)
times = []
for step in range(300):
    begun = time.process_time()
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.process_time() - begun)
times = sorted(times[50:])
print(sum(times[25:-25]) / (len(times) - 50))
"""
NEVER = 1e9
"""Medians: the noise of a busy machine must not start the profiler, whose cost is not measured here."""


def step_s(folder: Path, *options: str) -> float:
    """Mean processor seconds of a step, without the slowest and fastest tenth: other work on the machine does not count."""
    environ = os.environ | {
        "XDG_STATE_HOME": str(folder),
        "CLUSTERSCAPE_SLOW_RATIO": str(NEVER),
        "OMP_NUM_THREADS": "1",
    }
    words = [sys.executable, "-m", "clusterscape.cli", "run", "-l", "none", "--quiet", *options, "model.py"]
    done = subprocess.run(words, cwd=folder, env=environ, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> int:
    """Print the table."""
    report = Report("Waiting for slow steps")
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.py").write_text(SCRIPT)
        for pair in range(PAIRS):
            orders = ((), ("--record-slow-steps",)) if pair % 2 else (("--record-slow-steps",), ())
            lengths = {options: step_s(folder, *options) for options in orders}
            ratios.append(lengths["--record-slow-steps",] / lengths[()] - 1)
    rng = random.Random(0)
    means = sorted(statistics.median(rng.choices(ratios, k=PAIRS)) for _ in range(2000))
    report.add(f"added step time, median of {PAIRS} pairs", 100 * statistics.median(ratios), "%", budget=1.0)
    report.add("its 95 % interval, lower end", 100 * means[50], "%")
    report.add("its 95 % interval, upper end", 100 * means[-51], "%")
    report.publish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
