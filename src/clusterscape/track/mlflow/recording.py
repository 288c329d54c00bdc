"""Records inside the script what MLflow's client logs: metrics, params, tags and artifacts become those of the tracked run.

The script's MLflow is left as it is; a call is recorded after it succeeded, and no error of recording reaches the script.
``startup/sitecustomize.py`` loads this file by path when a process imports MLflow's client: standard library only, and any
Python that the clients run on.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

CLIENT_MODULE = "mlflow.tracking._tracking_service.client"
CLIENT_CLASS = "TrackingServiceClient"
ARTIFACTS_FOLDER = "artifacts"
MOST_ARTIFACT_BYTES = 2 * 2**30
"""Most bytes of artifacts that a process copies; the script's own MLflow has the others."""
_RUNS_FILE = "mlflow-runs.jsonl"
_MOST_SEEN = 100_000
_LINKED_WITHIN_MS = 20  # MLflow's clock is read some time after ours
_PARENT_TAG = "mlflow.parentRunId"
_PACKAGE = Path(__file__).resolve().parents[2]


class LoggedRun:
    """What is known of a run of the script's MLflow."""

    def __init__(self, run: Any, *, is_named: bool = False) -> None:
        tags = getattr(run.data, "tags", None) or {}
        self.name = str(getattr(run.info, "run_name", None) or tags.get("mlflow.runName") or "")
        self.is_named = is_named  # by the script, not by MLflow
        self.parent: str | None = tags.get(_PARENT_TAG)
        self.experiment = str(run.info.experiment_id)


class MlflowRecorder:
    """Writes to one spool file per process. Thread-safe; a forked child starts a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.redactor: Any = None
        self._folder = folder
        self._runs: dict[str, LoggedRun] = {}
        self._models: dict[str, tuple[str, str | None]] = {}  # by id: name, and the run that logged it
        self._experiments: dict[str, str] = {}
        self._artifact_bytes = 0
        self._called_ms = 0  # when the call that is noted began
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.RLock()  # reentrant: a signal handler of the script may log
        self._fd: int | None = None
        self._good_bytes = 0
        self._codes: dict[str, int] = {}
        self._seen: dict[tuple[str, int, int, float], None] = {}  # the last metrics: name, when, step, value
        self._prefixes: dict[str, str] = {}
        self._has_failed = False

    def record_calls_of(self, client: type) -> None:
        """Record the calls of MLflow's client class."""
        for name, note in _NOTES.items():
            original = getattr(client, name, None)
            if original is not None:
                setattr(client, name, self._recorded(original, note))

    def _recorded(self, original: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(client: Any, *args: Any, **kwargs: Any) -> Any:
            called_ms = int(time.time() * 1000)
            answer = original(client, *args, **kwargs)
            try:
                with self._lock:
                    self._called_ms = called_ms
                    note(self, answer, *args, **kwargs)
            except Exception as error:  # the script must not notice
                self._report(error)
            return answer

        return call

    def note_run(self, answer: Any, *_: Any, run_name: str | None = None, **__: Any) -> None:
        before = self._runs.get(answer.info.run_id)
        self._runs[answer.info.run_id] = LoggedRun(answer, is_named=before.is_named if before else run_name is not None)

    def note_experiment(self, answer: Any, *_: Any, **__: Any) -> None:
        if answer is not None:
            self._experiments[str(answer.experiment_id)] = str(answer.name)

    def note_created_experiment(self, answer: Any, name: str, *_: Any, **__: Any) -> None:
        self._experiments[str(answer)] = str(name)

    def note_created_run(
        self,
        answer: Any,
        experiment_id: str,
        start_time: object = None,
        tags: Mapping[str, object] | None = None,
        run_name: str | None = None,
        **_: Any,
    ) -> None:
        del experiment_id, start_time
        self.note_run(answer, run_name=run_name)
        own = {key: str(value) for key, value in (tags or {}).items() if not key.startswith("mlflow.")}
        self._log(answer.info.run_id, tags=own)

    def note_metric(
        self,
        answer: Any,
        run_id: str,
        key: str,
        value: Any,
        timestamp: Any = None,
        step: Any = None,
        *_: Any,
        **__: Any,
    ) -> None:
        del answer
        self._log(run_id, metrics=[(key, value, timestamp, step, None)])

    def note_param(self, answer: Any, run_id: str, key: str, value: Any, *_: Any, **__: Any) -> None:
        del answer
        self._log(run_id, params={key: str(value)})

    def note_tag(self, answer: Any, run_id: str, key: str, value: Any, *_: Any, **__: Any) -> None:
        del answer
        self._log(run_id, tags={key: str(value)})

    def note_batch(
        self, answer: Any, run_id: str, metrics: Any = (), params: Any = (), tags: Any = (), *_: Any, **__: Any
    ) -> None:
        del answer
        self._log(
            run_id,
            metrics=[
                (metric.key, metric.value, metric.timestamp, metric.step, getattr(metric, "model_id", None))
                for metric in metrics
            ],
            params={param.key: str(param.value) for param in params},
            tags={tag.key: str(tag.value) for tag in tags},
        )

    def note_artifact(
        self, answer: Any, run_id: str, local_path: Any, artifact_path: str | None = None, *_: Any, **__: Any
    ) -> None:
        del answer
        source = Path(local_path)
        place = Path(artifact_path or "")
        self._keep(run_id, source, place / source.absolute().name if source.is_dir() else place)

    def note_artifacts(
        self, answer: Any, run_id: str, local_dir: Any, artifact_path: str | None = None, *_: Any, **__: Any
    ) -> None:
        del answer
        self._keep(run_id, Path(local_dir), Path(artifact_path or ""))

    def note_model(self, answer: Any, *_: Any, **__: Any) -> None:
        self._models[answer.model_id] = (str(answer.name or answer.model_id), answer.source_run_id)

    def note_model_artifacts(
        self, answer: Any, model_id: str, local_path: Any = None, artifact_path: str | None = None, *_: Any, **more: Any
    ) -> None:
        del answer
        name, run_id = self._models.get(model_id, (model_id, None))
        if run_id is not None:
            place = Path("models", _file_name(name) or model_id, artifact_path or "")
            self._keep(run_id, Path(local_path or more["local_dir"]), place)

    def _log(
        self,
        run_id: str,
        *,
        metrics: Iterable[tuple[str, Any, Any, Any, str | None]] = (),
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self._open()
        prefix = self._prefix(run_id)
        frames, rows = [], []
        for key, logged_value, logged_ms, logged_step, model in metrics:
            name, value, step = prefix + key, float(logged_value), int(logged_step or 0)
            time_ms = self._called_ms if logged_ms is None else int(logged_ms)
            if name not in self._codes:
                self._codes[name] = len(self._codes)
                series = {"code": self._codes[name], "name": name, "unit": None, "scope": "run", "method": "measured"}
                frames.append(self._event("series", **series))
            # MLflow logs values again when it links them to a model; like MLflow, keep them once.
            if any(
                (name, time_ms - late, step, value) in self._seen for late in range(_LINKED_WITHIN_MS if model else 1)
            ):
                continue
            self._seen[name, time_ms, step, value] = None
            if len(self._seen) > _MOST_SEEN:
                del self._seen[next(iter(self._seen))]
            rows.append((self._codes[name], time_ms * 1000, step, value))
        if rows:
            columns = [[row[at] for row in rows] for at in range(4)]
            frames.append(_load("model/run_frames.py").encode_samples(*columns))
        for event, fields in (("params", params), ("tags", tags)):
            if fields:
                frames.append(self._event(event, **{event: {prefix + key: value for key, value in fields.items()}}))
        if frames:
            self._write(b"".join(frames))

    def _prefix(self, run_id: str) -> str:
        """Before the names of what a run logs: empty for the first run of the script, which is the tracked run, and
        ``NAME/`` for others. All processes of the tracked run share the choice in a file."""
        if run_id in self._prefixes:
            return self._prefixes[run_id]
        run = self._runs.get(run_id)
        below = self._prefix(run.parent) if run and run.parent and run.parent != run_id else ""
        with (self._folder / _RUNS_FILE).open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            self._prefixes.update(json.loads(line) for line in file)
            if run_id not in self._prefixes:
                prefix = ""
                if self._prefixes:
                    name = f"{below}{_file_name(run.name if run else '') or run_id[:8]}"
                    prefix, number = f"{name}/", 2
                    while prefix in self._prefixes.values():
                        prefix, number = f"{name}-{number}/", number + 1
                self._prefixes[run_id] = prefix
                file.write(json.dumps([run_id, prefix]) + "\n")
                if not prefix:
                    self._describe(run_id, run)
        return self._prefixes[run_id]

    def _describe(self, run_id: str, run: LoggedRun | None) -> None:
        """Say which run of the script's MLflow the tracked run is."""
        tags = {"mlflow.run": run_id}
        if run is not None and run.is_named:
            tags["name"] = run.name
        if run is not None and run.experiment in self._experiments:
            tags["mlflow.experiment"] = self._experiments[run.experiment]
        self._write(self._event("tags", tags=tags))

    def _keep(self, run_id: str, source: Path, place: Path) -> None:
        """Copy a file into the folder ``place`` of the run's artifacts, or the files of a folder."""
        self._open()
        base = self._folder / ARTIFACTS_FOLDER
        target = (base / self._prefix(run_id) / place).resolve()
        if target != base.resolve() and base.resolve() not in target.parents:
            return
        files = [source] if source.is_file() else [path for path in sorted(source.rglob("*")) if path.is_file()]
        left_out = 0
        for file in files:
            size = file.stat().st_size
            if self._artifact_bytes + size > MOST_ARTIFACT_BYTES:
                left_out += 1
                continue
            self._artifact_bytes += size
            copy = target / (file.name if file == source else file.relative_to(source))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        if left_out:
            self._write(self._event("tags", tags={"mlflow.artifacts_left_out": f"{left_out} files of {place}"}))

    def _open(self) -> None:
        if self._fd is not None:
            return
        self.redactor = self.redactor or _find_redactor()
        number, flags = 0, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        while self._fd is None:
            name = f"mlflow-{os.getpid()}{f'-{number}' if number else ''}.spool"
            try:
                self._fd = os.open(self._folder / name, flags, 0o600)
            except FileExistsError:  # of a process that had the same number
                number += 1
        rank = os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or ""
        self._write(self._event("process", pid=os.getpid(), rank=int(rank) if rank.isdigit() else None))

    def _event(self, event: str, **fields: object) -> bytes:
        frame: bytes = _load("model/run_frames.py").encode_event({"event": event, **self.redactor.fields(fields)})
        return frame

    def _write(self, data: bytes) -> None:
        """Write all of ``data`` or nothing: what follows a truncated frame cannot be read."""
        assert self._fd is not None
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError:
            os.ftruncate(self._fd, self._good_bytes)
            raise
        self._good_bytes += written

    def _report(self, error: Exception) -> None:
        """Note the first problem in the run."""
        if self._has_failed:
            return
        self._has_failed = True
        try:
            with self._lock:
                self._open()
                message = f"{type(error).__name__}: {error}"[:1000]
                self._write(self._event("listener", listener="mlflow", state="failed", message=message))
        except Exception:  # noqa: S110 – there is nowhere left to say it
            pass


_NOTES: dict[str, Callable[..., None]] = {
    "get_run": MlflowRecorder.note_run,
    "get_experiment": MlflowRecorder.note_experiment,
    "get_experiment_by_name": MlflowRecorder.note_experiment,
    "create_experiment": MlflowRecorder.note_created_experiment,
    "create_run": MlflowRecorder.note_created_run,
    "log_metric": MlflowRecorder.note_metric,
    "log_param": MlflowRecorder.note_param,
    "set_tag": MlflowRecorder.note_tag,
    "log_batch": MlflowRecorder.note_batch,
    "log_artifact": MlflowRecorder.note_artifact,
    "log_artifacts": MlflowRecorder.note_artifacts,
    "create_logged_model": MlflowRecorder.note_model,
    "get_logged_model": MlflowRecorder.note_model,
    "log_model_artifact": MlflowRecorder.note_model_artifacts,
    "log_model_artifacts": MlflowRecorder.note_model_artifacts,
}


def _file_name(name: str) -> str:
    return name.replace("/", "_").strip(". ")


def _find_redactor() -> Any:
    """That of the script's own run, which knows the secrets it logged, else a new one."""
    current = getattr(sys.modules.get("clusterscape.track.api"), "_current", None)
    if current is not None:
        return current.redactor
    return _load("track/redaction.py").Redactor(os.environ, getattr(sys, "orig_argv", sys.argv))


@functools.lru_cache
def _load(path: str) -> Any:
    """A module of ClusterScape by its path: the script's Python need not have it installed."""
    spec = spec_from_file_location(f"_clusterscape_{Path(path).stem}", _PACKAGE / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
