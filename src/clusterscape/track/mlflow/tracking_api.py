"""The part of MLflow's tracking API that scripts need for logging: turns requests into responses and spool entries.

Compatible with MLflow's clients 2.x and 3.x. Independent of sockets. Serves one tracked run; runs that a
script starts inside it become parts of it, with their name as a prefix of their metrics.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

_UNKNOWN = "RESOURCE_DOES_NOT_EXIST"
_NOT_HERE = "ENDPOINT_NOT_FOUND"


class RunNotes(Protocol):
    """Receives what a script logs."""

    def metrics(self, time_us: int, step: int, values: Mapping[str, float]) -> None:
        """Numbers by name."""
        ...

    def params(self, params: Mapping[str, str]) -> None:
        """Parameters by name."""
        ...

    def tags(self, tags: Mapping[str, str]) -> None:
        """Words about it."""
        ...


@dataclass(slots=True)
class MlflowRun:
    """A run as MLflow's client sees it. ``prefix`` of its metrics: empty for the tracked run itself."""

    run_id: str
    experiment_id: str
    name: str
    notes: RunNotes
    folder: Path  # where its artifacts go
    prefix: str = ""
    started_ms: int = 0
    ended_ms: int | None = None
    status: str = "RUNNING"
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)  # the last of each
    steps: int = 0


class TrackingApiError(Exception):
    """An error response in MLflow's format."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error_code": code, "message": message}


class TrackingApi:
    """Handles requests of one run's processes. Thread-safe."""

    def __init__(self, run: MlflowRun, new_id: Callable[[], str]) -> None:
        self._home = run
        self._runs = {run.run_id: run}
        self._new_id = new_id
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a request. ``path``: the part after ``/api/2.0/mlflow/``. Raises TrackingApiError."""
        handler = _ANSWERS.get((method, path))
        if handler is None:
            raise TrackingApiError(404, _NOT_HERE, f"a run tracked by ClusterScape does not answer {method} {path}")
        with self._lock:
            return handler(self, body)

    def artifact(self, path: str) -> Path:
        """The file behind ``RUN/artifacts/…``. Raises ApiError for a place outside the run's folder."""
        run_id, _, rest = path.strip("/").partition("/")
        folder = self._find(run_id).folder
        inner = rest.removeprefix("artifacts").strip("/")
        file = (folder / inner).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise TrackingApiError(400, "INVALID_PARAMETER_VALUE", f"{path} is outside the run")
        return file

    def list_artifacts(self, path: str) -> dict[str, Any]:
        """Files and folders right below ``path``, a folder of artifacts."""
        folder = self.artifact(path)
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        files = [{"path": entry.name, "is_dir": entry.is_dir(), "file_size": entry.stat().st_size} for entry in entries]
        return {"files": files}

    def _find(self, run_id: object) -> MlflowRun:
        run = self._runs.get(str(run_id))
        if run is None:
            raise TrackingApiError(404, _UNKNOWN, f"run {run_id} is not tracked here")
        return run

    def _of(self, body: Mapping[str, Any]) -> MlflowRun:
        return self._find(body.get("run_id") or body.get("run_uuid"))

    def get_run(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"run": _describe(self._of(body))}

    def create_run(self, body: Mapping[str, Any]) -> dict[str, Any]:
        home = self._home
        tags = _pairs(body.get("tags"))
        parent = self._runs.get(tags.get("mlflow.parentRunId", ""), home)
        name = str(body.get("run_name") or tags.get("mlflow.runName") or f"run {len(self._runs)}")
        run_id = self._new_id()
        self._runs[run_id] = run = MlflowRun(
            run_id=run_id,
            experiment_id=home.experiment_id,
            name=name,
            notes=home.notes,
            folder=home.folder / name.replace("/", "_").strip(".") / run_id[:6],
            prefix=f"{parent.prefix}{name}/",
            started_ms=int(body.get("start_time") or time.time() * 1000),
            tags=tags,
        )
        return {"run": _describe(run)}

    def update_run(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ignored for the tracked run: a script may end it and continue, so the tracker determines its outcome."""
        run = self._of(body)
        run.status = str(body.get("status") or run.status)
        run.ended_ms = int(body["end_time"]) if body.get("end_time") else run.ended_ms
        if body.get("run_name"):
            run.name = str(body["run_name"])
            if not run.prefix:
                run.notes.tags({"name": run.name})
        return {"run_info": _describe(run)["info"]}

    def log_metric(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._log(self._of(body), [body], {}, {})

    def log_param(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._log(self._of(body), [], {str(body.get("key")): str(body.get("value"))}, {})

    def set_tag(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._log(self._of(body), [], {}, {str(body.get("key")): str(body.get("value"))})

    def log_batch(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._log(
            self._of(body), body.get("metrics") or [], _pairs(body.get("params")), _pairs(body.get("tags"))
        )

    def _log(
        self, run: MlflowRun, metrics: list[Mapping[str, Any]], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> dict[str, Any]:
        for metric in metrics:
            key, value = str(metric.get("key")), float(metric.get("value", "nan"))
            time_ms, step = int(metric.get("timestamp") or time.time() * 1000), int(metric.get("step") or 0)
            run.notes.metrics(time_ms * 1000, step, {run.prefix + key: value})
            run.metrics[key] = {"key": key, "value": _number(value), "timestamp": time_ms, "step": step}
        run.params.update(params)
        run.tags.update(tags)
        if params:
            run.notes.params({run.prefix + key: value for key, value in params.items()})
        if tags:
            run.notes.tags({run.prefix + key: value for key, value in tags.items()})
        return {}

    def nothing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Accepts requests that are not stored: datasets, model records."""
        del body
        return {}

    def get_history(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The last value only: the whole history is in the spool."""
        last = self._of(body).metrics.get(str(body.get("metric_key")))
        return {"metrics": [last] if last else []}

    def get_experiment(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The run's experiment, whichever experiment a script names."""
        home = self._home
        name = str(body.get("experiment_name") or home.tags.get("experiment") or "clusterscape")
        if body.get("experiment_name"):
            home.notes.tags({"mlflow.experiment": name})
        return {
            "experiment": {
                "experiment_id": home.experiment_id,
                "name": name,
                "artifact_location": f"mlflow-artifacts:/{home.run_id}",
                "lifecycle_stage": "active",
            }
        }

    def create_experiment(self, body: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.get_experiment({"experiment_name": body.get("name")})["experiment"]
        return {"experiment_id": found["experiment_id"]}

    def search_runs(self, body: Mapping[str, Any]) -> dict[str, Any]:
        del body
        return {"runs": [_describe(run) for run in self._runs.values()]}


_Answer = Callable[[TrackingApi, Mapping[str, Any]], dict[str, Any]]
_ANSWERS: dict[tuple[str, str], _Answer] = {
    ("GET", "runs/get"): TrackingApi.get_run,
    ("POST", "runs/create"): TrackingApi.create_run,
    ("POST", "runs/update"): TrackingApi.update_run,
    ("POST", "runs/log-metric"): TrackingApi.log_metric,
    ("POST", "runs/log-parameter"): TrackingApi.log_param,
    ("POST", "runs/log-batch"): TrackingApi.log_batch,
    ("POST", "runs/set-tag"): TrackingApi.set_tag,
    ("POST", "runs/delete-tag"): TrackingApi.nothing,
    ("POST", "runs/log-inputs"): TrackingApi.nothing,
    ("POST", "runs/outputs"): TrackingApi.nothing,
    ("POST", "runs/log-model"): TrackingApi.nothing,
    ("POST", "runs/search"): TrackingApi.search_runs,
    ("GET", "metrics/get-history"): TrackingApi.get_history,
    ("GET", "experiments/get"): TrackingApi.get_experiment,
    ("GET", "experiments/get-by-name"): TrackingApi.get_experiment,
    ("POST", "experiments/create"): TrackingApi.create_experiment,
    ("POST", "experiments/set-experiment-tag"): TrackingApi.nothing,
}


def _describe(run: MlflowRun) -> dict[str, Any]:
    info = {
        "run_id": run.run_id,
        "run_uuid": run.run_id,
        "run_name": run.name,
        "experiment_id": run.experiment_id,
        "status": run.status,
        "start_time": run.started_ms,
        "artifact_uri": f"mlflow-artifacts:/{run.run_id}/artifacts",
        "lifecycle_stage": "active",
    }
    if run.ended_ms is not None:
        info["end_time"] = run.ended_ms
    return {
        "info": info,
        "data": {
            "metrics": list(run.metrics.values()),
            "params": [{"key": key, "value": value} for key, value in run.params.items()],
            "tags": [{"key": key, "value": value} for key, value in {**run.tags, "mlflow.runName": run.name}.items()],
        },
        "inputs": {},
    }


def _pairs(value: object) -> dict[str, str]:
    if not isinstance(value, list):
        return {}
    return {str(pair.get("key")): str(pair.get("value")) for pair in value if isinstance(pair, Mapping)}


def _number(value: float) -> float | str:
    """NaN and infinities as text, because JSON does not have them and MLflow accepts their names."""
    if value - value == 0.0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
