"""Training scripts give the same result under ``clusterscape run`` as alone, with MLflow's autologging of their framework."""

from pathlib import Path

import pytest
from servers.venvs import need_venv
from tracking.command import Command
from tracking.same_as_alone import SCRIPTS, run_alone, run_tracked

pytestmark = pytest.mark.server

# What the run must have of it: a metric, and how many samples.
METRICS = {
    "sklearn_model": ("accuracy", 1),
    "torch_plain": ("loss", 50),
    "lightning_autolog": ("train_loss", 3),
    "transformers_tiny": ("loss", 4),
    "xgboost_autolog": ("train-rmse", 5),
    "several_processes": ("loss_2", 5),
}


@pytest.mark.parametrize("name", METRICS)
def test_result_is_the_same_when_a_script_is_tracked(tmp_path: Path, name: str) -> None:
    python = need_venv("training") / "python"
    commands = [Command(tmp_path / place, tmp_path / "home") for place in ("alone", "tracked")]
    for command in commands:
        command.folder.mkdir()
        command.variables["MLFLOW_DISABLE_TELEMETRY"] = "true"
        command.script(f"{name}.py", (SCRIPTS / f"{name}.py").read_text())
    alone, tracked = run_alone(commands[0], python, f"{name}.py"), run_tracked(commands[1], python, f"{name}.py")
    assert (tracked.exit_code, tracked.files) == (alone.exit_code, alone.files)
    assert tracked.content == alone.content
    run = commands[1].only_run()
    metric, samples = METRICS[name]
    assert {line.name: line.samples for line in run.metrics}[metric] == samples
    assert "mlflow" not in run.listeners  # recording did not fail
