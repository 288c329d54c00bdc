"""A local endpoint that acts as an MLflow server for scripts: what they log is written to the run's spool at once.

Scripts that use MLflow need no server and never wait for one. The socket is opened before the script starts; heavy modules
are imported at the first request.
"""

import json
import secrets
import select
import shutil
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from clusterscape.track.places import make_private_folder
from clusterscape.track.redaction import Redactor
from clusterscape.track.spool import Spool

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from clusterscape.track.mlflow.tracking_api import TrackingApi

SPOOL_FILE = "mlflow.spool"
ARTIFACTS_FOLDER = "artifacts"
URI_VARIABLE = "MLFLOW_TRACKING_URI"
_API = "/api/2.0/mlflow/"
_ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
_CLOSE_WITHIN_S = 2.0
_EXPERIMENT = "1"


class SpoolNotes:
    """Writes what a script logs to MLflow to a separate spool file, created at the first write."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor
        self._spool: Spool | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def metrics(self, time_us: int, step: int, values: Mapping[str, float]) -> None:
        """Numbers by name."""
        if spool := self._open():
            spool.add(time_us, step, values)

    def params(self, params: Mapping[str, str]) -> None:
        """Parameters by name."""
        if spool := self._open():
            spool.event("params", params=dict(params))

    def tags(self, tags: Mapping[str, str]) -> None:
        """Words about it."""
        if spool := self._open():
            spool.event("tags", tags=dict(tags))

    def close(self) -> None:
        """Write the rest."""
        with self._lock:
            self._is_closed = True
            if self._spool is not None:
                self._spool.close()

    def _open(self) -> Spool | None:
        with self._lock:
            if self._is_closed:
                return None
            if self._spool is None:
                self._spool = Spool(self._folder / SPOOL_FILE, self._redactor)
                self._spool.event("process", pid=None, rank=None)
                self._spool.start()
            return self._spool


class MlflowGateway:
    """Serves the runs of one tracker on loopback, each behind a secret path."""

    def __init__(self, runs: Sequence[tuple[str, Path, Redactor]]) -> None:
        """``runs``: name, folder and redactor of each. Call before the scripts are forked, so that the socket is open."""
        self._runs = [(name, folder) for name, folder, _ in runs]
        self._paths = [secrets.token_urlsafe(12) for _ in runs]
        self._ids = [secrets.token_hex(16) for _ in runs]
        self._notes = [SpoolNotes(folder, redactor) for _, folder, redactor in runs]
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._stop_read, self._stop_write = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="mlflow", daemon=True)

    def environ(self, number: int) -> dict[str, str]:
        """Environment variables for the script of run ``number``."""
        return {
            URI_VARIABLE: f"http://127.0.0.1:{self._socket.getsockname()[1]}/{self._paths[number]}",
            "MLFLOW_RUN_ID": self._ids[number],
            "MLFLOW_EXPERIMENT_ID": _EXPERIMENT,
            "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # it cannot be opened later
        }

    def start(self) -> None:
        """Start to serve requests. Call after the scripts are forked."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and write the rest."""
        self._stop_write.close()
        if self._thread.ident is not None:
            self._thread.join(_CLOSE_WITHIN_S)
        self._socket.close()
        self._stop_read.close()
        for notes in self._notes:
            notes.close()

    def _serve(self) -> None:
        server: ThreadingHTTPServer | None = None
        while True:
            ready, _, _ = select.select([self._socket, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            server = server or self._make_server()
            server.handle_request()

    def _make_server(self) -> "ThreadingHTTPServer":
        from clusterscape.track.mlflow.tracking_api import MlflowRun, TrackingApi

        parts = zip(self._ids, self._notes, self._runs, strict=True)
        apis = [
            TrackingApi(
                MlflowRun(
                    run_id=run_id,
                    experiment_id=_EXPERIMENT,
                    name=name,
                    notes=notes,
                    folder=folder / ARTIFACTS_FOLDER,
                    started_ms=int(time.time() * 1000),
                ),
                lambda: secrets.token_hex(16),
            )
            for run_id, notes, (name, folder) in parts
        ]
        return _make_server(self._socket, _Answers(dict(zip(self._paths, apis, strict=True))))


class _Answers:
    """Computes the status and response of a request from its line and body."""

    def __init__(self, apis: "Mapping[str, TrackingApi]") -> None:
        self._apis = apis

    def handle(self, method: str, target: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and JSON."""
        from clusterscape.track.mlflow.tracking_api import TrackingApiError

        try:
            api, path, query = self._find(target)
            if path.startswith(_ARTIFACTS):
                return 200, api.list_artifacts(query.get("path", path.removeprefix(_ARTIFACTS)))
            if not path.startswith(_API):
                raise TrackingApiError(404, "ENDPOINT_NOT_FOUND", f"no {path} here")
            request = json.loads(body) if body else query
            return 200, api.answer(method, path.removeprefix(_API), request)
        except TrackingApiError as error:
            return error.status, error.body
        except (ValueError, TypeError, AttributeError) as error:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": str(error)}

    def file(self, target: str) -> Path | None:
        """The artifact of a request; None for other requests. Raises TrackingApiError."""
        api, path, query = self._find(target)
        if not path.startswith(f"{_ARTIFACTS}/") or query:
            return None
        return api.artifact(path.removeprefix(_ARTIFACTS))

    def _find(self, target: str) -> "tuple[TrackingApi, str, dict[str, str]]":
        from clusterscape.track.mlflow.tracking_api import TrackingApiError

        parts = urlsplit(target)
        base, slash, path = unquote(parts.path).lstrip("/").partition("/")
        if base not in self._apis:
            raise TrackingApiError(403, "PERMISSION_DENIED", "this endpoint belongs to another run")
        return self._apis[base], slash + path, {key: values[-1] for key, values in parse_qs(parts.query).items()}


def _make_server(listening: socket.socket, answers: _Answers) -> "ThreadingHTTPServer":
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from clusterscape.track.mlflow.tracking_api import TrackingApiError

    class Handler(BaseHTTPRequestHandler):
        """One connection of a script."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # a response is sent as one packet

        def do_GET(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def do_PATCH(self) -> None:
            self._reply()

        def do_PUT(self) -> None:
            self._transfer(is_upload=True)

        def do_DELETE(self) -> None:
            self._send(200, {})

        def _reply(self) -> None:
            if self.command == "GET" and self._transfer(is_upload=False):
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._send(*answers.handle(self.command, self.path, body))

        def _transfer(self, *, is_upload: bool) -> bool:
            """Receive or send a file; False for other requests."""
            try:
                file = answers.file(self.path)
            except TrackingApiError:  # the other way of answering tells it
                file = None
            if is_upload:
                return self._take(file)
            if file is None or not file.is_file():
                return False
            self.send_response(200)
            self.send_header("Content-Length", str(file.stat().st_size))
            self.end_headers()
            with file.open("rb") as opened:
                shutil.copyfileobj(opened, self.wfile)
            return True

        def _take(self, file: Path | None) -> bool:
            left = int(self.headers.get("Content-Length") or 0)
            if file is None:
                self.rfile.read(left)
                self._send(*answers.handle("PUT", self.path, b""))
                return True
            try:
                make_private_folder(file.parent)
                with file.open("wb") as opened:
                    while left > 0 and (piece := self.rfile.read(min(left, 2**20))):
                        opened.write(piece)
                        left -= len(piece)
            except OSError as error:
                self.close_connection = True
                self._send(507, {"error_code": "INTERNAL_ERROR", "message": f"cannot keep the artifact: {error}"})
                return True
            self._send(200, {})
            return True

        def _send(self, status: int, body: Mapping[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Log nothing: it would mix with the script's output."""

    server = ThreadingHTTPServer(listening.getsockname()[:2], Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.daemon_threads = True
    server.timeout = 1.0
    return server
