"""The MLflow-compatible endpoint, with requests of MLflow's clients; and names in MLflow's form."""

import json
from pathlib import Path

import pytest
from tracking.command import Command

from clusterscape.track.mlflow.naming import clean, metric_of, status_of
from clusterscape.track.mlflow.tracking_api import MlflowRun, TrackingApi, TrackingApiError

# What MLflow's client sends, without MLflow.
SCRIPT = """\
import json, os, urllib.error, urllib.request
base, run = os.environ["MLFLOW_TRACKING_URI"], os.environ["MLFLOW_RUN_ID"]
def ask(method, path, body=None, host=base):
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(host + path, data=data, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
api, files = "/api/2.0/mlflow/", "/api/2.0/mlflow-artifacts/artifacts/"
print(ask("GET", f"{api}runs/get?run_id={run}")[0])
print(ask("POST", f"{api}runs/log-metric", {"run_id": run, "key": "loss", "value": 0.5, "timestamp": 1, "step": 3})[0])
print(ask("PUT", f"{files}{run}/artifacts/a/b.txt", b"hello")[0], ask("GET", f"{files}{run}/artifacts/a/b.txt")[1])
print(ask("PUT", f"{files}{run}/artifacts/../../../outside.txt", b"bad")[0])
print(ask("POST", f"{api}registered-models/create", {"name": "x"})[0], ask("POST", f"{api}runs/log-metric", b"nonsense")[0])
print(ask("GET", f"{api}runs/get?run_id={run}", host=base.rpartition("/")[0] + "/other")[0])
"""


def test_only_the_script_gets_a_response_when_it_sends_a_request(command: Command) -> None:
    command.script("model.py", SCRIPT)
    done = command("run", "-l", "none", "model.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["200", "200", "200 b'hello'", "400", "404 400", "403"]
    run = command.only_run()
    assert [(metric.name, metric.last) for metric in run.metrics] == [("loss", 0.5)]
    assert (run.folder / "artifacts/a/b.txt").read_text() == "hello"
    assert not list(command.home.rglob("outside.txt"))


class RecordedNotes:
    def __init__(self) -> None:
        self.logged_metrics: list[tuple[int, int, dict[str, float]]] = []
        self.logged_params: dict[str, str] = {}
        self.logged_tags: dict[str, str] = {}

    def metrics(self, time_us: int, step: int, values: object) -> None:
        assert isinstance(values, dict)
        self.logged_metrics.append((time_us, step, values))

    def params(self, params: object) -> None:
        assert isinstance(params, dict)
        self.logged_params |= params

    def tags(self, tags: object) -> None:
        assert isinstance(tags, dict)
        self.logged_tags |= tags


@pytest.fixture
def recorded() -> RecordedNotes:
    return RecordedNotes()


@pytest.fixture
def api(recorded: RecordedNotes, tmp_path: Path) -> TrackingApi:
    numbers = iter(range(100))
    home = MlflowRun(run_id="home", experiment_id="1", name="train.py", notes=recorded, folder=tmp_path)
    return TrackingApi(home, lambda: f"inner{next(numbers)}")


def test_inner_runs_are_kept_under_their_name_when_a_script_begins_some(
    api: TrackingApi, recorded: RecordedNotes
) -> None:
    parent = {"key": "mlflow.parentRunId", "value": "home"}
    inner = api.answer("POST", "runs/create", {"experiment_id": "1", "run_name": "fold 1", "tags": [parent]})["run"]
    run = inner["info"]["run_id"]
    batch = {"run_id": run, "metrics": [{"key": "loss", "value": "NaN", "timestamp": 7, "step": 2}]}
    api.answer("POST", "runs/log-batch", {**batch, "params": [{"key": "lr", "value": "1"}]})
    ((time_us, step, values),) = recorded.logged_metrics
    assert (time_us, step, list(values)) == (7000, 2, ["fold 1/loss"])
    assert recorded.logged_params == {"fold 1/lr": "1"}
    assert api.answer("GET", "runs/get", {"run_id": run})["run"]["data"]["metrics"][0]["value"] == "NaN"
    with pytest.raises(TrackingApiError, match="not tracked here"):
        api.answer("GET", "runs/get", {"run_id": "somebody's"})


def test_every_experiment_is_the_runs_own_when_a_script_names_one(api: TrackingApi, recorded: RecordedNotes) -> None:
    experiment = api.answer("GET", "experiments/get-by-name", {"experiment_name": "mine"})["experiment"]
    assert (experiment["experiment_id"], experiment["name"]) == ("1", "mine")
    assert api.answer("POST", "experiments/create", {"name": "other"}) == {"experiment_id": "1"}
    assert recorded.logged_tags["mlflow.experiment"] == "other"
    assert json.dumps(api.answer("POST", "runs/log-inputs", {"run_id": "home"})) == "{}"


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
