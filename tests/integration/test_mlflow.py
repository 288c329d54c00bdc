"""Runs and a real MLflow server over PostgreSQL and S3: scripts log to MLflow unchanged, and everything arrives, now or later."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.mlflow import MlflowServer, mlflow_place, mlflow_server
from servers.postgres import postgres_server
from servers.seaweed import seaweed_server
from tracking.command import Command

pytestmark = pytest.mark.server

SCRIPT = """\
import sys
import mlflow

mlflow.set_experiment("whatever the script says")
with mlflow.start_run():
    mlflow.log_param("lr", 0.1)
    mlflow.log_param("hf_token", "Par4m-of-script")
    print("printed ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a")
    mlflow.log_metrics({"odd": float("nan")}, step=0)
    for step in range(30):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_text("hello", "notes/hello.txt")
    with mlflow.start_run(run_name="fold", nested=True):
        mlflow.log_metric("accuracy", 0.5)
if "--fail" in sys.argv:
    raise ValueError("as intended")
"""


@pytest.fixture(scope="module")
def place() -> MlflowServer:
    return mlflow_place()


@pytest.fixture
def command(tmp_path: Path, place: MlflowServer) -> Command:
    (tmp_path / "code").mkdir()
    command = Command(folder=tmp_path / "code", home=tmp_path / "home", deadline_s=180)
    command.variables["VIRTUAL_ENV"] = str(place.bin.parent)
    command.script("model.py", SCRIPT)
    return command


def test_calls_are_recorded_when_a_script_logs_to_a_store_of_its_own(command: Command) -> None:
    done = command("run", "-l", "none", "model.py")
    assert done.returncode == 0, done.stderr
    run = command.only_run()
    assert {metric.name: metric.samples for metric in run.metrics} == {"loss": 30, "odd": 1, "fold/accuracy": 1}
    assert run.params == {"lr": "0.1", "hf_token": "(masked)"}
    assert run.tags["mlflow.experiment"] == "whatever the script says"
    assert (run.folder / "artifacts/notes/hello.txt").read_text() == "hello"
    assert (command.folder / "mlflow.db").is_file()  # as without us


def test_tracking_uri_is_kept_when_the_user_has_set_it(command: Command) -> None:
    command.variables["MLFLOW_TRACKING_URI"] = "http://127.0.0.1:9"
    command.script("where.py", "import os\nprint(os.environ['MLFLOW_TRACKING_URI'], os.environ.get('MLFLOW_RUN_ID'))\n")
    process = command("run", "-l", "none", "--mlflow", "http://127.0.0.1:9", "where.py")
    assert process.stdout == "http://127.0.0.1:9 None\n"
    assert "not uploaded, kept on disk: http://127.0.0.1:9 does not respond" in process.stderr


def test_address_is_refused_when_it_is_not_of_a_server(command: Command) -> None:
    done = command("run", "--mlflow", "sqlite:///mlflow.db", "model.py")
    assert done.returncode == 2
    assert "not an MLflow server's address" in done.stderr
    assert command.runs() == []


@pytest.fixture
def sent_while_away(command: Command, place: MlflowServer) -> str:
    """A run that ended before its MLflow server was there."""
    done = command("run", "-l", "proc", "-e", "away", "--mlflow", place.url, "model.py")
    assert done.returncode == 0
    assert "not uploaded, kept on disk" in done.stderr
    return command.only_run().run


@pytest.fixture
def server(sent_while_away: str, place: MlflowServer) -> Iterator[MlflowServer]:
    with postgres_server() as postgres, seaweed_server() as store, mlflow_server(place, postgres, store) as started:
        yield started


def test_everything_arrives_when_the_server_was_away_and_when_it_is_there(
    command: Command, sent_while_away: str, server: MlflowServer
) -> None:
    done = command("runs", "upload", "--mlflow", server.url, "--json")
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["runs"]) == [sent_while_away]
    (away,) = runs_of(server, "away")
    check_run(server, away, status="FINISHED")
    assert "system/process_cpu_seconds" in metrics_of(away)
    again = json.loads(command("runs", "upload", sent_while_away, "--mlflow", server.url, "--json").stdout)
    assert again["runs"] == {sent_while_away: 0}

    plan = "Experiment,Workload,Devices,File,Listeners,Params\n1,7,cpu,model.py,proc,\n1,7,cpu,model.py,proc,--fail\n"
    command.script("plan.csv", plan)
    done = command("plan", "plan.csv", "--mlflow", server.url)
    assert done.returncode == 1, done.stderr
    if "not uploaded" in done.stdout:  # a busy machine: the plan waits for its server only for some seconds
        assert command("runs", "upload", "--mlflow", server.url).returncode == 0
    runs = {run["info"]["run_name"]: run for run in runs_of(server, "1")}
    assert set(runs) == {"7", "cpu_A", "cpu_B"}
    assert runs["7"]["info"]["status"] == "FAILED"
    assert runs["7"]["info"]["end_time"] == max(runs[name]["info"]["end_time"] for name in ("cpu_A", "cpu_B"))
    for name, status in (("cpu_A", "FINISHED"), ("cpu_B", "FAILED")):
        check_run(server, runs[name], status=status)
        assert tags_of(runs[name])["mlflow.parentRunId"] == runs["7"]["info"]["run_id"]
    assert tags_of(runs["cpu_B"])["clusterscape.cause"] == "ValueError: as intended"
    output = server.artifact(runs["cpu_B"], "clusterscape/output.log")
    assert b"as intended" in output
    assert b"printed (masked)" in output
    assert b"ghp_" not in output


def check_run(server: MlflowServer, run: dict[str, Any], *, status: str) -> None:
    assert run["info"]["status"] == status
    assert run["info"]["end_time"] > run["info"]["start_time"]
    metrics = metrics_of(run)
    assert metrics["loss"]["value"] == pytest.approx(1 / 30)
    assert metrics["loss"]["step"] == 29
    assert metrics["odd"]["value"] == "NaN"
    assert metrics["fold/accuracy"]["value"] == 0.5
    history = server.ask("metrics/get-history", run_id=run["info"]["run_id"], metric_key="loss")["metrics"]
    assert len(history) == 30
    assert {"lr": "0.1"}.items() <= {param["key"]: param["value"] for param in run["data"]["params"]}.items()
    assert server.artifact(run, "notes/hello.txt") == b"hello"
    assert json.loads(server.artifact(run, "clusterscape/environment.json"))["command"]


def runs_of(server: MlflowServer, experiment: str) -> list[dict[str, Any]]:
    stored = server.ask("experiments/get-by-name", experiment_name=experiment)["experiment"]
    runs: list[dict[str, Any]] = server.ask("runs/search", {"experiment_ids": [stored["experiment_id"]]})["runs"]
    return runs


def metrics_of(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {metric["key"]: metric for metric in run["data"]["metrics"]}


def tags_of(run: dict[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
