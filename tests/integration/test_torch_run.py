"""A real PyTorch training on the processor under ``clusterscape run``: alone, and two collocated by a plan."""

import os

import pytest
from tracking.command import Command

if os.environ.get("CI") != "true":  # there it must be installed
    pytest.importorskip("torch", reason="torch is not installed; `pip install -e '.[torch-tests]'` brings it")
pytestmark = pytest.mark.server

# As it would be without us; the two marked lines are the little code for more.
TRAIN = """\
import argparse
import torch
import clusterscape  # marked

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--fail-at", type=int, default=-1)
options = parser.parse_args()
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
run = clusterscape.run()  # marked
for step in range(options.steps):
    data = torch.randn(options.batch_size, 64)
    loss = (model(data) - data.sum(1, keepdim=True) / 8).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log({"loss": loss, "samples": (step + 1) * options.batch_size}, step=step)  # marked
    if step == options.fail_at:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
print("done", float(loss))
"""


@pytest.fixture
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    folder = tmp_path_factory.mktemp("torch")
    (folder / "code").mkdir()
    tracked = Command(folder=folder / "code", home=folder / "home", deadline_s=240)
    tracked.script("train.py", TRAIN)
    return tracked


def test_training_is_tracked_when_it_runs_alone(command: Command) -> None:
    done = command("run", "-e", "torch", "-d", "cpu", "train.py", "--steps", "200")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("done ")
    run = command.only_run()
    metrics = {metric.name: metric for metric in run.metrics if metric.unit is None}
    assert metrics["loss"].samples == 200
    assert metrics["samples"].last == 200 * 64
    assert metrics["loss"].last is not None
    assert float(done.stdout.split()[1]) == pytest.approx(metrics["loss"].last)
    cpu_seconds = metrics["process_cpu_seconds"].last
    assert cpu_seconds is not None
    assert cpu_seconds > 0.1
    assert run.environment is not None
    packages = run.environment["packages"]
    assert isinstance(packages, dict)
    assert "torch" in packages


def test_each_is_tracked_when_two_are_collocated_and_one_fails(command: Command) -> None:
    command.script(
        "plan.csv",
        "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n"
        "1,1,,,cpu,-,train.py,top+free,batch-size=32\n"
        "1,1,,,cpu,-,train.py,top+free,batch-size=128 fail-at=20\n",
    )
    assert command("plan", "plan.csv").returncode == 1
    first, second = sorted(command.runs(), key=lambda run: int(run.params["batch-size"]))
    assert (first.state, second.state) == ("completed", "failed")
    assert second.cause == "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
    assert abs(first.moments["running"] - second.moments["running"]) <= 100
    steps = [next(metric.samples for metric in run.metrics if metric.name == "loss") for run in (first, second)]
    assert steps == [60, 21]
    listing = (command.folder / "plan.csv").read_text()
    assert "FINISHED" in listing
    assert "FAILED (RuntimeError: mat1 and mat2 shapes cannot be multiplied)" in listing
