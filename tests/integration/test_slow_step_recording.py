"""``clusterscape run --record-slow-steps``: a rare slow step is recorded on all ranks, and its cause is found."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clusterscape.analyze.trace.report import analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.track.slow_steps import KEPT_LENGTHS, StepLengths

pytest.importorskip("torch", reason="torch is not installed; `pip install -e '.[torch-tests]'` brings it")

SCRIPT = """\
import os, sys, time
import torch
import torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
torch.set_num_threads(1)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)))
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(16, 64)
for step in range(60):
    model(batch).square().mean().backward()
    if dist.get_rank() == 1 and step in (13, 29, 45):
        time.sleep(1.0)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
os._exit(0)
"""


def test_pause_of_one_rank_is_recorded_and_named_when_it_is_rare(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    runner = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path), "KINETO_LOG_LEVEL": "5", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "clusterscape.cli", "run", "-l", "none", "--record-slow-steps", "--no-hang-watch",
         "--", *runner, "2", *rendezvous, "train.py"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"recorded steps 24 to 31, of which one took [\d.]+ times the median", done.stderr)
    folder = next(tmp_path.glob("clusterscape/runs/*/slow-steps/00000024"))
    captures = [json.loads((folder / f"capture_rank{rank}.json").read_text()) for rank in range(2)]
    assert {capture["world_size"] for capture in captures} == {2}
    report = analyze_trace(read_traces([folder]), np.random.default_rng(0))
    blamed = [verdict for verdict in report.verdicts if verdict.rank is not None]
    assert blamed[0].rank == 1
    assert blamed[0].seconds_per_step * report.attribution.step_s.shape[1] == pytest.approx(1.0, rel=0.3)
    assert len(list(folder.parent.iterdir())) <= 3


def test_length_is_compared_with_the_running_median_when_steps_become_longer() -> None:
    lengths = StepLengths()
    ratios = [lengths.add(1.0) for _ in range(KEPT_LENGTHS)]
    assert ratios[:10] == [0.0] * 10
    assert set(ratios[10:]) == {1.0}
    assert lengths.add(1.5) == 1.5
    for _ in range(KEPT_LENGTHS):
        lengths.add(2.0)
    assert lengths.add(2.0) == 1.0
