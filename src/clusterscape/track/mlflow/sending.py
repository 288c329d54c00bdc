"""Sends spooled runs to an MLflow server: experiment, a parent run for the workload, the run below it, its metrics and artifacts.

Progress is stored next to the spool, so that an upload resumes; sending twice changes nothing in MLflow.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from clusterscape.model.run_events import (
    Ended,
    EnvironmentDescribed,
    ListenerReported,
    MomentReached,
    ParamsSet,
    RunDescribed,
    Scalar,
    SeriesNamed,
    TagsSet,
    decode_run_event,
)
from clusterscape.model.run_frames import NO_STEP, FrameKind, decode_samples, iter_frames
from clusterscape.track.mlflow.naming import MOST_PARAM_VALUE, MOST_TAG_VALUE, clean, metric_of, status_of
from clusterscape.track.mlflow.recording import ARTIFACTS_FOLDER
from clusterscape.track.mlflow.server import MlflowServer
from clusterscape.track.places import make_private_folder
from clusterscape.track.redaction import Redactor, redact_lines
from clusterscape.track.spooled import spool_files
from clusterscape.track.tracked_run import OUTPUT_FILE

STATE_FILE = "mlflow.json"
ENVIRONMENT_FILE = "environment.json"
MOST_BYTES = 4 * 2**20
DEFAULT_EXPERIMENT = "clusterscape"
_OURS = "clusterscape"
_FAILED = "FAILED"


class MlflowRuns:
    """Sends runs below ``state``, the tracker's folder."""

    def __init__(self, server: MlflowServer, state: Path) -> None:
        self.url = server.uri
        self._server = server
        self._parents = state / "mlflow"

    def send(self, folder: Path) -> int:
        """Send the part of a run that the server does not have yet; returns the bytes sent from the spool. Raises SourceError."""
        sent = _Sent.read(folder, self.url)
        total = 0
        # The tracker's file describes the run and must come first.
        for file in sorted(spool_files(folder), key=lambda file: file.name != "tracker.spool"):
            total += self._send_file(sent, file)
        if sent.run and sent.is_over and not sent.has_artifacts:
            self._send_artifacts(sent)
        self._server.close()
        return total

    def _send_file(self, sent: "_Sent", file: Path) -> int:
        total = 0
        while True:
            offset = sent.offsets.get(file.name, 0)
            data = _piece(file, offset)
            piece = _Piece(sent, file.name)
            end = 0
            for frame in iter_frames(data):
                end = frame.end
                piece.take(frame.kind, frame.payload)
            if not end:
                return total
            self._log(sent, piece)
            sent.offsets[file.name] = offset + end
            sent.write()
            total += end

    def _log(self, sent: "_Sent", piece: "_Piece") -> None:
        if piece.about and not sent.run:
            self._begin(sent, piece.about)
        if not sent.run:
            return
        # MLflow does not allow to change a param: the first value stays, a later one becomes a tag.
        later = {
            f"{_OURS}.param.{key}": value for key, value in piece.params.items() if sent.params.get(key, value) != value
        }
        fresh = {key: value for key, value in piece.params.items() if key not in sent.params}
        self._server.log_batch(sent.run, metrics=piece.metrics, params=fresh, tags=piece.tags | later)
        sent.params |= fresh
        if piece.end is not None:
            status, end_ms = status_of(piece.end.state), piece.end.at
            self._server.update_run(sent.run, status, end_ms=end_ms)
            sent.is_over = True
            if sent.parent_key:
                with self._parent(sent.parent_key) as parent:
                    is_bad = _FAILED in (parent.get("status"), status)
                    parent["status"] = _FAILED if is_bad else status
                    parent["end_ms"] = max(end_ms, parent.get("end_ms", 0))
                    parent["open"] = [run for run in parent.get("open", []) if run != sent.folder.name]
                    if not parent["open"]:  # a parent ends with the last of its runs
                        self._server.update_run(str(parent["run"]), str(parent["status"]), end_ms=int(parent["end_ms"]))

    def _begin(self, sent: "_Sent", about: RunDescribed) -> None:
        """Create the run, as a child of its workload's run if it has one."""
        name = about.experiment or DEFAULT_EXPERIMENT
        sent.experiment = self._server.experiment(name)
        begun = about.queued_at or int(time.time() * 1000)
        tags = {
            f"{_OURS}.run": sent.folder.name,
            "mlflow.source.name": str(about.name),
            "mlflow.user": str(about.user),
        }
        places = {"host": about.host, "letter": about.letter, "collocation": about.collocation, "cwd": about.cwd}
        tags |= {f"{_OURS}.{key}": value[:MOST_TAG_VALUE] for key, value in places.items() if value}
        tags[f"{_OURS}.command"] = json.dumps(about.command)[:MOST_TAG_VALUE]
        tags[f"{_OURS}.devices"] = "+".join(about.devices or [])
        workload = about.workload
        if workload:
            # Runs of a workload were queued together.
            identity = json.dumps([self.url, name, workload, about.host, about.queued_at])
            sent.parent_key = hashlib.sha256(identity.encode()).hexdigest()[:24]
            with self._parent(sent.parent_key) as parent:
                if "run" not in parent:
                    parent["run"] = self._server.create_run(
                        sent.experiment,
                        workload,
                        start_ms=begun,
                        user=about.user,
                        tags={f"{_OURS}.workload": workload, f"{_OURS}.host": str(about.host)},
                    )
                parent["open"] = [*parent.get("open", []), sent.folder.name]
                tags["mlflow.parentRunId"] = str(parent["run"])
        label = about.letter or about.name or sent.folder.name
        sent.run = self._server.create_run(sent.experiment, label, start_ms=begun, user=about.user, tags=tags)
        sent.write()

    def _send_artifacts(self, sent: "_Sent") -> None:
        """Send the script's artifacts, its output, and what is needed to repeat the run."""
        base = self._server.artifact_path(sent.run)
        if base is not None:
            artifacts = sent.folder / ARTIFACTS_FOLDER
            for file in sorted(path for path in artifacts.rglob("*") if path.is_file()):
                self._server.put_artifact(f"{base}/{file.relative_to(artifacts).as_posix()}", file)
            if (output := sent.folder / OUTPUT_FILE).is_file():
                with _masked_copy(output) as masked:
                    self._server.put_artifact(f"{base}/{_OURS}/{output.name}", masked)
            if (environment := sent.folder / ENVIRONMENT_FILE).is_file():
                self._server.put_artifact(f"{base}/{_OURS}/{environment.name}", environment)
        sent.has_artifacts = True
        sent.write()

    @contextmanager
    def _parent(self, key: str) -> Iterator[dict[str, Any]]:
        """The state of a workload's parent run, locked against other runs of the workload."""
        make_private_folder(self._parents)
        file = self._parents / f"{key}.json"
        fd = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            parent: dict[str, Any] = _read_json(file)
            yield parent
            _write_json(file, parent)
        finally:
            os.close(fd)


class _Sent:
    """Upload progress of a run for one server."""

    def __init__(self, folder: Path, uri: str, state: Mapping[str, Any]) -> None:
        self.folder = folder
        self._uri = uri
        self.experiment = str(state.get("experiment", ""))
        self.run = str(state.get("run", ""))
        self.parent_key = str(state.get("parent_key", ""))
        self.offsets: dict[str, int] = dict(state.get("offsets", {}))
        self.series: dict[str, dict[str, list[Any]]] = dict(state.get("series", {}))  # by file and code
        self.params: dict[str, str] = dict(state.get("params", {}))
        self.started_us = int(state.get("started_us", 0))
        self.is_over = bool(state.get("is_over"))
        self.has_artifacts = bool(state.get("has_artifacts"))

    @classmethod
    def read(cls, folder: Path, uri: str) -> "_Sent":
        state = _read_json(folder / STATE_FILE)
        return cls(folder, uri, state if state.get("uri") == uri else {})

    def write(self) -> None:
        names = (
            "experiment",
            "run",
            "parent_key",
            "offsets",
            "series",
            "params",
            "started_us",
            "is_over",
            "has_artifacts",
        )
        _write_json(self.folder / STATE_FILE, {"uri": self._uri, **{name: getattr(self, name) for name in names}})


class _Piece:
    """The content of some frames of one file, in MLflow's format."""

    def __init__(self, sent: _Sent, file: str) -> None:
        self.about: RunDescribed | None = None
        self.end: Ended | None = None
        self.metrics: list[Mapping[str, object]] = []
        self.params: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self._sent = sent
        self._series = sent.series.setdefault(file, {})

    def take(self, kind: int, payload: bytes) -> None:
        try:
            if kind == FrameKind.SAMPLES:
                self._take_samples(payload)
            elif kind == FrameKind.EVENT:
                self._take_event(payload)
        except ValueError:
            return  # damaged: use the frames before

    def _take_event(self, payload: bytes) -> None:
        event = decode_run_event(payload)
        match event:
            case SeriesNamed(code=code, name=name, scope=str(scope)):
                named = metric_of(name, event.unit, scope, run=self._sent.folder.name)
                self._series[str(code)] = [*named, scope == "run"]
            case RunDescribed():
                self.about = event
                self._add_params(event.params or {})
            case ParamsSet():
                self._add_params(event.params)
            case TagsSet():
                self.tags |= {clean(key): str(value)[:MOST_TAG_VALUE] for key, value in event.tags.items()}
            case MomentReached(moment="running"):
                self._sent.started_us = event.at * 1000
            case ListenerReported():
                text = str(event.message or event.state)
                self.tags[f"{_OURS}.listener.{event.listener}"] = text[:MOST_TAG_VALUE]
            case EnvironmentDescribed():
                self._take_environment(event)
            case Ended():
                self.end = event
                if event.cause:
                    self.tags[f"{_OURS}.cause"] = event.cause[:MOST_TAG_VALUE]

    def _take_environment(self, event: EnvironmentDescribed) -> None:
        if event.git is not None:
            origin = {"commit": event.git.commit, "branch": event.git.branch, "repoURL": event.git.remote}
            self.tags |= {f"mlflow.source.git.{key}": value for key, value in origin.items() if value}
        fields = msgspec.to_builtins(event)
        _write_json(
            self._sent.folder / ENVIRONMENT_FILE,
            {key: fields[key] for key in fields if key != "event" and fields[key] is not None},
        )

    def _add_params(self, params: Mapping[str, Scalar]) -> None:
        self.params |= {clean(key): str(value)[:MOST_PARAM_VALUE] for key, value in params.items()}

    def _take_samples(self, payload: bytes) -> None:
        columns = decode_samples(payload)
        for code, time_us, step, value in zip(*columns, strict=True):
            series = self._series.get(str(code))
            if series is None:
                continue
            name, factor, _ = series
            # Without a step, use the seconds since the start, so that all series share an axis.
            step_number = step if step != NO_STEP else max(0, time_us - self._sent.started_us) // 1_000_000
            number: float | str = value * factor
            if value - value != 0.0:
                number = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
            self.metrics.append({"key": name, "value": number, "timestamp": time_us // 1000, "step": step_number})


@contextmanager
def _masked_copy(file: Path) -> Iterator[Path]:
    """The text of a file with secrets masked: a script may print secrets."""
    copy = file.with_suffix(".masked")
    try:
        with file.open(encoding="utf-8", errors="replace") as text, copy.open("w", encoding="utf-8") as into:
            blocks = iter(lambda: "".join(text.readlines(MOST_BYTES)), "")
            into.writelines(redact_lines(Redactor(os.environ), blocks))
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _piece(file: Path, offset: int) -> bytes:
    """Whole frames if possible: a frame may be larger than a piece."""
    with file.open("rb") as opened:
        opened.seek(offset)
        data = opened.read(MOST_BYTES)
        if len(data) == MOST_BYTES and next(iter_frames(data), None) is None:
            data += opened.read()
    return data


def is_sent(folder: Path) -> bool:
    """Whether an MLflow server has everything on the disk."""
    state = _read_json(folder / STATE_FILE)
    sizes = {file.name: file.stat().st_size for file in spool_files(folder)}
    return bool(state.get("has_artifacts")) and state.get("offsets") == sizes


def _read_json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _write_json(file: Path, body: Mapping[str, Any]) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(body), "utf-8")
    temporary.replace(file)
