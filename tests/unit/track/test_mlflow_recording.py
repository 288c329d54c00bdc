"""What a script logs to MLflow becomes part of its run, and the script does not notice; and names in MLflow's form."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tracking.command import Command
from tracking.plain_mlflow import write_client

from clusterscape.track.mlflow import recording
from clusterscape.track.mlflow.naming import clean, metric_of, status_of

BEGIN = """\
from mlflow.tracking._tracking_service.client import TrackingServiceClient
from types import SimpleNamespace
client = TrackingServiceClient()
run = client.create_run("7").info.run_id
"""


@pytest.fixture
def mlflow_command(command: Command) -> Command:
    write_client(command.folder)
    return command


def test_calls_become_those_of_the_run_when_a_script_logs(mlflow_command: Command) -> None:
    mlflow_command.script(
        "model.py",
        """\
from mlflow.tracking._tracking_service.client import TrackingServiceClient
from types import SimpleNamespace
client = TrackingServiceClient()
client.get_experiment_by_name("sizes")
run = client.create_run("7", tags={"mlflow.user": "me", "mine": "x"}).info.run_id
for step in range(5):
    client.log_metric(run, "loss", 1 / (step + 1), timestamp=1794800000000 + step, step=step)
linked = SimpleNamespace(key="loss", value=0.5, timestamp=1794800000001, step=1, model_id="m-1")
other = SimpleNamespace(key="accuracy", value=float("nan"), timestamp=1794800000000, step=4)
param, tag = SimpleNamespace(key="lr", value=0.1), SimpleNamespace(key="note", value="n")
client.log_batch(run, metrics=[linked, other], params=[param], tags=[tag])
client.log_param(run, key="api_key", value="Par4m-of-script")
inner = client.create_run("7", tags={"mlflow.parentRunId": run}, run_name="fold").info.run_id
client.log_metric(inner, "loss", value=0.5)
again = client.create_run("7", run_name="fold", tags={"mlflow.parentRunId": run}).info.run_id
client.log_metric(again, "loss", 0.25)
try:
    client.log_metric(run, "refused", 1)
except ValueError as error:
    print(error)
""",
    )
    done = mlflow_command("run", "-l", "none", "model.py")
    assert (done.returncode, done.stdout) == (0, "refused by the server\n"), done.stderr
    run = mlflow_command.only_run()
    samples = {metric.name: (metric.samples, metric.last) for metric in run.metrics}
    assert samples == {"loss": (5, 0.2), "accuracy": (1, None), "fold/loss": (1, 0.5), "fold-2/loss": (1, 0.25)}
    assert run.params == {"lr": "0.1", "api_key": "(masked)"}
    assert run.tags == {"mine": "x", "note": "n", "mlflow.run": f"b{1:031d}", "mlflow.experiment": "sizes"}
    assert b"Par4m" not in b"".join(file.read_bytes() for file in run.folder.iterdir())


def test_run_is_called_as_in_mlflow_when_the_script_names_it(mlflow_command: Command) -> None:
    mlflow_command.script(
        "model.py", BEGIN.replace('("7")', '("7", run_name="large")') + "client.set_tag(run, 'a', 'b')\n"
    )
    assert mlflow_command("run", "-l", "none", "model.py").returncode == 0
    assert mlflow_command.only_run().tags["name"] == "large"


def test_all_processes_log_to_one_run_when_a_script_forks(mlflow_command: Command) -> None:
    script = BEGIN + "import os\nif os.fork():\n    os.wait()\nclient.log_metric(run, f'of {os.getpid()}', 1.0)\n"
    mlflow_command.script("model.py", script)
    assert mlflow_command("run", "-l", "none", "model.py").returncode == 0
    run = mlflow_command.only_run()
    assert sorted(metric.samples for metric in run.metrics) == [1, 1]
    assert all(metric.name.startswith("of ") for metric in run.metrics)
    assert len(list(run.folder.glob("mlflow-*.spool"))) == 2


def test_everything_is_kept_when_the_script_is_killed(mlflow_command: Command) -> None:
    script = (
        BEGIN
        + "import os\nfor step in range(9):\n    client.log_metric(run, 'loss', 1.0, step=step)\nos.kill(os.getpid(), 9)\n"
    )
    mlflow_command.script("model.py", script)
    assert mlflow_command("run", "-l", "none", "model.py").returncode == 137
    (loss,) = mlflow_command.only_run().metrics
    assert loss.samples == 9


@pytest.mark.parametrize(
    "harm",
    [
        "open(f'{folder}/mlflow-runs.jsonl', 'w').write('nonsense')\n",
        "os.mkdir(f'{folder}/artifacts')\nos.remove(f'{folder}/mlflow-runs.jsonl')\nos.mkdir(f'{folder}/mlflow-runs.jsonl')\n",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n",
    ],
)
def test_script_does_not_notice_when_recording_is_impossible(mlflow_command: Command, harm: str) -> None:
    find = "import os\nfolder = os.environ['CLUSTERSCAPE_RUN'].partition(':')[2]\n"
    log = "print(client.log_metric(run, 'loss', 1.0), client.log_param(run, 'lr', 0.1))\n"
    mlflow_command.script("model.py", find + BEGIN + harm + log)
    done = mlflow_command("run", "-l", "none", "model.py")
    assert (done.returncode, done.stdout) == (0, "None 0.1\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_artifacts_are_copied_when_a_script_logs_files(mlflow_command: Command) -> None:
    script = (
        BEGIN
        + """\
import pathlib
place = pathlib.Path("plots/deep"); place.mkdir(parents=True)
(place / "a.txt").write_text("hello")
client.log_artifact(run, "plots/deep/a.txt", "notes")
client.log_artifact(run, "plots")
client.log_artifacts(run, local_dir="plots", artifact_path="all")
client.log_artifact(run, "plots/deep/a.txt", "../../outside")
inner = client.create_run("7", run_name="../fold").info.run_id
client.log_artifact(inner, "plots/deep/a.txt")
"""
    )
    mlflow_command.script("model.py", script)
    done = mlflow_command("run", "-l", "none", "model.py")
    assert done.returncode == 0, done.stderr
    folder = mlflow_command.only_run().folder / "artifacts"
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    assert files == ["_fold/a.txt", "all/deep/a.txt", "notes/a.txt", "plots/deep/a.txt"]
    assert not list(mlflow_command.home.rglob("outside*"))


def test_copies_are_bounded_when_artifacts_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_ARTIFACT_BYTES", 10)
    (tmp_path / "small").write_bytes(b"12345678")
    (tmp_path / "large").write_bytes(b"123456789")
    run = tmp_path / "run"
    run.mkdir()
    recorder = recording.MlflowRecorder(run)
    recorder.note_artifact(None, "home", tmp_path / "small")
    recorder.note_artifact(None, "home", tmp_path / "large", "sub")
    assert [file.name for file in (run / "artifacts").rglob("*")] == ["small"]
    assert b"1 files of sub" in b"".join(file.read_bytes() for file in run.glob("*.spool"))


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_scripts_of_other_pythons_are_recorded_when_they_are_installed(mlflow_command: Command, version: str) -> None:
    places = [shutil.which(f"python{version}"), *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    works = [
        place for place in places if place and not subprocess.run([place, "-c", ""], capture_output=True).returncode
    ]
    python = works[0] if works else None
    if python is None:
        pytest.skip(f"there is no Python {version}")
    script = mlflow_command.script(
        "model.py", BEGIN + "client.log_metric(run, 'loss', 0.5)\nraise ValueError('as intended')\n"
    )
    done = mlflow_command("run", "-l", "none", "--", python, script.name)
    assert done.returncode == 1
    assert "sitecustomize" not in done.stderr
    run = mlflow_command.only_run()
    assert [(metric.name, metric.last) for metric in run.metrics] == [("loss", 0.5)]
    assert run.cause == "ValueError: as intended"


def test_client_module_is_the_same_when_it_is_recorded(mlflow_command: Command) -> None:
    mlflow_command.script(
        "model.py",
        """\
import inspect, json, os, sys
from mlflow.tracking._tracking_service import client
method = client.TrackingServiceClient.log_param
print(json.dumps([type(client.__loader__).__name__, type(client.__spec__.loader).__name__, str(inspect.signature(method)),
                  inspect.getsource(client)[:9], [key for key in os.environ if key.startswith("MLFLOW")]]))
""",
    )
    done = mlflow_command("run", "-l", "none", "model.py")
    loader, spec_loader, signature, source, variables = json.loads(done.stdout)
    assert loader == spec_loader == "SourceFileLoader"
    assert signature == "(self, run_id, key, value, synchronous=True)"
    assert source == '"""Keeps '
    assert variables == []


def test_names_are_those_of_mlflow_when_hardware_is_sent() -> None:
    assert metric_of("gpu_util_ratio", "n1:3", "device", run="r") == ("system/gpu_3_utilization_percentage", 100.0)
    assert metric_of("energy_joules", "run:r/n1:3", "process", run="r") == ("system/gpu_3_run_energy_joules", 1.0)
    assert metric_of("process_memory_bytes", None, "tree", run="r") == ("system/process_memory_megabytes", 1e-6)
    assert metric_of("cpu_energy_joules", "n1/package-0", "device", run="r")[0] == "system/package-0_cpu_energy_joules"
    assert metric_of("loss", None, "run", run="r") == ("loss", 1.0)
    assert clean('steps{rank="0"}') == "steps_rank__0__"
    assert [status_of(state) for state in ("completed", "cancelled", "out_of_memory")] == [
        "FINISHED",
        "KILLED",
        "FAILED",
    ]
