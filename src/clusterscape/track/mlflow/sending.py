"""Sends spooled runs to an MLflow server: experiment, a parent run for the workload, the run below it, its metrics and artifacts.

How far it has come stands beside the spool, so that it goes on where it was broken off; sending twice changes nothing in MLflow.
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

from clusterscape.model.run_frames import NO_STEP, FrameKind, decode_event, decode_samples, iter_frames
from clusterscape.track.mlflow.gateway import ARTIFACTS_FOLDER
from clusterscape.track.mlflow.naming import MOST_PARAM_VALUE, MOST_TAG_VALUE, clean, metric_of, status_of
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
        """Send what the server does not have yet of a run; returns the bytes of the spool that were sent. Raises SourceError."""
        sent = _Sent.read(folder, self.url)
        total = 0
        # The tracker's file says what the run is; the others need that.
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
        # MLflow refuses another value for a param: the first stays, a later one is a tag.
        later = {
            f"{_OURS}.param.{key}": value for key, value in piece.params.items() if sent.params.get(key, value) != value
        }
        fresh = {key: value for key, value in piece.params.items() if key not in sent.params}
        self._server.log_batch(sent.run, metrics=piece.metrics, params=fresh, tags=piece.tags | later)
        sent.params |= fresh
        if piece.end is not None:
            state, at = str(piece.end.get("state")), piece.end.get("at")
            end_ms = at if isinstance(at, int) else None
            self._server.update_run(sent.run, status_of(state), end_ms=end_ms)
            sent.is_over = True
            if sent.parent_key:
                with self._parent(sent.parent_key) as parent:
                    is_bad = _FAILED in (parent.get("status"), status_of(state))
                    parent["status"] = _FAILED if is_bad else status_of(state)
                    self._server.update_run(str(parent["run"]), str(parent["status"]), end_ms=end_ms)

    def _begin(self, sent: "_Sent", about: Mapping[str, Any]) -> None:
        """The run, below its workload's where it belongs to one."""
        name = str(about.get("experiment") or DEFAULT_EXPERIMENT)
        sent.experiment = self._server.experiment(name)
        begun = int(about.get("queued_at") or time.time() * 1000)
        user = about.get("user")
        tags = {
            f"{_OURS}.run": sent.folder.name,
            "mlflow.source.name": str(about.get("name")),
            "mlflow.user": str(user),
        }
        for key in ("host", "letter", "collocation", "cwd"):
            if about.get(key):
                tags[f"{_OURS}.{key}"] = str(about[key])[:MOST_TAG_VALUE]
        tags[f"{_OURS}.command"] = json.dumps(about.get("command"))[:MOST_TAG_VALUE]
        tags[f"{_OURS}.devices"] = "+".join(map(str, about.get("devices") or []))
        workload = about.get("workload")
        if workload:
            # Runs of a workload were queued together.
            told = json.dumps([self.url, name, workload, about.get("host"), about.get("queued_at")])
            sent.parent_key = hashlib.sha256(told.encode()).hexdigest()[:24]
            with self._parent(sent.parent_key) as parent:
                if "run" not in parent:
                    parent["run"] = self._server.create_run(
                        sent.experiment,
                        str(workload),
                        start_ms=begun,
                        user=user,
                        tags={f"{_OURS}.workload": str(workload), f"{_OURS}.host": str(about.get("host"))},
                    )
                tags["mlflow.parentRunId"] = str(parent["run"])
        label = str(about.get("letter") or about.get("name") or sent.folder.name)
        sent.run = self._server.create_run(sent.experiment, label, start_ms=begun, user=user, tags=tags)
        sent.write()

    def _send_artifacts(self, sent: "_Sent") -> None:
        """What the script stored, its output, and what one needs to run it again."""
        base = self._server.artifact_path(sent.run)
        if base is not None:
            mine = sent.folder / ARTIFACTS_FOLDER
            for file in sorted(path for path in mine.rglob("*") if path.is_file()):
                self._server.put_artifact(f"{base}/{file.relative_to(mine).as_posix()}", file)
            if (output := sent.folder / OUTPUT_FILE).is_file():
                with _masked_copy(output) as masked:
                    self._server.put_artifact(f"{base}/{_OURS}/{output.name}", masked)
            if (environment := sent.folder / ENVIRONMENT_FILE).is_file():
                self._server.put_artifact(f"{base}/{_OURS}/{environment.name}", environment)
        sent.has_artifacts = True
        sent.write()

    @contextmanager
    def _parent(self, key: str) -> Iterator[dict[str, Any]]:
        """What is known of a workload's run, held against the other runs that send theirs."""
        make_private_folder(self._parents)
        file = self._parents / f"{key}.json"
        fd = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            known: dict[str, Any] = _read_json(file)
            yield known
            _write_json(file, known)
        finally:
            os.close(fd)


class _Sent:
    """How far a run was sent to one server."""

    def __init__(self, folder: Path, uri: str, known: Mapping[str, Any]) -> None:
        self.folder = folder
        self._uri = uri
        self.experiment = str(known.get("experiment", ""))
        self.run = str(known.get("run", ""))
        self.parent_key = str(known.get("parent_key", ""))
        self.offsets: dict[str, int] = dict(known.get("offsets", {}))
        self.series: dict[str, dict[str, list[Any]]] = dict(known.get("series", {}))  # by file and code
        self.params: dict[str, str] = dict(known.get("params", {}))
        self.started_us = int(known.get("started_us", 0))
        self.is_over = bool(known.get("is_over"))
        self.has_artifacts = bool(known.get("has_artifacts"))

    @classmethod
    def read(cls, folder: Path, uri: str) -> "_Sent":
        known = _read_json(folder / STATE_FILE)
        return cls(folder, uri, known if known.get("uri") == uri else {})

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
    """What some frames of one file say, in MLflow's words."""

    def __init__(self, sent: _Sent, file: str) -> None:
        self.about: dict[str, Any] | None = None
        self.end: dict[str, Any] | None = None
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
                self._take_event(decode_event(payload))
        except ValueError:
            return  # damaged: what is whole counts

    def _take_event(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"event": "series", "code": int(code), "name": str(name), "scope": str(scope)}:
                named = metric_of(name, event.get("unit"), scope, run=self._sent.folder.name)
                self._series[str(code)] = [*named, scope == "run"]
            case {"event": "run"}:
                self.about = dict(event)
                self._add_params(event.get("params"))
            case {"event": "params"}:
                self._add_params(event.get("params"))
            case {"event": "tags", "tags": dict(tags)}:
                self.tags |= {clean(str(key)): str(value)[:MOST_TAG_VALUE] for key, value in tags.items()}
            case {"event": "moment", "moment": "running", "at": int(at)}:
                self._sent.started_us = at * 1000
            case {"event": "listener", "listener": str(name)}:
                self.tags[f"{_OURS}.listener.{name}"] = str(event.get("message") or event.get("state"))[:MOST_TAG_VALUE]
            case {"event": "environment"}:
                self._take_environment(event)
            case {"event": "end"}:
                self.end = dict(event)
                if event.get("cause"):
                    self.tags[f"{_OURS}.cause"] = str(event["cause"])[:MOST_TAG_VALUE]

    def _take_environment(self, event: Mapping[str, Any]) -> None:
        git = event.get("git")
        if isinstance(git, Mapping):
            told = {"commit": git.get("commit"), "branch": git.get("branch"), "repoURL": git.get("remote")}
            self.tags |= {f"mlflow.source.git.{key}": str(value) for key, value in told.items() if value}
        _write_json(self._sent.folder / ENVIRONMENT_FILE, {key: event[key] for key in event if key != "event"})

    def _add_params(self, params: object) -> None:
        if isinstance(params, Mapping):
            self.params |= {clean(str(key)): str(value)[:MOST_PARAM_VALUE] for key, value in params.items()}

    def _take_samples(self, payload: bytes) -> None:
        columns = decode_samples(payload)
        for code, time_us, step, value in zip(*columns, strict=True):
            known = self._series.get(str(code))
            if known is None:
                continue
            name, factor, _ = known
            # Where none was told, seconds since the start are the step, so that lines of all kinds share an axis.
            told = step if step != NO_STEP else max(0, time_us - self._sent.started_us) // 1_000_000
            number: float | str = value * factor
            if value - value != 0.0:
                number = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
            self.metrics.append({"key": name, "value": number, "timestamp": time_us // 1000, "step": told})


@contextmanager
def _masked_copy(file: Path) -> Iterator[Path]:
    """The text of a file without secrets: a script may print what it should not."""
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
    known = _read_json(folder / STATE_FILE)
    sizes = {file.name: file.stat().st_size for file in spool_files(folder)}
    return bool(known.get("has_artifacts")) and known.get("offsets") == sizes


def _read_json(file: Path) -> dict[str, Any]:
    try:
        known = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write_json(file: Path, body: Mapping[str, Any]) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(body), "utf-8")
    temporary.replace(file)
